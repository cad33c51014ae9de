"""Argument checks: a wrong value raises a ConfigError that says what to write instead.

Each check takes the name of the function, the name of the argument and the value, and returns the
value in the form that the engine needs.
"""

from __future__ import annotations

import math
import numbers
import operator
import os
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .errors import ArgumentError

INT64_MAX = 2**63 - 1
UINT64_MAX = 2**64 - 1


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def refuse(word: str, name: str, value: Any, why: str, remedy: str = "") -> ArgumentError:
    return ArgumentError(f"{word}: {name}={_shown(value)} {why}", remedy=remedy)


def whole(word: str, name: str, value: Any, *, least: int = 0, most: int = INT64_MAX,
          remedy: str = "") -> int:
    """A whole number, also one of NumPy's; True and 2.0 are refused."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None:
        raise refuse(word, name, value, "is not a whole number", remedy or "pass an int")
    if not least <= number <= most:
        limit = f"is below {least}" if number < least else f"is above {most}"
        raise refuse(word, name, value, limit, remedy or f"use a number from {least} to {most}")
    return number


def whole_or_none(word: str, name: str, value: Any, **limits: Any) -> int | None:
    return None if value is None else whole(word, name, value, **limits)


def seed_of(word: str, value: Any, name: str = "seed") -> int:
    return whole(word, name, value, most=UINT64_MAX,
                 remedy=f"a seed is a whole number from 0 to {UINT64_MAX}")


def number(word: str, name: str, value: Any, *, least: float = -math.inf, most: float = math.inf,
           remedy: str = "") -> float:
    """A number that is finite unless a limit allows more."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or math.isnan(value):
        raise refuse(word, name, value, "is not a number", remedy or "pass a float")
    if not least <= value <= most:
        limit = f"is below {least:g}" if value < least else f"is above {most:g}"
        raise refuse(word, name, value, limit,
                     remedy or f"use a number from {least:g} to {most:g}")
    return float(value)


def flag(word: str, name: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise refuse(word, name, value, "is neither True nor False", "pass True or False")
    return bool(value)


def text(word: str, name: str, value: Any, remedy: str = "") -> str:
    if not isinstance(value, str):
        raise refuse(word, name, value, "is not a string", remedy or "pass a str")
    return value


def choice(word: str, name: str, value: Any, options: Iterable[str]) -> str | None:
    """One of `options`, or None."""
    options = list(options)
    if value is None or (isinstance(value, str) and value in options):
        return value
    names = ", ".join(f'"{each}"' for each in options[:-1]) + f' or "{options[-1]}"'
    raise ArgumentError(f"{word}: {name}: there is no policy {_shown(value)}",
                        remedy=f"use {names}")


def path(word: str, name: str, value: Any) -> bytes:
    """A path as bytes: accepts str, bytes and os.PathLike, in any encoding."""
    try:
        encoded = os.fsencode(value)
    except (TypeError, UnicodeEncodeError):
        encoded = b"\0"
    if b"\0" in encoded:
        raise refuse(word, name, value, "is not a path", "pass a str, bytes or pathlib.Path")
    return encoded


def items(word: str, name: str, value: Any, check: Callable[[str, str, Any], Any]) -> list[Any]:
    """The results of `check` for each item; a single str or bytes is refused."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise refuse(word, name, value, "is not a list", f"pass a list, as in {name}=[...]")
    return [check(word, f"{name}[{i}]", each) for i, each in enumerate(value)]


def made_by(word: str, value: Any, kind: type, remedy: str) -> Any:
    """For classes whose objects functions create: `value` must be of the engine's type `kind`."""
    if not isinstance(value, kind):
        raise ArgumentError(f"{word} is not made from {_shown(value)}", remedy=remedy)
    return value
