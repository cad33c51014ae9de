"""Running a dataset."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from . import _native
from .dataset import Dataset, _native_of
from .errors import ConfigError, StateError
from .world import process_group

Batch = _native.Batch
Plan = _native.Plan


class Ledger:
    """The samples that were left out: dicts of epoch, step, source, number, op, reason and,
    for a sample that is in one, file."""

    def __init__(self, native: Any) -> None:
        self._entries: list[dict[str, Any]] = native.ledger_entries()
        self.count: int = native.ledger_count()
        self._text: str = native.ledger_text()

    def __getitem__(self, index: Any) -> Any:
        return self._entries[index]

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._entries)

    def __str__(self) -> str:
        return self._text


def loader_options(*, world: int | None = None, rank: int | None = None, tail: str | None = None,
                   threads: int | None = None, lookahead_bytes: int | None = None,
                   on_error: str = "raise", ledger_file: str = "",
                   skip_limit: int | None = None, stall_after: float = 30.0,
                   stall_is_error: bool = False, empty: str | None = None,
                   debug: bool = False, found: str = "") -> dict[str, Any]:
    if on_error not in ("raise", "skip"):
        raise ConfigError(f"on_error: there is no policy {on_error!r}",
                          remedy='use "raise" or "skip"')
    if debug and threads:
        raise ConfigError(f"debug=True runs everything in the calling thread, threads={threads} "
                          "does not", remedy="leave one of them out")
    return {"world": world, "rank": rank, "tail": tail, "threads": 0 if debug else threads,
            "lookahead_bytes": lookahead_bytes, "skip": on_error == "skip",
            "ledger_file": str(ledger_file), "skip_limit": skip_limit,
            "stall_after_ms": round(stall_after * 1000), "stall_is_error": stall_is_error,
            "empty": empty, "debug": debug, "found": found}


def check_world(world: int | None, rank: int | None) -> None:
    if world == 1 and rank is None:
        return
    if (world is None) != (rank is None):
        given, missing = ("world", "rank") if rank is None else ("rank", "world")
        raise ConfigError(f"Loader: {given}= without {missing}=",
                          remedy="say both, or none to take them from the environment")
    if world is not None and rank is not None and (world < 1 or not 0 <= rank < world):
        raise ConfigError(f"Loader: rank {rank} of a world of {world}",
                          remedy="ranks count from 0 to world - 1")


def parse_state(state: Any) -> str:
    if isinstance(state, str):
        return state
    if not isinstance(state, dict):
        raise StateError(f"a state is a dict, as state_dict() gives it, not {type(state).__name__}")
    return json.dumps(state)


class Loader:
    """Runs a dataset of batches. Each `for` is one epoch, and the next one is reshuffled.

    A `for` that is left early has ended its epoch. Loops do not disturb each other: one that is
    begun while another is under way has its own place.
    """

    def __init__(self, dataset: Dataset, *, world: int | None = None, rank: int | None = None,
                 tail: str | None = None, threads: int | None = None,
                 lookahead_bytes: int | None = None, on_error: str = "raise",
                 ledger_file: str = "", skip_limit: int | None = None, stall_after: float = 30.0,
                 stall_is_error: bool = False, empty: str | None = None,
                 debug: bool = False) -> None:
        """`world` processes train together, and this is number `rank`; both by default from
        torch's process group where there is one, or the environment (torchrun, TF_CONFIG, srun,
        Open MPI, Kubernetes), else one process.

        world=1 reads all samples in this process whatever the launcher says, for example to
        validate on rank 0 only. Without it every rank must loop over its own Loader: each serves
        its share, and a line on rank 0 says so.

        `threads`: at most so many of the pool's, 0 works in the calling thread, as `debug=True`
        does. `on_error`: "raise", or "skip" samples that cannot be made, see `ledger`. A wait of
        `stall_after` seconds is reported with who holds it up. A process that gets no rows in some
        step is refused where world and rank were not named, unless `empty="deliver"`.
        """
        check_world(world, rank)
        rank = 0 if world == 1 else rank
        found = ""
        if world is None and (group := process_group()):
            world, rank = group
            found = "torch.distributed"
            empty = empty or "refuse"  # a loop around collectives cannot leave out a step
        if empty not in (None, "deliver", "refuse"):
            raise ConfigError(f"empty: there is no policy {empty!r}",
                              remedy='use "deliver" or "refuse"')
        self._native = _native.Loader(_native_of("Loader", dataset), loader_options(
            world=world, rank=rank, tail=tail, threads=threads, lookahead_bytes=lookahead_bytes,
            on_error=on_error, ledger_file=ledger_file, skip_limit=skip_limit,
            stall_after=stall_after, stall_is_error=stall_is_error, empty=empty, debug=debug,
            found=found))
        self.dataset = dataset

    @property
    def plan(self) -> Plan:
        """What will be done, decided before anything runs."""
        return self._native.plan()

    def __len__(self) -> int:
        steps = self.plan.steps
        if steps is None:
            raise TypeError("this loader has no len(): its data is endless, or a stream whose "
                            "length shows only as it is pulled")
        return steps

    def __iter__(self) -> Iterator[Batch]:
        return self._native.iterate()

    @property
    def epoch(self) -> int:
        return self._native.epoch()

    def set_epoch(self, epoch: int) -> None:
        """The next `for` is this epoch, from its first step. Right after `load_state_dict`, the
        epoch of that state keeps the position in it: training loops call this at the top of every
        epoch. A `for` that is under way stays where it is."""
        if epoch < 0:
            raise ConfigError(f"set_epoch: epochs count from 0, got {epoch}")
        self._native.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Where the newest iterator is, as plain JSON: what was received, never what waits."""
        state: dict[str, Any] = json.loads(self._native.state())
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on where the state was taken: the next `for` is the rest of that epoch."""
        self._native.restore(parse_state(state))

    def step(self, step: int) -> Batch:
        """Computes step `step` of the current epoch again, alone."""
        return self._native.step(step)

    @property
    def ledger(self) -> Ledger:
        """What was left out under on_error="skip"."""
        return Ledger(self._native)

    def report(self) -> dict[str, Any]:
        """Counters and waits of the epoch under way, or the last one: what is still recorded."""
        return {"epoch": self.epoch, **self._native.report()}

    def stop(self) -> None:
        """Lets the threads go; the next `for` starts them again."""
        self._native.stop()

    def close(self) -> None:
        """Ends every `for` over it, the threads and the worker processes, and lets go of the
        dataset. The loader cannot be used afterwards."""
        self._native.close()
        vars(self).pop("dataset", None)

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __reduce__(self) -> Any:
        raise TypeError(
            "a Loader cannot be pickled: it runs threads of this process. It needs no worker "
            "processes around it: use it in place of a torch DataLoader, or with num_workers=0")

    def __repr__(self) -> str:
        plan = self.plan
        steps = "unknown" if plan.steps is None else plan.steps
        return f"<penstock.Loader: {steps} steps, rank {plan.rank} of {plan.world}>"
