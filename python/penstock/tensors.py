"""Batches for other libraries, sharing the batch's memory."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .ragged import Ragged


def torch_of(batch: Any) -> Any:
    try:
        torch = import_module("torch")
    except ImportError:
        raise ImportError("batch.torch() needs torch, which is not installed: pip install torch, "
                          "or use NumPy views with batch.numpy()") from None
    from_dlpack = torch.from_dlpack

    def convert(part: Any) -> Any:
        if isinstance(part, dict):
            return {name: convert(value) for name, value in part.items()}
        if isinstance(part, tuple):
            return tuple(convert(value) for value in part)
        if isinstance(part, Ragged):
            return part._with(from_dlpack)
        return from_dlpack(part) if hasattr(part, "__dlpack__") else part

    return convert(batch.dlpack_parts())
