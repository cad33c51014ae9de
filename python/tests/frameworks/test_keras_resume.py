"""Stopping a fit and resuming it, under the real Keras: ps.keras.Resume and ps.keras.fit."""

import json
import os
import socket
import subprocess
import sys

import numpy as np
import pytest

keras = pytest.importorskip("keras")

from keras_programs import (  # noqa: E402
    CLOSE,
    keras_data,
    linear,
    planned,
    stream_data,
    table,
    trained_by_hand,
    weights_of,
)

import penstock as ps  # noqa: E402


class StopAt(keras.callbacks.Callback):
    def __init__(self, epoch, step):
        super().__init__()
        self.at = (epoch, step)

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_begin(self, batch, logs=None):
        if (self.epoch, batch) == self.at:
            raise KeyboardInterrupt


@pytest.mark.parametrize("steps_per_epoch", [None, 5])
@pytest.mark.parametrize("stop", [(0, 1), (1, 0), (1, 3), (2, 4)])
def test_a_fit_resumes_in_the_middle_of_an_epoch(tmp_path, stop, steps_per_epoch):
    def program(*callbacks):
        keras.utils.set_random_seed(0)
        model = linear(keras.optimizers.Adam(0.1))
        data = keras_data(steps_per_epoch=steps_per_epoch)
        resume = ps.keras.Resume(data, tmp_path / "save", every=1)
        history = ps.keras.fit(model, data, epochs=3, resume=resume, verbose=0,
                               callbacks=list(callbacks))
        return weights_of(model), history, int(model.optimizer.iterations)

    with pytest.raises(KeyboardInterrupt):
        program(StopAt(*stop))
    assert sorted(path.name for path in (tmp_path / "save").iterdir()) == [
        f"epoch-{stop[0]}-step-{stop[1]}.weights.h5", "state.json"]
    resumed, history, iterations = program()
    assert iterations == 3 * (steps_per_epoch or 7) and history.epoch[-1] == 2
    model = linear(keras.optimizers.Adam(0.1))
    ps.keras.fit(model, keras_data(steps_per_epoch=steps_per_epoch), epochs=3, verbose=0)
    np.testing.assert_allclose(resumed, weights_of(model), rtol=1e-6, atol=1e-7)
    # Everything is done: nothing is trained again.
    assert program()[2] == iterations


def test_states_are_json_and_name_what_does_not_fit(tmp_path):
    data = keras_data()
    resume = ps.keras.Resume(data, tmp_path, every=3)
    ps.keras.fit(linear(), data, epochs=1, resume=resume, verbose=0)
    state = json.loads((tmp_path / "state.json").read_text())
    assert (state["data"]["epoch"], state["data"]["step"]) == (1, 0)
    other = keras_data()
    other[0]
    other[1]
    middle = json.loads(json.dumps(other.state_dict(2)))
    with pytest.raises(ps.StateError, match="steps of 16 samples.*the same batch size"):
        keras_data(batch=8).load_state_dict(middle)
    with pytest.raises(ps.StateError, match="not a state of a ps.keras"):
        keras_data().load_state_dict(ps.Loader(table()).state_dict())
    with pytest.raises(ps.StateError, match="not reached in order"):
        keras_data().state_dict(5)
    (tmp_path / "state.json").write_text("{}")
    with pytest.raises(ps.StateError, match="not what Resume wrote"):
        resume.restore(linear())
    with pytest.raises(ps.ConfigError, match="belongs to other data"):
        ps.keras.fit(linear(), keras_data(), resume=resume)


@pytest.fixture
def saved(tmp_path):
    """A folder with a save, and a Resume of other data that may load it."""
    data = keras_data()
    ps.keras.fit(linear(), data, epochs=1, resume=ps.keras.Resume(data, tmp_path), verbose=0)
    return tmp_path, ps.keras.Resume(keras_data(), tmp_path)


def test_weights_that_differ_from_the_saved_ones_are_rejected(saved):
    folder, resume = saved
    (weights,) = folder.glob("*.weights.h5")
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(ps.StateError, match="checksum differs.*start over"):
        resume.restore(linear())
    weights.write_bytes(b"")  # as after a power failure
    with pytest.raises(ps.StateError, match="checksum differs"):
        resume.restore(linear())
    weights.unlink()
    with pytest.raises(ps.StateError, match="is missing"):
        resume.restore(linear())


def test_a_state_names_no_file_outside_its_folder(saved):
    folder, resume = saved
    state = json.loads((folder / "state.json").read_text())
    for name in ("../outside.weights.h5", "/etc/passwd", "..", "", 3, "a/b"):
        (folder / "state.json").write_text(json.dumps({**state, "weights": name}))
        with pytest.raises(ps.StateError, match="not what Resume wrote.*in the folder"):
            resume.restore(linear())


def test_weights_are_on_disk_before_the_state_names_them(tmp_path, monkeypatch):
    from penstock import keras_resume
    events = []
    on_disk, replace = keras_resume._on_disk, os.replace
    monkeypatch.setattr(keras_resume, "_on_disk",
                        lambda path: (events.append(("on disk", path.name)), on_disk(path)))
    monkeypatch.setattr(os, "replace",
                        lambda a, b: (events.append(("named", b.name)), replace(a, b)))
    data = keras_data()
    ps.keras.fit(linear(), data, epochs=1, resume=ps.keras.Resume(data, tmp_path / "s"), verbose=0)
    weights = "epoch-1-step-0.weights.h5"
    assert [kind for kind, _ in events] == ["on disk", "named", "on disk", "named", "on disk"]
    assert [name for kind, name in events if kind == "named"] == [weights, "state.json"]
    assert events[0][1].endswith(".weights.h5") and events[2][1] == events[4][1] == "s"


def test_temporary_files_of_killed_processes_are_removed(saved):
    folder, _ = saved
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], check=True,
                          capture_output=True, text=True).stdout.strip()
    host = socket.gethostname()
    gone = [folder / f"draft-{host}-{dead}{kind}" for kind in (".weights.h5", ".json")]
    others = [folder / f"draft-{host}-{os.getppid()}.json", folder / f"draft-elsewhere-{dead}.json"]
    for path in gone + others:
        path.touch()
    data = keras_data()
    ps.keras.fit(linear(), data, epochs=2, resume=ps.keras.Resume(data, folder), verbose=0)
    assert not any(path.exists() for path in gone) and all(path.exists() for path in others)


def test_a_fit_with_steps_per_epoch_is_resumed_without_naming_them_again(tmp_path):
    def program(*callbacks, **options):
        keras.utils.set_random_seed(0)
        model, data = linear(keras.optimizers.Adam(0.1)), keras_data()
        ps.keras.fit(model, data, epochs=4, resume=ps.keras.Resume(data, tmp_path, every=1),
                     verbose=0, callbacks=list(callbacks), **options)
        return weights_of(model), int(model.optimizer.iterations)

    with pytest.raises(KeyboardInterrupt):
        program(StopAt(2, 1), steps_per_epoch=3)
    resumed, iterations = program()
    assert iterations == 12
    never, data = linear(keras.optimizers.Adam(0.1)), keras_data()
    ps.keras.fit(never, data, epochs=4, steps_per_epoch=3, verbose=0)
    np.testing.assert_allclose(resumed, weights_of(never), rtol=1e-6, atol=1e-7)
    with pytest.raises(ps.StateError, match="epochs of 3 steps, but these have 5"):
        keras_data(steps_per_epoch=5).load_state_dict(
            json.loads((tmp_path / "state.json").read_text())["data"])


def test_a_plain_fit_of_a_resumed_epoch_does_not_shorten_the_others():
    first = keras_data()
    first[0]
    data = keras_data()
    data.load_state_dict(first.state_dict(1))
    assert len(data) == 6 and data.first_step == 1
    with pytest.raises(ps.ConfigError, match=r"ps\.keras\.fit"):
        linear().fit(data, epochs=2, shuffle=False, verbose=0)
    data = keras_data()
    data.load_state_dict(first.state_dict(1))
    model = linear()
    model.fit(data, epochs=1, shuffle=False, verbose=0)
    np.testing.assert_allclose(weights_of(model), trained_by_hand(planned(1)[0][1:])[0], **CLOSE)
    assert len(data) == 7


def test_a_loader_with_a_state_starts_at_its_position():
    before = ps.Loader(table())
    loop = iter(before)
    for _ in range(3):
        next(loop)
    loader = ps.Loader(table())
    loader.load_state_dict(before.state_dict())
    data = ps.keras.dataset(loader, x="x", y="y")
    assert (data.epoch, data.first_step, len(data)) == (0, 3, 4)
    model = linear()
    ps.keras.fit(model, data, epochs=2, verbose=0)
    steps = planned(2)[0][3:] + planned(2)[1]
    np.testing.assert_allclose(weights_of(model), trained_by_hand(steps)[0], **CLOSE)


def test_an_unshuffled_fit_after_a_shuffled_one_can_be_saved(tmp_path):
    data = keras_data(batch=4)
    with pytest.warns(UserWarning, match="order of its own"):
        linear().fit(data, verbose=0, shuffle=True)
    resume = ps.keras.Resume(data, tmp_path)
    linear().fit(data, verbose=0, shuffle=False, epochs=2, initial_epoch=1, callbacks=[resume])
    assert (tmp_path / "state.json").exists()


@pytest.mark.parametrize("stop", [(0, 1), (1, 0), (1, 3), (1, 6), (2, 4)])
def test_a_fit_of_a_stream_resumes_in_the_middle_of_an_epoch(tmp_path, stop):
    def program(*callbacks):
        keras.utils.set_random_seed(0)
        model, data = linear(keras.optimizers.Adam(0.1)), stream_data()
        resume = ps.keras.Resume(data, tmp_path / "save", every=1)
        ps.keras.fit(model, data, epochs=3, resume=resume, verbose=0, callbacks=list(callbacks))
        return weights_of(model), int(model.optimizer.iterations)

    with pytest.raises(KeyboardInterrupt):
        program(StopAt(*stop))
    resumed, iterations = program()
    assert iterations == 21
    never = linear(keras.optimizers.Adam(0.1))
    ps.keras.fit(never, stream_data(), epochs=3, verbose=0)
    np.testing.assert_allclose(resumed, weights_of(never), rtol=1e-6, atol=1e-7)
