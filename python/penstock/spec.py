"""Element specs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .arguments import items, refuse, whole_or_none


def _dtype_name(dtype: Any) -> str:
    if isinstance(dtype, str):
        return dtype
    if dtype in (str, bytes):
        return str(dtype.__name__)
    try:
        if dtype is None:  # NumPy treats it as float64
            raise TypeError
        return str(np.dtype(dtype).name)
    except TypeError:
        raise refuse("Field", "dtype", dtype, "is not a dtype",
                     "use a name of NumPy's, as in \"float32\"") from None


@dataclass(frozen=True)
class Field:
    """One field: a dtype by NumPy's name (or "bfloat16", "str", "bytes"), and a shape.

    A size is None if it is not known before running.
    """

    dtype: str
    shape: tuple[int | None, ...] = ()

    def __post_init__(self) -> None:
        name = _dtype_name(self.dtype)
        object.__setattr__(self, "dtype", name)
        object.__setattr__(self, "shape", tuple(items("Field", "shape", self.shape,
                                                      whole_or_none)))


# A Field, or dicts and tuples of Fields.
Spec = Any
