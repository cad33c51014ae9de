"""Random trees with streams, with masks, selections and splits, and with functions that fail.

The number of rows that pass a filter is unknown before running: the maker runs the model, with
shuffles that keep the order, so sizes are estimates here. Cases that the engine rejects are not
drawn, nor undefined ones, such as failing functions below a selection or below an unbatch.
"""

import random
from dataclasses import replace
from itertools import islice

from cases import Maker, Part, walk
from fields import RAGGED_FIELDS
from model import is_known
from stream_nodes import makes_stream
from streams import Overrun, StreamModel, first_part

STREAM_ROWS_MAX = 3_000  # of a part
LENGTH_MAX = 40  # of an array
LOOKED_AT_MAX = 40_000  # rows that a model may compute for an estimate
PAIR_SHAPE = ("zip", ("int",), ("int",))  # of a generator of tuples
ELEMENTS = {("int",): "int", PAIR_SHAPE: "tuple", ("pairs",): "pairs", ("slices",): "slices",
            **{(kind,): kind for kind in RAGGED_FIELDS}}
SAMPLES = {"map": 16, "faulty": 16, "mask": 27, "shuffle": 12, "repeat": 8, "endless": 4, "take": 7,
           "skip": 6, "shard": 6, "cache": 6, "prefetch": 7, "select": 20, "split": 8}
STREAMED = {"filter": 17, "take_while": 8, "scan": 15, "flat_map": 15, "interleave": 18,
            "unrows": 8}
INNER = {"map": 7, "shuffle": 8, "filter": 8, "take_while": 4, "repeat": 10, "take": 8, "skip": 10,
         "faulty": 12, "flat_map": 9, "scan": 7, "prefetch": 3}
ENDLESS = {"map": 4, "filter": 5, "shuffle": 4, "skip": 2, "shard": 2, "interleave": 2}


def in_order(size: int, *_) -> list[int]:
    return list(range(size))


def nodes(node: dict) -> list[dict]:
    """All nodes, including those of the datasets that elements open."""
    found = [each for each, _ in walk(node)]
    return found + [deep for each in found if "inner" in each for deep in nodes(each["inner"])]


def is_stream(node: dict) -> bool:
    return any(makes_stream(each) or each.get("of") == "generator" for each, _ in walk(node))


def has_mask(node: dict) -> bool:
    return any(each.get("mask") for each in nodes(node))


def has_whole(node: dict) -> bool:
    return any(each.get("form") == "whole" for each in nodes(node))


def has_faulty(node: dict) -> bool:
    return any("faulty" in each for each in nodes(node))


def reshuffles(node: dict) -> bool:
    return any(each.get("reshuffle") for each in nodes(node))


def copies_samples(node: dict) -> bool:
    return any(each["op"] == "repeat" and each["count"] not in (0, 1)
               or each.get("tail") == "wrap" for each in nodes(node))


class StreamMaker(Maker):
    depth_ops = (*Maker.depth_ops, "mask", "flat_map", "interleave", "unrows")

    def __init__(self, rng: random.Random):
        super().__init__(rng)
        self.streamed = self.chance(0.82)
        self.failing = self.chance(0.45)
        self.nested = False  # inside a dataset that an element opens
        self.rows_max = STREAM_ROWS_MAX
        self.elements = [shape for shape in ELEMENTS if shape[0] not in RAGGED_FIELDS]
        self.ragged_inner = 0.0  # how often the elements of such a dataset are arrays

    def size(self) -> int:
        if self.chance(0.02):
            return 0
        low, high = self.rng.choices([(1, 30), (20, 400), (300, 1_500)], [20, 65, 15])[0]
        return self.log_uniform(low, high)

    def shape(self, depth: int = 2) -> tuple:
        if self.streamed and self.chance(0.05):
            return PAIR_SHAPE
        return ("int",) if self.chance(0.2) else super().shape(depth)

    def batch_size(self) -> int:
        return self.log_uniform(1, 150 if self.chance(0.1) else 40)

    def measured(self, part: Part, **node) -> Part | None:
        """This part with an op whose number of rows is unknown before running."""
        taller = part.over([], **node)
        model = StreamModel({"dataset": taller.node, "epochs": 1}, in_order, LOOKED_AT_MAX)
        model.batch = self.batch
        try:
            rows = sum(1 for _ in islice(model.items(model.top, 0, 0), self.rows_max + 1))
        except Overrun:
            return None
        if rows > self.rows_max and self.rows_max == STREAM_ROWS_MAX:
            return None
        return replace(taller, sizes=[1] * rows, work=part.work + rows)

    # Sources.

    def source(self, shape: tuple) -> Part:
        if not self.streamed or (shape != PAIR_SHAPE and self.chance(0.4)):
            return super().source(shape)
        return self.endless_source(shape) if self.chance(0.2) else self.generator(shape)

    def generator(self, shape: tuple, endless: bool = False) -> Part:
        element, size = ELEMENTS[shape], self.size()
        typed = element == "tuple" or (element == "int" and self.chance(0.7))
        node = {"op": "generator", "element": element, "form": "typed" if typed else "sample",
                "size": -1 if endless else size, "salt": self.rng.randint(0, 999),
                "cursor": self.chance(0.5), "turned": self.chance(0.3)}
        if not typed:
            node["declared"] = self.chance(0.5)
        if element in RAGGED_FIELDS:
            node |= self.lengths()
        return Part(node, shape, [1] * size, size)

    def lengths(self) -> dict:
        """Lengths below `most`, which may differ only after `every` elements."""
        return {"most": self.rng.choices([1, 2, 3, 6, 10, 14, LENGTH_MAX],
                                         [2, 6, 14, 25, 25, 20, 8])[0],
                "every": self.rng.choices([1, 3, 50, 400], [60, 10, 15, 15])[0]}

    def endless_source(self, shape: tuple) -> Part:
        """An endless generator, and a verb that ends it."""
        part = self.prefix(self.generator(shape, endless=True))
        if self.chance(0.3) and (ended := self.take_while(part)):
            return ended
        return self.over_take(part, self.rng.randint(0, len(part.sizes)))

    def over_take(self, part: Part, count: int) -> Part:
        return part.over(part.sizes[:count], op="take", count=count)

    def prefix(self, part: Part) -> Part:
        """Ops on endless data, modeled by its first rows."""
        self.rows_max = max(1, len(part.sizes))
        part = self.grow(part, self.rng.randint(0, 2), ENDLESS, 1)
        self.rows_max = STREAM_ROWS_MAX
        return part

    def base(self, shape: tuple, depth: int) -> Part:
        if shape == PAIR_SHAPE and self.streamed and self.chance(0.5):
            return self.source(shape)
        part = super().base(shape, depth)
        others = [i for i, each in enumerate(shape[1:]) if each in ELEMENTS]
        if shape[0] == "zip" and self.streamed and others and self.chance(0.3):
            i = self.rng.choice(others)  # endless data ends with the other part
            part.node["inputs"][i] = self.generator(shape[1 + i], endless=True).node
        return part

    def samples(self, shape: tuple, ops: int, depth: int = 0) -> Part:
        weights = SAMPLES | (STREAMED if self.streamed else {}) | {
            "concatenate": 8 / (1 + depth), "unbatch": 6 / (1 + depth)}
        return self.grow(self.base(shape, depth), ops, weights, depth)

    # Predicates.

    def predicate(self, part: Part, divisors: tuple[int, int]) -> dict:
        """A predicate that rejects about one in `divisors`."""
        node = {"form": "sample", "mask": False}
        if part.shape in (("int",), PAIR_SHAPE) and self.chance(0.85):
            node |= {"form": "typed", "args": len(part.shape) // 2 + 1}
        divisor = self.rng.randint(*divisors)
        if self.chance(0.35):
            range_ = self.rng.choice([divisor, 2**20 * divisor, 2**62 + divisor])
            below = range_ - range_ // divisor
            return node | {"fn": "random", "seed": self.seed(), "range": range_, "below": below}
        return node | {"fn": "rest", "divisor": divisor, "rest": self.rng.randrange(divisor)}

    def fault(self) -> list[int]:
        """[divisor, rest] of the numbers for which a function throws."""
        divisor = self.rng.randint(5, 60)
        return [divisor, self.rng.randrange(divisor)]

    def filter(self, part: Part, op: str = "filter", divisors: tuple = (2, 7)) -> Part | None:
        if part.batched or has_mask(part.node):
            return None
        node = self.predicate(part, divisors)
        if self.failing and self.chance(0.6):
            node["faulty"] = self.fault()
        return self.measured(part, op=op, **node)

    def take_while(self, part: Part) -> Part | None:
        return self.filter(part, "take_while", (30, 600))

    def scan(self, part: Part) -> Part | None:
        if part.batched or has_mask(part.node) or not self.fits_scan(part):
            return None
        node = {"start": self.number(), "declared": True}
        if part.shape != ("int",):
            node |= self.declared(part, "sample")
        if self.failing and self.chance(0.8):
            node["faulty"] = self.fault()
        return self.measured(part, op="scan", **node)

    def fits_scan(self, part: Part) -> bool:
        return part.shape == ("int",)

    def mask(self, part: Part, depth: int) -> Part | None:
        if part.batched or depth > 0 or is_stream(part.node):
            return None
        return part.over(part.sizes, op="filter", **self.predicate(part, (2, 7)) | {"mask": True})

    def select(self, part: Part) -> Part | None:
        below = part.node
        if is_stream(below) or has_mask(below) or has_faulty(below) or reshuffles(below):
            return None
        return self.measured(part, op="select", **self.predicate(part, (2, 7)))

    def split(self, part: Part) -> Part | None:
        """Not if copies of a sample could be in both parts, nor if one would be empty."""
        below = part.node
        if is_stream(below) or reshuffles(below) or copies_samples(below):
            return None
        fraction = self.rng.choice([0.1, 0.25, 0.5, 0.5, 0.8, 0.9, self.rng.random()])
        ops = {each["op"] for each in nodes(below)}
        if "select" in ops and "shuffle" in ops:
            return None  # the size of such a part is an estimate
        if not 0 < first_part(len(part.sizes), fraction) < len(part.sizes):
            return None
        seed, half = self.seed(), self.rng.randrange(2)
        return self.measured(part, op="split", fraction=fraction, seed=seed, half=half)

    # One element to several.

    def flat_map(self, part: Part, depth: int) -> Part | None:
        return self.expanded(part, depth, op="flat_map")

    def interleave(self, part: Part, depth: int) -> Part | None:
        cycle = self.rng.choice([1, 2, 2, 3, 5, 16])
        block = self.rng.choice([1, 1, 2, 3, 8])
        return self.expanded(part, depth, op="interleave", cycle=cycle, block=block)

    def expanded(self, part: Part, depth: int, **node) -> Part | None:
        single = part.shape == ("int",)
        if has_mask(part.node) or not (single or depth == 0):
            return None
        inner = {"op": "hatch", "of": self.rng.choice(["range", "generator"]),
                 "most": self.rng.randint(1, 9)}
        if inner["of"] == "generator":
            inner["generator"] = {"form": "typed", "cursor": self.chance(0.5),
                                  "turned": self.chance(0.3)}
        opened = Part(inner, ("int",), [1] * (inner["most"] - 1), inner["most"])
        if not self.nested:
            self.nested = True
            opened = self.grow(opened, self.rng.randint(0, 4), INNER, 1)
            self.nested = False
            if depth == 0 and self.chance(self.ragged_inner):
                opened = self.spread(opened)
                node["ragged"] = True
        node |= {"inner": opened.node, "declared": self.chance(0.6),
                 "form": "typed" if single and self.chance(0.65) else "sample"}
        part = self.measured(part, **node)
        return part and replace(part, shape=opened.shape)

    def spread(self, part: Part) -> Part:
        """Arrays whose length depends on a number."""
        node = {"most": self.rng.randint(1, 6), "shape": "int", "declared": self.chance(0.5)}
        return replace(part.over(part.sizes, op="spread", **node), shape=("spread",))

    def unrows(self, part: Part, depth: int) -> Part | None:
        """Elements that contain rows, and the rows."""
        if has_mask(part.node) or not (part.shape == ("int",) or depth == 0):
            return None
        shape = "pairs" if depth == 0 and self.chance(0.4) else "int"
        part = part.over(part.sizes, op="spread", most=self.rng.randint(1, 6), shape=shape,
                         declared=self.chance(0.5))
        if self.chance(0.4):
            part = self.grow(part, 1, {"shuffle": 2, "take": 1, "shard": 1, "repeat": 1}, 1)
        part = self.measured(part, op="unbatch_samples")
        return part and replace(part, shape=(shape,))

    # Ops that streams reject, or that are not defined.

    def shuffle(self, part: Part) -> Part | None:
        stream = is_stream(part.node)
        if part.batched or not (stream or self.chance(0.4)):
            return None if part.batched and stream else super().shuffle(part)
        length = len(part.sizes)
        window = self.rng.choice([1, 2, self.rng.randint(2, 12), self.rng.randint(5, 64),
                                  max(1, length - 1), max(1, length), length + 3])
        return part.over(part.sizes, op="shuffle", seed=self.seed(), window=window,
                         reshuffle=self.chance(0.6))

    def tails(self, part: Part) -> dict:
        """For a stream only policies that do not need its length."""
        if not is_stream(part.node):
            return super().tails(part)
        return {"short": 45, "drop": 35, "pad": 20}

    def cache(self, part: Part) -> Part | None:
        return None if is_stream(part.node) else super().cache(part)

    def map(self, part: Part) -> Part | None:
        """After a mask the spec must be known, since all rows may be left out."""
        if has_mask(part.node) and not is_known(part.node):
            return None
        return super().map(part)

    def declared(self, part: Part, form: str) -> dict:
        masked = form == "sample" and has_mask(part.node)
        return {"declared": True} if masked else super().declared(part, form)

    def whole(self, part: Part) -> Part | None:
        return None if has_mask(part.node) or has_faulty(part.node) else super().whole(part)

    def faulty(self, part: Part) -> Part | None:
        single = part.shape == ("int",)
        row_wise = part.batched and not single
        if not self.failing or (row_wise and not self.fits_row_wise(part)):
            return None
        if has_mask(part.node) and not is_known(part.node):
            return None
        form = "typed" if single and (part.batched or self.chance(0.65)) else "sample"
        node = {"form": form, "fn": "faulty", "faulty": self.fault()}
        if row_wise:
            node["row_wise"] = True
        return part.over(part.sizes, op="map", **node, **self.declared(part, form))

    def fits_row_wise(self, part: Part) -> bool:
        """Whether a function of a sample may be a map of steps."""
        return False

    def unbatch(self, part: Part, depth: int) -> Part | None:
        if has_faulty(part.node):
            return None
        part = super().unbatch(part, depth)
        return None if has_faulty(part.node) else part

    def concatenate(self, part: Part, depth: int) -> Part | None:
        part = super().concatenate(part, depth)
        if not (part.batched and is_stream(part.node)):
            return part
        # In a stream of steps no part may need the number of samples.
        asks = any(each.get("tail") in ("even", "wrap", "strict") for each in nodes(part.node))
        return None if asks or has_faulty(part.node) else part
