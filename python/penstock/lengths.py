"""Verbs for samples of different lengths: padding, buckets, packing, windows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from . import _native
from .arguments import choice, flag, items, number, text, whole, whole_or_none
from .errors import ConfigError
from .foreign import explained
from .functions import check_callable
from .tokenizing import Tokenize, check_tokenizer, spec_after

if TYPE_CHECKING:
    from .dataset import Dataset

TAILS = ("short", "even", "pad", "drop", "wrap", "strict")


@explained
class LengthVerbs:
    """The verbs of a Dataset for samples of different lengths."""

    _native: _native.Dataset

    def _made(self, native: _native.Dataset) -> Dataset:
        return type(self)(native)  # type: ignore[call-arg,return-value]

    def padded_batch(self, size: int, *, values: float | dict[str, float] = 0,
                     multiple_of: int | None = None, length: int | None = None,
                     side: str = "right", tail: str | None = None,
                     drop_remainder: bool = False) -> Dataset:
        """Like `batch`, with rows padded to one size: that of the longest row of the share.

        `values` is what fields are padded with: a number for all fields, or a dict from fields to
        numbers; other fields then stay ragged. Lengths are rounded up to a multiple of
        `multiple_of`; with `length` every row gets this length, and a longer row is an error.
        Sizes that a spec declares are not padded. `batch.lengths(field)` has the lengths before
        padding. A `map` of whole batches after it receives the padded arrays of the global batch;
        afterwards `lengths` has the sizes of its result.
        """
        choice("padded_batch", "tail", tail, TAILS)
        return self._made(self._native.padded_batch(
            whole("padded_batch", "size", size, least=1, remedy="a number of samples from 1 on"),
            padding_rules("padded_batch", values, multiple_of, length, side), tail,
            flag("padded_batch", "drop_remainder", drop_remainder)))

    def ragged_batch(self, size: int, *, drop_remainder: bool = False) -> Dataset:
        """tf.data's name for `batch`: fields whose rows differ in size are ragged."""
        return self._made(self._native.batch(
            whole("ragged_batch", "size", size, least=1, remedy="a number of samples from 1 on"),
            None, flag("ragged_batch", "drop_remainder", drop_remainder)))

    def bucket_by_length(self, boundaries: Iterable[int], batch_sizes: Iterable[int] | None = None,
                         *, tokens_per_batch: int | None = None, field: str = "",
                         length: Callable[..., int] | None = None,
                         values: float | dict[str, float] | None = 0,
                         multiple_of: int | None = None, pad_to_boundary: bool = False,
                         side: str = "right", tail: str | None = None,
                         drop_remainder: bool = False, window: int | None = None) -> Dataset:
        """Batches of samples of similar lengths: every sample once, only the last step of a bucket
        short.

        Bucket i has the lengths from `boundaries[i - 1]` to below `boundaries[i]`, in steps of
        `batch_sizes[i]` samples; the last size is for longer samples. With `tokens_per_batch`
        instead, a step has as many as fit, as for `batch_by_tokens`. The length is the first size
        of `field`, or what `length(sample)` returns. Rows are padded as by `padded_batch`;
        `values=None` leaves them ragged. `pad_to_boundary` pads to the longest length of the
        bucket.

        After `shuffle()`, samples are shuffled within their buckets and the steps of all buckets
        among each other; otherwise the buckets follow each other. Lengths are counted once, when a
        loader is created. A step of a stream is delivered when its bucket is full; with `window`
        also, as a short one, when a sample has waited for this many later ones.
        """
        choice("bucket_by_length", "tail", tail, TAILS)
        if length is not None:
            check_callable("bucket_by_length", length)
        rules = None if values is None else padding_rules("bucket_by_length", values, multiple_of,
                                                          None, side)
        arguments = _native.BucketArguments(
            text("bucket_by_length", "field", field), rules, tail,
            flag("bucket_by_length", "drop_remainder", drop_remainder),
            flag("bucket_by_length", "pad_to_boundary", pad_to_boundary),
            whole_or_none("bucket_by_length", "window", window, least=1))
        limits = items("bucket_by_length", "boundaries", boundaries, whole)
        if tokens_per_batch is None and batch_sizes is not None:
            return self._made(self._native.bucket_by_length(
                limits, items("bucket_by_length", "batch_sizes", batch_sizes, whole), arguments,
                length))
        if tokens_per_batch is None or batch_sizes is not None or length or multiple_of:
            raise ConfigError(
                "bucket_by_length: takes batch_sizes, or tokens_per_batch without length= and "
                "multiple_of=", remedy="bucket_by_length([10, 20], [64, 32, 16])")
        return self._made(self._native.batch_by_tokens(
            whole("bucket_by_length", "tokens_per_batch", tokens_per_batch, least=1), limits,
            arguments))

    def bucket_by_sequence_length(self, element_length_func: Callable[..., int],
                                  bucket_boundaries: Iterable[int],
                                  bucket_batch_sizes: Iterable[int], *,
                                  padding_values: float | dict[str, float] | None = None,
                                  pad_to_bucket_boundary: bool = False, no_padding: bool = False,
                                  drop_remainder: bool = False) -> Dataset:
        """tf.data's name and arguments for `bucket_by_length`."""
        values: Any = 0 if padding_values is None else padding_values
        return self.bucket_by_length(
            bucket_boundaries, bucket_batch_sizes, length=element_length_func,
            values=None if flag("bucket_by_sequence_length", "no_padding", no_padding) else values,
            pad_to_boundary=pad_to_bucket_boundary, drop_remainder=drop_remainder)

    def batch_by_tokens(self, max_tokens: int, *, boundaries: Iterable[int] = (), field: str = "",
                        values: float | dict[str, float] | None = 0, side: str = "right",
                        tail: str | None = None, drop_remainder: bool = False,
                        window: int | None = None) -> Dataset:
        """Batches of as many samples of similar lengths as fit into `max_tokens`, with padding.

        Buckets are about a quarter wider than their shortest sample, or have `boundaries`. The rest
        is as for `bucket_by_length`.
        """
        choice("batch_by_tokens", "tail", tail, TAILS)
        rules = None if values is None else padding_rules("batch_by_tokens", values, None, None,
                                                          side)
        return self._made(self._native.batch_by_tokens(
            whole("batch_by_tokens", "max_tokens", max_tokens, least=1),
            items("batch_by_tokens", "boundaries", boundaries, whole),
            _native.BucketArguments(
                text("batch_by_tokens", "field", field), rules, tail,
                flag("batch_by_tokens", "drop_remainder", drop_remainder), False,
                whole_or_none("batch_by_tokens", "window", window, least=1))))

    def pack(self, length: int, *, how: str = "stream", separator: int | None = None,
             too_long: str = "split", pad: int = 0, field: str = "", mask: str = "",
             attention: str = "document", cu_seqlens: bool = False) -> Dataset:
        """Packs documents into rows of `length` tokens.

        A row has `tokens` (int32), `labels` (int64: the next token of the same document, -100 where
        there is none and for padding), `positions` (from 0 in each document of the row) and
        `document` (its number in the row, -1 for padding); with `cu_seqlens` also where documents
        end.

        `how="stream"` cuts documents where a row ends; `how="best_fit"` keeps them whole, and
        `too_long` ("split", "cut", "drop" or "refuse") decides about those longer than a row.
        `separator` is a token after each document. `field` has the tokens, and `mask` is a field
        with 0 for each token that is not to be predicted. `attention="row"` treats a row as one
        document: positions count through it, and the end of a document predicts the next one.

        Rows depend on the lengths, the seed of a `shuffle()` before and the epoch alone. Lengths
        are counted once, when a loader is created. Of a stream, 4096 documents are packed at a
        time, or as many as fill 256 rows.
        """
        choice("pack", "how", how, ("stream", "best_fit"))
        policies = ("split", "cut", "drop", "refuse")
        choice("pack", "too_long", too_long, policies)
        choice("pack", "attention", attention, ("document", "row"))
        return self._made(self._native.pack(
            whole("pack", "length", length, least=1), how == "best_fit",
            whole_or_none("pack", "separator", separator), policies.index(too_long or "split"),
            whole("pack", "pad", pad), text("pack", "field", field), text("pack", "mask", mask),
            attention == "row", flag("pack", "cu_seqlens", cu_seqlens)))

    def window(self, size: int, shift: int | None = None, stride: int = 1, *,
               drop_remainder: bool = True) -> Dataset:
        """Windows of `size` consecutive samples, as one sample with a new first dimension.

        Windows begin `shift` samples apart (by default `size`: they do not overlap), and have every
        `stride`-th sample. Those that reach beyond the end are left out, or with
        `drop_remainder=False` shorter. For indexed data whose samples have fixed sizes.
        """
        limits = {"least": 1, "most": 2**31}
        return self._made(self._native.window(
            whole("window", "size", size, **limits),
            whole_or_none("window", "shift", shift, **limits),
            whole("window", "stride", stride, **limits),
            flag("window", "drop_remainder", drop_remainder)))

    def tokenize(self, tokenizer: Any, *, field: str = "", to: str = "",
                 workers: int | None = None) -> Dataset:
        """Replaces a text by the token ids (int64, ragged) of `tokenizer`.

        `tokenizer` is a function of a text, or an object with `encode(text)`, such as a Tokenizer
        of Hugging Face `tokenizers` or `transformers`. `field` has the text, unless samples are
        texts; the ids are called `to`, by default `field`. `workers` are processes, as for `map`.
        """
        check_tokenizer(tokenizer)
        text("tokenize", "field", field)
        text("tokenize", "to", to)
        dataset: Any = self
        return dataset.map(Tokenize(tokenizer, field, to), workers=workers,
                           spec=spec_after(dataset.element_spec, field, to))

    def truncate(self, length: int, *, field: str = "", keep: str = "first") -> Dataset:
        """Cuts the first dimension of `field` to at most `length`; keeps the "first" or "last"."""
        choice("truncate", "keep", keep, ("first", "last"))
        if self._native.batched():
            raise ConfigError("truncate: these elements are batches",
                              remedy="put truncate before batch")
        return self._made(self._native.map_op(_native.truncate(
            whole("truncate", "length", length), text("truncate", "field", field),
            keep == "last")))


def padding_rules(word: str, values: Any, multiple_of: int | None, length: int | None,
                  side: str) -> list[tuple[str | None, float, bool, int | None, int]]:
    """How each field is padded: one rule for all of them, or one per field."""
    choice(word, "side", side, ("right", "left"))
    multiple = whole_or_none(word, "multiple_of", multiple_of, least=1) or 1
    exact = whole_or_none(word, "length", length)
    by_path = values.items() if isinstance(values, dict) else [(None, values)]
    return [(None if path is None else text(word, "values", path),
             float(number(word, "values", value)), side == "left", exact, multiple)
            for path, value in by_path]
