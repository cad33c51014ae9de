"""Datasets: where samples come from and what happens to them. Immutable values, cheap to copy."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from os import PathLike
from typing import Any, TypeVar

from . import _native
from .arguments import (
    INT64_MAX,
    choice,
    flag,
    items,
    made_by,
    number as number_of,
    path,
    refuse,
    seed_of,
    text,
    whole,
    whole_or_none,
)
from .errors import ConfigError
from .foreign import explained, verb_is_missing
from .functions import check_callable, map_arguments, name_of
from .image import Chain
from .lengths import TAILS, LengthVerbs
from .spec import Spec
from .workers import check_workers, worker_setup_of

INFINITE = -1
UNKNOWN = -2

T = TypeVar("T")
Path = str | bytes | PathLike[str]

THREADS_MAX = 2**31 - 1


class _Words(type):
    """Explains what to write for `ps.Dataset.range` and other names of tf.data's class."""

    def __getattr__(cls, name: str) -> Any:
        raise verb_is_missing(name, [each for each in dir(cls) if not each.startswith("_")])


@explained
class Dataset(LengthVerbs, metaclass=_Words):
    """Describes a pipeline; `Loader` runs it. Verbs return a new dataset, this one is unchanged.

    Elements are arrays, numbers, str or bytes, and dicts and tuples of these. A function receives
    a tuple as several arguments, anything else as one.
    """

    def __init__(self, native: _native.Dataset) -> None:
        self._native: _native.Dataset = made_by(
            "a Dataset", native, _native.Dataset,
            "ps.from_tensor_slices, ps.from_index, ps.from_generator and others make one")
        self._loader: Any = None

    def __getattr__(self, name: str) -> Any:
        raise verb_is_missing(name, [each for each in dir(self) if not each.startswith("_")])

    # Sample to sample

    def map(self, fn: Callable[..., Any] | _native.OpCall | Chain, *, name: str = "", seed: int = 0,
            spec: Spec = None, random: bool | None = None, row_wise: bool = False,
            workers: int | None = None) -> Dataset:
        """Applies `fn(sample)`, or an op, to every sample; after `batch`, to every whole batch.

        `spec` declares what the function returns, if later operations need to know. A parameter
        named `rng` receives the sample's own generator; pass `random=True` for a function that
        calls `ps.rng()` in a function it calls. After `batch`, `row_wise=True` declares that each
        output row depends only on its input row: the function is then called for each row.

        `workers=n` runs the function in n processes, for code that holds the GIL. The function is
        pickled now. The results are the same as in threads; the processes end with the loader.
        """
        if isinstance(fn, (Chain, _native.OpCall)):
            self._refuse_for_ops(isinstance(fn, Chain), name=name, seed=seed, spec=spec,
                                 random=random, row_wise=row_wise)
        if isinstance(fn, Chain):
            fn = fn._native.op()
        text("map", "name", name)
        row_wise = flag("map", "row_wise", row_wise)
        count = check_workers("map", workers)
        if isinstance(fn, _native.OpCall):
            if count:
                raise ConfigError("map: an op of penstock's runs in threads, workers= is for "
                                  "Python functions", remedy="leave out workers=")
            return Dataset(self._native.map_op(fn))
        known = map_arguments("map", fn, self._native, name=name, seed=seed, random=random)
        return Dataset(self._native.map(fn, known, spec, row_wise, worker_setup_of(
            f"map({name_of(fn)})", fn, count, keyed=known.keyed, random=known.random)))

    @staticmethod
    def _refuse_for_ops(chain: bool, **given: Any) -> None:
        for name, value in given.items():
            if value not in ("", 0, None, False):
                raise ConfigError(
                    f"map: {name}= is for Python functions and has no effect on an op",
                    remedy="ps.image.decode()...seed(n) sets the seed of a chain"
                           if chain and name == "seed" else f"leave out {name}=")

    def map_batch(self, fn: Callable[..., Any], *, name: str = "", spec: Spec = None,
                  workers: int | None = None) -> Dataset:
        """Applies `fn(samples)` to many samples per call: arrays with one row per sample.

        Each output row must depend only on its input row. The engine chooses the number of rows,
        before and after `batch`: part of a batch, or the rows of several. Without `spec` the
        function is called once with no rows, to learn what it returns. `workers`: see `map`.
        """
        check_callable("map_batch", fn)
        text("map_batch", "name", name)
        setup = worker_setup_of(f"map_batch({name_of(fn)})", fn,
                                check_workers("map_batch", workers))
        if spec is None and self._native.element_spec() is not None:
            try:
                spec = _native.probe(fn, self._native)
            except Exception as error:
                raise ConfigError(
                    f"map_batch: {name_of(fn)} fails for 0 rows of {self._native.spec_text()}, so "
                    f"what it returns is not known: {type(error).__name__}: {error}",
                    remedy="declare spec=, as in spec=ps.Field(\"float32\", (3,))") from error
        return Dataset(self._native.map_op(_native.vector_op(fn, name or name_of(fn), spec,
                                                               setup)))

    def scan(self, initial_state: Any, scan_func: Callable[[Any, Any], tuple[Any, Any]], *,
             name: str = "", spec: Spec = None) -> Dataset:
        """Calls `scan_func(state, element)` in order; it returns `(next state, output)`.

        The outputs are the elements of the result, which is a stream. Every pass starts from
        `initial_state`. A state keeps its structure and dtypes and has at most 16 KB: `state_dict`
        contains it, so a resumed loader continues with it.
        """
        check_callable("scan", scan_func)
        text("scan", "name", name)
        return Dataset(self._native.scan(initial_state, scan_func, name or name_of(scan_func),
                                         spec))

    def filter(self, predicate: Callable[..., Any], *, name: str = "", seed: int = 0,
               mask: bool = False, random: bool | None = None) -> Dataset:
        """Keeps the samples for which `predicate` returns true. The result is a stream.

        With `mask`, rejected rows stay, marked as not valid.
        """
        known = map_arguments("filter", predicate, self._native, name=name, seed=seed,
                              random=random)
        return Dataset(self._native.filter(predicate, known, flag("filter", "mask", mask)))

    def take_while(self, predicate: Callable[..., Any], *, name: str = "", seed: int = 0,
                   random: bool | None = None) -> Dataset:
        """Ends before the first element for which `predicate` returns false."""
        known = map_arguments("take_while", predicate, self._native, name=name, seed=seed,
                              random=random)
        return Dataset(self._native.take_while(predicate, known))

    def select(self, predicate: Callable[..., Any], *, name: str = "", seed: int = 0,
               random: bool | None = None) -> Dataset:
        """Keeps the samples for which `predicate` returns true; the data stays indexed.

        The predicate runs once for each sample, when a loader is created.
        """
        if isinstance(predicate, Iterable) and not callable(predicate):
            raise refuse("select", "predicate", predicate, "is not a function",
                         "for samples by number: ps.from_tensor_slices(numbers).map(fn)")
        known = map_arguments("select", predicate, self._native, name=name, seed=seed,
                              random=random)
        return Dataset(self._native.select(predicate, known))

    def split(self, fraction: float, *, seed: int = 0) -> tuple[Dataset, Dataset]:
        """Splits the samples into two datasets: `round(fraction * N)` of them, and the rest.

        The seed determines which samples; each part keeps the order of the dataset. Raises
        `ConfigError` if a part would be empty.
        """
        first, rest = self._native.split(
            number_of("split", "fraction", fraction, least=0, most=1,
                      remedy="the part of the samples in the first dataset, from 0 to 1"),
            seed_of("split", seed))
        return Dataset(first), Dataset(rest)

    def resolve(self) -> Dataset:
        """Runs every `select` now and returns the dataset with a known length. A loader does this
        by itself; all copies of the dataset share the result."""
        return Dataset(self._native.resolve())

    def flat_map(self, fn: Callable[..., Dataset], *, name: str = "",
                 spec: Spec = None) -> Dataset:
        """The elements of the datasets that `fn` returns, one dataset after the other."""
        map_arguments("flat_map", fn, self._native, name=name)
        return Dataset(self._native.flat_map(fn, name or name_of(fn), spec))

    def interleave(self, fn: Callable[..., Dataset], *, cycle: int = 16, block: int = 1,
                   name: str = "", spec: Spec = None) -> Dataset:
        """Alternates between the datasets of `cycle` elements, `block` elements at a time."""
        map_arguments("interleave", fn, self._native, name=name)
        return Dataset(self._native.interleave(
            fn, whole("interleave", "cycle", cycle, least=1),
            whole("interleave", "block", block, least=1), name or name_of(fn), spec))

    # Order and number

    def shuffle(self, *, seed: int | str | None = None, reshuffle_each_epoch: bool = True,
                window: int | None = None, blocks: int | None = None) -> Dataset:
        """Shuffles the whole dataset, differently in each epoch; or windows of `window` elements.

        For storage that hates random reads, `blocks=n` shuffles blocks of `n` consecutive samples,
        and then the samples of each `window` of them, rounded up to whole blocks; 16 blocks by
        default. A larger window is more random, and reads from more places at a time.

        `seed="random"` draws a seed when the loader is created and saves it in the state.
        """
        if isinstance(seed, str) and seed != "random":
            raise ConfigError(f"shuffle: a seed is a number or \"random\", not {seed!r}")
        drawn = isinstance(seed, str)
        return Dataset(self._native.shuffle(
            None if drawn or seed is None else seed_of("shuffle", seed), drawn,
            flag("shuffle", "reshuffle_each_epoch", reshuffle_each_epoch),
            whole_or_none("shuffle", "window", window, least=1),
            whole_or_none("shuffle", "blocks", blocks, least=1)))

    def repeat(self, count: int | None = None) -> Dataset:
        """Repeats the data `count` times; `None` or -1: endlessly."""
        return Dataset(self._native.repeat(-1 if count is None else whole(
            "repeat", "count", count, least=-1, remedy="None or -1 repeats endlessly")))

    def take(self, count: int) -> Dataset:
        """The first `count` elements; after `batch`, steps. -1: all."""
        return Dataset(self._native.take(whole(
            "take", "count", count, least=-1, remedy="-1 takes all")))

    def skip(self, count: int) -> Dataset:
        """All but the first `count` elements; after `batch`, steps."""
        return Dataset(self._native.skip(whole("skip", "count", count)))

    def shard(self, count: int, index: int) -> Dataset:
        """Elements index, index + count, ... Not for replicas: loaders cut their shares."""
        return Dataset(self._native.shard(whole("shard", "count", count, least=1),
                                          whole("shard", "index", index)))

    def concatenate(self, other: Dataset) -> Dataset:
        """The elements of this dataset, then those of `other`."""
        return Dataset(self._native.concatenate(_native_of("concatenate", other)))

    def zip(self, *others: Dataset, strict: bool = False) -> Dataset:
        """Tuples of one sample of each; ends with the shortest."""
        from .sources import zip
        return zip(self, *others, strict=strict)

    def enumerate(self) -> Dataset:
        """Tuples (number from 0, sample)."""
        return Dataset(self._native.enumerate())

    # Batches

    def batch(self, size: int, *, tail: str | None = None, drop_remainder: bool = False,
              collate_fn: Callable[[list[Any]], Any] | None = None, spec: Spec = None,
              workers: int | None = None, name: str = "") -> Dataset:
        """Groups samples into global batches of `size`, for any number of replicas.

        `tail` is "short", "even", "pad", "drop", "wrap" or "strict".

        A field whose rows differ in size is a `ps.Ragged`: all rows, and where each begins.

        `collate_fn(samples)` builds the batch from a list of samples. It returns arrays with one
        row per sample, in dicts and tuples, of the same dtypes and numbers of dimensions in every
        batch. `spec` declares them, with None for a size that varies. `workers`: see `map`.
        """
        choice("batch", "tail", tail, TAILS)
        batched = self._native.batch(
            whole("batch", "size", size, least=1, remedy="a number of samples from 1 on"), tail,
            flag("batch", "drop_remainder", drop_remainder))
        text("batch", "name", name)
        if collate_fn is None:
            given = [word for word, value in (("spec", spec), ("workers", workers), ("name", name))
                     if value not in (None, "")]
            if given:
                raise ConfigError(f"batch: {given[0]}= is for a collate_fn, and there is none",
                                  remedy="leave it out: the engine stacks the rows")
            return Dataset(batched)
        check_callable("batch", collate_fn)
        setup = worker_setup_of(f"collate_fn({name_of(collate_fn)})", collate_fn,
                                check_workers("batch", workers))
        return Dataset(batched.map_op(_native.collate_op(collate_fn, name or name_of(collate_fn),
                                                         spec, setup)))

    def unbatch(self) -> Dataset:
        """The rows of batches, or of elements with several rows."""
        return Dataset(self._native.unbatch())

    def rebatch(self, size: int, *, tail: str | None = None,
                drop_remainder: bool = False) -> Dataset:
        """Batches of another size: `unbatch()`, then `batch(size)`. Rows keep their order."""
        choice("rebatch", "tail", tail, TAILS)
        return Dataset(self._native.rebatch(
            whole("rebatch", "size", size, least=1, remedy="a number of samples from 1 on"), tail,
            flag("rebatch", "drop_remainder", drop_remainder)))

    # Running

    def cache(self, folder: Path | None = None, *, bytes_max: int | None = None,
              place: str | None = "here", when_full: str | None = "recompute") -> Dataset:
        """Keeps the samples of the first pass, in memory or in `folder`.

        Later passes, other loaders and, with a folder, other processes and later runs neither
        read nor compute them again. A pass that ends early leaves what it has. A folder belongs
        to one dataset; functions are known by name, so delete it after a function was changed.

        `bytes_max` limits the memory, or the folder. Samples beyond it are computed in every pass
        or, with `when_full="spill"`, stored in `folder`. `place="auto"` puts the cache before the
        first random function, which would otherwise repeat its numbers in every epoch.

        The cache of a stream is indexed: the stream is read once to its end, when a loader starts.
        """
        choice("cache", "place", place, ("here", "auto"))
        choice("cache", "when_full", when_full, ("recompute", "spill"))
        return Dataset(self._native.cache(
            b"" if folder is None else _folder("cache", folder),
            whole_or_none("cache", "bytes_max", bytes_max), place == "auto",
            when_full == "spill"))

    def snapshot(self, folder: Path) -> Dataset:
        """`cache(folder)`: the first use writes the samples to disk, later ones read them."""
        return Dataset(self._native.cache(_folder("snapshot", folder), None, False, False))

    def save(self, folder: Path, *, files: int = 1, overwrite: bool = False) -> None:
        """Computes all samples and writes them to `folder`, for `ps.load`.

        Returns when they are on the disk. A save that was killed goes on where it was.
        """
        self._native.save(_folder("save", folder),
                          whole("save", "files", files, least=1, most=1024),
                          flag("save", "overwrite", overwrite))

    def prefetch(self, steps: int = 0, *, bytes: int = 0) -> Dataset:
        """Asks for at least `steps` batches to be prepared in advance. Rarely needed: the loader
        tunes this itself."""
        ahead = "leave prefetch out: a loader prefetches by itself"
        return Dataset(self._native.prefetch(whole("prefetch", "steps", steps, remedy=ahead),
                                             whole("prefetch", "bytes", bytes, remedy=ahead)))

    def with_options(self, *, name: str = "", threads: int | None = None,
                     lookahead_bytes: int | None = None) -> Dataset:
        """Sets defaults for loaders of this dataset, and a name for error messages."""
        return Dataset(self._native.with_options(
            text("with_options", "name", name),
            whole_or_none("with_options", "threads", threads, most=THREADS_MAX),
            whole_or_none("with_options", "lookahead_bytes", lookahead_bytes)))

    def apply(self, transform: Callable[[Dataset], T]) -> T:
        """`transform(self)`, for chaining."""
        if not callable(transform):
            raise refuse("apply", "transform", transform, "is not a function",
                         "pass a function of a dataset, as in apply(lambda ds: ds.batch(4))")
        return transform(self)

    # Looking

    @property
    def element_spec(self) -> Spec:
        """Fields in the structure of the elements; None if not known before running."""
        return self._native.element_spec()

    def cardinality(self) -> int:
        """Number of elements, or of steps once batched; or `ps.INFINITE` or `ps.UNKNOWN`."""
        return self._native.cardinality()

    @property
    def batched(self) -> bool:
        """True after `batch` or `from_sequence`."""
        return self._native.batched()

    @property
    def streamed(self) -> bool:
        """True for a stream, whose elements can only be read in order."""
        return self._native.streamed()

    def describe(self) -> str:
        """The pipeline as text, one line per node."""
        return self._native.describe()

    def sample(self, number: int) -> Any:
        """Computes the sample at position `number` of the first pass, in the calling thread."""
        if whole("sample", "number", number, least=-INT64_MAX) < 0:
            raise IndexError(f"sample {number}: positions count from 0")
        return self._native.sample(int(number))

    def __len__(self) -> int:
        count = self.cardinality()
        if count < 0:
            if count != INFINITE and not self.streamed:
                raise TypeError("the length of this dataset is not known before select() has "
                                "run, or a stream is read for its cache: call resolve()")
            why = ("is endless" if count == INFINITE
                   else "is a stream, whose length is unknown until it ends")
            raise TypeError(f"this dataset {why}: there is no len(); see cardinality()")
        return count

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Any]:
        """One epoch of batches, or of samples if the dataset is not batched. Samples may differ in
        size. The next epoch is reshuffled."""
        from .loader import Loader
        packs = not self.batched and not _has_one_shape(self.element_spec)
        if self._loader is None:
            native = self._native.packed(pickle.dumps) if packs else self._native
            self._loader = Loader(
                Dataset(native if self.batched else native.batch(1, None, False)), world=1, rank=0)
        if self.batched:
            return iter(self._loader)
        rows = (batch.row(0) for batch in self._loader)
        return map(pickle.loads, rows) if packs else rows

    def __repr__(self) -> str:
        # Keras shows this where fit is given the dataset itself.
        keras = ("\nfor Keras: ps.keras.dataset(ps.Loader(dataset.batch(n)))"
                 if "keras" in sys.modules else "")
        return f"<penstock.Dataset\n{self.describe().rstrip()}{keras}>"


def _has_one_shape(spec: Spec) -> bool:
    """Whether a batch can hold such elements: all their sizes are known."""
    if isinstance(spec, dict):
        spec = tuple(spec.values())
    if isinstance(spec, tuple):
        return all(_has_one_shape(each) for each in spec)
    return spec is not None and None not in spec.shape


def _folder(word: str, folder: Any) -> bytes:
    encoded = path(word, "folder", folder)
    if not encoded:
        raise refuse(word, "folder", folder, "has no name", "name a folder that can be written to")
    return encoded


def _native_of(word: str, dataset: Any) -> _native.Dataset:
    if not isinstance(dataset, Dataset):
        raise ConfigError(f"{word}: expected a Dataset, not {type(dataset).__name__}",
                          remedy="arrays become one with from_tensor_slices, iterators with "
                                 "from_generator")
    return dataset._native
