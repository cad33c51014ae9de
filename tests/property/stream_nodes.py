"""The nodes of streams, the elements of their sources, and the results of their functions for a
row. See streams.py."""

from itertools import count
from typing import Iterator

from fields import row_kind, total_of
from model import SINGLE, Node, Row, draws, integer, random_key, source, wrap
from packing import packed_fields, rewritten

ID_SPACE = 2**48  # ids reserved for the rows of a node that numbers them as they are pulled
EXPANDING = ("flat_map", "interleave", "unbatch_samples")
PAIR = [("0", "i64"), ("1/k", "i64")]


def makes_stream(spec: dict) -> bool:
    unmasked = spec["op"] in ("filter", "take_while") and not spec.get("mask")
    return unmasked or spec["op"] in ("generator", "scan") or spec["op"] in EXPANDING


def hatched(spec: dict) -> dict:
    """The source in the dataset that an element opens; only the element `x` tells how large."""
    x = spec.get("x", spec["most"] - 1)
    size, salt = x % spec["most"], x % 1000
    if spec["of"] == "range":
        return {"op": "range", "start": salt, "stop": salt + size, "step": 1}
    return spec["generator"] | {"op": "generator", "element": "int", "size": size, "salt": salt}


def with_element(inner: dict, x: int) -> dict:
    """The dataset that element x opens. A nested one is opened by its own elements."""
    if inner["op"] == "hatch":
        return inner | {"x": x}
    return inner | {"input": with_element(inner["input"], x)}


def elements(spec: dict) -> tuple:
    """The fields of a generator, and its element k in a turn."""
    kind, salt = spec["element"], spec["salt"]
    shift = lambda pass_, round_: 7 * pass_ + 11 * round_ if spec.get("turned") else 0
    if kind == "int":
        return SINGLE, lambda k, *turn: (wrap(5 * k + salt + shift(*turn)),)
    if kind == "tuple":
        fields = [("0", "i64"), ("1", "i64")]
        return fields, lambda k, *turn: (wrap(k - salt + shift(*turn)), k * k)
    _, fields, values = source({"size": 0, "rows": 0} | spec | {"op": kind})
    return fields, lambda k, *turn: values(k)


class StreamNode(Node):
    """stream: it, or a node below it, numbers its rows as they are pulled; turns: rounds of the
    batch below in one round of this node; leaving: a row that fails here leaves the stream, since
    a node above needs it before it can count; otherwise it leaves only its share."""

    def __init__(self, spec: dict, offset: int, leaves: Iterator[int], randoms: Iterator[int]):
        spec = hatched(spec) if spec["op"] == "hatch" else rewritten(spec)
        if spec["op"] == "generator":
            self.spec, self.op, self.offset, self.inputs = spec, spec["op"], offset, []
            self.fields, self.values = elements(spec)
            self.id_space, self.rounds, self.elastic = ID_SPACE, 1, False
            self.source = next(leaves)
        else:
            super().__init__(spec, offset, leaves, randoms)
        if self.op in EXPANDING:
            self.id_space, self.rounds, self.source = ID_SPACE, 1, next(leaves)
        if self.op == "pack":
            self.id_space, self.source = 0, next(leaves)  # StreamModel.place counts the rows
            self.fields = packed_fields(spec)
        if self.op == "spread":
            spread_fields = SINGLE if spec["shape"] == "int" else PAIR
            self.fields = [(path, f"{kind}[]") for path, kind in spread_fields]
        elif self.op == "unbatch_samples":
            self.fields = [(path, row_kind(kind)) for path, kind in self.fields]
        elif self.op in ("flat_map", "interleave"):
            self.fields = StreamNode(spec["inner"], 0, count(), count()).fields
        self.stream = makes_stream(spec) or any(part.stream for part in self.inputs)
        self.turns = self.inputs[0].turns if self.inputs else 1
        if self.op == "repeat":
            self.turns *= self.count
        elif self.op == "batch":
            self.turns = 1
        self.leaving = self.edge = False

    def settle(self, leaving: bool, into_stream: bool = False) -> "StreamNode":
        """Sets for every node below whether its failed rows leave the stream."""
        self.leaving, self.edge = leaving, into_stream and not self.stream
        joins_stream = self.op in ("concatenate", "zip", "enumerate") and self.stream
        needs_rows = makes_stream(self.spec) and self.op != "generator"
        for part in self.inputs:
            part.settle(leaving or joins_stream or needs_rows, self.stream)
        return self


def total(node: Node, row: Row) -> int:
    """The number that decides about a row: the sum of its integers."""
    return wrap(total_of(row.values, node.fields))


def throws(node: Node, row: Row) -> bool:
    divisor, rest = node.spec.get("faulty", (1, 1))
    return total(node, row) % divisor == rest


def passes(node: Node, pass_: int, row: Row) -> bool:
    spec = node.spec
    if spec["fn"] == "random":
        key = random_key(spec["seed"], node.ordinal, pass_, row.occurrence, row.source)
        return integer(draws(key, row.number), spec["range"]) < spec["below"]
    return total(node, row) % spec["divisor"] != spec["rest"]


def spread(node: Node, row: Row) -> tuple:
    """An element that contains several rows, or none."""
    x = total(node.inputs[0], row)
    ascending = [wrap(x + i) for i in range(x % node.spec["most"])]
    if node.spec["shape"] == "int":
        return (ascending,)
    return ascending, [i * i for i in range(len(ascending))]
