"""Running a dataset."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

from . import _native
from .arguments import choice, flag, number, path, whole, whole_or_none
from .dataset import INFINITE, TAILS, THREADS_MAX, Dataset, _native_of
from .epochs import Epochs
from .errors import ConfigError, StateError
from .foreign import explained
from .report import Report
from .world import process_group

Batch = _native.Batch
Plan = _native.Plan


class Ledger:
    """The skipped samples: dicts of epoch, step, source, number, op, reason and, if the sample is
    in one, file."""

    def __init__(self, native: Any) -> None:
        if not hasattr(native, "ledger_entries"):
            raise ConfigError(f"a Ledger is not made from {type(native).__name__}",
                              remedy="loader.ledger is one")
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


STALL_MAX = 1e9  # seconds: longer than any program
_THREADS = "the maximum number of threads; 0 works in the calling thread, None uses all cores"


def _loader_options(*, world: int | None = None, rank: int | None = None, tail: str | None = None,
                   threads: int | None = None, lookahead_bytes: int | None = None,
                   on_error: str = "raise", ledger_file: str | os.PathLike[str] = "",
                   skip_limit: int | None = None, stall_after: float = 30.0,
                   stall_is_error: bool = False, empty: str | None = None,
                   report_dir: str | os.PathLike[str] = "", debug: bool = False,
                   shares_from: str = "") -> dict[str, Any]:
    choice("Loader", "on_error", "" if on_error is None else on_error, ("raise", "skip"))
    choice("Loader", "empty", empty, ("deliver", "refuse"))
    choice("Loader", "tail", tail, TAILS)
    if flag("Loader", "debug", debug) and threads:
        raise ConfigError(f"debug=True runs everything in the calling thread, threads={threads} "
                          "does not", remedy="leave one of them out")
    for name, value in (("ledger_file", ledger_file), ("skip_limit", skip_limit)):
        if on_error == "raise" and value not in ("", b"", None):
            raise ConfigError(f"Loader: {name}= has no effect unless samples are skipped",
                              remedy='add on_error="skip"')
    seconds = number("Loader", "stall_after", stall_after, least=0.001, most=STALL_MAX,
                     remedy="seconds above 0 after which a wait is reported, 30 by default")
    return {"world": world, "rank": rank, "shares_from": shares_from, "tail": tail, "empty": empty,
            "threads": 0 if debug else whole_or_none("Loader", "threads", threads,
                                                     most=THREADS_MAX, remedy=_THREADS),
            "lookahead_bytes": whole_or_none("Loader", "lookahead_bytes", lookahead_bytes),
            "on_error": on_error, "ledger_file": path("Loader", "ledger_file", ledger_file),
            "skip_limit": whole_or_none("Loader", "skip_limit", skip_limit),
            "stall_after": seconds,
            "stall_is_error": flag("Loader", "stall_is_error", stall_is_error),
            "report_dir": path("Loader", "report_dir", report_dir), "debug": debug}


loader_options = explained(_loader_options, "Loader")


def check_world(world: int | None, rank: int | None) -> None:
    if world == 1 and rank is None:
        return
    if (world is None) != (rank is None):
        given, missing = ("world", "rank") if rank is None else ("rank", "world")
        raise ConfigError(f"Loader: {given}= without {missing}=",
                          remedy="pass both, or neither to take them from the environment")
    if world is None or rank is None:
        return
    world = whole("Loader", "world", world, least=1, most=2**31 - 1,
                  remedy="the number of processes that train together")
    if whole("Loader", "rank", rank, remedy="ranks count from 0 to world - 1") >= world:
        raise ConfigError(f"Loader: rank {rank} of a world of {world}",
                          remedy="ranks count from 0 to world - 1")


def parse_state(state: Any) -> str:
    if isinstance(state, str):
        return state
    if not isinstance(state, dict):
        raise StateError(f"a state is a dict, as from state_dict(), not {type(state).__name__}")
    try:
        return json.dumps(state)
    except (TypeError, ValueError) as error:
        raise StateError(f"this state is not plain JSON: {error}",
                         remedy="pass the result of state_dict() unchanged") from None


@explained
class Loader:
    """Runs a dataset of batches. Each `for` is one epoch, and the next one is reshuffled.

    Leaving a `for` early ends its epoch. A loop that starts while another one is running has its
    own position, so they do not affect each other.
    """

    def __init__(self, dataset: Dataset, *, steps_per_epoch: int | None = None,
                 world: int | None = None, rank: int | None = None, tail: str | None = None,
                 threads: int | None = None, lookahead_bytes: int | None = None,
                 on_error: str = "raise", ledger_file: str | os.PathLike[str] = "",
                 skip_limit: int | None = None, stall_after: float = 30.0,
                 stall_is_error: bool = False, empty: str | None = None,
                 report_dir: str | os.PathLike[str] = "", debug: bool = False) -> None:
        """Plans the dataset, after running every `select` in it.

        world, rank: the number of processes that train together, and the number of this one.
        Default: torch's process group if there is one, else the environment (torchrun, TF_CONFIG,
        srun, Open MPI, Kubernetes), else one process. world=1 reads all samples in this process,
        for example to validate on rank 0 only. Otherwise every rank must loop over its own Loader,
        which serves its share; rank 0 prints a line about it.

        threads: the maximum number of threads; 0 works in the calling thread, like `debug=True`.
        tail: for `batch` verbs that do not set one. on_error: "raise", or "skip" to leave out
        samples that fail and list them in `ledger`. stall_after: a wait of that many seconds is
        reported with the sample that causes it. empty: if world and rank were not passed, a plan in
        which a process gets no rows in some step raises ConfigError, unless `empty="deliver"`.

        report_dir: a folder in which every epoch leaves its trace, also if the program is killed;
        `penstock report FOLDER` shows the newest one.

        steps_per_epoch: each `for` yields that many steps, and the next one continues there, across
        the end of a pass over the data; `batch.epoch` and `batch.step` still count passes. A pass
        must have at least that many steps. Only one loop can run at a time.
        """
        check_world(world, rank)
        rank = 0 if world == 1 else rank
        shares_from = ""
        if world is None and (group := process_group()):
            world, rank = group
            shares_from = "torch.distributed"
            # A loop around collectives cannot skip a step.
            empty = "refuse" if empty is None else empty
        self._native = _native.Loader(_native_of("Loader", dataset), loader_options(
            world=world, rank=rank, tail=tail, threads=threads, lookahead_bytes=lookahead_bytes,
            on_error=on_error, ledger_file=ledger_file, skip_limit=skip_limit,
            stall_after=stall_after, stall_is_error=stall_is_error, empty=empty,
            report_dir=report_dir, debug=debug, shares_from=shares_from))
        self.dataset = dataset
        self.steps_per_epoch = whole_or_none("Loader", "steps_per_epoch", steps_per_epoch, least=1)
        self._epochs = None if self.steps_per_epoch is None else Epochs(
            self._native, self.steps_per_epoch, endless=dataset.cardinality() == INFINITE)

    @property
    def plan(self) -> Plan:
        """The plan: steps, shares and memory, decided before anything runs."""
        return self._native.plan()

    def __len__(self) -> int:
        steps = self.steps_per_epoch or self.plan.steps
        if steps is None:
            raise TypeError("this loader has no len(): its data is endless, or a stream whose "
                            "length is unknown until it ends")
        return steps

    def __iter__(self) -> Iterator[Batch]:
        return self._native.iterate() if self._epochs is None else self._epochs.begin()

    @property
    def epoch(self) -> int:
        return self._native.epoch() if self._epochs is None else self._epochs.epoch

    def set_epoch(self, epoch: int) -> None:
        """The next `for` is this epoch, from its first step.

        Right after `load_state_dict`, passing the epoch of that state keeps the position in it,
        because training loops call this at the top of every epoch. A running `for` is not affected.
        """
        epoch = whole("set_epoch", "epoch", epoch, remedy="epochs count from 0")
        (self._native if self._epochs is None else self._epochs).set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """The position of the newest `for`, as plain JSON. Counts the batches you have received,
        not those prepared in advance. Thread-safe."""
        state: dict[str, Any] = json.loads(
            (self._native if self._epochs is None else self._epochs).state())
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resumes where the state was taken: the next `for` is the rest of that epoch."""
        (self._native if self._epochs is None else self._epochs).restore(parse_state(state))

    def step(self, step: int) -> Batch:
        """Computes step `step` of the current pass over the data again, in the calling thread."""
        return self._native.step(whole("step", "step", step, remedy="steps count from 0"))

    @property
    def ledger(self) -> Ledger:
        """The samples skipped under on_error="skip". Thread-safe."""
        return Ledger(self._native)

    def report(self) -> Report:
        """What the current or last epoch did, and what limited it. Thread-safe."""
        native = self._native.report()
        if self._epochs is not None:
            native.epoch = self.epoch
        return Report(native)

    def stop(self) -> None:
        """Cancels work in flight and releases the threads; the next `for` starts again."""
        self._native.stop()

    def close(self) -> None:
        """Ends every `for`, the threads and the worker processes, and releases the dataset. The
        loader cannot be used afterwards."""
        self._native.close()
        vars(self).pop("dataset", None)

    def _by_passes(self) -> Loader:
        """The same loader, with passes over the data as epochs."""
        plain = object.__new__(Loader)
        plain._native, plain.dataset = self._native, self.dataset
        plain.steps_per_epoch = plain._epochs = None
        return plain

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
        steps = self.steps_per_epoch or ("unknown" if plan.steps is None else plan.steps)
        # Keras shows this where fit is given the loader itself.
        keras = "; for Keras: ps.keras.dataset(loader)" if "keras" in sys.modules else ""
        return f"<penstock.Loader: {steps} steps, rank {plan.rank} of {plan.world}{keras}>"
