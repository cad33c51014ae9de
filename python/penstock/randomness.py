"""Random numbers that depend on the sample, its epoch and the seed, and on nothing else."""

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

    The same numbers come on every run, at any number of threads and after a resume; every epoch
    and every repeat has its own.
    """
    return _native.rng()


def keyed_generator(low: int, high: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=low | high << 64))


def mentions_rng(fn: Callable[..., Any]) -> bool:
    """Whether the code of a function, or of one inside it, says `rng`."""
    code = getattr(fn, "__code__", None) or getattr(getattr(fn, "__call__", None), "__code__", None)
    pending = [code] if isinstance(code, CodeType) else []
    while pending:
        one = pending.pop()
        if "rng" in one.co_names:
            return True
        pending += [inner for inner in one.co_consts if isinstance(inner, CodeType)]
    return False


def global_state() -> tuple[int, int]:
    """Changes whenever somebody draws from the global generators."""
    return hash(random.getstate()), np.random.get_state(legacy=False)["state"]["pos"]


def tell_of_global_use(name: str) -> None:
    warnings.warn(
        f"{name}: draws from the global random or numpy.random, so that no two runs are alike, and "
        "a resumed one is not either: use ps.rng(), or a parameter named rng",
        RuntimeWarning, stacklevel=2)
