"""Random numbers that depend only on the sample, its epoch and the seed."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from types import CodeType
from typing import Any

import numpy as np

from . import _native


def rng() -> np.random.Generator:
    """The NumPy generator of the sample that this map function is called for.

    It yields the same numbers in every run, with any number of threads and after a resume, and
    different ones in every epoch and every repeat.
    """
    return _native.rng()


def keyed_generator(low: int, high: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=low | high << 64))


def mentions_rng(fn: Callable[..., Any]) -> bool:
    """Whether the code of a function, or of one nested in it, uses the name `rng`."""
    code = getattr(fn, "__code__", None) or getattr(getattr(fn, "__call__", None), "__code__", None)
    pending = [code] if isinstance(code, CodeType) else []
    while pending:
        one = pending.pop()
        if "rng" in one.co_names:
            return True
        pending += [inner for inner in one.co_consts if isinstance(inner, CodeType)]
    return False


def global_state() -> tuple[int, int]:
    """A value that changes with every draw from the global generators."""
    return hash(random.getstate()), np.random.get_state(legacy=False)["state"]["pos"]


def tell_of_global_use(name: str) -> None:
    warnings.warn(
        f"{name}: draws from the global random or numpy.random, so every run differs, and so does "
        "a resumed one: use ps.rng(), or a parameter named rng",
        RuntimeWarning, stacklevel=2)
