"""Adapters for Keras: `ps.keras`, on its TensorFlow, torch and JAX backends.

    data = ps.keras.dataset(ps.Loader(ds), x="image", y="label")
    model.fit(data, epochs=3, shuffle=False)           # the order is the loader's

Batches have their true sizes, so gradient, loss and metrics are exact means over the samples. If
shapes must not change (tail="pad", or `to_tf` for a MirroredStrategy) padding has weight zero.
"""

from __future__ import annotations

from collections.abc import Iterable

from .arguments import items, text
from .dataset import INFINITE
from .foreign import explained
from .loader import Loader

try:
    import keras as _keras  # noqa: F401
except ImportError:
    raise ImportError("ps.keras needs keras, which is not installed: pip install keras, and one of "
                      "tensorflow, torch and jax") from None

from .keras_data import Dataset
from .keras_logs import ExactLoss, metric
from .keras_resume import Resume, fit
from .keras_stream import KERAS_TAKES_STREAMS, Stream

__all__ = ["Dataset", "ExactLoss", "Resume", "Stream", "dataset", "fit", "metric"]


@explained
def dataset(loader: Loader, *, x: str | Iterable[str] | None = None, y: str | None = None,
            sample_weight: str | None = None, steps_per_epoch: int | None = None) -> Dataset:
    """A PyDataset over a loader for fit, evaluate and predict, on every backend.

    Tuples are taken as (x, y) or (x, y, sample_weight). For dicts, name the fields: `x` may be
    several, which are passed as a dict; by default all but the others. With tail="pad" and with
    several processes there are sample weights, multiplied by your own. With `steps_per_epoch` less
    than a pass, the next epoch continues where this one ended; endless data needs it.
    """
    for name, value in (("y", y), ("sample_weight", sample_weight)):
        if value is not None:
            text("ps.keras.dataset", name, value, "the name of a field")
    streamed = (isinstance(loader, Loader) and loader.plan.steps is None
                and (steps_per_epoch or loader.steps_per_epoch) is None
                and loader.dataset.cardinality() != INFINITE)
    made = Stream if streamed and KERAS_TAKES_STREAMS else Dataset
    return made(loader, x=x if x is None or isinstance(x, str) else tuple(
        items("ps.keras.dataset", "x", x, text)), y=y, sample_weight=sample_weight,
                steps_per_epoch=steps_per_epoch)
