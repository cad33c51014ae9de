"""ps.keras against the real Keras, on the backend that KERAS_BACKEND names."""

import numpy as np
import pytest

keras = pytest.importorskip("keras")

from keras_programs import (  # noqa: E402
    CLOSE,
    keras_data,
    linear,
    planned,
    samples,
    stream_data,
    table,
    trained_by_hand,
    weights_of,
)

import penstock as ps  # noqa: E402

# A step depends on its number alone


def test_steps_are_pure_in_the_index():
    data = keras_data()
    assert len(data) == 7 and isinstance(data, keras.utils.PyDataset)
    expected = [step["x"].copy() for step in ps.Loader(table())]
    for index in [0, 1, 0, 2, 6, 3, 3, 5, 0, 4, 1, 6]:
        x, y = data[index]
        assert (x == expected[index]).all() and len(y) == len(x)
    with pytest.raises(IndexError):
        data[7]


def test_each_sample_is_computed_once_per_epoch_while_fit_reads_in_order():
    made = []

    def count(sample):
        made.append(int(sample["id"]))
        return sample["x"], sample["y"]

    ds = ps.from_tensor_slices(samples()).shuffle(seed=7).map(count).batch(16)
    data = ps.keras.dataset(ps.Loader(ds))
    linear().fit(data, epochs=3, shuffle=False, verbose=0)
    # Keras reads the first steps before it starts: they are cached, and not computed again.
    assert sorted(made) == sorted([*range(103)] * 3)
    assert data.epoch == 3


@pytest.mark.parametrize("batch", [16, 103, 1, 50])
def test_gradient_loss_and_metrics_are_exact_on_uneven_data(batch):
    model = linear(metrics=["mse"])
    history = model.fit(keras_data(batch=batch), epochs=2, shuffle=False, verbose=0).history
    passes = planned(2, batch=batch)
    weights, _ = trained_by_hand(passes[0] + passes[1])
    np.testing.assert_allclose(weights_of(model), weights, **CLOSE)
    loss = trained_by_hand(passes[0])[1]
    np.testing.assert_allclose(history["loss"][0], loss, **CLOSE)
    np.testing.assert_allclose(history["mse"][0], loss, **CLOSE)


def test_a_separate_fit_takes_the_same_steps():
    model = linear()
    history = ps.keras.fit(model, keras_data(), epochs=3, verbose=0)
    np.testing.assert_allclose(weights_of(model), trained_by_hand(sum(planned(3), []))[0], **CLOSE)
    assert history.epoch == [0, 1, 2] and len(history.history["loss"]) == 3


def test_a_second_fit_continues_with_the_next_epoch():
    model, data = linear(), keras_data()
    for _ in range(3):
        model.fit(data, epochs=1, shuffle=False, verbose=0)
    np.testing.assert_allclose(weights_of(model), trained_by_hand(sum(planned(3), []))[0], **CLOSE)


def test_evaluate_and_predict_use_every_sample_once():
    model, data = linear(metrics=["mse"]), keras_data()
    result = model.evaluate(data, verbose=0, return_dict=True)
    mean = (samples()["y"] ** 2).mean()
    np.testing.assert_allclose([result["loss"], result["mse"]], [mean, mean], **CLOSE)
    assert model.predict(keras_data(), verbose=0).shape == (103, 1)


def test_validation_data_is_a_whole_pass_each_time():
    model = linear(keras.optimizers.SGD(0.0))
    history = model.fit(keras_data(), validation_data=keras_data(19, batch=4), epochs=3,
                        shuffle=False, verbose=0).history
    np.testing.assert_allclose(history["val_loss"], [(samples(19)["y"] ** 2).mean()] * 3, **CLOSE)


# Fields


def test_elements_may_be_tuples_with_weights():
    arrays = samples()
    weight = np.linspace(0, 2, 103).astype("float32")
    ds = ps.from_tensor_slices((arrays["x"], arrays["y"], weight)).batch(16)
    x, y, own = ps.keras.dataset(ps.Loader(ds))[6]
    assert x.shape == (7, 4) and y.shape == (7, 1) and (own == weight[96:]).all()


def test_fields_are_named():
    loader = ps.Loader(table())
    assert set(ps.keras.dataset(loader, y="y")[0][0]) == {"x", "id"}
    x, y, weight = ps.keras.dataset(loader, x=["x"], y="y", sample_weight="id")[0]
    assert set(x) == {"x"} and weight.dtype.kind == "i"
    with pytest.raises(ps.ConfigError, match="no field 'label'.*the fields are"):
        ps.keras.dataset(loader, x="x", y="label")[0]
    tuples = ps.Loader(ps.from_tensor_slices((np.zeros(4), np.zeros(4))).batch(2))
    with pytest.raises(ps.ConfigError, match="not dicts"):
        ps.keras.dataset(tuples, x="x")[0]


def test_other_objects_and_endless_data_raise():
    with pytest.raises(ps.ConfigError, match="expected a Loader"):
        ps.keras.dataset(table())
    with pytest.raises(ps.ConfigError, match="steps_per_epoch="):
        ps.keras.dataset(ps.Loader(ps.range(50).repeat().batch(8)))
    for wrong in (-1, 0, 1.5, "x", object()):
        with pytest.raises(ps.ConfigError, match="steps_per_epoch"):
            keras_data(steps_per_epoch=wrong)
    with pytest.raises(ps.ConfigError, match="y=3 is not a string"):
        ps.keras.dataset(ps.Loader(table()), y=3)
    with pytest.raises(ps.ConfigError, match="no argument batch_size="):
        ps.keras.dataset(ps.Loader(table()), batch_size=3)
    with pytest.raises(ps.ConfigError, match="steps_per_epoch=8, but a pass has 7"):
        keras_data(steps_per_epoch=8)
    with pytest.raises(ps.ConfigError, match="has no steps"):
        ps.keras.dataset(ps.Loader(ps.range(3).batch(4), tail="drop"))


def test_a_loader_passed_to_fit_raises_with_a_remedy():
    with pytest.raises(ValueError, match=r"ps\.keras\.dataset\(loader\)"):
        linear().fit(ps.Loader(table()))
    with pytest.raises(ValueError, match=r"ps\.keras\.dataset\(ps\.Loader"):
        linear().fit(table())


# fit's own shuffle


def test_fits_own_shuffle_trains_on_every_sample_and_is_reported():
    made = []

    def note(sample):
        made.append(int(sample["id"]))
        return sample["x"], sample["y"]

    ds = ps.from_tensor_slices(samples()).map(note).batch(4)
    data = ps.keras.dataset(ps.Loader(ds, threads=0))
    with pytest.warns(UserWarning, match="shuffle=False"):
        linear().fit(data, verbose=0)
    assert set(made) == set(range(103))


def test_saving_under_fits_own_shuffle_raises(tmp_path):
    data = keras_data(batch=4)
    resume = ps.keras.Resume(data, tmp_path, every=1)
    with pytest.warns(UserWarning, match="order of its own"), \
            pytest.raises(ps.StateError, match=r"fit\(\.\.\., shuffle=False\)"):
        linear().fit(data, verbose=0, callbacks=[resume], shuffle=True)
    with pytest.raises(ps.ConfigError, match="has shuffled already"):
        ps.keras.fit(linear(), data, shuffle=True)


# Padded batches


def own_weights(ids):
    """A user's weights: some samples have weight zero, and one row is padding."""
    return ((np.asarray(ids) * 7) % 5 / 2).astype(np.float64)


def padded(user=False):
    arrays = samples()
    arrays["w"] = own_weights(arrays["id"]).astype("float32")
    ds = ps.from_tensor_slices(arrays).shuffle(seed=7).batch(16)
    return ps.keras.dataset(ps.Loader(ds, tail="pad"), x="x", y="y",
                            sample_weight="w" if user else None)


@pytest.mark.parametrize("user", [False, True])
def test_padding_weighs_nothing_and_a_users_weights_multiply(user):
    data = padded(user)
    passes = planned(2)
    for step in range(7):
        x, y, weight = data[step]
        assert x.shape == (16, 4) and y.shape == (16, 1) and weight.shape == (16,)
        ids = passes[0][step]
        own = own_weights(ids) if user else np.ones(len(ids))
        np.testing.assert_allclose(weight[:len(ids)], own * 16 / len(ids), rtol=1e-6)
        assert not weight[len(ids):].any()
    model = linear()
    model.fit(data, epochs=2, shuffle=False, verbose=0)
    weights, _ = trained_by_hand(passes[0] + passes[1], own_weights if user else None)
    np.testing.assert_allclose(weights_of(model), weights, **CLOSE)


@pytest.mark.parametrize("user", [False, True])
def test_logs_of_padded_batches_are_exact(user):
    exact = ps.keras.ExactLoss("mse")
    model = linear(weighted_metrics=[exact.metric, ps.keras.metric("mse")])
    history = model.fit(padded(user), validation_data=padded(user), shuffle=False, verbose=0,
                        callbacks=[exact]).history
    _, loss = trained_by_hand(planned(1)[0], own_weights if user else None)
    np.testing.assert_allclose(history["loss"], [loss], **CLOSE)
    np.testing.assert_allclose(history["mean_squared_error"], [loss], **CLOSE)
    assert "data_loss" not in history and "val_data_loss" not in history
    np.testing.assert_allclose(history["val_loss"], history["val_mean_squared_error"], **CLOSE)

    plain = linear(weighted_metrics=["mse"])
    wrong = plain.fit(padded(user), shuffle=False, verbose=0).history
    assert abs(wrong["mse"][0] - loss) > 1e-3 * loss  # the error without the wrapper


def test_metrics_of_any_kind_are_wrapped_and_saved():
    def twice(y_true, y_pred):
        return 2 * keras.ops.mean(keras.ops.abs(y_true - y_pred), axis=-1)

    assert ps.keras.metric(twice).name == "twice"
    assert ps.keras.metric(keras.losses.MeanAbsoluteError()).name == "mean_absolute_error"
    wrapped = ps.keras.metric(keras.metrics.BinaryAccuracy(name="hits"))
    assert wrapped.name == "hits"
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(wrapped))
    y = np.array([[0.0], [1.0], [1.0], [0.0]], "float32")
    for each in (wrapped, again):
        # Two real rows of which one is a hit, and two of padding.
        each.update_state(y, np.ones_like(y), np.array([2.0, 2.0, -0.0, -0.0], "float32"))
        assert float(each.result()) == 0.5
        each.reset_state()
        each.update_state(y, np.ones_like(y))
        assert float(each.result()) == 0.5
    with pytest.raises(ps.ConfigError, match="SparseCategoricalAccuracy"):
        ps.keras.metric("accuracy")
    with pytest.raises(ps.ConfigError, match="is not a metric"):
        ps.keras.metric(3)


def test_predictions_lose_their_padding():
    model, data = linear(), padded()
    rows = model.predict(data, verbose=0)
    assert rows.shape == (112, 1) and data.unpad(rows).shape == (103, 1)
    with pytest.raises(ps.ConfigError, match="5 rows for an epoch of 112"):
        data.unpad(rows[:5])


# Epochs in steps


def test_epochs_of_fewer_steps_continue_across_passes():
    model, data = linear(), keras_data(steps_per_epoch=5)
    assert len(data) == 5
    model.fit(data, epochs=3, shuffle=False, verbose=0)
    steps = sum(planned(3), [])[:15]
    np.testing.assert_allclose(weights_of(model), trained_by_hand(steps)[0], **CLOSE)


def test_endless_data_in_epochs():
    ds = ps.from_tensor_slices(samples()).shuffle(seed=7).repeat().batch(16)
    data = ps.keras.dataset(ps.Loader(ds), x="x", y="y", steps_per_epoch=10)
    model = linear()
    model.fit(data, epochs=2, shuffle=False, verbose=0)
    loop = iter(ps.Loader(ds))
    steps = [next(loop)["id"].copy() for _ in range(20)]
    np.testing.assert_allclose(weights_of(model), trained_by_hand(steps)[0], **CLOSE)


def test_steps_per_epoch_of_fit_gives_epochs_that_continue_one_another():
    for fit in (lambda model, data: model.fit(data, epochs=4, steps_per_epoch=3, shuffle=False,
                                              verbose=0),
                lambda model, data: ps.keras.fit(model, data, epochs=4, steps_per_epoch=3,
                                                 verbose=0)):
        counted = Counted()
        model, data = linear(), keras_data()
        model.fit(data, epochs=1, shuffle=False, verbose=0)  # a whole pass of 7 steps comes first
        data.set_epoch(1)
        model.fit(data, epochs=4, steps_per_epoch=3, shuffle=False, verbose=0,
                  callbacks=[counted])
        assert counted.epochs == [3, 3, 3, 3]
        steps = sum(planned(3), [])[:7 + 12]
        np.testing.assert_allclose(weights_of(model), trained_by_hand(steps)[0], **CLOSE)
        model, data = linear(), keras_data()
        fit(model, data)
        np.testing.assert_allclose(weights_of(model), trained_by_hand(sum(planned(2), [])[:12])[0],
                                   **CLOSE)
    with pytest.raises(ps.ConfigError, match="steps_per_epoch=8, but a pass has 7"):
        linear().fit(keras_data(), steps_per_epoch=8, shuffle=False, verbose=0)


class Counted(keras.callbacks.Callback):
    """Steps of each epoch."""

    def __init__(self):
        super().__init__()
        self.epochs = []

    def on_epoch_begin(self, epoch, logs=None):
        self.epochs.append(0)

    def on_train_batch_end(self, batch, logs=None):
        self.epochs[-1] += 1


def test_a_loader_with_steps_per_epoch_is_used_unchanged():
    model = linear()
    loader = ps.Loader(table(), steps_per_epoch=5)
    data = ps.keras.dataset(loader, x="x", y="y")
    assert len(data) == 5
    model.fit(data, epochs=3, shuffle=False, verbose=0)
    steps = sum(planned(3), [])[:15]
    np.testing.assert_allclose(weights_of(model), trained_by_hand(steps)[0], **CLOSE)


# Streams


def in_order(rows):
    return [np.arange(at, min(at + 16, rows)) for at in range(0, rows, 16)]


@pytest.mark.filterwarnings("error:Your input ran out of data")
def test_a_stream_needs_no_steps_per_epoch():
    for fit in (lambda model, data, **options: model.fit(data, shuffle=False, **options),
                ps.keras.fit):
        model, data, counted = linear(), stream_data(), Counted()
        history = fit(model, data, epochs=3, verbose=0, callbacks=[counted]).history
        assert counted.epochs == [7, 7, 7] and len(history["loss"]) == 3 and data.epoch == 3
        np.testing.assert_allclose(weights_of(model), trained_by_hand(in_order(103) * 3)[0],
                                   **CLOSE)
    with pytest.raises(TypeError, match="no len"):
        len(data)
    with pytest.raises(ps.ConfigError, match="passes -> ps.keras.dataset"):
        linear().fit(stream_data(), steps_per_epoch=3, shuffle=False, verbose=0)
    with pytest.raises(ps.ConfigError, match="class_weight= has no effect"):
        ps.keras.fit(linear(), stream_data(), class_weight={0: 1.0})


def test_the_passes_of_a_stream_may_differ_in_length():
    model, counted = linear(), Counted()
    ps.keras.fit(model, stream_data(shorter=True), epochs=3, verbose=0, callbacks=[counted])
    assert counted.epochs == [7, 4, 7]
    steps = in_order(103) + in_order(50) + in_order(103)
    np.testing.assert_allclose(weights_of(model), trained_by_hand(steps)[0], **CLOSE)


@pytest.mark.filterwarnings("error:Your input ran out of data")
def test_evaluate_and_predict_of_a_stream():
    model = linear(metrics=["mse"])
    result = model.evaluate(stream_data(), verbose=0, return_dict=True)
    np.testing.assert_allclose(result["loss"], (samples()["y"] ** 2).mean(), **CLOSE)
    assert model.predict(stream_data(), verbose=0).shape == (103, 1)
    history = model.fit(stream_data(), validation_data=stream_data(), epochs=2, shuffle=False,
                        verbose=0).history
    assert len(history["val_loss"]) == 2


# Errors


def test_a_callbacks_own_error_is_not_replaced():
    class Broken(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            raise ValueError("mine")

    def risky(sample):
        if sample["id"] == 42:
            raise OSError("cannot decode")
        return sample["x"], sample["y"]

    ds = ps.from_tensor_slices(samples()).map(risky).batch(16)
    with pytest.raises(ValueError, match="mine"):
        ps.keras.fit(linear(), ps.keras.dataset(ps.Loader(ds)), verbose=0, callbacks=[Broken()])


def test_a_users_exception_in_fit_is_unchanged():
    def risky(sample):
        if sample["id"] == 42:
            raise OSError("cannot decode")
        return sample["x"], sample["y"]

    ds = ps.from_tensor_slices(samples()).map(risky).batch(16)
    with pytest.raises(OSError, match="cannot decode") as raised:
        ps.keras.fit(linear(), ps.keras.dataset(ps.Loader(ds)), verbose=0)
    assert "sample 42" in raised.value.__notes__[0]
