"""Batches by index, like Keras' Sequence."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from . import _native
from .arguments import flag, text
from .dataset import Dataset
from .errors import ConfigError
from .foreign import explained
from .spec import Spec


class Sequence(ABC):
    """Derive from it: the number of batches, and a method that returns each one. No attribute names
    are reserved.

    `__getitem__` is called from several threads at the same time, once per index of a pass, and
    must depend on the index alone.
    """

    @abstractmethod
    def __len__(self) -> int:
        """Number of batches in a pass."""

    @abstractmethod
    def __getitem__(self, index: int) -> Any:
        """Returns global batch `index`: arrays with the rows as first dimension."""

    def on_epoch_begin(self) -> None:
        """Called in the thread of the `for`, before the first batch of an epoch is requested."""

    def on_epoch_end(self) -> None:
        """Called when the next epoch begins or the loader ends."""


@explained
def from_sequence(sequence: Any, *, name: str = "", spec: Spec = None, pure: bool = False,
                  check: bool = True) -> Dataset:
    """The batches of a Sequence, a keras.utils.PyDataset, or anything with len() and [index].

    They are global batches, cut into shares like any other. At the very end one index is requested
    again; if the result differs, a warning is printed (`check`), or an error is raised (`pure`).
    """
    if isinstance(sequence, type):
        raise ConfigError(f"from_sequence: {sequence.__name__} is a class",
                          remedy=f"create an object: {sequence.__name__}(...)")
    text("from_sequence", "name", name)
    if flag("from_sequence", "pure", pure) and not flag("from_sequence", "check", check):
        raise ConfigError("from_sequence: pure=True needs the check that check=False turns "
                          "off", remedy="leave one of them out")
    kind = type(sequence).__name__
    missing = [word for word in ("__len__", "__getitem__") if not hasattr(sequence, word)]
    # A PyDataset may have the number of batches in num_batches, a property that can raise.
    counts = "num_batches" in {*dir(type(sequence)), *getattr(sequence, "__dict__", ())}
    if missing == ["__len__"] and counts:
        sequence = _WithLength(sequence)
    elif missing or isinstance(sequence, dict):
        raise ConfigError(f"from_sequence: {type(sequence).__name__} has no "
                          f"{' and no '.join(missing or ['batches by number'])}",
                          remedy="for a stream use from_generator")
    return Dataset(_native.from_sequence(sequence, name or kind, spec,
                                         pure, flag("from_sequence", "check", check)))


class _WithLength:
    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __len__(self) -> int:
        name = type(self._dataset).__name__
        try:
            count = self._dataset.num_batches
        except NotImplementedError:
            raise ConfigError(f"from_sequence: {name} does not say how many batches it has",
                              remedy="give it __len__") from None
        if count is None:
            raise ConfigError(f"from_sequence: {name} is endless: its num_batches is None",
                              remedy="for a stream use from_generator")
        return int(count)

    def __getitem__(self, index: int) -> Any:
        return self._dataset[index]

    def on_epoch_begin(self) -> None:
        getattr(self._dataset, "on_epoch_begin", lambda: None)()

    def on_epoch_end(self) -> None:
        getattr(self._dataset, "on_epoch_end", lambda: None)()
