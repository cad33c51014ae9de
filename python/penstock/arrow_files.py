"""Datasets of Parquet and Arrow files, and of tables in chunks of LitData; pyarrow decodes them."""

from __future__ import annotations

import collections
import hashlib
import importlib
import json
import os
import threading
from collections.abc import Callable, Iterable
from typing import Any

from . import _native
from .arguments import items, path, text, whole_or_none
from .dataset import Dataset
from .errors import ConfigError
from .files import Path, list_files
from .foreign import explained
from .tables import null_values

_PARQUET_MAGIC, _ENCRYPTED_MAGIC, _ARROW_MAGIC = b"PAR1", b"PARE", b"ARROW1"
_LITDATA_END = b"LDARW01\0"


@explained
def from_parquet(paths: Path | Iterable[Path], *, columns: Iterable[str] | None = None,
                 nulls: dict[str, Any] | None = None, name: str = "",
                 chunk_bytes_max: int | None = None) -> Dataset:
    """The rows of Parquet files, as a dict of their columns, or of the named ones; needs pyarrow.

    `paths` is a path, a pattern as for `list_files`, or a list of these; all files have the same
    columns. Only their footers are read here. A row group is decoded when a row of it is needed,
    and kept while all of them use less than `chunk_bytes_max`, by default an eighth of the memory,
    at most 4 GiB. If the table is larger, `shuffle(blocks=...)` decodes each row group once. Types
    and `nulls` are as for `from_arrow`.
    """
    word = "from_parquet"
    options = _options(word, "row group", nulls, name, chunk_bytes_max)
    chosen = None if columns is None else items(word, "columns", columns, text)
    pyarrow, parquet = _pyarrow(word, "parquet")
    files = [_ParquetFile(parquet, pyarrow, file, chosen) for file in _files(word, paths)]
    table = _Table(word, pyarrow, files, chosen)
    load = _Loads(files, table.names, lambda file: file.open(parquet, pyarrow),
                  lambda reader, group: reader.read_row_group(group, columns=table.names))
    return _chunked(table, load, options)


@explained
def from_arrow_files(paths: Path | Iterable[Path], *, columns: Iterable[str] | None = None,
                     nulls: dict[str, Any] | None = None, name: str = "",
                     chunk_bytes_max: int | None = None) -> Dataset:
    """The rows of Arrow files (Feather, or the files of Hugging Face `datasets`); needs pyarrow.

    Files are mapped, and read in place if they are not compressed: do not change them while the
    dataset is used. The batches of compressed files are decoded when a row of them is needed. The
    arguments are those of `from_parquet`.
    """
    word = "from_arrow_files"
    options = _options(word, "batch", nulls, name, chunk_bytes_max)
    chosen = None if columns is None else items(word, "columns", columns, text)
    (pyarrow,) = _pyarrow(word)
    files = [_ArrowFile(pyarrow, file, chosen) for file in _files(word, paths)]
    table = _Table(word, pyarrow, files, chosen)
    if any(file.compressed for file in files):
        load = _Loads(files, table.names, lambda file: file.open(table.names),
                      lambda reader, number: _batch_of(pyarrow, reader, number))
        return _chunked(table, load, options)
    batches = [pyarrow.RecordBatch.from_arrays([batch.column(each) for each in table.names],
                                               schema=table.schema)
               for file in files for batch in file.batches]
    reader = pyarrow.RecordBatchReader.from_batches(table.schema, batches)
    rows = [(file.path, sum(file.chunk_rows)) for file in files]
    return Dataset(_native.from_arrow_files(reader.__arrow_c_stream__(), rows, options["nulls"],
                                            options["name"]))


def litdata_rows(folder: bytes, fields: list[str]) -> Dataset | None:
    """The chunks of LitData whose items are rows of an Arrow file inside of them.

    None if the first chunk is none of these, and if there is no index to tell.
    """
    word = "from_litdata"
    chunks = _litdata_chunks(folder)
    if not chunks or _litdata_part(chunks[0][0]) is None:
        return None
    options = _options(word, "batch", None, "", None)
    chosen = fields or None
    (pyarrow,) = _pyarrow(word)
    files = []
    for file, rows in chunks:
        part = _litdata_part(file)
        if part is None:
            raise _bad(file, "has no rows of Arrow, unlike the first chunk", "copy the chunk again")
        files.append(_ArrowFile(pyarrow, file, chosen, part))
        if sum(files[-1].chunk_rows) != rows:
            raise _bad(file, f"has {sum(files[-1].chunk_rows)} rows, and index.json says {rows}",
                       "copy the chunk again")
    table = _Table(word, pyarrow, files, chosen)
    load = _Loads(files, table.names, lambda file: file.open(table.names),
                  lambda reader, number: _batch_of(pyarrow, reader, number))
    return _chunked(table, load, options)


def _litdata_chunks(folder: bytes) -> list[tuple[bytes, int]]:
    """The files that an index.json lists, and how many items each has."""
    try:
        with open(os.path.join(folder, b"index.json"), encoding="utf-8") as file:
            chunks = json.load(file)["chunks"]
        names = [os.fsencode(chunk["filename"]) for chunk in chunks]
        if any(name != os.path.basename(name) for name in names):
            return []
        return [(os.path.join(folder, name), int(chunk["chunk_size"]))
                for name, chunk in zip(names, chunks, strict=True)]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []  # who reads the index next says why


def _litdata_part(file: bytes) -> tuple[int, int] | None:
    """Where the Arrow file in a chunk begins and ends: it is followed by its size and a mark."""
    try:
        with open(file, "rb") as chunk:
            size = os.fstat(chunk.fileno()).st_size
            chunk.seek(max(0, size - 12))
            end = chunk.read(12)
    except OSError as error:
        raise _bad(file, f"is missing: {error}", "copy all chunks that index.json lists") from error
    if len(end) < 12 or end[4:] != _LITDATA_END:
        return None
    length = int.from_bytes(end[:4], "little")
    if length > size - 12:
        raise _bad(file, f"has {size} bytes, of which {length} are rows", "copy the chunk again")
    return size - 12 - length, size - 12


def _options(word: str, chunk_word: str, nulls: Any, name: str,
             chunk_bytes_max: int | None) -> dict[str, Any]:
    limit = whole_or_none(word, "chunk_bytes_max", chunk_bytes_max, least=1)
    return {"word": word, "chunk_word": chunk_word, "name": text(word, "name", name),
            "nulls": null_values(word, {} if nulls is None else nulls),
            "chunk_bytes_max": limit or 0}


def _pyarrow(word: str, *modules: str) -> list[Any]:
    try:
        return [importlib.import_module(name)
                for name in ("pyarrow", *(f"pyarrow.{module}" for module in modules))]
    except ImportError as error:
        raise ConfigError(f"{word}: pyarrow cannot be imported: {error}",
                          remedy="pip install pyarrow") from error


def _files(word: str, paths: Any) -> list[bytes]:
    """The files that `paths` names, each pattern's by name."""
    if isinstance(paths, (str, bytes, os.PathLike)):
        paths = [paths]
    found: list[bytes] = []
    for each in items(word, "paths", paths, path):
        if os.path.isdir(each):
            raise ConfigError(f"{word}: {os.fsdecode(each)} is a folder",
                              remedy='name its files by a pattern, as in "folder/**/*.parquet"')
        matching = [each] if os.path.exists(each) else [
            os.fsencode(name) for name in list_files(each)]
        if not matching:
            raise ConfigError(f"{word}: no file matches {os.fsdecode(each)!r}")
        found += matching
    if not found:
        raise ConfigError(f"{word}: no paths")
    return found


def _shown(file: Any) -> str:
    return os.fsdecode(file.path)


def _bad(file: bytes, why: Any, remedy: str = "") -> ConfigError:
    return ConfigError(f"{os.fsdecode(file)}: {why}", remedy=remedy)


class _Table:
    """The common columns of files."""

    def __init__(self, word: str, pyarrow: Any, files: list[Any],
                 columns: list[str] | None) -> None:
        first = files[0]
        self.files = files
        self.names: list[str] = list(first.schema.names) if columns is None else columns
        for each in self.names:
            if max(self.names.count(each), len(first.schema.get_all_field_indices(each))) > 1:
                raise ConfigError(f"{word}: two columns are called {each!r}",
                                  remedy="rename one of them")
        for file in files:
            self._check(word, file, first)
            if columns is None:
                self._check_for_more(word, file, first)
        self.schema = pyarrow.schema([first.schema.field(each) for each in self.names])

    def _check(self, word: str, file: Any, first: Any) -> None:
        types = {field.name: field.type for field in file.schema}
        for each in self.names:
            if each not in types:
                raise ConfigError(f"{word}: {_shown(file)} has no column {each!r}",
                                  remedy=f"its columns are {', '.join(types)}")
            expected = first.schema.field(each).type
            if types[each] != expected:
                raise ConfigError(
                    f"{word}: column {each!r} is {types[each]} in {_shown(file)} and {expected} "
                    f"in {_shown(first)}",
                    remedy="write the files with one schema, or leave it out: columns=[...]")

    def _check_for_more(self, word: str, file: Any, first: Any) -> None:
        more = [each for each in file.schema.names if each not in self.names]
        if more:
            raise ConfigError(
                f"{word}: {_shown(file)} has the column {more[0]!r}, and {_shown(first)} has not",
                remedy="name the columns that all files have: columns=[...]")

    def identity(self) -> str:
        """Names relative to the common folder, sizes, rows and what a footer says."""
        folder = os.path.commonpath([os.path.dirname(os.path.abspath(file.path))
                                     for file in self.files])
        digest = hashlib.blake2b(digest_size=16)
        for file in self.files:
            name = os.path.relpath(os.path.abspath(file.path), folder)
            digest.update(repr((name, file.bytes, file.chunk_rows, file.stamp)).encode())
        digest.update(repr([(field.name, str(field.type)) for field in self.schema]).encode())
        return digest.hexdigest()


def _chunked(table: _Table, load: _Loads, options: dict[str, Any]) -> Dataset:
    chunks = []
    for number, file in enumerate(table.files):
        for place, rows in enumerate(file.chunk_rows):
            chunks.append((rows, number, place, file.chunk_bytes[place]))
            load.places.append((number, place))
    nulls = options.pop("nulls")
    return Dataset(_native.from_arrow_chunks(
        table.schema.__arrow_c_schema__(), [file.path for file in table.files], chunks, load, nulls,
        {**options, "identity": table.identity()}))


class _Loads:
    """Reads chunks, in any thread. A reader is used by one thread at a time; few stay open."""

    IDLE_MAX = 16

    def __init__(self, files: list[Any], names: list[str], open_file: Callable[[Any], Any],
                 read: Callable[[Any, int], Any]) -> None:
        self.places: list[tuple[int, int]] = []  # file, and number in it, of each chunk
        self._files = files
        self._names = names
        self._open = open_file
        self._read = read
        self._lock = threading.Lock()
        self._idle: collections.deque[tuple[Any, Any]] = collections.deque()

    def __call__(self, chunk: int) -> Any:
        number, place = self.places[chunk]
        file = self._files[number]
        key = (number, file.facts())
        reader = self._take(key)
        if reader is None:
            reader = self._open(file)
        table = self._read(reader, place)
        if table.schema.names != self._names:
            table = table.select(self._names)
        self._keep(key, reader)
        return table

    def _take(self, key: Any) -> Any:
        with self._lock:
            for at, (found, reader) in enumerate(self._idle):
                if found == key:
                    del self._idle[at]
                    return reader
        return None

    def _keep(self, key: Any, reader: Any) -> None:
        with self._lock:
            self._idle.append((key, reader))
            old = self._idle.popleft() if len(self._idle) > self.IDLE_MAX else None
        del old  # without the lock: it closes a file


class _ParquetFile:
    """What the footer says."""

    def __init__(self, parquet: Any, pyarrow: Any, file: bytes,
                 columns: list[str] | None) -> None:
        self.path = file
        self.bytes, footer = self._footer()
        self.stamp = hashlib.blake2b(footer, digest_size=16).hexdigest()
        try:
            facts = parquet.read_metadata(pyarrow.BufferReader(footer))
            self.schema = facts.schema.to_arrow_schema()
        except (pyarrow.ArrowException, OSError) as error:
            raise _bad(file, f"its footer cannot be read: {error}", "write the file again"
                       ) from error
        # The footer itself may be large, and is not kept.
        groups = [facts.row_group(i) for i in range(facts.num_row_groups)]
        self.chunk_rows = [group.num_rows for group in groups]
        self.chunk_bytes = [_decoded_bytes(group, columns) for group in groups]

    def _footer(self) -> tuple[int, bytes]:
        """The size of the file, and its footer between magic numbers."""
        with open(self.path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - 8))
            end = file.read(8)
            if size < 12 or end[4:] != _PARQUET_MAGIC:
                why = ("is encrypted" if end[4:] == _ENCRYPTED_MAGIC else
                       "is no Parquet file, or its end is missing")
                raise _bad(self.path, why, "write the file again")
            length = int.from_bytes(end[:4], "little")
            if length > size - 12:
                raise _bad(self.path, f"the footer has {length} bytes and the file {size}",
                           "write the file again")
            file.seek(size - 8 - length)
            return size, _PARQUET_MAGIC + file.read(length) + end

    def facts(self) -> tuple[int, int, int]:
        now = os.stat(self.path)
        return now.st_size, now.st_mtime_ns, now.st_ino

    def open(self, parquet: Any, pyarrow: Any) -> Any:
        size, footer = self._footer()
        if (size, hashlib.blake2b(footer, digest_size=16).hexdigest()) != (self.bytes, self.stamp):
            raise _bad(self.path, "the file has changed since the dataset was defined",
                       "define the dataset again")
        # pyarrow opens names in UTF-8 only.
        with open(self.path, "rb") as file:
            name = f"/proc/self/fd/{file.fileno()}"
            return parquet.ParquetFile(pyarrow.OSFile(name), page_checksum_verification=True)


def _decoded_bytes(group: Any, columns: list[str] | None) -> int:
    """Of the columns in a row group."""
    if columns is None:
        return int(group.total_byte_size)
    parts = (group.column(i) for i in range(group.num_columns))
    return sum(part.total_uncompressed_size for part in parts
               if part.path_in_schema.split(".", 1)[0] in columns)


def _batch_of(pyarrow: Any, reader: Any, number: int) -> Any:
    batch = reader[number] if isinstance(reader, list) else reader.get_batch(number)
    batch.validate()  # that buffers are as long as they should be
    return pyarrow.Table.from_batches([batch])


class _ArrowFile:
    """A file of Arrow's IPC format, or of its stream format, mapped; or a part of a file."""

    def __init__(self, pyarrow: Any, file: bytes, columns: list[str] | None,
                 part: tuple[int, int] | None = None) -> None:
        self.path = file
        mapped = _native.mapped_bytes(file)
        if part is not None:
            mapped = mapped[slice(*part)]
        self.bytes: int = mapped.nbytes
        self.stamp = [mapped[at:at + 64].tobytes()
                      for at in range(0, self.bytes, self.bytes // 16 + 1)]
        self._buffer = pyarrow.py_buffer(mapped)
        self._pyarrow = pyarrow
        self.compressed = False
        self.batches: list[Any] = []  # unless they are compressed
        self.chunk_rows: list[int] = []
        magic = mapped[:6].tobytes()
        if magic[:4] == b"FEA1":
            raise _bad(file, "is a file of Feather version 1",
                       "ps.from_arrow(pyarrow.feather.read_table(path))")
        self._stream = magic != _ARROW_MAGIC
        try:
            self._list_batches()
        except (pyarrow.ArrowException, OSError, EOFError) as error:
            raise _bad(file, f"cannot be read as an Arrow file: {error}", "write the file again"
                       ) from error
        # About: values of any size are guessed.
        width = sum(_width(field) for field in self.schema
                    if columns is None or field.name in columns)
        self.chunk_bytes = [rows * width // 8 for rows in self.chunk_rows]

    def _list_batches(self) -> None:
        ipc = self._pyarrow.ipc
        if self._stream:
            reader = ipc.open_stream(self._pyarrow.BufferReader(self._buffer))
            self.schema = reader.schema
            self.batches = list(reader)
        else:
            reader = ipc.open_file(self._pyarrow.BufferReader(self._buffer))
            self.schema = reader.schema
            numbers = range(reader.num_record_batches)
            self.compressed = not all(self._in_place(reader.get_batch(i)) for i in numbers[:1])
            if self.compressed:
                cheapest = self.open([min(self.schema, key=_width).name])
                self.chunk_rows = [cheapest.get_batch(i).num_rows for i in numbers]
                return
            self.batches = [reader.get_batch(i) for i in numbers]
        for batch in self.batches:
            batch.validate()  # that buffers are as long as they should be
        self.chunk_rows = [batch.num_rows for batch in self.batches]

    def _in_place(self, batch: Any) -> bool:
        first, end = self._buffer.address, self._buffer.address + self._buffer.size
        return all(first <= buffer.address and buffer.address + buffer.size <= end
                   for column in batch.columns for buffer in column.buffers()
                   if buffer is not None and buffer.size > 0)

    def facts(self) -> None:
        """A mapped file stays what it was, also if its name is given to another one."""

    def open(self, names: list[str]) -> Any:
        if not self.compressed:
            return self.batches
        fields = [self.schema.get_field_index(each) for each in names]
        return self._pyarrow.ipc.open_file(
            self._pyarrow.BufferReader(self._buffer),
            options=self._pyarrow.ipc.IpcReadOptions(included_fields=fields))


def _width(field: Any) -> int:
    """The bits of a value."""
    try:
        return int(field.type.bit_width)
    except ValueError:
        return 1000
