"""The rank of this process and the number of processes, from torch's process group."""

from __future__ import annotations

import os
import sys

from .errors import ConfigError


def process_group() -> tuple[int, int] | None:
    """(world, rank) of torch's process group if it is initialized; does not import torch.

    The engine reads the launcher's variables; if one contradicts the group, that is an error, since
    training would silently use the wrong data.
    """
    torch = sys.modules.get("torch")
    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    world, rank = distributed.get_world_size(), distributed.get_rank()
    for name, value in (("WORLD_SIZE", world), ("RANK", rank)):
        said = os.environ.get(name, str(value))
        if said != str(value):
            raise ConfigError(
                f"Loader: torch's process group says rank {rank} of {world}, the environment "
                f"{name}={said}",
                remedy="decide which one to use: Loader(..., world=, rank=)")
    return world, rank
