"""Fields of a batch whose rows differ in size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .arguments import choice, number, refuse, whole, whole_or_none
from .errors import ConfigError


class Ragged:
    """A field whose rows differ in size: all rows one after the other, and where each begins.

    `values` and `offsets` are views of the batch's memory, as NumPy arrays or, from
    `batch.torch()`, as torch tensors. Row i is `values[offsets[i]:offsets[i + 1]]`. If a size
    other than the first varies, `values` has one dimension and `shapes` the sizes of each row.
    """

    __slots__ = ("offsets", "shapes", "values")

    def __init__(self, values: Any, offsets: Any, shapes: Any = None) -> None:
        self.values = values
        self.offsets = offsets
        self.shapes = shapes

    @property
    def lengths(self) -> Any:
        """The first size of each row."""
        return self.offsets[1:] - self.offsets[:-1] if self.shapes is None else self.shapes[:, 0]

    @property
    def cu_seqlens(self) -> Any:
        """The offsets as int32, as attention kernels for packed sequences want them."""
        if isinstance(self.offsets, np.ndarray):
            return self.offsets.astype(np.int32)
        return self.offsets.int()

    @property
    def dtype(self) -> Any:
        return self.values.dtype

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> Any:
        """One row, as a view."""
        place = whole("Ragged", "row", row, least=-len(self))
        if place >= len(self):
            raise IndexError(f"row {place} of {len(self)}")
        place %= len(self)
        part = self.values[int(self.offsets[place]):int(self.offsets[place + 1])]
        return part if self.shapes is None else part.reshape(
            tuple(int(size) for size in self.shapes[place]))

    def __iter__(self) -> Iterator[Any]:
        return (self[row] for row in range(len(self)))

    def tolist(self) -> list[Any]:
        """The rows as nested lists."""
        return [row.tolist() for row in self]

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise ConfigError("these rows differ in size, so they are not one array",
                          remedy="use to_padded(), or .values and .offsets")

    def __repr__(self) -> str:
        lengths = self.lengths
        span = f", lengths {int(min(lengths))} to {int(max(lengths))}" if len(self) else ""
        return f"Ragged({len(self)} rows{span}, {self.dtype})"

    def to_padded(self, value: Any = 0, *, to_multiple_of: int = 1, length: int | None = None,
                  side: str = "right") -> Any:
        """One array: every row is padded to the longest, or to `length`.

        Lengths are rounded up to a multiple of `to_multiple_of`.
        """
        multiple = whole("to_padded", "to_multiple_of", to_multiple_of, least=1)
        choice("to_padded", "side", side, ("right", "left"))
        if not isinstance(value, bool):
            fraction = number("to_padded", "value", value) % 1
            if fraction and "int" in str(self.dtype):
                raise refuse("to_padded", "value", value, f"is not a value of {self.dtype}")
        sizes = self._largest(whole_or_none("to_padded", "length", length))
        open_sizes = 1 if self.shapes is None else len(sizes)
        sizes = [-(-size // multiple) * multiple if i < open_sizes else size
                 for i, size in enumerate(sizes)]
        shape = (len(self), *sizes)
        try:
            out = (np.full(shape, value, self.values.dtype) if isinstance(self.values, np.ndarray)
                   else self.values.new_full(shape, value))
        except (OverflowError, RuntimeError):
            raise refuse("to_padded", "value", value, f"is not a value of {self.dtype}") from None
        for i, row in enumerate(self):
            first = sizes[0] - row.shape[0] if side == "left" else 0
            place = (slice(first, first + row.shape[0]), *(slice(0, n) for n in row.shape[1:]))
            out[i][place] = row
        return out

    def _largest(self, length: int | None) -> list[int]:
        if self.shapes is None:
            sizes = [max(self.lengths.tolist(), default=0), *self.values.shape[1:]]
        else:
            sizes = [max(column, default=0) for column in zip(*self.shapes.tolist(), strict=True)]
        if length is not None:
            if sizes[0] > length:
                raise refuse("to_padded", "length", length, f"is below the longest row, {sizes[0]}",
                             "truncate the rows before, or pass a larger length")
            sizes[0] = length
        return sizes

    def torch(self) -> Ragged:
        """The same with torch tensors that share the memory."""
        import torch
        if not isinstance(self.values, np.ndarray):
            return self
        return self._with(torch.from_dlpack)

    def torch_nested(self) -> Any:
        """A nested tensor of torch (layout jagged) that shares the memory of the values."""
        import torch
        if self.shapes is not None:
            raise ConfigError("a jagged tensor of torch has one size that varies, these rows have "
                              "several", remedy="use to_padded()")
        ragged = self.torch()
        lengths = ragged.lengths.tolist()
        # Without the longest length torch pads rows to the number of all values.
        return torch.nested.nested_tensor_from_jagged(
            ragged.values, ragged.offsets, min_seqlen=min(lengths, default=0),
            max_seqlen=max(lengths, default=0))

    def _with(self, convert: Any) -> Ragged:
        return Ragged(convert(self.values), convert(self.offsets),
                      None if self.shapes is None else convert(self.shapes))
