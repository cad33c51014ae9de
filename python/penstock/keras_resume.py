"""Stopping a fit and going on in the middle of an epoch; part of `ps.keras`."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import keras as _keras

from .errors import ConfigError, StateError

_FORMAT = 1


def _check_data(word: str, data: Any) -> None:
    if not hasattr(data, "keep_states"):
        raise ConfigError(f"{word}: wants what ps.keras.dataset(loader) makes, not "
                          f"{type(data).__name__}")


class Resume(_keras.callbacks.Callback):  # type: ignore[misc]
    """Saves weights, optimizer and place in the data to `folder`: after each epoch, and after
    `every` steps. `ps.keras.fit(..., resume=)` goes on from there.

    A save is whole or was not: what is there is replaced when the new one is on disk.
    """

    STATE = "state.json"

    def __init__(self, data: Any, folder: str | os.PathLike[str], *,
                 every: int | None = None) -> None:
        super().__init__()
        _check_data("Resume", data)
        if every is not None and every < 1:
            raise ConfigError(f"Resume: every={every} steps")
        self.data = data
        self._folder = Path(folder)
        self._every = every
        self._saved = 0
        data.keep_states()

    def restore(self, model: Any) -> bool:
        """Loads what was saved into a built model and the data; False where nothing was."""
        path = self._folder / self.STATE
        if not path.exists():
            return False
        try:
            state = json.loads(path.read_text(encoding="utf-8"))
            weights, place = self._folder / state["weights"], state["data"]
        except (ValueError, KeyError, TypeError) as error:
            raise StateError(f"Resume: {path} is not what Resume wrote: {error}") from error
        if state.get("format") != _FORMAT:
            raise StateError(f"Resume: {path} is of format {state.get('format')}, this is "
                             f"{_FORMAT}")
        self.data.load_state_dict(place)
        strategy = getattr(model, "distribute_strategy", None)  # of tf.distribute
        with contextlib.nullcontext() if strategy is None else strategy.scope():
            if model.optimizer is not None and not model.optimizer.built:
                model.optimizer.build(model.trainable_variables)
            model.load_weights(weights)
        return True

    def save(self, step: int | None = None) -> None:
        """When `step` steps of this epoch are done; the start of the epoch by default."""
        place = self.data.state_dict(step)  # first: it says when this cannot be saved
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / self.STATE
        name = f"epoch-{place['epoch']}-step-{place['step']}.weights.h5"
        draft = self._folder / f"draft-{os.getpid()}.weights.h5"
        self.model.save_weights(draft, overwrite=True)
        os.replace(draft, self._folder / name)
        draft = path.with_suffix(f".{os.getpid()}")
        with open(draft, "w", encoding="utf-8") as file:
            json.dump({"format": _FORMAT, "weights": name, "data": place}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
        for old in self._folder.glob("epoch-*.weights.h5"):
            if old.name != name:
                old.unlink(missing_ok=True)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.data.set_epoch(epoch)
        self._saved = self.data.first_step

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        done = self.data.first_step + batch + 1
        if self._every is not None and done - self._saved >= self._every:
            if done - self.data.first_step < self.params["steps"]:  # its end is on_epoch_end's
                self.save(done)
            self._saved = done

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.data.set_epoch(epoch + 1)
        self.save()


class _Epochs(_keras.callbacks.Callback):  # type: ignore[misc]
    """The data's epoch is fit's own number of it."""

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
        lost = type(error).__module__.startswith("tensorflow")  # what was raised, on its way
        if data.failure is None or not lost:
            raise
        raise data.failure from error


def fit(model: Any, data: Any, *, epochs: int = 1, resume: Resume | None = None,
        callbacks: Any = None, **options: Any) -> Any:
    """`model.fit(data, ...)` up to epoch `epochs`, in the loader's order, from where `resume` last
    saved; from the data's own place without one.

    An epoch that was begun is finished first, by a fit of its own, since Keras gives every epoch
    of one fit as many steps. Returns the History of all.
    """
    _check_data("ps.keras.fit", data)
    for name in ("shuffle", "steps_per_epoch", "initial_epoch"):
        if options.get(name):
            remedy = {"shuffle": "leave it out: the loader has shuffled already",
                      "steps_per_epoch": "ps.keras.dataset(loader, steps_per_epoch=...)",
                      "initial_epoch": "data.set_epoch(...), or a saved state"}[name]
            raise ConfigError(f"ps.keras.fit: {name}={options[name]!r}", remedy=remedy)
    options = {**options, "shuffle": False}
    if resume is not None:
        if resume.data is not data:
            raise ConfigError("ps.keras.fit: `resume` was made for other data",
                              remedy="Resume(data, folder) with the data that is passed here")
        resume.restore(model)
    callbacks = [*(callbacks or []), *([resume] if resume is not None else [_Epochs(data)])]
    parts: list[Any] = []
    model.stop_training = False
    while data.epoch < epochs and not model.stop_training:
        last = data.epoch + 1 if data.first_step else epochs
        parts.append(_fit_part(model, data, initial_epoch=data.epoch, epochs=last,
                               callbacks=callbacks, **options))
    if not parts:
        return _keras.callbacks.History()
    whole = parts[0]
    for part in parts[1:]:
        whole.epoch = [*whole.epoch, *part.epoch]
        for name, values in part.history.items():
            whole.history.setdefault(name, []).extend(values)
    return whole
