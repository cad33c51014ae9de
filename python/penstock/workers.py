"""Worker processes for Python functions: how many, and how they are started."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _native
from .arguments import whole
from .errors import ConfigError

WORKERS_MAX = 256


def check_workers(word: str, workers: int | None) -> int:
    """The number of processes; 0 for threads."""
    if workers is None:
        return 0
    workers = whole(word, "workers", workers,
                    remedy="a number of processes; 0, or leaving it out, means threads")
    if workers > WORKERS_MAX:
        raise ConfigError(f"{word}: {workers} worker processes are more than the limit of "
                          f"{WORKERS_MAX}", remedy="use about as many as there are cores")
    return workers


def worker_setup_of(title: str, fn: Callable[..., Any], workers: int, *, keyed: bool = False,
                    random: bool = False) -> _native.WorkerSetup | None:
    """None for threads. Raises ConfigError if the function cannot be pickled."""
    if workers == 0:
        return None
    from . import travel  # imports parts of multiprocessing, needed only for workers
    return _native.WorkerSetup(travel.command(), travel.setup_of(title, fn, keyed, random), title,
                               workers)
