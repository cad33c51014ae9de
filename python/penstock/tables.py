"""Datasets of tables in memory; those of files are in arrow_files.py."""

from __future__ import annotations

from typing import Any

from . import _native
from .arguments import refuse, text
from .dataset import Dataset
from .errors import ConfigError
from .foreign import explained


@explained
def from_arrow(table: Any, *, nulls: dict[str, Any] | None = None, name: str = "") -> Dataset:
    """The rows of an Arrow table, as a dict of its columns, read in place.

    `table` is a table, record batch or data frame of pyarrow, polars, DuckDB and others (anything
    with `__arrow_c_stream__` or `__arrow_c_array__`), or a Dataset of Hugging Face. Lists become
    ragged fields, structs nested dicts, dates numbers, dictionary columns their values.

    A sample with a null fails, unless `nulls` names what nulls of its column become: a number, a
    text, or `[]`. The number of a list column is for nulls in its lists; a null list is empty.
    "a/b" is column b of the struct a.
    """
    text("from_arrow", "name", name)
    if hasattr(table, "with_format") and not hasattr(table, "__arrow_c_stream__"):
        table = table.with_format("arrow")[:]  # Hugging Face, with its selection applied
    values = null_values("from_arrow", {} if nulls is None else nulls)
    if hasattr(table, "__arrow_c_stream__"):
        return Dataset(_native.from_arrow(table.__arrow_c_stream__(), values, name))
    if hasattr(table, "__arrow_c_array__"):
        return Dataset(_native.from_arrow_array(*table.__arrow_c_array__(), values, name))
    raise ConfigError(f"from_arrow: {type(table).__name__} is not a table",
                      remedy="pass a table of pyarrow, polars, DuckDB or Hugging Face datasets; "
                             "arrays become a dataset with from_tensor_slices")


def null_values(word: str, nulls: Any) -> dict[str, Any]:
    """The values as the engine needs them, by column."""
    if not isinstance(nulls, dict):
        raise refuse(word, "nulls", nulls, "is not a dict",
                     'name columns and values, as in nulls={"price": 0.0}')
    values = {}
    for column, value in nulls.items():
        text(word, "nulls", column)
        if value == [] and isinstance(value, list):
            value = None
        elif not isinstance(value, (bool, int, float, str, bytes)):
            raise refuse(word, "nulls", value, f"is no value for column {column!r}",
                         "use a number, a text, or [] for lists")
        values[column] = value
    return values
