"""Replicas: several devices that take every step together, each on its share of the batch."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

from . import _native
from .arguments import flag, items, made_by, refuse, text, whole, whole_or_none
from .dataset import Dataset, _native_of
from .errors import ArgumentError, ConfigError
from .foreign import explained
from .functions import parameters_of
from .loader import Ledger, Plan, loader_options, parse_state
from .report import Report

Step = _native.Step
Replica = _native.Replica
InputContext = _native.InputContext
AXIS_MAX = 2**31 - 1


@explained
class Counted:
    """A sum over `count` samples. The mean of such values divides once, by all counts."""

    def __init__(self, sum: Any, count: int) -> None:
        self.sum = sum
        self.count = whole("Counted", "count", count, remedy="the number of samples in the sum")

    def __repr__(self) -> str:
        return f"Counted({self.sum!r}, {self.count})"


@explained
class PerReplica:
    """One value per replica, and the number of samples that each value covers.

    The value is None if the replica's share was empty and nothing was computed.
    """

    def __init__(self, values: list[Any], counts: list[int] | None = None,
                 masks: list[list[int]] | None = None) -> None:
        self.values = items("PerReplica", "values", values, lambda _, __, value: value)
        self.counts = ([1] * len(self.values) if counts is None
                       else items("PerReplica", "counts", counts, whole))
        self._masks = ([[] for _ in self.values] if masks is None
                       else items("PerReplica", "masks", masks, _mask_of))
        for name, given in (("counts", self.counts), ("masks", self._masks)):
            if len(given) != len(self.values):
                raise refuse("PerReplica", name, given, f"is not one for each of the "
                             f"{len(self.values)} values", "one for each replica")

    @property
    def count(self) -> int:
        """Samples of all replicas of this process."""
        return sum(self.counts)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, replica: int) -> Any:
        return self.values[replica]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __repr__(self) -> str:
        return f"PerReplica({self.values!r}, {self.counts!r})"

    def each(self, combine: Callable[..., Any]) -> Any:
        """`combine(values, counts, sums, masks)` for every leaf of the structure of the values."""
        shown = next((value for value in self.values if value is not None), None)
        return self._each(shown, self.values, combine)

    def _each(self, shown: Any, values: list[Any], combine: Callable[..., Any]) -> Any:
        def parts(key: Any) -> list[Any]:
            return [None if value is None else value[key] for value in values]

        if isinstance(shown, dict):
            return {key: self._each(shown[key], parts(key), combine) for key in shown}
        if isinstance(shown, (tuple, list)):
            made = [self._each(shown[i], parts(i), combine) for i in range(len(shown))]
            return tuple(made) if isinstance(shown, tuple) else made
        sums = [isinstance(value, Counted) for value in values]
        counts = [value.count if isinstance(value, Counted) else count
                  for value, count in zip(values, self.counts)]
        plain = [_array_of(value.sum if isinstance(value, Counted) else value) for value in values]
        return combine(plain, counts, sums, self._masks)


def _mask_of(word: str, name: str, value: Any) -> list[int]:
    return items(word, name, value, lambda word, name, each: whole(word, name, each, most=1))


def _array_of(value: Any) -> Any:
    """Converts a torch tensor to NumPy; returns anything else unchanged."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    if kind in ("i", "u", "b"):
        return value.astype("int64")
    return value


@explained
class Feed:
    """A distributed dataset: prepares steps in the background and yields them in order, cut for the
    replicas.

    Each `for` is one epoch; leaving it early ends the epoch.
    """

    def __init__(self, native: _native.Feed) -> None:
        self._native: _native.Feed = made_by("a Feed", native, _native.Feed,
                                             "strategy.distribute(dataset) makes one")

    def next(self) -> Step | None:
        """Returns the next step, or None at the end of an epoch; then the next epoch starts."""
        return self._native.next()

    def __iter__(self) -> Iterator[Step]:
        return self._native.iterate()

    def __len__(self) -> int:
        try:
            return self._native.size()
        except ConfigError as error:
            raise TypeError(f"this feed has no len(): {error}") from None

    @property
    def plan(self) -> Plan:
        return self._native.plan()

    @property
    def epoch(self) -> int:
        return self._native.epoch()

    def set_epoch(self, epoch: int) -> None:
        """The next `for` is this epoch, from its first step. Right after `load_state_dict`, passing
        the epoch of that state keeps the position in it."""
        self._native.set_epoch(whole("set_epoch", "epoch", epoch, remedy="epochs count from 0"))

    def state_dict(self) -> dict[str, Any]:
        """The position as plain JSON, independent of the number of replicas."""
        state: dict[str, Any] = json.loads(self._native.state())
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._native.restore(parse_state(state))

    @property
    def ledger(self) -> Ledger:
        return Ledger(self._native)

    def report(self) -> Report:
        """What the current or last epoch did, and what limited it, replicas too. Thread-safe."""
        return Report(self._native.report())

    def stop(self) -> None:
        """Cancels work in flight and releases threads and worker processes; the next step starts
        them again."""
        self._native.stop()

    def __enter__(self) -> Feed:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class _Scope:
    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy
        self._open: Any = None

    def __enter__(self) -> Strategy:
        self._open = self._strategy._native.scope()
        _current.append(self._strategy)
        return self._strategy

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if self._strategy in _current:
            _current.reverse()
            _current.remove(self._strategy)
            _current.reverse()
        if error is None:
            self._open.leave()
        elif (wrong := self._open.try_leave()) and hasattr(error, "add_note"):
            error.add_note(f"penstock: {wrong}")  # the user's error is not replaced


_current: list[Strategy] = []


def get_strategy() -> Strategy | None:
    """The strategy of the innermost open scope, or None."""
    return _current[-1] if _current else None


def replica_context() -> Replica:
    """The replica that runs in this thread; an error outside `run`, where there is none."""
    return _native.current_replica()


@explained
class Strategy:
    """The replicas of this process. Use it from one thread at a time."""

    def __init__(self, devices: list[str], one: bool) -> None:
        self._native = _native.Strategy(
            items(type(self).__name__, "devices", devices, text),
            flag(type(self).__name__, "one", one))

    @property
    def num_replicas_in_sync(self) -> int:
        return self._native.replicas()

    @property
    def devices(self) -> list[str]:
        return self._native.devices()

    def scope(self) -> _Scope:
        """`with strategy.scope():` makes it the current strategy of the thread."""
        return _Scope(self)

    def distribute(self, dataset: Dataset, *, steps_per_epoch: int | None = None,
                   restart: bool = False, short_epoch: bool = False, **options: Any) -> Feed:
        """Returns a feed that cuts each global batch for the replicas; `options`: see Loader."""
        if isinstance(dataset, Feed):
            raise TypeError("distribute takes a Dataset; a Feed is distributed already")
        return Feed(self._native.distribute(
            _native_of("distribute", dataset),
            _feed_options("distribute", steps_per_epoch, restart, short_epoch, options)))

    def distribute_from_function(self, make: Callable[[InputContext], Dataset], *,
                                 steps_per_epoch: int | None = None, restart: bool = False,
                                 short_epoch: bool = False, **options: Any) -> Feed:
        """Like `distribute`, for the dataset that `make(context)` returns; `batch(b)` in it is the
        batch of one replica."""
        _expect_function("distribute_from_function", "make", make)
        word = "distribute_from_function"
        return Feed(self._native.distribute_from_function(
            lambda context: _native_of(word, make(context)),
            _feed_options(word, steps_per_epoch, restart, short_epoch, options)))

    def run(self, fn: Callable[..., Any], step: Step) -> PerReplica:
        """Calls `fn(share)`, or `fn(replica, share)`, for each share that has rows.

        Each replica has its own thread, the first one runs in the caller's. If one raises, the
        others are cancelled at their next collective, and the first exception is raised unchanged.
        """
        if not isinstance(step, Step):
            raise TypeError(
                f"run takes a Step, not {type(step).__name__}: `for step in feed` yields one, "
                "where feed = strategy.distribute(dataset); a batch that was not distributed would "
                "be computed once per replica")
        _expect_function("run", "fn", fn)
        values = self._native.run(_with_replica(fn), step)
        return PerReplica(values, step.counts, step.masks())

    def reduce(self, op: str, value: PerReplica, axis: int | None = None) -> Any:
        """"sum", or "mean" over the samples of all replicas: divides by their true number.

        A plain value counts as the mean over its share and is weighted by its number of samples; a
        `Counted` value is a sum. With axis 0 an array has one value per sample. Dicts and tuples
        are reduced leaf by leaf.
        """
        self._expect_per_replica("reduce", value)
        text("reduce", "op", op, 'use "sum" or "mean"')
        axis = whole_or_none("reduce", "axis", axis, least=-AXIS_MAX, most=AXIS_MAX)
        return value.each(lambda values, counts, sums, masks: _native.reduce(
            op, values, counts, sums, masks, axis))

    def gather(self, value: PerReplica, axis: int = 0) -> Any:
        """Concatenates the values of all replicas, without padding rows."""
        self._expect_per_replica("gather", value)
        axis = whole("gather", "axis", axis, least=-AXIS_MAX, most=AXIS_MAX)
        return value.each(lambda values, counts, sums, masks: _native.gather(
            values, counts, sums, masks, axis))

    def per_replica(self, fn: Callable[[int], Any]) -> PerReplica:
        """`fn(number of the replica)` for each replica."""
        _expect_function("per_replica", "fn", fn)
        return PerReplica([fn(replica) for replica in range(len(self.devices))])

    def _expect_per_replica(self, word: str, value: Any) -> None:
        if not isinstance(value, PerReplica):
            raise TypeError(f"{word} takes what run() returned, not {type(value).__name__}")
        if self.num_replicas_in_sync > len(self.devices):  # the engine's own reduce refuses it too
            raise ConfigError(
                f"{word}: this strategy spans several processes, {self.num_replicas_in_sync} "
                f"replicas of which {len(self.devices)} are in this one: only its values are known",
                remedy="use ps.Loader in each process and sum with torch.distributed, as "
                       "ps.torch.weighted_mean and DDP do")


def _expect_function(word: str, name: str, value: Any) -> None:
    if not callable(value):
        raise refuse(word, name, value, "is not a function", "pass the function itself")


def _feed_options(word: str, steps: Any, restart: Any, short_epoch: Any,
                  options: dict[str, Any]) -> dict[str, Any]:
    for name in ("world", "rank"):
        if options.pop(name, None) is not None:
            raise ArgumentError(f"{word}: {name}= has no effect",
                                remedy="a strategy takes world and rank from the environment; use "
                                       "ps.Loader(dataset, world=, rank=) to set them")
    return {"steps_per_epoch": whole_or_none(word, "steps_per_epoch", steps, least=1),
            "restart": flag(word, "restart", restart),
            "short_epoch": flag(word, "short_epoch", short_epoch), **loader_options(**options)}


def _with_replica(fn: Callable[..., Any]) -> Callable[..., Any]:
    parameters = parameters_of(fn)
    if parameters is None:
        return lambda _, share: fn(share)
    wanted = [each for each in parameters.values()
              if each.kind in (inspect.Parameter.POSITIONAL_ONLY,
                               inspect.Parameter.POSITIONAL_OR_KEYWORD)
              and each.default is inspect.Parameter.empty]
    return fn if len(wanted) == 2 else lambda _, share: fn(share)


@explained
class MirroredStrategy(Strategy):
    """Several devices of this process. CPU devices are threads: "cpu:0", "cpu:1", ..."""

    def __init__(self, devices: list[str]) -> None:
        super().__init__(devices, False)


@explained
class OneDeviceStrategy(Strategy):
    """One device; `run` calls the function in the calling thread."""

    def __init__(self, device: str = "cpu:0") -> None:
        super().__init__([text("OneDeviceStrategy", "device", device)], True)
