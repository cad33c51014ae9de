"""Datasets of files of records, from TFRecord to NumPy's, and writing them."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _native
from .arguments import choice, flag, items, path, refuse, text, whole, whole_or_none
from .arrow_files import litdata_rows
from .dataset import Dataset, _native_of
from .foreign import explained
from .spec import Field, _dtype_name
from .tables import null_values

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Paths = Path | Iterable[Path]
Progress = Callable[[int, int], None] | None


def _paths(word: str, paths: Any) -> list[bytes]:
    if isinstance(paths, (str, bytes, os.PathLike)):
        paths = [paths]
    return items(word, "paths", paths, path)


class _Bar:
    """Shows on a terminal how far the indexes are, once that takes more than a second."""

    def __init__(self, word: str) -> None:
        self._word = word
        self._began = time.monotonic()
        self._shown = False

    def __call__(self, done: int, total: int) -> None:
        took = time.monotonic() - self._began
        if total == 0 or (took < 1 and not self._shown) or not sys.stderr.isatty():
            return
        if done < total or self._shown:
            self._shown = True
            end = "\n" if done >= total else ""
            sys.stderr.write(f"\r{self._word}: finding records, {done / total:4.0%} of "
                             f"{total / 1e9:.1f} GB{end}")
            sys.stderr.flush()


def _options(word: str, index: Any, compression: str, record_bytes_max: int,
             progress: Any) -> dict[str, Any]:
    if progress is not None and progress is not False and not callable(progress):
        raise refuse(word, "progress", progress, "is not a function",
                     "pass a function of (bytes done, bytes in all), or False for no bar")
    return {
        "index": path(word, "index", index),
        "compression": text(word, "compression", compression),
        "record_bytes_max": whole(word, "record_bytes_max", record_bytes_max, least=1),
        "progress": _Bar(word) if progress is None else progress or None,
    }


def _names(word: str, name: str, values: Any) -> list[str]:
    return items(word, name, values, text)


def _items_of(word: str, name: str, values: Any, example: str) -> list[tuple[str, Any]]:
    """The items of a dict by name; None has none."""
    if values is None:
        return []
    if not isinstance(values, Mapping):
        raise refuse(word, name, values, "is not a dict", f"write {name}={example}")
    return [(text(word, name, key), value) for key, value in values.items()]


def _typed(word: str, name: str, values: Any) -> dict[str, str]:
    """Dtypes by the name of a field or column."""
    return {key: _dtype_name(value)
            for key, value in _items_of(word, name, values, '{"column": "float32"}')}


@dataclass(frozen=True)
class Feature:
    """A feature of a `tf.train.Example`: a dtype, a shape, and how it is stored.

    A first size of None means any number of values, which gives a ragged field. `missing` is the
    value for records that lack the feature; without it they fail. `sequence` reads it from the
    feature lists of a SequenceExample. `raw` reads numbers that were stored as bytes, as
    `tf.io.decode_raw` does.
    """

    dtype: Any
    shape: tuple[int | None, ...] = ()
    missing: Any = None
    sequence: bool = False
    raw: bool = False


def _feature(name: str, value: Any) -> Feature:
    """A Feature of what users write; the classes of tf.io are known by their names."""
    kind = type(value).__name__
    if isinstance(value, Feature):
        return value
    if isinstance(value, Field):
        return Feature(value.dtype, value.shape)
    if kind in ("FixedLenFeature", "FixedLenSequenceFeature", "VarLenFeature", "RaggedFeature"):
        dtype = value.dtype.name
        dtype = "bytes" if dtype == "string" else dtype
        if kind == "FixedLenFeature":
            return Feature(dtype, tuple(value.shape), value.default_value)
        inner = tuple(value.shape) if kind == "FixedLenSequenceFeature" else ()
        return Feature(dtype, (None, *inner))
    if isinstance(value, (str, type)) or hasattr(value, "dtype") or hasattr(value, "name"):
        return Feature(value)
    raise refuse("from_tfrecord", f"spec[{name!r}]", value, "is not a feature",
                 'write a dtype, as in "int64" or "bytes", a ps.Field or a ps.Feature')


def _missing(name: str, dtype: str, value: Any) -> Any:
    if value is None or dtype in ("bytes", "str"):
        return value.encode() if dtype == "bytes" and isinstance(value, str) else value
    try:
        return np.asarray(value, dtype=dtype)
    except (TypeError, ValueError, OverflowError):
        raise refuse("from_tfrecord", f"spec[{name!r}]", value, f"is no {dtype}",
                     "pass a number, or an array of the feature's shape") from None


def _features(spec: Any) -> list[tuple[Any, ...]]:
    if not isinstance(spec, Mapping):
        raise refuse("from_tfrecord", "spec", spec, "is not a dict",
                     'write {"image": "bytes", "label": "int64"}')
    features = []
    for name, value in spec.items():
        feature = _feature(text("from_tfrecord", "spec", name), value)
        shape = items("from_tfrecord", "shape", feature.shape, whole_or_none)
        dtype = _dtype_name(feature.dtype)
        features.append((name, dtype, [-1 if size is None else size for size in shape],
                         _missing(name, dtype, feature.missing),
                         flag("from_tfrecord", "sequence", feature.sequence),
                         flag("from_tfrecord", "raw", feature.raw)))
    return features


@explained
def from_tfrecord(paths: Paths, spec: Mapping[str, Any] | None = None, *, raw: bool = False,
                  split: str = "", index: Path = "beside", compression: str = "auto",
                  record_bytes_max: int = 2**30, progress: Progress | bool = None) -> Dataset:
    """The records of TFRecord files: a dict of the features of each `tf.train.Example`.

    `spec` names the features to read: a dtype ("int64", "float32", "bytes", "str"), a `ps.Field`
    with a shape, or a `ps.Feature`; objects of tf.io, such as FixedLenFeature, too. Without one
    the features of the first 64 records are read; `explain()` says which. A folder of TensorFlow
    Datasets, named by its path, has them in its features.json, and `split` names one of its parts.
    With `raw=True` a sample is the bytes of its record.

    `paths` is a path, a pattern ("train-*.tfrecord"), names with braces ("train-{00..15}") or a
    list of these. Where records begin is found once, and stored: `index` is "beside" the files,
    "memory", or a folder. Files compressed with gzip, zlib (named by `compression`) or zstd are
    streams. Checksums are checked as records are read.
    """
    return Dataset(_native.from_tfrecord(
        _paths("from_tfrecord", paths), None if spec is None else _features(spec),
        flag("from_tfrecord", "raw", raw), text("from_tfrecord", "split", split),
        _options("from_tfrecord", index, compression, record_bytes_max, progress)))


@explained
def from_tar(paths: Paths, fields: Mapping[str, str] | None = None, *,
             dtypes: Mapping[str, Any] | None = None, key: bool = False, index: Path = "beside",
             compression: str = "auto", record_bytes_max: int = 2**30,
             progress: Progress | bool = None) -> Dataset:
    """The samples of tar files as WebDataset writes them: members of one name are one sample.

    `fields` names the extension of each field, or several of which the first that is there counts:
    `{"image": "jpg;jpeg;png", "label": "cls"}`. Without it, each extension that the first 16
    samples have is a field. Members are bytes; "cls", "id", "index" and "count" are int64, "txt"
    and "json" str; `dtypes` changes that, by field. `key=True` adds the name as "__key__".

    `paths` and the other arguments are those of `from_tfrecord`.
    """
    return Dataset(_native.from_tar(
        _paths("from_tar", paths),
        [(name, text("from_tar", "fields", extensions)) for name, extensions in
         _items_of("from_tar", "fields", fields, '{"image": "jpg;png", "label": "cls"}')],
        list(_typed("from_tar", "dtypes", dtypes).items()), flag("from_tar", "key", key),
        _options("from_tar", index, compression, record_bytes_max, progress)))


@explained
def from_text(paths: Paths, *, index: Path = "beside", compression: str = "auto",
              record_bytes_max: int = 2**30, progress: Progress | bool = None) -> Dataset:
    """The lines of text files, without their ends, as str.

    `paths` and the other arguments are those of `from_tfrecord`.
    """
    return Dataset(_native.from_text(
        _paths("from_text", paths),
        _options("from_text", index, compression, record_bytes_max, progress)))


def _letter(word: str, name: str, value: Any) -> str:
    if value is None:
        return "\0"
    if not isinstance(value, str) or len(value) != 1 or ord(value) > 127:
        raise refuse(word, name, value, "is not one ASCII letter")
    return value


@explained
def from_csv(paths: Paths, *, columns: Iterable[str] = (), types: Mapping[str, Any] | None = None,
             nulls: Mapping[str, Any] | None = None, header: bool = True,
             names: Iterable[str] = (), delimiter: str = ",", quote: str | None = '"',
             comment: str | None = None, floats: str = "float32",
             missing: Iterable[str] = ("", "NA", "NaN", "nan", "null", "NULL"),
             infer_records: int = 1000, index: Path = "beside", compression: str = "auto",
             record_bytes_max: int = 2**30, progress: Progress | bool = None) -> Dataset:
    """The rows of CSV files, as a dict of their columns.

    Types are inferred from the first `infer_records` rows (int64, `floats`, bool, str), unless
    `types` names them; `columns` are the ones to read. A missing value (see `missing`) fails its
    sample, unless `nulls` names what it becomes. Quoted values may contain line ends. Without a
    `header` columns are called "column0", "column1", ..., or `names`.

    `paths` and the other arguments are those of `from_tfrecord`.
    """
    return Dataset(_native.from_csv(
        _paths("from_csv", paths),
        {"columns": _names("from_csv", "columns", columns),
         "types": _typed("from_csv", "types", types),
         "nulls": null_values("from_csv", nulls or {}),
         "header": flag("from_csv", "header", header),
         "names": _names("from_csv", "names", names),
         "delimiter": _letter("from_csv", "delimiter", delimiter),
         "quote": _letter("from_csv", "quote", quote),
         "comment": _letter("from_csv", "comment", comment),
         "floats": _dtype_name(floats),
         "missing": _names("from_csv", "missing", missing),
         "infer_records": whole("from_csv", "infer_records", infer_records, least=1)},
        _options("from_csv", index, compression, record_bytes_max, progress)))


@explained
def from_jsonl(paths: Paths, *, fields: Mapping[str, Any] | None = None,
               nulls: Mapping[str, Any] | None = None, floats: str = "float32", raw: bool = False,
               infer_records: int = 100, index: Path = "beside", compression: str = "auto",
               record_bytes_max: int = 2**30, progress: Progress | bool = None) -> Dataset:
    """The objects of JSON lines files, one per line, as dicts.

    Fields are inferred from the first `infer_records` lines: bool, int64, `floats`, str, lists of
    numbers (ragged) and nested objects. `fields` names them instead: a dtype or a `ps.Field`, by
    name; "a/b" is key b of the object a. Null and missing keys fail their sample, unless `nulls`
    names what they become. With `raw=True` a sample is the line.

    `paths` and the other arguments are those of `from_tfrecord`.
    """
    return Dataset(_native.from_jsonl(
        _paths("from_jsonl", paths),
        {"fields": _json_fields(fields or {}),
         "nulls": null_values("from_jsonl", nulls or {}), "floats": _dtype_name(floats),
         "raw": flag("from_jsonl", "raw", raw),
         "infer_records": whole("from_jsonl", "infer_records", infer_records, least=1)},
        _options("from_jsonl", index, compression, record_bytes_max, progress)))


def _json_fields(fields: Any) -> list[tuple[str, str, list[int]]]:
    if not isinstance(fields, Mapping):
        raise refuse("from_jsonl", "fields", fields, "is not a dict",
                     'write {"text": "str", "label": "int64"}')
    given = []
    for name, value in fields.items():
        field = value if isinstance(value, Field) else Field(value)
        shape = [-1 if size is None else size for size in field.shape]
        given.append((text("from_jsonl", "fields", name), field.dtype, shape))
    return given


@explained
def from_records(paths: Paths, record_bytes: int, *, header_bytes: int = 0, footer_bytes: int = 0,
                 partial: str = "refuse", dtype: Any = None,
                 shape: Iterable[int] = ()) -> Dataset:
    """The records of files in which all have the same number of bytes.

    A sample is the bytes of its record or, with a `dtype`, an array of that dtype and `shape`, the
    low byte first. A file with an incomplete record at its end is an error, unless
    `partial="drop"`. `paths` are those of `from_tfrecord`.
    """
    return Dataset(_native.from_records(
        _paths("from_records", paths), whole("from_records", "record_bytes", record_bytes, least=1),
        whole("from_records", "header_bytes", header_bytes),
        whole("from_records", "footer_bytes", footer_bytes),
        text("from_records", "partial", partial),
        None if dtype is None else _dtype_name(dtype),
        items("from_records", "shape", shape, whole)))


@explained
def from_npy(paths: Paths, *, fields: Iterable[str] = (),
             bytes_max: int | None = None) -> Dataset:
    """The rows of arrays in .npy and .npz files: a sample for each index of the first dimension.

    Several files follow each other. The sample of an .npz is a dict with a row of each array, or
    of those in `fields`. Rows are read where they are; only compressed arrays of an .npz are
    unpacked into memory, at most `bytes_max` bytes. `paths` are those of `from_tfrecord`.
    """
    return Dataset(_native.from_npy(
        _paths("from_npy", paths), _names("from_npy", "fields", fields),
        whole_or_none("from_npy", "bytes_max", bytes_max)))


@explained
def from_litdata(folder: Path, *, fields: Iterable[str] = (),
                 shapes: Mapping[str, Iterable[int]] | None = None,
                 length: int | None = None) -> Dataset:
    """The items of a folder that `litdata.optimize` wrote: dicts, tuples and single values.

    `fields` are the ones to read, such as "image" or "meta/id". `shapes` names the shape of array
    fields that have the same one in all samples; others are ragged. Files of images are bytes,
    nested lists are JSON texts. For chunks of tokens, samples are `length` tokens that follow each
    other, as those of `TokensLoader(length)`; without it, each item is one. Chunks that are
    compressed as a whole must be decompressed first. Items that are rows of Arrow need pyarrow, and
    have the types of `from_arrow`.
    """
    word = "from_litdata"
    where, names = path(word, "folder", folder), _names(word, "fields", fields)
    sizes = {name: items(word, "shapes", shape, whole) for name, shape in
             _items_of(word, "shapes", shapes, '{"field": (224, 224, 3)}')}
    tokens = whole_or_none(word, "length", length, least=1) or 0
    if not sizes and tokens == 0 and (rows := litdata_rows(where, names)) is not None:
        return rows
    return Dataset(_native.from_litdata(where, names, sizes, tokens))


@explained
def from_mds(folder: Path, *, columns: Iterable[str] = (),
             shapes: Mapping[str, Iterable[int]] | None = None) -> Dataset:
    """The samples of a folder of MosaicML Streaming: a dict of the columns of its MDS shards.

    `columns` are the ones to read. `shapes` names the shape of array columns that have the same one
    in all samples; others are ragged. Compressed shards must be decompressed first.
    """
    return Dataset(_native.from_mds(
        path("from_mds", "folder", folder), _names("from_mds", "columns", columns),
        {name: items("from_mds", "shapes", shape, whole) for name, shape in
         _items_of("from_mds", "shapes", shapes, '{"column": (224, 224, 3)}')}))


@dataclass(frozen=True)
class WrittenRecords:
    """What `write_records` wrote: files, and the samples and bytes in them.

    `skipped` samples failed in this call; `found` files were there from an earlier one.
    """

    files: list[str]
    samples: int
    bytes: int
    skipped: int
    found: int


@explained
def write_records(dataset: Dataset, folder: Path, format: str = "tfrecord", *, shards: int = 0,
                  shard_bytes: int = 256 * 2**20, on_error: str = "raise",
                  progress: Progress = None) -> WrittenRecords:
    """Writes the samples of the first pass to files of `format`: "tfrecord", "tar" or "arrow".

    There are `shards` files, or as many as are needed for about `shard_bytes` each. A file appears
    when it is complete; a call that was interrupted is continued by the next one with the same
    arguments. Indexes and shards.json, with checksums, are written too. `progress` is called with
    the samples done and their number (0 if it is not known).

    Arrow files (Feather) are read by pyarrow, polars, Hugging Face `datasets` and
    `from_arrow_files`: a column for each field, with the dtype of the field (bfloat16 becomes
    float32), lists of one size for shapes, lists of any size for sizes that vary, structs for
    nested dicts. Fields that nothing declares are those of 64 samples all over the dataset, or
    of the first 64 of a stream; a sample that does not fit them raises SampleError.
    """
    choice("write_records", "format", text("write_records", "format", format),
           ("tfrecord", "tar", "arrow"))
    choice("write_records", "on_error", on_error, ("raise", "skip"))
    if progress is not None and not callable(progress):
        raise refuse("write_records", "progress", progress, "is not a function")
    return WrittenRecords(**_native.write_records(
        _native_of("write_records", dataset), path("write_records", "folder", folder),
        {"format": format, "shards": whole("write_records", "shards", shards),
         "shard_bytes": whole("write_records", "shard_bytes", shard_bytes, least=1),
         "skip": on_error == "skip", "progress": progress}))
