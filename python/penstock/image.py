"""Images: chains of ops that run in one pass, from the file's bytes to the place in the batch.

    chain = ps.image.decode().resize(64, 64).random_flip().to_float()
    ds = ps.image_folder("train").map(chain).batch(64)

The ops are those of the C++ library, by the same words; `help(ps.image.Chain)` lists them.
"""

from __future__ import annotations

import inspect
import json
from typing import Any

from . import _native


class Chain:
    """A value; each op gives a longer chain. `Dataset.map` takes it as it takes a function."""

    def __init__(self, native: _native.Chain) -> None:
        self._native = native

    def seed(self, seed: int) -> Chain:
        """Random ops draw other numbers; default 0."""
        return Chain(self._native.seed(seed))

    def step(self, word: str, **arguments: Any) -> Chain:
        """The op `word`; the methods do the same."""
        return Chain(self._native.step(word, json.dumps(arguments)))


def _method(word: str, about: str, parameters: list[tuple[str, str | None, str]]) -> Any:
    signature = inspect.Signature(
        [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)] +
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD,
                           default=inspect.Parameter.empty if fallback is None
                           else json.loads(fallback)) for name, fallback, _ in parameters])

    def method(self: Chain, *values: Any, **named: Any) -> Chain:
        given = signature.bind(self, *values, **named).arguments
        return self.step(word, **{name: value for name, value in given.items() if name != "self"})

    method.__name__ = word
    method.__qualname__ = f"Chain.{word}"
    method.__signature__ = signature  # type: ignore[attr-defined]
    method.__doc__ = "\n".join([about, *(f"    {name}: {words}" for name, _, words in parameters)])
    return method


for _word, _about, _parameters in _native.image_steps():
    if _word != "decode":
        setattr(Chain, _word, _method(_word, _about, _parameters))


def of(field: str = "") -> Chain:
    """A chain that begins with pixels: u8, u16 or f32 (white is 1), [height, width(, channels)]."""
    return Chain(_native.image_of(field))


def decode(channels: int = 3, *, field: str = "", keep_16_bit: bool = False,
           fast_scale: bool = False, pixels_max: int = 1 << 27,
           side_max: int = 65_535, bytes_max: int = 1 << 30, time_max: float = 10.0) -> Chain:
    """A chain that begins with encoded bytes; the format is told by content."""
    return of(field).step("decode", channels=channels, keep_16_bit=keep_16_bit,
                          fast_scale=fast_scale, pixels_max=pixels_max,
                          side_max=side_max, bytes_max=bytes_max, time_max=time_max)


def one_hot(classes: int, field: str = "label") -> _native.OpCall:
    """The field of class numbers becomes float32 vectors of length `classes`."""
    return _native.one_hot(classes, field)


def mixup(alpha: float = 0.2, *, chance: float = 1.0, seed: int = 0, image: str = "image",
          label: str = "label") -> _native.OpCall:
    """After batch: each sample is mixed with a partner of its global batch, labels alike."""
    return _native.mixup(alpha, chance, seed, image, label)


def cutmix(alpha: float = 1.0, *, chance: float = 1.0, seed: int = 0, image: str = "image",
           label: str = "label") -> _native.OpCall:
    """After batch: a rectangle of a partner of the same global batch is pasted, labels alike."""
    return _native.cutmix(alpha, chance, seed, image, label)
