"""What elements look like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Field:
    """One field: a dtype by NumPy's name ("bfloat16", "str" and "bytes" besides), and a shape.

    A size is None where only running shows it.
    """

    dtype: str
    shape: tuple[int | None, ...] = ()

    def __post_init__(self) -> None:
        name = self.dtype
        if not isinstance(name, str):
            import numpy
            name = {str: "str", bytes: "bytes"}.get(name) or numpy.dtype(name).name
        object.__setattr__(self, "dtype", name)
        object.__setattr__(self, "shape", tuple(self.shape))


# A Field, or dicts and tuples of such.
Spec = Any
