"""Samples of similar lengths in one step, and documents in rows of one length.

`rewritten` replaces both verbs by trees of simpler nodes. A bucket is a choice by length, shuffled
and batched; the steps of all buckets follow each other, and are shuffled. Documents are shuffled
within blocks, and the rows as a whole. `pack_rows` is a naive pack: it restates the rule of
src/order/packing.cc for which documents share a row (best fit, longest first, in blocks of 4096
documents), and checks that every token appears exactly once.
"""

from bisect import bisect_left, insort
from typing import Callable, Iterator

BLOCK_DOCUMENTS = 4096
NO_LABEL = -100


def is_whole_shuffle(spec: dict) -> bool:
    return spec["op"] == "shuffle" and not spec.get("window") and not spec.get("blocks")


def bucket_sizes(spec: dict) -> list[tuple[int, int, int]]:
    """(lengths from, lengths below, samples of a step) of each bucket."""
    boundaries, sizes = spec["boundaries"], spec.get("batch_sizes")
    if "max_tokens" in spec:
        most = spec["max_tokens"]
        if not boundaries:
            boundaries, end = [], 9
            while end <= most:
                boundaries.append(end)
                end += max(1, end // 4)
            boundaries.append(most + 1)
        sizes = [most // max(1, end - 1) for end in boundaries]
    lows = [0, *boundaries]
    highs = [*boundaries, 2**64]
    return list(zip(lows, highs, sizes))


def rewritten(spec: dict) -> dict:
    """The tree of simpler nodes that a node of this file stands for; or the node itself."""
    if spec["op"] == "pack" and "shuffle" not in spec and is_whole_shuffle(spec["input"]):
        shuffle = spec["input"]
        rows = spec | {"shuffle": shuffle, "input": shuffle["input"]}
        return shuffle | {"input": rows}
    if spec["op"] != "bucket":
        return spec
    samples = spec["input"]
    shuffle = samples if is_whole_shuffle(samples) else None
    samples = samples["input"] if shuffle else samples
    parts = []
    for low, high, size in bucket_sizes(spec):
        part = {"op": "in_bucket", "low": low, "high": high, "field": spec["field"],
                "input": samples}
        if shuffle:
            part = shuffle | {"input": part}
        batch = {"op": "batch", "size": size, "tail": spec["tail"], "input": part}
        parts.append(batch | ({"padding": spec["padding"]} if spec["padding"] else {}))
    joined = {"op": "concatenate", "buckets": True, "inputs": parts} if parts[1:] else parts[0]
    return shuffle | {"input": joined} if shuffle else joined


# Packing.


def packed_fields(spec: dict) -> list:
    sizes = f"[{spec['length']}]"
    ends = [("cu_seqlens", "i32[]")] if spec["cu_seqlens"] else []
    return ends + [("document", "i32" + sizes), ("labels", "i64" + sizes),
                   ("positions", "i32" + sizes), ("tokens", "i32" + sizes)]


class Document:
    """The tokens of a document with its separator, and for each one the label."""

    def __init__(self, spec: dict, tokens: list, mask: list | None):
        ended = tokens + ([spec["separator"]] if tokens and spec["separator"] is not None else [])
        self.tokens = ended
        self.labels = [*ended[1:], NO_LABEL][: len(ended)]
        for i, predicted in enumerate(mask or []):
            if i > 0 and predicted == 0:
                self.labels[i - 1] = NO_LABEL


def pieces_of(spec: dict, number: int, size: int) -> Iterator[tuple]:
    """(document, first token, end) of what best_fit keeps in one piece."""
    length = spec["length"]
    if size > length and spec["too_long"] == "drop":
        return
    for first in range(0, size, length):
        yield number, first, min(size, first + length)
        if spec["too_long"] == "cut":
            return


def pack_block(spec: dict, sizes: list[int], order: list[int]) -> list[list[tuple]]:
    """The rows of a block: lists of (document, first token, end)."""
    length = spec["length"]
    if spec["how"] == "stream":
        stream = [(number, i) for number in order for i in range(sizes[number])]
        rows = []
        for at in range(0, len(stream), length):
            row: list[tuple] = []
            for number, i in stream[at : at + length]:
                if row and row[-1][0] == number:
                    row[-1] = (number, row[-1][1], i + 1)
                else:
                    row.append((number, i, i + 1))
            rows.append(row)
        return rows
    pieces = [piece for number in order for piece in pieces_of(spec, number, sizes[number])]
    pieces.sort(key=lambda piece: piece[1] - piece[2])  # stable: the longest first
    rows: list[list[tuple]] = []
    spaces: list[tuple[int, int]] = []  # (free tokens, row), the least first
    for piece in pieces:
        size = piece[2] - piece[1]
        best = bisect_left(spaces, (size, 0))
        if best < len(spaces):
            space, row = spaces.pop(best)
        else:
            space, row = length, len(rows)
            rows.append([])
        rows[row].append(piece)
        insort(spaces, (space - size, row))
    return rows


def check_tokens(spec: dict, sizes: list[int], rows: list[list[tuple]]) -> None:
    """Every token of a document appears exactly once, except of those cut or dropped."""
    ends = [0] * len(sizes)  # of the pieces found so far
    for number, first, end in sorted(piece for row in rows for piece in row):
        if first != ends[number]:
            raise ValueError(f"packing loses or repeats token {first} of document {number}")
        ends[number] = end
    for number, (size, end) in enumerate(zip(sizes, ends)):
        if spec["how"] == "best_fit" and spec["too_long"] != "split" and size > spec["length"]:
            size = spec["length"] if spec["too_long"] == "cut" else 0
        if end != size:
            raise ValueError(f"document {number} has {size} tokens, {end} of them are packed")


def written(spec: dict, documents: list[Document], row: list[tuple]) -> tuple:
    """The values of a packed row, in the order of packed_fields."""
    tokens, labels, positions, document, ends = [], [], [], [], [0]
    for place, (number, first, end) in enumerate(row):
        tokens += documents[number].tokens[first:end]
        labels += documents[number].labels[first:end]
        positions += range(end - first)
        document += [place] * (end - first)
        ends.append(len(tokens))
    free = spec["length"] - len(tokens)
    values = (document + [-1] * free, labels + [NO_LABEL] * free, positions + [0] * free,
              tokens + [spec["pad"]] * free)
    return ((ends,) if spec["cu_seqlens"] else ()) + values


def pack_rows(spec: dict, documents: list[Document],
              order: Callable[[int, int], list[int]]) -> Iterator[tuple]:
    """The values of all rows; `order(size, block)` is the order of the documents of a block."""
    for block in range(0, len(documents), BLOCK_DOCUMENTS):
        own = documents[block : block + BLOCK_DOCUMENTS]
        sizes = [len(document.tokens) for document in own]
        rows = pack_block(spec, sizes, order(len(own), block // BLOCK_DOCUMENTS))
        check_tokens(spec, sizes, rows)
        yield from (written(spec, own, row) for row in rows)
