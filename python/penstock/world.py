"""Which of how many processes this one is, as far as Python knows more than the environment."""

from __future__ import annotations

import os
import sys

from .errors import ConfigError


def process_group() -> tuple[int, int] | None:
    """(world, rank) of an initialized process group of torch's; torch is not imported for it.

    The launcher's variables are the engine's to read; one that contradicts the group is an error,
    since one of the two would train on the wrong data in silence.
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
                remedy="say which one trains: Loader(..., world=, rank=)")
    return world, rank
