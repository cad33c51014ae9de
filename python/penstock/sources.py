"""Datasets of data in memory, functions and generators; those of files are in files.py."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from . import _native
from .arguments import INT64_MAX, flag, refuse, text, whole, whole_or_none
from .dataset import Dataset, _native_of
from .errors import ConfigError
from .foreign import explained
from .functions import check_callable, name_of, parameters_of
from .spec import Spec


@explained
def range(start: int, stop: int | None = None, step: int = 1) -> Dataset:
    """The numbers of Python's range, as int64."""
    first, last = (0, start) if stop is None else (start, stop)
    limits: dict[str, Any] = {"least": -INT64_MAX - 1, "remedy": "whole numbers, as for Python's "
                                                                 "range"}
    return Dataset(_native.range(whole("range", "start", first, **limits),
                                 whole("range", "stop", last, **limits),
                                 whole("range", "step", step, **limits)))


@explained
def from_tensors(sample: Any, *, name: str = "") -> Dataset:
    """A dataset of one element."""
    return Dataset(_native.from_tensors(sample, text("from_tensors", "name", name)))


@explained
def from_tensor_slices(arrays: Any, *, name: str = "") -> Dataset:
    """The rows of arrays, which are read in place: do not change them while a loader runs.

    A list or an array of str, or of bytes, has one of them per sample.
    """
    return Dataset(_native.from_tensor_slices(arrays, text("from_tensor_slices", "name", name)))


@explained
def from_ragged(values: Any, offsets: Any, *, name: str = "") -> Dataset:
    """Rows of different lengths: sample i is `values[offsets[i]:offsets[i + 1]]`.

    Both are read in place: do not change them while a loader runs. The values and offsets of an
    Arrow list column are such arrays.
    """
    begins = np.asarray(offsets)
    if begins.dtype.kind not in "iu":
        raise refuse("from_ragged", "offsets", offsets, "are not whole numbers",
                     "pass one number more than rows: where each row begins, and the end")
    return Dataset(_native.from_ragged(
        np.asarray(values), begins.astype(np.int64, copy=False),
        text("from_ragged", "name", name)))


@explained
def from_windows(values: Any, length: int, stride: int | None = None, *,
                 name: str = "") -> Dataset:
    """Windows of an array: sample i is `values[i * stride:i * stride + length]`, read in place.

    The default stride is `length`: windows that do not overlap.
    """
    return Dataset(_native.from_windows(
        np.asarray(values), whole("from_windows", "length", length, least=1),
        whole_or_none("from_windows", "stride", stride, least=1) or 0,
        text("from_windows", "name", name)))


@explained
def from_index(size: int, fn: Callable[[int], Any], *, name: str = "",
               spec: Spec = None) -> Dataset:
    """Sample i is `fn(i)`: a map-style dataset. `fn` must depend on i alone."""
    check_callable("from_index", fn)
    text("from_index", "name", name)
    return Dataset(_native.from_index(
        whole("from_index", "size", size, remedy="the number of samples, as in len(data)"), fn,
        name or name_of(fn), spec))


@explained
def from_generator(factory: Callable[..., Iterable[Any]] | Iterable[Any], *, name: str = "",
                   spec: Spec = None, resumable: bool | None = None) -> Dataset:
    """A stream. `factory()` returns an iterator for each pass; a generator function, for example.

    A parameter named `epoch` receives the number of the pass. An iterable that can be iterated
    again is accepted too. If the iterator has `save() -> str` and `restore(str)`, a state contains
    what it saved (`resumable`; detected for classes); any other iterator is read again from its
    start.
    """
    text("from_generator", "name", name)
    if resumable is not None:
        resumable = flag("from_generator", "resumable", resumable)
    if inspect.isgenerator(factory) or (hasattr(factory, "__next__") and not callable(factory)):
        raise ConfigError(
            f"from_generator: this {type(factory).__name__} is an iterator, which runs only once",
            remedy="pass the function that returns it, without calling it: "
                   "from_generator(numbers), not from_generator(numbers())")
    if not callable(factory):
        if not hasattr(factory, "__iter__"):
            raise ConfigError(f"from_generator: {type(factory).__name__} cannot be iterated")
        if resumable:
            raise ConfigError(
                f"from_generator: resumable=True, but the iterators of a {type(factory).__name__} "
                "have no save() and restore()",
                remedy="pass a class or function whose iterators have them")
        return Dataset(_native.from_generator(factory.__iter__, name or name_of(factory), spec,
                                              False, False))
    takes_epoch = "epoch" in (parameters_of(factory) or {})
    if resumable is None:
        resumable = (isinstance(factory, type) and hasattr(factory, "save")
                     and hasattr(factory, "restore"))
    return Dataset(_native.from_generator(factory, name or name_of(factory), spec, takes_epoch,
                                          resumable))


@explained
def zip(*datasets: Dataset, strict: bool = False) -> Dataset:
    """Tuples of one sample of each; ends with the shortest. `strict` requires equal lengths."""
    if len(datasets) == 1 and isinstance(datasets[0], (tuple, list)):  # as tf.data writes it
        datasets = tuple(datasets[0])
    if len(datasets) == 1 and isinstance(datasets[0], dict):
        raise ConfigError("zip: takes datasets, not a dict of them",
                          remedy='ps.zip(a, b).map(lambda a, b: {"a": a, "b": b})')
    return Dataset(_native.zip([_native_of("zip", each) for each in datasets],
                               flag("zip", "strict", strict)))


@explained
def cast(dtype: Any, path: str = "") -> _native.OpCall:
    """An op for `map`: converts the field at `path`."""
    if dtype is None:
        raise refuse("cast", "dtype", dtype, "is not a dtype", "use a name, as in \"float32\"")
    return _native.cast(dtype, text("cast", "path", path))
