"""Stopping a fit and resuming in the middle of an epoch; part of `ps.keras`."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
from pathlib import Path
from typing import Any

import keras as _keras

from .arguments import path as path_of
from .arguments import whole, whole_or_none
from .errors import ConfigError, StateError
from .foreign import explained

_FORMAT = 2  # 1 had no checksum of the weights


def _check_data(word: str, data: Any) -> None:
    if not hasattr(data, "keep_states"):
        raise ConfigError(f"{word}: expected the result of ps.keras.dataset(loader), not "
                          f"{type(data).__name__}")


def _on_disk(path: Path) -> None:
    """Flushes the file, or the names in the folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _check_sum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() if hasattr(
            hashlib, "file_digest") else hashlib.sha256(file.read()).hexdigest()


def _runs(process: str) -> bool:
    """Whether a process of this machine has that number."""
    return not process.isdigit() or os.path.exists(f"/proc/{process}")


@explained
class Resume(_keras.callbacks.Callback):  # type: ignore[misc]
    """Saves weights, optimizer and position in the data to `folder`: after each epoch, and after
    `every` steps. `ps.keras.fit(..., resume=)` resumes from there.

    A save is atomic: it replaces the previous one only when it is on disk. Weights whose checksum
    does not match are refused.
    """

    STATE = "state.json"

    def __init__(self, data: Any, folder: str | os.PathLike[str], *,
                 every: int | None = None) -> None:
        super().__init__()
        _check_data("Resume", data)
        self.data = data
        self._folder = Path(os.fsdecode(path_of("Resume", "folder", folder)))
        self._every = whole_or_none("Resume", "every", every, least=1)
        self._saved = 0
        data.keep_states()

    def restore(self, model: Any) -> bool:
        """Loads the last save into a built model and the data; False if there is none."""
        path = self._folder / self.STATE
        if not path.exists():
            return False
        try:
            state = json.loads(path.read_text(encoding="utf-8"))
            form, name, place = state["format"], state["weights"], state["data"]
            check = state["sha256"] if form == _FORMAT else None
            if not isinstance(name, str) or name in ("", "..") or name != os.path.basename(name):
                raise ValueError(f"{name!r} is not the name of a file in the folder")
        except (ValueError, KeyError, TypeError) as error:
            raise StateError(f"Resume: {path} is not what Resume wrote: {error}") from error
        if form not in (1, _FORMAT):
            raise StateError(f"Resume: {path} has format {form}, this version reads {_FORMAT}")
        weights = self._folder / name
        if not weights.is_file():
            raise StateError(f"Resume: {weights}, named in {path.name}, is missing",
                             remedy="remove the folder to start over")
        if check is not None and _check_sum(weights) != check:
            raise StateError(f"Resume: {weights} is not the file that was saved: its checksum "
                             "differs", remedy="remove the folder to start over")
        self.data.load_state_dict(place)
        strategy = getattr(model, "distribute_strategy", None)  # of tf.distribute
        with contextlib.nullcontext() if strategy is None else strategy.scope():
            if model.optimizer is not None and not model.optimizer.built:
                model.optimizer.build(model.trainable_variables)
            model.load_weights(weights)
        return True

    def save(self, step: int | None = None) -> None:
        """Saves the state after `step` steps of this epoch; default: the start of the epoch."""
        place = self.data.state_dict(step)  # first: it raises if this cannot be saved
        self._folder.mkdir(parents=True, exist_ok=True)
        self._clear_drafts()
        path = self._folder / self.STATE
        name = f"epoch-{place['epoch']}-step-{place['step']}.weights.h5"
        draft = self._folder / f"{self._draft()}{os.getpid()}.weights.h5"
        self.model.save_weights(draft, overwrite=True)
        check = _check_sum(draft)
        _on_disk(draft)
        os.replace(draft, self._folder / name)
        _on_disk(self._folder)  # the state names the weights, so they must be there first
        draft = self._folder / f"{self._draft()}{os.getpid()}.json"
        with open(draft, "w", encoding="utf-8") as file:
            json.dump({"format": _FORMAT, "weights": name, "sha256": check, "data": place}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
        _on_disk(self._folder)  # the state must be there before the old weights are removed
        for old in self._folder.glob("epoch-*.weights.h5"):
            if old.name != name:
                old.unlink(missing_ok=True)

    @staticmethod
    def _draft() -> str:
        return f"draft-{socket.gethostname()}-"

    def _clear_drafts(self) -> None:
        """Removes drafts of processes of this machine that were killed while saving."""
        for draft in self._folder.glob(f"{self._draft()}*"):
            process = draft.name.removeprefix(self._draft()).split(".")[0]
            if process != str(os.getpid()) and not _runs(process):
                draft.unlink(missing_ok=True)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.data.set_epoch(epoch)
        self._saved = self.data.first_step

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        done = self.data.first_step + batch + 1
        if self._every is not None and done - self._saved >= self._every:
            steps = self.params["steps"]  # None if not known before running
            if steps is None or done - self.data.first_step < steps:  # on_epoch_end saves the end
                self.save(done)
            self._saved = done

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.data.set_epoch(epoch + 1)
        self.save()


class _Epochs(_keras.callbacks.Callback):  # type: ignore[misc]
    """Keeps the epoch of the data equal to that of fit."""

    def __init__(self, data: Any) -> None:
        super().__init__()
        self._data = data

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._data.set_epoch(epoch)


def _fit_part(model: Any, data: Any, **options: Any) -> Any:
    data.failure = None
    try:
        return model.fit(data, **options)
    except Exception as error:
        lost = type(error).__module__.startswith("tensorflow")  # it replaces exceptions
        if data.failure is None or not lost:
            raise
        raise data.failure from error


@explained
def fit(model: Any, data: Any, *, epochs: int = 1, resume: Resume | None = None,
        callbacks: Any = None, **options: Any) -> Any:
    """`model.fit(data, ...)` up to epoch `epochs`, in the loader's order, from the last save of
    `resume`; without one, from the position of the data.

    An interrupted epoch is finished first, in a fit of its own, since in Keras every epoch of one
    fit has the same number of steps. Returns the History of all epochs.
    """
    _check_data("ps.keras.fit", data)
    epochs = whole("ps.keras.fit", "epochs", epochs)
    if options.get("class_weight") is not None and hasattr(data, "py_dataset"):
        raise ConfigError("ps.keras.fit: class_weight= has no effect on data without a length",
                          remedy="ps.keras.dataset(loader, steps_per_epoch=...), or sample_weight=")
    steps_per_epoch = options.pop("steps_per_epoch", None)
    for name in ("shuffle", "initial_epoch"):
        if options.get(name):
            remedy = {"shuffle": "leave it out: the loader has shuffled already",
                      "initial_epoch": "data.set_epoch(...), or a saved state"}[name]
            raise ConfigError(f"ps.keras.fit: {name}={options[name]!r}", remedy=remedy)
    options = {**options, "shuffle": False}
    if resume is not None:
        if resume.data is not data:
            raise ConfigError("ps.keras.fit: `resume` belongs to other data",
                              remedy="pass the same data to Resume(data, folder)")
        resume.restore(model)
    if steps_per_epoch is not None:
        data.set_steps_per_epoch(steps_per_epoch)
    callbacks = [*(callbacks or []), *([resume] if resume is not None else [_Epochs(data)])]
    parts: list[Any] = []
    model.stop_training = False
    while data.epoch < epochs and not model.stop_training:
        last = data.epoch + 1 if data.first_step else epochs
        parts.append(_fit_part(model, data, initial_epoch=data.epoch, epochs=last,
                               callbacks=callbacks, **options))
    if not parts:
        return _keras.callbacks.History()
    history = parts[0]
    for part in parts[1:]:
        history.epoch = [*history.epoch, *part.epoch]
        for name, values in part.history.items():
            history.history.setdefault(name, []).extend(values)
    return history
