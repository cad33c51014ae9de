"""Data of unknown length, for Keras; part of `ps.keras`."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from typing import Any

from .errors import ConfigError
from .keras_data import Dataset, iterator_of_keras
from .loader import Batch, Loader

try:
    from keras.src.trainers.data_adapters.py_dataset_adapter import PyDatasetAdapter as _Adapter
except ImportError:  # this version of Keras has it elsewhere
    _Adapter = object
KERAS_TAKES_STREAMS = _Adapter is not object


class Stream(Dataset, _Adapter):  # type: ignore[misc]
    """A loader of data of unknown length, as returned by `ps.keras.dataset`.

    An epoch is a pass and ends when the data does. For Keras it is a data adapter rather than a
    PyDataset, whose end must be known, or is never reached.
    """

    def __init__(self, loader: Loader, **options: Any) -> None:
        Dataset.__init__(self, loader, **options)
        self.py_dataset = self
        self.class_weight = self.enqueuer = self._output_signature = None
        self._iterator: Any = None  # Keras' own, of the current epoch
        self._over = False  # all of this epoch was yielded

    def _check_steps(self, asked: int | None) -> int:
        if asked is not None:
            raise ConfigError("ps.keras: the epochs of this stream are its passes",
                              remedy="ps.keras.dataset(loader, steps_per_epoch=...), not fit")
        return sys.maxsize  # any step may belong to this pass

    num_batches = None

    def __len__(self) -> int:
        raise TypeError("this data has no len(): the length of a stream is unknown until it ends")

    def __getitem__(self, index: int) -> Any:
        batch = self._next(index)
        if batch is None and index > 0 and not self._begun:
            batch = self._next(0)  # TensorFlow inspects two steps to learn their shapes
        if batch is None:
            raise IndexError(f"step {index} of a shorter pass")
        return self._parts(batch)

    def _next(self, index: int) -> Batch | None:
        try:
            return self._walk.batch(self._epoch, self._first + index,
                                    self._looking or not self._begun)
        except Exception as error:
            self.failure = error
            raise

    def _get_iterator(self) -> Iterator[Any]:
        """Passes Keras the number of steps before yielding the last one: if TensorFlow runs out of
        data in the middle of a step, its optimizers apply that step anyway."""
        if self._over:  # Keras creates an iterator at the end of an epoch, and then another one
            return
        iterator = self._iterator
        batch = self._next(0)
        if batch is None:
            raise ConfigError("ps.keras: this pass has no steps")
        for index in itertools.count(1):
            following = self._next(index)
            if following is None:
                self._over = self._begun and not self._looking
                if iterator is not None:
                    iterator._num_batches = index
                yield self._parts(batch)
                return
            yield self._parts(batch)
            batch = following

    def on_epoch_begin(self) -> None:
        super().on_epoch_begin()
        self._over = False
        self._iterator = iterator_of_keras()
        if self._iterator is not None:
            self._iterator._num_batches = sys.maxsize  # not that of the previous pass
            self._iterator._interrupted_warning = lambda: None  # the end is not an interruption

    def _take_place(self, state: dict[str, Any]) -> None:
        self._epoch, self._first = int(state.get("epoch", 0)), int(state.get("step", 0))
        if self._first:
            self._walk.restore(state, self._epoch, self._first)

    def _place(self, epoch: int, step: int) -> tuple[int, int]:
        return epoch, step

    def state_dict(self, step: int | None = None) -> dict[str, Any]:
        state = super().state_dict(step)
        if state["loader"].get("epoch", 0) > state["epoch"]:  # that was the last step of a pass
            state["epoch"], state["step"] = state["epoch"] + 1, 0
        return state

    def unpad(self, predictions: Any) -> Any:
        raise ConfigError("unpad: the length of a pass is not known before it ends",
                          remedy="ps.keras.dataset(loader, steps_per_epoch=...)")
