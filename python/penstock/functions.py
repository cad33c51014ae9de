"""What can be found out about a user's function before it is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from . import _native
from .arguments import flag, seed_of, text
from .errors import ConfigError
from .randomness import mentions_rng


def name_of(fn: Any) -> str:
    return getattr(fn, "__name__", None) or type(fn).__name__


def parameters_of(fn: Callable[..., Any]) -> dict[str, inspect.Parameter] | None:
    """None if Python cannot tell, as for some builtins."""
    try:
        return dict(inspect.signature(fn).parameters)
    except (TypeError, ValueError):
        return None


def check_callable(word: str, fn: Any) -> None:
    if not callable(fn):
        raise ConfigError(f"{word}: takes a function, not {type(fn).__name__}",
                          remedy="pass the function itself, without calling it")
    if inspect.isgeneratorfunction(fn):
        raise ConfigError(
            f"{word}: {name_of(fn)} is a generator function: it returns an iterator, not a sample",
            remedy="return one sample; to return several use flat_map, and from_generator for a "
                   "stream")
    if inspect.iscoroutinefunction(fn):
        raise ConfigError(f"{word}: {name_of(fn)} is a coroutine function; nothing awaits it here",
                          remedy="pass a plain function: it runs in a thread, and may block")


def check_arity(word: str, fn: Callable[..., Any], dataset: _native.Dataset, keyed: bool) -> None:
    """Raises ConfigError if the function cannot be called with the elements of the dataset."""
    arity = dataset.arity()
    if arity < 0:
        return
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        return
    if next(iter(signature.parameters), "") == "self":  # a method of an extension, already bound
        return
    try:
        signature.bind(*[None] * arity, **({"rng": None} if keyed else {}))
    except TypeError as error:
        parts = "" if arity == 1 else f", whose {arity} parts are passed one by one"
        raise ConfigError(
            f"{word}: {name_of(fn)}{signature} cannot be called with elements "
            f"{dataset.spec_text()}{parts}: {error}") from None


def map_arguments(word: str, fn: Callable[..., Any], dataset: _native.Dataset, *, name: str = "",
                  seed: int = 0, random: bool | None = None) -> _native.MapArguments:
    check_callable(word, fn)
    text(word, "name", name)
    if random is not None:
        random = flag(word, "random", random)
    parameters = parameters_of(fn) or {}
    keyed = "rng" in parameters and parameters["rng"].kind in (
        inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    check_arity(word, fn, dataset, keyed)
    draws = keyed or (mentions_rng(fn) if random is None else random)
    return _native.MapArguments(f"{word}({name_of(fn)})", name or name_of(fn),
                                 seed_of(word, seed), keyed, draws)
