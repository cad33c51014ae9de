"""Keras logs that stay exact when batches are padded; part of `ps.keras`."""

from __future__ import annotations

from typing import Any

import keras as _keras

from .errors import ConfigError
from .foreign import explained

_GUESSED = ("accuracy", "acc", "crossentropy", "ce")


@_keras.saving.register_keras_serializable("penstock")
class _Exact(_keras.metrics.Metric):  # type: ignore[misc]
    """Passes the user's own weights to a metric. The weights of a padded batch are scaled so that
    the batch's mean is right; over an epoch that would give samples of a short step more weight."""

    def __init__(self, inner: Any, name: str | None = None, **options: Any) -> None:
        super().__init__(name=name or inner.name, dtype=inner.dtype, **options)
        self.inner = inner

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        if sample_weight is None:
            return self.inner.update_state(y_true, y_pred)
        ops = _keras.ops
        weight = ops.convert_to_tensor(sample_weight)
        real = ops.cast(ops.logical_not(ops.signbit(weight)), weight.dtype)
        slots, samples = _over_replicas(ops.sum(ops.ones_like(weight)), ops.sum(real))
        return self.inner.update_state(
            y_true, y_pred, sample_weight=weight * ops.divide_no_nan(samples, slots))

    def result(self) -> Any:
        return self.inner.result()

    def reset_state(self) -> None:
        self.inner.reset_state()

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name, "inner": _keras.saving.serialize_keras_object(self.inner)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        return cls(_keras.saving.deserialize_keras_object(config["inner"]), config["name"])


def _over_replicas(*counts: Any) -> Any:
    """Sums over the replicas, inside a step of a tf.distribute strategy; else unchanged."""
    if _keras.backend.backend() != "tensorflow":
        return counts
    import tensorflow
    context = tensorflow.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return counts
    return context.all_reduce(tensorflow.distribute.ReduceOp.SUM, list(counts))


@explained
def metric(of: Any, *, name: str | None = None) -> Any:
    """A metric (by name, function, Loss or Metric) for `compile(weighted_metrics=[...])` that
    counts every sample once, also in padded batches, with your own sample weights."""
    if isinstance(of, str):
        if of in _GUESSED:
            raise ConfigError(f"ps.keras.metric: {of!r} is short for several metrics",
                              remedy="pass one of keras.metrics.BinaryAccuracy(), "
                                     "SparseCategoricalAccuracy(), CategoricalAccuracy()")
        of = _keras.metrics.get(of)
    if isinstance(of, _keras.losses.Loss):
        of = _keras.metrics.MeanMetricWrapper(of.call, name=name or of.name)
    elif not isinstance(of, _keras.metrics.Metric):
        if not callable(of):
            raise ConfigError(f"ps.keras.metric: {type(of).__name__} is not a metric",
                              remedy="pass a name, a function of (y_true, y_pred), a Loss or "
                                     "a Metric")
        of = _keras.metrics.MeanMetricWrapper(of, name=name or getattr(of, "__name__", "metric"))
    return _Exact(of, name=name)


@explained
class ExactLoss(_keras.callbacks.Callback):  # type: ignore[misc]
    """Replaces the `loss` in the logs, a mean over steps, by the mean over all samples.

        exact = ps.keras.ExactLoss("mse")
        model.compile("adam", loss="mse", weighted_metrics=[exact.metric])
        model.fit(data, callbacks=[exact])            # first in the list

    In the `loss` it logs, Keras counts a padded step like a full one (the gradient is right). A
    callback cannot change what `evaluate` returns: the exact value is there as `data_loss`, also if
    regularizers make `loss` more than the mean over samples.
    """

    NAME = "data_loss"

    def __init__(self, loss: Any) -> None:
        super().__init__()
        loss = _keras.losses.get(loss)
        if loss is None:
            raise ConfigError("ExactLoss: needs a loss",
                              remedy='pass a name, a function or a Loss, as in ExactLoss("mse")')
        self.metric = metric(loss, name=self.NAME)

    def _correct(self, logs: dict[str, Any] | None) -> None:
        if not logs or self.model.losses:
            return
        for prefix in ("", "val_"):
            if prefix + self.NAME in logs:
                logs[prefix + "loss"] = logs.pop(prefix + self.NAME)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._correct(logs)

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        self._correct(logs)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._correct(logs)

    def on_test_end(self, logs: Any = None) -> None:
        self._correct(logs)

    def on_train_end(self, logs: Any = None) -> None:
        self._correct(logs)
