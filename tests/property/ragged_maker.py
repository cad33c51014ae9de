"""Random trees whose elements have arrays of different lengths; padded, bucketed and packed.

Buckets and packing count the lengths of all samples before anything runs. Below them the maker
draws only what gives each sample the same length every time: indexed data without masks, without
functions that fail, without an order that changes, and without lengths that depend on random
numbers. Only the last shuffle before them may reshuffle.
"""

import random
from dataclasses import replace

from cases import Part, op_names
from fields import RAGGED_FIELDS, is_open
from model import is_known
from packing import BLOCK_DOCUMENTS
from stream_maker import LENGTH_MAX, SAMPLES, STREAMED, StreamMaker, has_mask, in_order, nodes
from stream_nodes import StreamNode
from streams import StreamModel

DOCUMENTS = {"map": 14, "resize": 10, "shuffle": 10, "repeat": 8, "take": 8, "skip": 6, "shard": 6,
             "cache": 6, "prefetch": 4, "select": 10, "split": 8, "endless": 4}


def fields_of(node: dict) -> list:
    return StreamNode(node, 0, iter(range(1000)), iter(range(1000))).fields


def has_random_map(node: dict) -> bool:
    return any(each["op"] == "map" and each.get("fn") == "random" for each in nodes(node))


def has_estimated_rows(node: dict) -> bool:
    """True if an order that only the engine knows decides about the number of packed rows."""
    ops = set(op_names(node))
    return "pack" in ops and bool({"split", "shuffle"} & ops)


def is_ragged(shape: tuple) -> bool:
    """True if elements of this shape have an open size."""
    if shape[0] == "packed":
        return shape[2]
    return shape[0] in (*RAGGED_FIELDS, "spread") or any(
        is_ragged(part) for part in shape[1:] if isinstance(part, tuple))


def has_arrays(shape: tuple) -> bool:
    return shape[0] == "packed" or is_ragged(shape) or any(
        has_arrays(part) for part in shape[1:] if isinstance(part, tuple))


class RaggedMaker(StreamMaker):
    def __init__(self, rng: random.Random):
        super().__init__(rng)
        self.elements = [(kind,) for kind in RAGGED_FIELDS]
        self.ragged_inner = 0.9
        self.counting = False  # lengths of all samples must be the same every time

    def size(self) -> int:
        return min(super().size(), self.rng.randint(100, 400))

    # Sources and shapes.

    def ragged_shape(self, depth: int = 1) -> tuple:
        kinds = {"ragged": 42, "tokens": 20, "wide": 14, "spread": 14, "zip": 18 * depth,
                 "enumerate": 20 * depth}
        kind = self.rng.choices(list(kinds), list(kinds.values()))[0]
        if kind == "zip":
            parts = [self.ragged_shape(0), self.shape(0)]
            self.rng.shuffle(parts)
            return ("zip", *parts)
        return (kind, self.ragged_shape(0)) if kind == "enumerate" else (kind,)

    def source(self, shape: tuple) -> Part:
        kind = shape[0]
        if kind not in RAGGED_FIELDS:
            return super().source(shape)
        if self.streamed and self.chance(0.5):
            return self.endless_source(shape) if self.chance(0.2) else self.generator(shape)
        size = self.size()
        node = {"op": kind, "size": size, "salt": self.rng.randint(0, 999)} | self.lengths()
        if kind == "ragged":
            node["declared"] = self.chance(0.5)
        return Part(node, shape, [1] * size, size)

    def base(self, shape: tuple, depth: int) -> Part:
        if shape[0] == "spread":
            part = self.samples(("int",), self.rng.randint(0, 2), depth + 1)
            if self.counting and has_random_map(part.node):
                part = self.source(("int",))
            return self.spread(part)
        if shape[0] == "packed":
            return self.pack(shape, depth)
        return super().base(shape, depth)

    def samples(self, shape: tuple, ops: int, depth: int = 0) -> Part:
        weights = {"concatenate": 10 / (1 + depth), "unbatch": 22 / (1 + depth)}
        if self.counting:
            weights |= DOCUMENTS
        else:
            weights |= SAMPLES | (STREAMED if self.streamed else {}) | {
                "faulty": 24, "resize": 14, "replay": 0 if self.streamed else 5 / (1 + depth)}
            if self.streamed and shape[0] != "packed":
                weights |= {"flat_map": 24, "interleave": 28, "take_while": 12,
                            "unbatch": 40 / (1 + depth)}
            elif shape[0] == "packed":
                weights |= {"cache": 28, "repeat": 16, "shuffle": 24, "concatenate": 20,
                            "map": 30, "faulty": 12}
        return self.grow(self.base(shape, depth), ops, weights, depth)

    def documents(self, shape: tuple, depth: int) -> Part:
        """Samples whose lengths can be counted."""
        kept = self.streamed, self.failing, self.counting
        self.streamed, self.failing, self.counting = False, False, True
        part = self.samples(shape, self.rng.randint(0, 3), depth + 1)
        self.streamed, self.failing, self.counting = kept
        return part

    # Maps.

    def fits_row_wise(self, part: Part) -> bool:
        return has_arrays(part.shape) and "'whole'" not in str(part.node)

    def fits_scan(self, part: Part) -> bool:
        return super().fits_scan(part) or has_arrays(part.shape)

    def map(self, part: Part) -> Part | None:
        if part.batched and has_arrays(part.shape):
            dense = not is_ragged(part.shape)
            return self.whole(part) if dense and self.chance(0.4) else self.rowwise(part)
        return super().map(part)

    def rowwise(self, part: Part) -> Part | None:
        if not has_arrays(part.shape):
            return super().rowwise(part)
        if not self.fits_row_wise(part) or (has_mask(part.node) and not is_known(part.node)):
            return None
        make = self.rng.choice([self.random, self.affine, self.resize_all])
        part = make(part, "sample")
        part.node["row_wise"] = True
        return part

    def resize(self, part: Part) -> Part | None:
        if part.batched:
            return self.rowwise(part)
        if not is_ragged(part.shape) or "'packed'" in str(part.shape):
            return None
        unknown = has_mask(part.node) and not is_known(part.node)
        if unknown or (self.counting and has_random_map(part.node)):
            return None
        return self.resize_all(part, "sample")

    def resize_all(self, part: Part, form: str) -> Part:
        if "'packed'" in str(part.shape) or (self.counting and has_random_map(part.node)):
            return self.affine(part, form)
        most = self.rng.randint(1, 9)
        return part.over(part.sizes, op="map", form=form, fn="resize", most=most,
                         **self.declared(part, form))

    def replay(self, part: Part, depth: int) -> Part | None:
        return None if has_mask(part.node) else super().replay(part, depth)

    def shuffle(self, part: Part) -> Part | None:
        part = super().shuffle(part)
        if part and self.counting:
            part.node["reshuffle"] = False
        return part

    def unrows(self, part: Part, depth: int) -> Part | None:
        shapes = {("tokens",): ("i32",), ("spread",): ("int",)}
        if depth > 0 or part.shape not in shapes or has_mask(part.node) or self.chance(0.3):
            return super().unrows(part, depth)
        rows = self.measured(part, op="unbatch_samples")
        return rows and replace(rows, shape=shapes[part.shape])

    def split(self, part: Part) -> Part | None:
        if has_estimated_rows(part.node):
            return None
        return super().split(part)

    # Batches.

    def tails(self, part: Part) -> dict:
        tails = super().tails(part)
        tails |= {"strict": 24} if "strict" in tails else {}
        if has_estimated_rows(part.node):
            tails.pop("strict", None)
        return tails

    def batched(self, part: Part, depth: int) -> Part:
        steps = super().batched(part, depth)
        if has_arrays(part.shape) and self.chance(0.45):
            steps.node["padding"] = self.padding(part)
            steps.node.pop("rebatch", None)
        return steps

    def padding(self, part: Part) -> dict:
        opened = [path for path, kind in fields_of(part.node) if is_open(kind)]
        named = [path for path in opened if self.chance(0.3)]
        return {"all": None if self.chance(0.2) else self.padding_rule(),
                "fields": {path: self.padding_rule() for path in named}}

    def padding_rule(self) -> dict:
        rule = {"value": self.rng.choice([0, self.rng.randint(-3, 9)]),
                "side": self.rng.choice(["left", "right"]),
                "multiple_of": self.rng.choice([1, 1, 1, 2, 4, 5, 8])}
        # No row is longer than this, nor has a packed row more documents.
        return rule | ({"length": LENGTH_MAX + self.rng.randint(0, 9)} if self.chance(0.2) else {})

    def bucket(self) -> Part:
        """Steps of samples of similar lengths."""
        part = self.documents(self.ragged_shape(), 0)
        if self.chance(0.6):
            part = self.whole_shuffle(part)
        paths = [path for path, kind in fields_of(part.node) if is_open(kind)]
        node = {"field": self.rng.choice(paths), "tail": self.rng.choice(
            ["short", "drop", "even", "pad", "wrap"])}
        node["padding"] = self.padding(part) if self.chance(0.6) else None
        if self.chance(0.5):
            longest = self.rng.choice([5, 14, LENGTH_MAX])
            some = range(1, longest)
            count = min(len(some), self.rng.choice([0, 1, 2, 3, 4]))
            node["boundaries"] = sorted(self.rng.sample(some, count))
            node["batch_sizes"] = [self.log_uniform(1, 24) for _ in range(count + 1)]
        else:
            node["max_tokens"] = self.rng.randint(LENGTH_MAX - 1, 120)
            last = self.rng.randint(LENGTH_MAX, node["max_tokens"] + 1)
            node["boundaries"] = [] if self.chance(0.6) else sorted(
                {*self.rng.sample(range(1, LENGTH_MAX), self.rng.randint(0, 4)), last})
        steps = part.over([], op="bucket", **node)
        model = StreamModel({"dataset": steps.node, "epochs": 1}, in_order)
        model.batch = self.batch
        sizes = [len(step.rows) for step in model.items(model.top, 0, 0)]
        return replace(steps, sizes=sizes, work=part.work + sum(sizes), batched=True)

    # Packing.

    def packed_shape(self) -> tuple:
        return ("packed", self.log_uniform(1, LENGTH_MAX - 1), self.chance(0.25))

    def pack(self, shape: tuple, depth: int) -> Part:
        """Rows of one length; sometimes of several blocks of documents."""
        _, length, cu_seqlens = shape
        large = depth == 0 and length > 8 and self.chance(0.4)
        if large:
            part = self.many_documents()
        else:
            kinds = [("tokens",), ("ragged",), ("ragged",), ("zip", ("int",), ("ragged",)),
                     ("enumerate", ("tokens",))]
            part = self.documents(self.rng.choices(kinds, [40, 25, 15, 10, 10])[0], depth)
        if self.chance(0.55):
            part = self.whole_shuffle(part)
        field = self.rng.choice([path for path, kind in fields_of(part.node) if kind == "i32[]"])
        masked = field.endswith("t") and self.chance(0.5)
        node = {"length": length, "how": self.rng.choice(["stream", "best_fit"]),
                "separator": self.rng.choice([None, None, self.rng.randint(0, 60_000)]),
                "too_long": self.rng.choice(["split", "cut", "drop"]),
                "pad": self.rng.choice([0, self.rng.randint(1, 99)]), "field": field,
                "mask_field": field[:-1] + "m" if masked else "", "cu_seqlens": cu_seqlens,
                "declared": True}
        part = part.over([], op="pack", **node)
        model = StreamModel({"dataset": part.node, "epochs": 1}, in_order)
        model.batch = self.batch
        rows = sum(1 for _ in model.items(model.top, 0, 0))
        return replace(part, sizes=[1] * rows, work=part.work + rows, shape=shape)

    def many_documents(self) -> Part:
        self.epochs = 1  # their model is slow
        size = self.rng.randint(300, 900)
        node = {"op": "tokens", "size": size, "salt": self.rng.randint(0, 999),
                "most": self.rng.randint(2, 3), "every": 1}
        rounds = BLOCK_DOCUMENTS // size + 1
        return Part(node, ("tokens",), [1] * size, size).over(
            [1] * size * rounds, op="repeat", count=rounds)
