"""Epochs of a fixed number of steps, `Loader(steps_per_epoch=)`: each one continues where the
previous one ended, in the middle of a pass over the data or across its end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from . import _native
from .errors import ConfigError, StateError


class Epochs:
    """Counts the steps of epochs over a loader, which itself counts passes over the data."""

    def __init__(self, native: _native.Loader, steps: int, *, endless: bool) -> None:
        self._native = native
        self.steps = steps
        self._pass_steps = native.plan().steps
        self._endless = endless
        if self._pass_steps is not None and self._pass_steps < steps:
            raise self._too_few(self._pass_steps)
        self.epoch = 0
        self._epoch_done = 0  # steps received in this epoch
        self._pass_done = 0  # and in this pass
        self._pass: Iterator[_native.Batch] | None = None
        self._loop: _EpochLoop | None = None  # the only one that may take steps

    def _too_few(self, steps: int) -> ConfigError:
        return ConfigError(
            f"Loader: a pass over the data has {steps} steps, and steps_per_epoch is {self.steps}",
            remedy="repeat() the data, or ask for fewer steps")

    def begin(self) -> _EpochLoop:
        """A loop over the rest of this epoch. Leaving a loop in its middle ends its epoch."""
        if self._loop is not None and self._loop.received:
            self._end()
        self._loop = _EpochLoop(self)
        return self._loop

    def _end(self) -> None:
        self.epoch, self._epoch_done, self._loop = self.epoch + 1, 0, None

    def left(self) -> int:
        return self.steps - self._epoch_done

    def take(self, loop: _EpochLoop) -> _native.Batch | None:
        """The next step, or None at the end of the epoch."""
        if loop is not self._loop:
            raise ConfigError(
                "Loader: a newer `for` has started, or a state was loaded; with steps_per_epoch a "
                "loader has a single position", remedy="use a second Loader to run two loops")
        if self._epoch_done == self.steps:
            self._end()
            return None
        batch = self._pull()
        self._epoch_done += 1
        self._pass_done += 1
        return batch

    def _pull(self) -> _native.Batch:
        if self._pass is None:
            self._pass = self._native.iterate()
        batch = next(self._pass, None)
        if batch is not None:
            return batch
        received, self._pass_done, self._pass = self._pass_done, 0, self._native.iterate()
        if received >= self.steps:
            batch = next(self._pass, None)
        if batch is None:  # the length of a stream is known when it ends
            self._end()
            raise self._too_few(received)
        return batch

    def set_epoch(self, epoch: int) -> None:
        """Keeps the position if `epoch` is the current one, as training loops expect."""
        if epoch != self.epoch:
            raise ConfigError(
                f"set_epoch: the loader is at epoch {self.epoch}, and where epoch {epoch} of "
                f"{self.steps} steps begins in the data is not known",
                remedy="load a state of that epoch")

    def state(self) -> str:
        at = ((self.epoch + 1, 0) if self._epoch_done == self.steps
              else (self.epoch, self._epoch_done))
        return _native.state_with_epochs(self._native.state(), *at)

    def restore(self, text: str) -> None:
        self._loop = self._pass = None
        self._native.restore(text)  # raises for text that is not a state
        state: dict[str, Any] = json.loads(text)
        step: int = state["step"]
        if "epochs" in state:
            epoch, done = state["epochs"]
            if done >= self.steps:
                raise StateError(
                    f"the state was taken after {done} steps of an epoch, and epochs have "
                    f"{self.steps} steps here", remedy="use the steps_per_epoch that it was saved "
                                                       "with")
        elif self._pass_steps is None and not self._endless:
            epoch, done = state["epoch"], step % self.steps
        else:  # of a loader without steps_per_epoch: count its steps
            epoch, done = divmod(state["epoch"] * (self._pass_steps or 0) + step, self.steps)
        self.epoch, self._epoch_done, self._pass_done = epoch, done, step


class _EpochLoop:
    def __init__(self, epochs: Epochs) -> None:
        self._epochs: Epochs | None = epochs  # None once the epoch has ended
        self.received = 0

    def __iter__(self) -> _EpochLoop:
        return self

    def __next__(self) -> _native.Batch:
        batch = None if self._epochs is None else self._epochs.take(self)
        if batch is None:
            self._epochs = None
            raise StopIteration
        self.received += 1
        return batch

    def __length_hint__(self) -> int:
        return 0 if self._epochs is None else self._epochs.left()
