"""The steps of a loader as a PyDataset; part of `ps.keras`."""

from __future__ import annotations

import json
import sys
import threading
import warnings
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import keras as _keras
import numpy as _np

from .arguments import whole, whole_or_none
from .errors import ConfigError, StateError
from .foreign import explained
from .loader import Batch, Loader

_SHUFFLED = ("fit requests the steps in an order of its own (shuffle=True is its default)")
_UNSHUFFLED = "fit(..., shuffle=False): the loader has shuffled already, and can then prefetch"


class _Walk:
    """Steps by number. Steps requested in order are prefetched; any other is computed alone."""

    # Keras inspects steps before it begins, and TensorFlow prefetches meanwhile: these steps are
    # kept, as far as memory allows.
    KEPT_STEPS = 4
    KEPT_BYTES = 64 << 20

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._lock = threading.Lock()  # TensorFlow calls from its own threads
        self._loop: Iterator[Batch] | None = None
        self._pass = 0
        self._next = 0
        self._kept: OrderedDict[tuple[int, int], Batch] = OrderedDict()
        self._states: OrderedDict[tuple[int, int], str] = OrderedDict()  # as JSON
        self._steps = loader.plan.steps
        self.states_max: int | None = 2 * self.KEPT_STEPS

    def batch(self, number: int, step: int, looking: bool = False) -> Batch | None:
        """Step `step` of pass `number`; None if the pass has no more than `step` steps."""
        with self._lock:
            if (number, step) in self._kept:
                return self._kept[number, step] if looking else self._kept.pop((number, step))
            if self._loop is None or self._pass != number or (step == 0 and self._next > 0):
                self._begin(number)
            if step == self._next:
                assert self._loop is not None
                found = self._advance(self._loop, number, step)
                if found is None:
                    return None
                batch = found
            else:
                batch = self._loader.step(step)
            if looking:
                self._keep(number, step, batch)
            return batch

    def _keep(self, number: int, step: int, batch: Batch) -> None:
        self._kept[number, step] = batch
        held = sum(each.nbytes for each in self._kept.values())
        while len(self._kept) > self.KEPT_STEPS and held > self.KEPT_BYTES:
            held -= self._kept.popitem()[1].nbytes  # the newest: fit begins with the first

    def _begin(self, number: int) -> None:
        self._loop = None  # ends it, so that the loader has a single loop and position
        self._loader.set_epoch(number)
        self._loop = iter(self._loader)
        self._pass, self._next = number, 0
        for each in [key for key in self._kept if key[0] != number]:
            del self._kept[each]
        self._states[number, 0] = self._loader._native.state()

    def _advance(self, loop: Iterator[Batch], number: int, step: int) -> Batch | None:
        batch = next(loop, None)
        if batch is None:
            return None
        self._next += 1
        after = (number + 1, 0) if self._next == self._steps else (number, self._next)
        self._states[after] = self._loader._native.state()
        while self.states_max is not None and len(self._states) > self.states_max:
            self._states.popitem(last=False)
        return batch

    def state_after(self, number: int, step: int) -> dict[str, Any]:
        """The loader's state when `step` steps of pass `number` are done."""
        with self._lock:
            state = self._states.get((number, step))
            for each in [key for key in self._states if key < (number, step)]:
                del self._states[each]
            if state is None and step == 0:
                self._begin(number)
                state = self._states[number, 0]
        if state is None:
            raise StateError(f"ps.keras: step {step} of pass {number} was not reached in order")
        return dict(json.loads(state))

    def restore(self, state: dict[str, Any], number: int, step: int) -> None:
        with self._lock:
            self._loop = None
            self._loader.load_state_dict(state)
            self._loop = iter(self._loader)
            self._pass, self._next = number, step
            self._kept.clear()
            self._states = OrderedDict({(number, step): json.dumps(state)})


@explained
class Dataset(_keras.utils.PyDataset):  # type: ignore[misc]
    """The steps of a loader by number, as returned by `ps.keras.dataset`.

    `data[i]` depends only on i and the epoch. An epoch ends when fit has received all of it; each
    evaluate or predict is one too. `fit(steps_per_epoch=n)` has epochs of n steps, each of which
    continues the previous one, like `ps.keras.dataset(loader, steps_per_epoch=n)`.
    """

    def __init__(self, loader: Loader, *, x: Any = None, y: str | None = None,
                 sample_weight: str | None = None, steps_per_epoch: int | None = None,
                 replicas: int = 0) -> None:
        super().__init__(workers=1)  # the loader's threads do the work
        if not isinstance(loader, Loader):
            raise ConfigError(f"ps.keras.dataset: expected a Loader, not {type(loader).__name__}",
                              remedy="pass ps.Loader(dataset)")
        if loader.steps_per_epoch is not None:  # this class counts epochs, the walk counts passes
            steps_per_epoch = steps_per_epoch or loader.steps_per_epoch
            loader = loader._by_passes()
        self.loader = loader
        self._names = (x, y, sample_weight)
        plan = loader.plan
        self._pass_steps = plan.steps
        self._pads = bool(plan.tail_cost["rows"])
        self._batch_samples = plan.batch_samples
        self._weighs = self._pads or plan.world > 1
        self._asked_steps = steps_per_epoch
        self._steps = self._check_steps(steps_per_epoch)
        self._origin = (0, 0)  # an epoch, and its first step counted over all passes
        self._replicas = replicas
        self._walk = _Walk(loader)
        self._epoch = loader.epoch
        self._first = 0  # the first step of this epoch: above 0 if it was resumed
        self._begun = False
        self._looking = False
        self._resumed_epoch_over = False
        self._want = 0
        self._shuffled = self._told_of_shuffle = False
        self._pass_starts = [(0, 0)]  # of a stream: passes, and the first step of each
        # The exception of a step: TensorFlow loses its type and traceback on the way to fit.
        self.failure: Exception | None = None
        self._take_place(loader.state_dict())

    def _take_place(self, state: dict[str, Any]) -> None:
        """Starts at the position of the loader, into which a state may have been loaded."""
        step = int(state.get("step", 0))
        if step == 0:
            return
        if self._pass_steps is None:
            raise ConfigError(
                "ps.keras.dataset: this loader of a stream is in the middle of a pass",
                remedy="load a state of the ps.keras dataset instead: data.load_state_dict")
        self._epoch, self._first = divmod(self._epoch * self._pass_steps + step, self._steps)
        self._walk.restore(state, *self._place(self._epoch, self._first))

    def _check_steps(self, asked: int | None) -> int:
        known = self._pass_steps
        asked = whole_or_none("ps.keras.dataset", "steps_per_epoch", asked, least=1)
        if asked is None and known is None:
            raise ConfigError(
                "ps.keras.dataset: the length of the data is not known before it runs, and Keras "
                "must know where an epoch ends", remedy="pass steps_per_epoch=")
        if known == 0:
            raise ConfigError("ps.keras.dataset: the data has no steps")
        if asked is None:
            assert known is not None
            return known
        if known is not None and asked > known:
            raise ConfigError(f"ps.keras.dataset: steps_per_epoch={asked}, but a pass has {known}",
                              remedy="repeat() the data, or use fewer steps")
        return asked

    # Keras' contract

    def __len__(self) -> int:
        return self._steps - self._first

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < len(self):
            raise IndexError(f"step {index} of {len(self)}")
        self._watch_order(index)
        try:
            return self._parts(self._batch(self._epoch, self._first + index))
        except Exception as error:
            self.failure = error
            raise

    def on_epoch_begin(self) -> None:
        looking = _fit_is_looking()
        if (iterator := iterator_of_keras(only_fit=True)) is not None and iterator.steps_per_epoch:
            self.set_steps_per_epoch(iterator.steps_per_epoch)
            iterator._num_batches = self._steps - self._first
        if self._resumed_epoch_over and not looking:
            raise ConfigError(
                "ps.keras: the last epoch was resumed in its middle, and fit would run all the "
                "following epochs with as few steps",
                remedy="ps.keras.fit(model, data, ...), or a fit for that epoch alone and another "
                       "for the rest")
        self._begun = True
        self._looking = looking
        self._want = 0
        self._shuffled = False

    def on_epoch_end(self) -> None:
        if _fit_is_looking():
            self._resumed_epoch_over = False
        elif self._begun:
            self._resumed_epoch_over = self._first > 0
            self._epoch, self._first = self._epoch + 1, 0
        self._begun = False

    def set_steps_per_epoch(self, steps: int) -> None:
        """Sets the number of steps of the following epochs, like fit(steps_per_epoch=). Keras alone
        would cut one epoch into several, and the last of them short."""
        steps = self._check_steps(steps)
        if steps == self._steps:
            return
        self._origin = (self._epoch, self._at(self._epoch, self._first))
        self._first, self._steps, self._asked_steps = 0, steps, steps

    # Place and state

    @property
    def epoch(self) -> int:
        return self._epoch

    @property
    def first_step(self) -> int:
        """The first step of the epoch: 0 unless a state was loaded."""
        return self._first

    def set_epoch(self, epoch: int) -> None:
        """The next epoch is `epoch`, from its start; no effect if it is the current one."""
        epoch = whole("set_epoch", "epoch", epoch, remedy="epochs count from 0")
        if epoch != self._epoch:
            self._epoch, self._first = epoch, 0

    def state_dict(self, step: int | None = None) -> dict[str, Any]:
        """The state after training on `step` steps of this epoch, as plain JSON.

        Keras prefetches, so only a callback knows the step (`ps.keras.Resume` is one). Default: the
        start of the epoch.
        """
        if self._shuffled:
            raise StateError(f"ps.keras: {_SHUFFLED}, so the position is unknown",
                             remedy=_UNSHUFFLED)
        step = self._first if step is None else whole("state_dict", "step", step)
        state = self._walk.state_after(*self._place(self._epoch, step))
        epoch = self._epoch
        if step == self._steps:
            epoch, step = epoch + 1, 0
        return {"penstock": "keras", "epoch": epoch, "step": step, "loader": state,
                "pass_start": list(self._pass_starts[-1]), "steps_per_epoch": self._asked_steps,
                "origin": list(self._origin)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resumes there: the next epoch is the rest of the one in which the state was taken."""
        if not isinstance(state, dict) or state.get("penstock") != "keras":
            raise StateError("ps.keras: this is not a state of a ps.keras dataset",
                             remedy="load a loader's state with loader.load_state_dict")
        epoch, step = int(state["epoch"]), int(state["step"])
        sizes = state["loader"].get("sizes") or [[0, 0, self._batch_samples]]
        if step and sizes[-1][-1] != self._batch_samples:
            raise StateError(
                f"ps.keras: the state is {step} steps of {sizes[-1][-1]} samples into an epoch, "
                f"but this loader's batches have {self._batch_samples}: fit cannot change the "
                "number of its steps",
                remedy="use the same batch size, or a state from the end of an epoch")
        step = self._take_epochs(state, epoch, step)
        if step >= self._steps:
            raise StateError(f"ps.keras: step {step} of an epoch of {self._steps} steps")
        number, start = state["pass_start"]
        self._pass_starts = [(int(number), int(start))]
        self._walk.restore(state["loader"], *self._place(epoch, step))
        self._epoch, self._first, self._begun = epoch, step, False
        self._resumed_epoch_over = False

    def _take_epochs(self, state: dict[str, Any], epoch: int, step: int) -> int:
        """Takes the length of the epochs from a state; returns the step in the epoch here."""
        asked = state.get("steps_per_epoch", self._asked_steps)
        if asked is None and self._asked_steps is not None and self._pass_steps is not None:
            self._origin = (epoch, epoch * self._pass_steps + step)  # its epochs were passes
            return 0
        if asked != self._asked_steps and None not in (asked, self._asked_steps):
            raise StateError(
                f"ps.keras: the state is of epochs of {asked} steps, but these have "
                f"{self._asked_steps}", remedy=f"steps_per_epoch={asked}")
        if asked is not None:
            self._steps = self._asked_steps = self._check_steps(asked)
        first_epoch, first = state.get("origin", (0, 0))
        self._origin = (int(first_epoch), int(first))
        return step

    def keep_states(self) -> None:
        """Keeps the state of every step until a later one is requested."""
        self._walk.states_max = None

    # For replicas

    def to_tf(self, strategy: Any) -> Dataset:
        """For fit under a tf.distribute.MirroredStrategy: each replica gets as many rows.

        The samples of a step are spread evenly, and padding rows have weight zero, so that
        TensorFlow, which can only cut equal parts, trains on every sample once and with its true
        weight, for any number of replicas.
        """
        replicas = getattr(strategy, "num_replicas_in_sync", None)
        if not isinstance(replicas, int):
            raise ConfigError(f"to_tf: expected a tf.distribute strategy, not "
                              f"{type(strategy).__name__}")
        x, y, sample_weight = self._names
        made = type(self)(self.loader, x=x, y=y, sample_weight=sample_weight,
                          steps_per_epoch=self._asked_steps, replicas=replicas)
        made._walk, made._pass_starts = self._walk, self._pass_starts
        made._origin = self._origin
        made._epoch, made._first = self._epoch, self._first
        return made

    def unpad(self, predictions: Any) -> Any:
        """The result of `model.predict(data)`, without the padding rows."""
        real = _np.concatenate([self._mask(step) for step in range(self._steps)])
        rows = _np.asarray(predictions)
        if len(rows) != len(real):
            raise ConfigError(f"unpad: {len(rows)} rows for an epoch of {len(real)}")
        return rows[real]

    def _mask(self, step: int) -> Any:
        samples = sum(self.loader.plan.cut(step))
        if self._replicas:
            return _spread(_np.ones(samples, bool), self._replicas, self._share_rows(samples))
        rows = self._batch_samples if self._pads else samples
        return _np.arange(rows) < samples

    def _share_rows(self, samples: int) -> int:
        """Rows of each replica. The batches of a Sequence may exceed the planned size."""
        return -(-max(self._batch_samples, samples) // self._replicas)

    # Steps and their parts

    def _place(self, epoch: int, step: int) -> tuple[int, int]:
        """Pass, and step in it; with steps_per_epoch an epoch may begin inside a pass."""
        at = self._at(epoch, step)
        if self._pass_steps is not None:
            return divmod(at, self._pass_steps)
        number, start = max(each for each in self._pass_starts if each[1] <= at)
        return number, at - start

    def _at(self, epoch: int, step: int) -> int:
        """The number of the step, counted over all passes."""
        first_epoch, first = self._origin
        return first + (epoch - first_epoch) * self._steps + step

    def _batch(self, epoch: int, step: int) -> Batch:
        while True:
            number, place = self._place(epoch, step)
            batch = self._walk.batch(number, place, self._looking or not self._begun)
            if batch is not None:
                return batch
            if place < self._steps or self._pass_steps is not None:
                raise ConfigError(
                    f"ps.keras: the data ended after {place} steps, but steps_per_epoch is "
                    f"{self._steps}", remedy="repeat() the data, or use fewer steps_per_epoch=")
            # The length of a stream is known when it ends; the epoch continues in the next pass.
            self._pass_starts.append((number + 1, self._at(epoch, step)))

    def _watch_order(self, index: int) -> None:
        if not self._begun:
            return
        if index not in (self._want, 0):
            if not self._told_of_shuffle:
                self._told_of_shuffle = True
                warnings.warn(f"penstock: {_SHUFFLED}: every step is then computed when it is "
                              f"requested -> {_UNSHUFFLED}", stacklevel=3)
            self._shuffled = True
        self._want = index + 1

    def _parts(self, batch: Batch) -> Any:
        x, y, own = self._fields(batch)
        weight = None
        if self._replicas:
            real = _np.flatnonzero(batch.valid)
            slots = self._share_rows(len(real))
            weight = _np.full(len(real), self._replicas * slots / max(len(real), 1))
            if own is not None:
                weight *= own[real]
            x, y = (_each(part, lambda rows: _spread(rows[real], self._replicas, slots))
                    for part in (x, y))
            gaps = ~_spread(_np.ones(len(real), bool), self._replicas, slots)
            weight = _marked(_spread(weight, self._replicas, slots), gaps)
        elif self._weighs:
            weight = batch.weight.astype(_np.float64) * batch.loss_scale
            weight = _marked(weight * (1 if own is None else own), ~batch.valid)
        elif own is not None:
            weight = own
        if y is None:
            return (x,)
        return (x, y) if weight is None else (x, y, weight)

    def _fields(self, batch: Batch) -> tuple[Any, Any, Any]:
        x, y, weight = self._names
        parts = batch.numpy()
        if not isinstance(parts, dict):
            if (x, y, weight) != (None, None, None):
                raise ConfigError("ps.keras.dataset: x=, y= and sample_weight= name fields, but "
                                  "the elements are not dicts",
                                  remedy="leave them out: a tuple is (x, y) or (x, y, "
                                         "sample_weight)")
            given = parts if isinstance(parts, tuple) else (parts,)
            if not 1 <= len(given) <= 3:
                raise ConfigError(f"ps.keras.dataset: elements are tuples of {len(given)}",
                                  remedy="map to (x, y) or (x, y, sample_weight), or to a dict and "
                                         "name the fields")
            return (*given, None, None, None)[:3]
        for name in (*([x] if isinstance(x, str) else x or []), y, weight):
            if name is not None and name not in batch:
                raise ConfigError(f"ps.keras.dataset: there is no field {name!r}",
                                  remedy=f"the fields are {', '.join(parts)}")
        if x is None:
            chosen: Any = {name: part for name, part in parts.items() if name not in (y, weight)}
        elif isinstance(x, str):
            chosen = batch[x]
        else:
            chosen = {name: batch[name] for name in x}
        return chosen, None if y is None else batch[y], None if weight is None else batch[weight]


def _fit_is_looking() -> bool:
    """Before training, fit builds the model with a step from what looks like an epoch, and then
    resets its iterator: only the call stack distinguishes that from an epoch of training."""
    frame = sys._getframe(1)
    for _ in range(8):
        if frame is None:
            break
        if frame.f_code.co_name in ("reset", "_symbolic_build", "_maybe_symbolic_build"):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def iterator_of_keras(only_fit: bool = False) -> Any:
    """Keras' own iterator at the beginning of an epoch; None if Keras has changed."""
    frame: Any = sys._getframe(2)
    iterator = None
    while frame is not None and frame.f_code.co_name not in ("fit", "evaluate", "predict"):
        if frame.f_code.co_name == "_enumerate_iterator":
            iterator = frame.f_locals.get("self")
        frame = frame.f_back
    if frame is None or (only_fit and frame.f_code.co_name != "fit"):
        return None
    return iterator if hasattr(iterator, "_num_batches") else None


def _each(part: Any, convert: Any) -> Any:
    if isinstance(part, dict):
        return {name: _each(value, convert) for name, value in part.items()}
    if isinstance(part, tuple):
        return tuple(_each(value, convert) for value in part)
    return None if part is None else convert(part)


def _spread(rows: Any, replicas: int, share_rows: int) -> Any:
    """The rows, spread evenly over replicas with `share_rows` slots each."""
    room = _np.zeros((replicas, share_rows, *rows.shape[1:]), rows.dtype)
    least, more = divmod(len(rows), replicas)
    first = 0
    for replica in range(replicas):
        count = least + (replica < more)
        room[replica, :count] = rows[first:first + count]
        first += count
    return room.reshape(-1, *rows.shape[1:])


def _marked(weight: Any, gaps: Any) -> Any:
    """Gives padding the weight minus zero: it has no effect, but lets `ps.keras.metric` distinguish
    padding from a sample to which the user gave weight zero."""
    weight = weight.astype(_keras.config.floatx())
    weight[gaps] = -0.0
    return weight
