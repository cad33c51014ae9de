"""The fields of elements, and how the rows of a field become a field of a batch.

A kind is a dtype and a shape: "i64", "f32[3]", or with an open first size "i32[]" and "i64[,2]".
Values are numbers, lists of them, or lists of lists; text is written as hex digits. A row without
a sample is None until it is known what the batch makes of it.

A field with an open size is ragged in a batch, unless the batch pads it. If the spec of the
elements is unknown before running, all sizes are learned from the data: then a field is a tensor
until the first batch in which its sizes differ, and ragged from that batch on.
"""

from functools import lru_cache
from itertools import accumulate
from typing import Any, Callable

Fields = list  # of (path, kind)


def is_array(kind: str) -> bool:
    return "[" in kind


def is_open(kind: str) -> bool:
    return "[]" in kind or "[," in kind


def inner_size(kind: str) -> int:
    """The second size; 0 if there is none."""
    return int(kind.partition(",")[2][:-1] or 0)


def row_kind(kind: str) -> str:
    """The kind of one row of a value, which has an open size."""
    return kind.replace("[,", "[").replace("[]", "")


def zero(kind: str, length: int | None = None) -> Any:
    """A value of zeros; `length` is its first size, if that is not fixed."""
    if not is_array(kind):
        return "" if kind == "bytes" else 0
    if length is None:
        length = 0 if is_open(kind) else int(kind.partition("[")[2][:-1])
    return [[0] * inner_size(kind) if inner_size(kind) else 0 for _ in range(length)]


def each_number(value: Any, change: Callable[[int], int]) -> Any:
    if isinstance(value, list):
        return [each_number(part, change) for part in value]
    return change(value)


def on_integers(values: tuple, fields: Fields, change: Callable[[int], int]) -> tuple:
    """Changes every i64 and copies the rest."""
    if len(values) == 1 and fields[0][1] == "i64":
        return (change(values[0]),)
    typed = zip(values, fields)
    return tuple(each_number(x, change) if kind[:3] == "i64" else x for x, (_, kind) in typed)


def sum_of(value: Any) -> int:
    return sum(map(sum_of, value)) if isinstance(value, list) else value


def total_of(values: tuple, fields: Fields) -> int:
    """The sum of all integers of an element, without the overflow of 64 bits."""
    if len(values) == 1 and isinstance(values[0], int):
        return values[0]
    typed = zip(values, fields)
    return sum(sum_of(x) for x, (_, kind) in typed if kind[:3] in ("i64", "i32"))


def resized(values: tuple, fields: Fields, length: int) -> tuple:
    """Every array of integers with another first size: rows from the start on, again and again."""
    def with_length(rows: list, kind: str) -> list:
        if not rows:
            return zero(kind, length)
        return [rows[i % len(rows)] for i in range(length)]
    integers = lambda kind: is_array(kind) and kind[:3] in ("i64", "i32")
    return tuple(with_length(x, kind) if integers(kind) else x
                 for x, (_, kind) in zip(values, fields))


# Elements of sources.

RAGGED_FIELDS = {
    "ragged": [("a", "i64[,2]"), ("m", "i64[]"), ("t", "i32[]"), ("x", "i64")],
    "tokens": [("", "i32[]")],
    "wide": [("", "i64[,2]")],
}


@lru_cache(maxsize=16)
def ragged_values(op: str, salt: int, most: int, every: int) -> Callable[[int], tuple]:
    """Element i of the sources of arrays: their lengths change after every `every` elements."""
    length = lambda i: (i // every * 5 + salt) % most
    tokens = lambda i: [(i * 31 + j * 7 + salt) % 50_000 for j in range(length(i))]
    wide = lambda i, rows: [[i - j, i * j + salt] for j in range(rows)]
    mask = lambda i: [(i + j) % 3 for j in range(length(i))]
    ragged = lambda i: (wide(i, (i // every + salt) % 4), mask(i), tokens(i), i * 7 + salt)
    elements = {"tokens": lambda i: (tokens(i),), "wide": lambda i: (wide(i, length(i)),)}
    return lru_cache(maxsize=4096)(elements.get(op, ragged))


# Batches.


def rule_of(padding: dict | None, path: str) -> dict | None:
    """How a field is padded, if it is."""
    if padding is None:
        return None
    return padding["fields"].get(path, padding["all"])


def padded(rows: list, kind: str, rule: dict) -> tuple[list, int]:
    """Rows of one length, and the length: the longest, or the one that the rule names, rounded up.
    """
    longest = max((len(row) for row in rows if row is not None), default=0)
    width = rule.get("length", longest)
    width += -width % rule["multiple_of"]
    filler = [rule["value"]] * inner_size(kind) if inner_size(kind) else rule["value"]
    sides = {"left": lambda row, more: more + row, "right": lambda row, more: row + more}
    fill = lambda row: sides[rule["side"]](row, [filler] * (width - len(row)))
    return [fill(row or []) for row in rows], width


def form_shares(shares: list[dict], fields: Fields, padding: dict | None, learned: bool) -> None:
    """Makes batches of the shares of a step. `forms` says for each array or text how its rows are
    stored: as a "tensor" of `width`, "ragged", or "either" if that depends on what a loader has
    learned."""
    for share in shares:
        share["forms"] = {}
        for path, kind in fields:
            rows = share["fields"][path]
            rule = rule_of(padding, path) if is_array(kind) else None
            opened = is_open(kind) or (learned and is_array(kind))
            form = {"kind": kind, "lengths": [len(row or []) for row in rows] if opened else None}
            if opened and rule:
                rows, form["width"] = padded(rows, kind, rule)
                form["form"] = "tensor"
            elif opened:
                form["form"] = "either" if learned else "ragged"
                if not learned:
                    rows = [row or [] for row in rows]
            else:
                form["form"] = "ragged" if kind == "bytes" else "tensor"
                rows = [zero(kind) if row is None else row for row in rows]
                form["width"] = len(zero(kind)) if is_array(kind) else None
                form["lengths"] = [form["width"]] * len(rows) if is_array(kind) else []
            share["fields"][path] = rows
            if is_array(kind) or kind == "bytes":
                share["forms"][path] = form


def view_of(rows: list, form: dict) -> dict:
    """The view of a field that a batch must return."""
    kind = form["kind"]
    inner = [inner_size(kind)] if inner_size(kind) else []
    if form["form"] == "tensor":
        return {"shape": [len(rows), form["width"], *inner], "lengths": form["lengths"]}
    unit = 2 if kind == "bytes" else 1  # hex digits of a character
    offsets = [0, *accumulate(len(row) // unit for row in rows)]
    return {"shape": [offsets[-1], *inner], "lengths": form["lengths"], "offsets": offsets}


class Learned:
    """What a loader must know about the sizes of its undeclared fields: a field is ragged from the
    first batch on in which a size differs from that of the first sample, or is padded."""

    def __init__(self, masked: bool, whole: bool):
        self.masked = masked  # a masked row may be the first sample
        self.whole = whole  # rows of one size that a function of whole batches returns are a tensor
        self.sizes: dict[str, set] = {}
        self.opened: dict[str, bool] = {}
        self.certain = None  # whether a row of this loader was the first sample

    def settle(self, got: list[dict], want: list[dict]) -> str | None:
        """Decides the form of every field in the shares of a loader's step; returns an error."""
        if self.certain is None:
            self.certain = not self.masked and any(1 in share["valid"] for share in want)
        for path in want[0]["forms"]:
            forms = [share["forms"][path] for share in want]
            views = [share["forms"].get(path) for share in got]
            if forms[0]["form"] != "either":
                padded_field = forms[0]["form"] == "tensor"
                self.opened[path] = self.opened.get(path, False) or padded_field
                continue
            seen = self.sizes.setdefault(path, set())
            for share in want:
                seen |= {len(row) for row in share["fields"][path] if row is not None}
            ragged = ["offsets" in view for view in views if view]
            if len(set(ragged)) > 1:
                return f': field "{path}" is ragged in some shares of a loader and not in others'
            must = self.opened.get(path) or len(seen) > 1
            here = {len(row) for share in want for row in share["fields"][path] if row is not None}
            may_be_one = self.whole and len(here) <= 1
            if ragged and must and not ragged[0] and not may_be_one:
                return f': field "{path}" is a tensor, but its sizes have differed'
            if ragged and ragged[0] and not must and self.certain:
                return f': field "{path}" is ragged, but its sizes have not differed'
            self.opened[path] = must or any(ragged)
            for share, form, view in zip(want, forms, views):
                learn_form(share, path, form, view)
        return None


def learn_form(share: dict, path: str, form: dict, view: dict | None) -> None:
    """The form that a loader has learned, as far as the engine may choose it."""
    rows = share["fields"][path]
    if view is None or "offsets" in view:
        form["form"] = "ragged"
        share["fields"][path] = [row or [] for row in rows]
        return
    form["form"] = "tensor"
    sizes = [len(row) for row in rows if row is not None]
    form["width"] = sizes[0] if sizes else view["shape"][1]
    form["lengths"] = [form["width"]] * len(rows)
    empty = zero(form["kind"], form["width"])
    share["fields"][path] = [empty if row is None else row for row in rows]
