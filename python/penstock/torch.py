"""Adapters for torch: `ps.torch`.

A `ps.Loader` needs none of this: `for batch in loader: batch.torch()` is a training loop, and a
loader implements torch's Stateful protocol. This module has adapters for programs that need torch's
own classes, and a mean that stays exact when DDP averages gradients over uneven shares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from typing import Any

from . import sources as _sources
from .arguments import flag, refuse, whole
from .errors import ArgumentError, ConfigError
from .foreign import explained
from .loader import Batch, Loader

try:
    import torch as _torch
    from torch.utils import data as _data
except ImportError:
    raise ImportError("ps.torch needs torch, which is not installed: pip install torch") from None

__all__ = ["BatchSampler", "IterableDataset", "weighted_mean"]


@explained
def weighted_mean(loss: Any, batch: Batch) -> Any:
    """The loss to call `backward()` on: its gradient, averaged by DDP, is that of one process.

    `loss` has one value per row of the batch (`reduction="none"`); further dimensions are averaged.
    A process whose share is smaller, padded or empty is weighted by its number of samples. A single
    number counts as the mean over the rows, which is correct only if no row is padding.
    """
    if not isinstance(loss, _torch.Tensor):
        raise TypeError(f"weighted_mean: the loss is a {type(loss).__name__}, not a tensor")
    if not isinstance(batch, Batch):
        raise ArgumentError(f"weighted_mean: the batch is a {type(batch).__name__}",
                            remedy="pass the ps.Batch that the losses belong to")
    rows = len(batch)
    if loss.dim() == 0:
        if batch.valid_count != rows:
            raise ConfigError(
                f"weighted_mean: one number for {rows} rows of which {rows - batch.valid_count} "
                "are padding, which its average includes",
                remedy='pass one loss per row: reduction="none"')
        if rows == 0:  # the mean of nothing is NaN, and would be so on every process
            raise ConfigError("weighted_mean: one number for a share without rows",
                              remedy='pass one loss per row: reduction="none"')
        return loss * (float(batch.weight[0]) * batch.loss_scale)
    if loss.shape[0] != rows:
        raise ConfigError(
            f"weighted_mean: losses of shape {tuple(loss.shape)} for a batch of {rows} rows",
            remedy='the first dimension counts the rows: reduction="none"')
    if not loss.is_floating_point():
        raise TypeError(f"weighted_mean: losses are {loss.dtype}, not floating point")
    if rows == 0:
        return loss.sum()  # 0, and still part of the graph: DDP waits for every process
    each = loss.reshape(rows, -1).mean(dim=1) if loss.dim() > 1 else loss
    weight = _torch.from_numpy(batch.weight).to(device=loss.device, dtype=loss.dtype)
    return (each * weight).sum() * (batch.loss_scale / rows)


class _Place:
    """The position of an adapter, with torch's method names. `set_epoch` with the epoch of a state
    that was just loaded keeps the position: training loops call it at the top of every epoch."""

    _loader: Loader

    def __init__(self) -> None:
        self._resumed = False

    def set_epoch(self, epoch: int) -> None:
        """The next `for` is this epoch; by default each `for` is the next epoch."""
        epoch = whole("set_epoch", "epoch", epoch, remedy="epochs count from 0")
        if not (self._resumed and self._loader.epoch == epoch):
            self._loader.set_epoch(epoch)
            self._resumed = False

    def state_dict(self) -> dict[str, Any]:
        return self._loader.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._loader.load_state_dict(state)
        self._resumed = True


def _refuse_workers(word: str) -> None:
    info = _data.get_worker_info()
    if info is not None:
        raise ConfigError(
            f"{word}: this is worker process {info.id} of {info.num_workers} of a DataLoader, each "
            "of which would deliver every batch",
            remedy="num_workers=0: the loader has its own threads")


@explained
class IterableDataset(_Place, _data.IterableDataset[Any]):
    """A loader as a torch IterableDataset: `DataLoader(adapter, batch_size=None)`.

    Yields whole batches as tensors, or the result of `convert(batch)` for each `ps.Batch`.
    """

    def __init__(self, loader: Loader,
                 convert: Callable[[Batch], Any] = lambda batch: batch.torch()) -> None:
        if not isinstance(loader, Loader):
            raise ConfigError(f"IterableDataset: expected a Loader, not {type(loader).__name__}",
                              remedy="pass ps.Loader(dataset)")
        if not callable(convert):
            raise refuse("IterableDataset", "convert", convert, "is not a function",
                         "pass a function of a ps.Batch")
        super().__init__()
        self._loader = loader
        self._convert = convert

    def __iter__(self) -> Iterator[Any]:
        _refuse_workers("IterableDataset")
        loop = iter(self._loader)
        self._resumed = False
        return (self._convert(batch) for batch in loop)

    def __len__(self) -> int:
        return len(self._loader)


class _Numbers:
    """The lists of one epoch. The epoch begins with the first list or question: a DataLoader with
    workers creates two iterators and uses the second, which must not count as two epochs."""

    def __init__(self, sampler: BatchSampler) -> None:
        self._sampler = sampler
        self._loop: Iterator[Batch] | None = None
        self._began: dict[str, Any] = {}

    def began(self) -> dict[str, Any]:
        """The state at the start of the epoch."""
        if self._loop is None:
            self._loop, self._began = self._sampler._begin()
        return self._began

    def __iter__(self) -> Iterator[list[int]]:
        return self

    def __next__(self) -> list[int]:
        self.began()
        assert self._loop is not None
        numbers: list[int] = next(self._loop).numpy().tolist()
        return numbers


@explained
class BatchSampler(_Place, _data.Sampler[list[int]]):
    """Plans batches for your map-style Dataset: `DataLoader(mine, batch_sampler=sampler)`.

    Every process gets its share of each global batch of `batch_size` samples, cut like a Loader's;
    for `tail`, `world`, `rank` and `empty` see Loader. Each `for` is one epoch, and reshuffled;
    `set_epoch` exists for programs that call it. With tail="pad" missing rows are filled with
    sample 0, whose weight is zero.
    """

    def __init__(self, data: Sized | int, batch_size: int, *, shuffle: bool = True,
                 seed: int | str | None = None, tail: str | None = None,
                 world: int | None = None, rank: int | None = None,
                 empty: str | None = None) -> None:
        super().__init__()
        samples = self._count(data) if not isinstance(data, int) else whole(
            "BatchSampler", "data", data, remedy="a dataset, or the number of its samples")
        shuffle = flag("BatchSampler", "shuffle", shuffle)
        numbers = _sources.range(samples)
        if shuffle:
            numbers = numbers.shuffle(seed=seed)
        self._batches = numbers.batch(batch_size)
        self._options: dict[str, Any] = {"tail": tail, "world": world, "rank": rank,
                                         "empty": empty, "threads": 0}
        self._loader = Loader(self._batches, **self._options)
        self._newest: _Numbers | None = None
        self.batch_size = batch_size

    @staticmethod
    def _count(data: Any) -> int:
        try:
            return len(data)
        except TypeError:
            raise ConfigError(
                f"BatchSampler: {type(data).__name__} has no len(), which a plan needs",
                remedy="wrap a stream with ps.from_generator and use a Loader") from None

    @property
    def plan(self) -> Any:
        """The share of every process, decided before anything runs."""
        return self._loader.plan

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[list[int]]:
        self._newest = _Numbers(self)
        return self._newest

    def _begin(self) -> tuple[Iterator[Batch], dict[str, Any]]:
        loop = iter(self._loader)
        self._resumed = False
        return loop, self._loader.state_dict()

    def _walk_again(self) -> Loader:
        if self._newest is None:
            raise ConfigError("BatchSampler: no epoch has begun",
                              remedy="iterate both: for x, share in zip(loader, "
                                     "sampler.shares())")
        plan, empty = self._loader.plan, self._options["empty"]
        if self._options["world"] is None and plan.world > 1:
            empty = empty or "refuse"  # as if the launcher had set the world
        again = Loader(self._batches, **{**self._options, "world": plan.world, "rank": plan.rank,
                                         "empty": empty})
        again.load_state_dict(self._newest.began())
        return again

    def shares(self) -> Iterator[Batch]:
        """The `ps.Batch` of sample numbers for each step of the current epoch: what
        `weighted_mean` needs besides the samples of the DataLoader."""
        yield from self._walk_again()

    def state_dict(self, received: int | None = None) -> dict[str, Any]:
        """The position of the newest `for`. A DataLoader with workers reads ahead of the batches it
        yields: pass how many batches you have `received` since the `for` began."""
        if received is None:
            return super().state_dict()
        received = whole("state_dict", "received", received,
                         remedy="the number of batches that you have received")
        again = self._walk_again()
        loop = iter(again)
        for count in range(received):
            if next(loop, None) is None:
                raise ConfigError(f"state_dict: {received} batches received, but the epoch had "
                                  f"only {count}")
        return again.state_dict()
