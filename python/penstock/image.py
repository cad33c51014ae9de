"""Images: chains of ops that run in one pass, from the bytes of the file into the batch.

    chain = ps.image.decode().resize(64, 64).random_flip().to_float()
    ds = ps.image_folder("train").map(chain).batch(64)

The ops have the same names as in the C++ library; `help(ps.image.Chain)` lists them.
"""

from __future__ import annotations

import inspect
import json
from typing import Any

import numpy as np

from . import _native
from .arguments import flag, made_by, number, refuse, seed_of, text, whole
from .foreign import explained


def _plain(word: str, name: str, value: Any) -> Any:
    """The value as JSON can hold it."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(word, name, each) for each in value]
    if not isinstance(value, (bool, int, float, str)) or isinstance(value, float) and (
            value - value != 0):  # JSON has neither NaN nor infinity
        raise refuse(word, name, value, "is not a value of an image op",
                     "pass numbers, strings, True or False, or lists of them")
    return value


@explained
class Chain:
    """An immutable value; each op returns a longer chain. `Dataset.map` accepts it."""

    def __init__(self, native: _native.Chain) -> None:
        self._native: _native.Chain = made_by("a Chain", native, _native.Chain,
                                              "begin with ps.image.decode() or ps.image.of()")

    def seed(self, seed: int) -> Chain:
        """Sets the seed of the random ops; default 0."""
        return Chain(self._native.seed(seed_of("seed", seed)))

    def step(self, word: str, **arguments: Any) -> Chain:
        """Adds the op named `word`, like the method of that name."""
        return Chain(self._native.step(text("step", "word", word), json.dumps(
            {name: _plain(word, name, value) for name, value in arguments.items()})))


def _method(word: str, about: str, parameters: list[tuple[str, str | None, str]]) -> Any:
    signature = inspect.Signature(
        [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)] +
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD,
                           default=inspect.Parameter.empty if fallback is None
                           else json.loads(fallback)) for name, fallback, _ in parameters])

    def method(self: Chain, *values: Any, **named: Any) -> Chain:
        given = signature.bind(self, *values, **named).arguments
        return self.step(word, **{name: value for name, value in given.items() if name != "self"})

    method = explained(method, word, signature)
    method.__name__ = word
    method.__qualname__ = f"Chain.{word}"
    method.__signature__ = signature  # type: ignore[attr-defined]
    method.__doc__ = "\n".join([about, *(f"    {name}: {words}" for name, _, words in parameters)])
    return method


for _word, _about, _parameters in _native.image_steps():
    if _word != "decode":
        setattr(Chain, _word, _method(_word, _about, _parameters))


@explained
def of(field: str = "") -> Chain:
    """A chain that starts with pixels: u8, u16 or f32 (white is 1), [height, width(, channels)]."""
    return Chain(_native.image_of(text("of", "field", field)))


@explained
def decode(channels: int = 3, *, field: str = "", keep_16_bit: bool = False,
           fast_scale: bool = False, pixels_max: int = 1 << 27,
           side_max: int = 65_535, bytes_max: int = 1 << 30, time_max: float = 10.0) -> Chain:
    """A chain that starts with encoded bytes. The format is detected from the content."""
    return of(text("decode", "field", field)).step(
        "decode", channels=whole("decode", "channels", channels),
        keep_16_bit=flag("decode", "keep_16_bit", keep_16_bit),
        fast_scale=flag("decode", "fast_scale", fast_scale),
        pixels_max=whole("decode", "pixels_max", pixels_max, least=1),
        side_max=whole("decode", "side_max", side_max, least=1),
        bytes_max=whole("decode", "bytes_max", bytes_max, least=1),
        time_max=number("decode", "time_max", time_max, least=0.001))


@explained
def encode(format: str = "jpeg", *, quality: int = 90, field: str = "image") -> _native.OpCall:
    """Encodes uint8 pixels [height, width, channels] as "jpeg" or "png", for writing files."""
    return _native.encode_image(text("encode", "format", format),
                                whole("encode", "quality", quality, least=1, most=100),
                                text("encode", "field", field))


@explained
def one_hot(classes: int, field: str = "label") -> _native.OpCall:
    """Replaces the class numbers in `field` by float32 vectors of length `classes`."""
    return _native.one_hot(whole("one_hot", "classes", classes, least=1, most=2**31 - 1),
                           text("one_hot", "field", field))


@explained
def mixup(alpha: float = 0.2, *, chance: float = 1.0, seed: int = 0, image: str = "image",
          label: str = "label") -> _native.OpCall:
    """After batch: mixes each sample and its label with a partner from the same global batch."""
    return _native.mixup(*_mix("mixup", alpha, chance, seed, image, label))


@explained
def cutmix(alpha: float = 1.0, *, chance: float = 1.0, seed: int = 0, image: str = "image",
           label: str = "label") -> _native.OpCall:
    """After batch: pastes a rectangle of a partner from the same global batch, and mixes labels."""
    return _native.cutmix(*_mix("cutmix", alpha, chance, seed, image, label))


def _mix(word: str, alpha: Any, chance: Any, seed: Any, image: Any,
         label: Any) -> tuple[float, float, int, str, str]:
    return (number(word, "alpha", alpha, most=1e300),
            number(word, "chance", chance, least=0, most=1), seed_of(word, seed),
            text(word, "image", image), text(word, "label", label))
