"""Small models whose training NumPy can reproduce, for the tests of ps.keras."""

import keras
import numpy as np

import penstock as ps

LEARNING_RATE = 0.05
CLOSE = {"rtol": 1e-4, "atol": 1e-5}  # Keras computes in float32


def samples(count=103, seed=7):
    """x, y and ids of a linear problem."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(count, 4)).astype("float32")
    y = (x @ np.array([[1.0], [-2.0], [3.0], [0.5]]) + 1).astype("float32")
    return {"x": x, "y": y, "id": np.arange(count)}


def table(count=103, batch=16, **options):
    return ps.from_tensor_slices(samples(count)).shuffle(seed=7).batch(batch, **options)


def keras_data(count=103, batch=16, tail=None, **options):
    return ps.keras.dataset(ps.Loader(table(count, batch), tail=tail), x="x", y="y", **options)


def linear(optimizer=None, loss="mse", **compile_options):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, kernel_initializer="zeros")])
    model.compile(optimizer or keras.optimizers.SGD(LEARNING_RATE), loss=loss, **compile_options)
    return model


def weights_of(model):
    return np.concatenate([np.asarray(each, dtype=np.float64).ravel()
                           for each in model.get_weights()])


def trained_by_hand(steps, weight_of=None):
    """Weights after SGD over `steps`, each the sample numbers of one global batch; and the mean
    loss over all samples of these steps."""
    data = samples()
    x = np.hstack([data["x"], np.ones((len(data["x"]), 1))]).astype(np.float64)
    y = data["y"].astype(np.float64)
    weights, losses, counts = np.zeros((5, 1)), 0.0, 0.0
    for ids in steps:
        own = np.ones((len(ids), 1)) if weight_of is None else weight_of(ids)[:, None]
        error = x[ids] @ weights - y[ids]
        losses += (own * error**2).sum()
        counts += own.sum()
        weights = weights - LEARNING_RATE * 2 * x[ids].T @ (own * error) / len(ids)
    return weights.ravel(), losses / counts


def planned(epochs, count=103, batch=16):
    """The sample numbers of every step, epoch by epoch, as the loader plans them."""
    loader = ps.Loader(table(count, batch), world=1, rank=0)
    return [[step["id"].copy() for step in loader] for _ in range(epochs)]


def rows_of_table(shorter=False):
    """Batches of a generator of the samples, in order; `shorter`: the second pass has only 50."""
    arrays = samples()

    def rows(epoch):
        for i in range(50 if shorter and epoch == 1 else 103):
            yield {name: values[i] for name, values in arrays.items()}

    return ps.from_generator(rows).batch(16)


def stream_data(**options):
    return ps.keras.dataset(ps.Loader(rows_of_table(**options)), x="x", y="y")
