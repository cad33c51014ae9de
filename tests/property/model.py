"""The deliveries of penstock as lists: the definition that the engine is compared with.

A dataset is a tree of nodes. `Model.items(node, pass, round)` returns the content of a node: rows
at sample level, steps (lists of rows) from `batch` on. The model has no threads, buffers or
replicas; the shares of a step are cut from the finished list. Only `order`, the permutation of a
shuffle, comes from the engine; the model checks that it is a permutation.
"""

import struct
from functools import lru_cache, reduce
from itertools import chain, count, islice
from typing import Any, Callable, Iterator, NamedTuple

from fields import RAGGED_FIELDS, on_integers, ragged_values, resized, total_of

Order = Callable[[int, int, int, int], list]  # (size, seed, pass, round) -> permutation
MASK64 = 2**64 - 1
MASK32 = 2**32 - 1
GOLDEN = 0x9E3779B97F4A7C15
BLOCKS, MIXED = 0x626C6F636B73, 0x6D69786564  # "blocks", "mixed": whose permutations are their own
ENDLESS_ROUNDS = 2**32  # the number of rounds of repeat(-1) where rounds are numbered
SINGLE = [("", "i64")]  # the fields of an element that is one number


class Row(NamedTuple):
    """One sample. (source, number, occurrence) is its key for randomness, id its public name."""

    id: int
    source: int
    number: int
    occurrence: int
    values: tuple  # one per field of the node, in field order
    fate: Any = None  # see streams.py


class Step(NamedTuple):
    """One global batch; `end` is the position in the pass after it was delivered. If it is
    padded, `slots` rows are cut into shares of equal size: its rows, and empty ones. `padding`
    says how rows of different lengths are padded, if they are: see fields.py."""

    end: int
    rows: list
    slots: int = 0
    padding: dict | None = None


def wrap(value: int, bits: int = 64) -> int:
    """Two's complement: the low `bits` of value, read as a signed number."""
    half = 1 << (bits - 1)
    return (value + half) % (2 * half) - half


def mix(word: int) -> int:
    word &= MASK64
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK64
    return word ^ (word >> 31)


def combine(key: int, word: int) -> int:
    return mix(key ^ mix(word + 0x9E3779B97F4A7C15))


@lru_cache(maxsize=1024)
def random_key(seed: int, *words: int) -> int:
    return reduce(combine, words, mix(seed))


def nested_round(outer: int, rounds: int, inner: int) -> int:
    """The number of round `inner`, of `rounds`, inside round `outer`; a hash beyond 64 bits."""
    counted = outer * rounds + inner
    return counted if counted <= MASK64 else combine(outer, inner)


def occurrence(round_: int, lap: int) -> int:
    """Distinguishes the deliveries of a sample in a pass. A lap repeats the order of a round, to
    fill the last batch."""
    return combine(round_, lap) if lap else round_


def philox(c0: int, c1: int, c2: int, c3: int, key: int) -> tuple[int, int]:
    """Philox4x32-10: the four output words as two 64-bit numbers."""
    k0, k1 = key & MASK32, key >> 32
    for _ in range(10):
        p0, p1 = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & MASK32, (p0 >> 32) ^ c3 ^ k1, p0 & MASK32
        k0, k1 = (k0 + 0x9E3779B9) & MASK32, (k1 + 0xBB67AE85) & MASK32
    return c0 | c1 << 32, c2 | c3 << 32


def draws(key: int, number: int) -> Iterator[int]:
    """All 64-bit draws of one row in one op, two from each block."""
    for block in count():
        yield from philox(number & MASK32, number >> 32, block & MASK32, block >> 32, key)


def integer(stream: Iterator[int], range_: int) -> int:
    """Uniform in [0, range_): draws from the uneven end of the 64-bit numbers are rejected."""
    limit = MASK64 - MASK64 % range_
    return next(draw for draw in stream if draw < limit) % range_


def source(spec: dict) -> tuple:
    """The content of a source: size, fields as (path, kind), and the values of sample i."""
    op, salt = spec["op"], spec.get("salt")
    if op == "range":
        numbers = range(spec["start"], spec["stop"], spec["step"])
        return len(numbers), SINGLE, lambda i: (numbers[i],)
    if op == "tensors":
        return 1, SINGLE, lambda i: (spec["value"],)
    if op == "index":
        return spec["size"], SINGLE, lambda i: (i * 3 + salt,)
    if op == "pairs":
        return spec["size"], [("0", "i64"), ("1/k", "i64")], lambda i: (i - salt, i * i)
    if op == "slices":
        fields = [("s", "bytes"), ("v", "f32[3]"), ("x", "i64")]
        text = lambda i: (str(i) * (i % 4)).encode().hex()
        return spec["rows"], fields, lambda i: (text(i), [i, i + 1, i + salt], i * 7 + salt)
    if op in RAGGED_FIELDS:
        values = ragged_values(op, salt, spec["most"], spec["every"])
        return spec["size"], RAGGED_FIELDS[op], values
    raise ValueError(f"unknown source {op}")


def is_known(spec: dict) -> bool:
    """True if the spec of the elements is known before anything runs."""
    if "declared" in spec:
        return spec["declared"]
    if spec.get("form") == "block":
        return True
    return all(map(is_known, spec.get("inputs", [spec["input"]] if "input" in spec else [])))


def nested(part: int, fields: list) -> list:
    """The fields of an element that became part number `part` of a tuple."""
    return [(f"{part}/{path}" if path else str(part), kind) for path, kind in fields]


class Node:
    """A node of the case with the properties that its place in the tree determines.

    id_space: ids reserved for its rows; rounds: of its sources, in one round of this node;
    fields: (path, kind) of every leaf; elastic: one batch below nothing but repeat, cache,
    prefetch and map, so that a run resumes from the position in the pass with any G.
    """

    stream = False

    def __init__(self, spec: dict, offset: int, leaves: Iterator[int], randoms: Iterator[int]):
        self.spec, self.op, self.offset = spec, spec["op"], offset
        self.inputs: list[Node] = []
        # The buckets of a dataset share the ids of its samples.
        self.appends = self.op == "concatenate" and not spec.get("buckets")
        for part in spec.get("inputs", [spec["input"]] if "input" in spec else []):
            shift = sum(left.id_space for left in self.inputs) if self.appends else 0
            self.inputs.append(type(self)(part, offset + shift, leaves, randoms))
        if not self.inputs:
            self.id_space, self.fields, self.values = source(spec)
            self.source, self.rounds, self.elastic = next(leaves), 1, False
            return
        first = self.inputs[0]
        self.id_space, self.rounds, self.fields = first.id_space, first.rounds, first.fields
        unmoved = self.op in ("repeat", "cache", "prefetch", "map") and first.elastic
        self.elastic = self.op == "batch" or unmoved
        if self.op == "repeat":
            self.count = ENDLESS_ROUNDS if spec["count"] == -1 else spec["count"]
            self.rounds = min(self.rounds * self.count, MASK64)
        elif self.op == "concatenate":
            if self.appends:
                self.id_space = sum(part.id_space for part in self.inputs)
            self.rounds = max(part.rounds for part in self.inputs)
        elif self.op == "zip":
            self.fields = [f for i, part in enumerate(self.inputs) for f in nested(i, part.fields)]
        elif self.op == "enumerate":
            self.fields = nested(0, SINGLE) + nested(1, first.fields)
        elif self.op == "cast":
            self.fields = [("", "i32")]
        elif spec.get("fn") == "random":
            self.ordinal = next(randoms)

    def below(self) -> Iterator["Node"]:
        """This node and all below it."""
        yield self
        for part in self.inputs:
            yield from part.below()


class Model:
    """The deliveries of one case. `order` is called once for every shuffle, pass and round."""

    def __init__(self, case: dict, order: Order):
        self.top = Node(case["dataset"], 0, count(), count())
        self.epochs = case["epochs"]
        self.batch = 0  # G of the current session
        self.order = order
        self.memo: dict[tuple, list] = {}

    def items(self, node: Node, pass_: int, round_: int, start: int = 0,
              lap: int = 0) -> Iterator[Any]:
        """The rows or steps of one round of a node.

        An elastic node may skip the first `start` samples of its order: the
        round of `start` is grouped from there on, later ones from their beginning."""
        spec, op = node.spec, node.op
        inputs = [self.items(part, pass_, round_, start, lap) for part in node.inputs]  # lazy
        if not inputs:
            for i in range(node.id_space):
                yield Row(node.offset + i, node.source, i, occurrence(round_, lap), node.values(i))
        elif op == "zip":  # ends with its shortest part; the first one provides id and key
            for parts in zip(*inputs):
                yield parts[0]._replace(values=sum((part.values for part in parts), ()))
        elif op == "enumerate":
            yield from (row._replace(values=(i, *row.values)) for i, row in enumerate(inputs[0]))
        elif op == "cast":
            yield from (row._replace(values=(wrap(row.values[0], 32),)) for row in inputs[0])
        elif op == "map":
            for item in inputs[0]:
                yield each_row(item, lambda row, valid: mapped(node, pass_, row, valid))
        elif op in ("concatenate", "prefetch"):
            yield from chain(*inputs)
        elif op == "take":
            yield from inputs[0] if spec["count"] == -1 else islice(inputs[0], spec["count"])
        elif op == "skip":
            yield from () if spec["count"] == -1 else islice(inputs[0], spec["count"], None)
        elif op == "shard":
            yield from islice(inputs[0], spec["index"], None, spec["count"])
        elif op == "shuffle":
            items = list(inputs[0])
            when = (pass_, round_) if spec["reshuffle"] else (0, 0)
            if spec.get("blocks"):
                yield from self.mixed_blocks(spec, items, when)
                return
            yield from (items[i] for i in self.permutation(len(items), spec["seed"], *when))
        elif op == "repeat":
            yield from self.repeated(node, pass_, round_, start, lap)
        elif op == "cache":  # always the rows of pass 0, round 0, as further occurrences
            outer = occurrence(round_, lap)
            further = lambda row, _: row._replace(
                occurrence=nested_round(outer, node.rounds, row.occurrence))
            for item in self.listed(node.inputs[0], 0, 0, start):
                yield each_row(item, further)
        elif op == "batch":
            each_lap = lambda l: self.listed(node.inputs[0], pass_, round_, 0, l)
            yield from self.grouped(spec, each_lap, start, lap)
        elif op == "unbatch":
            yield from chain.from_iterable(step.rows for step in inputs[0])
        else:
            raise ValueError(f"unknown op {op}")

    def repeated(self, node: Node, pass_: int, round_: int, start: int,
                 lap: int) -> Iterator[Any]:
        child = node.inputs[0]
        samples = self.samples(child) if node.elastic else 0
        for r in range(node.count):
            before, item = r * samples, None
            inner = nested_round(round_, node.count, r)
            for item in self.items(child, pass_, inner, max(0, start - before), lap):
                yield item._replace(end=before + item.end) if node.elastic else item
            if item is None and (node.spec["count"] == -1 or node.stream):
                return  # a round without an element ends it

    def grouped(self, spec: dict, each_lap: Callable[[int], list], start: int,
                lap: int) -> list[Step]:
        """Groups of G from `start` on, and the handling of a short last one."""
        size = self.batch if spec["size"] == "G" else spec["size"]
        rows, tail = each_lap(lap), spec["tail"]
        count = len(rows)
        start = min(start, count)
        firsts, rest = list(range(start, count, size)), (count - start) % size
        if tail == "even" and rest:  # as many steps, whose sizes differ by one, larger ones first
            small, larger = divmod(count - start, len(firsts))
            firsts = [start + i * small + min(i, larger) for i in range(len(firsts))]
        elif tail == "drop" and rest:  # dropped; its samples count as delivered
            firsts.pop()
        bounds = list(zip(firsts, [*firsts[1:], count]))
        padding = spec.get("padding")
        if tail == "wrap":  # filled from the start of the order, in further laps
            laps = -(-(-(-count // size) * size) // count) if count else 1
            at = lambda p: each_lap(lap * laps + p // count)[p % count]
            return [Step(end, [at(p) for p in range(first, first + size)], 0, padding)
                    for first, end in bounds]
        slots = size if tail == "pad" else 0
        return [Step(end, rows[first : min(end, first + size)], slots, padding)
                for first, end in bounds]

    def samples(self, node: Node) -> int:
        """Samples of the order in one round of an elastic node, dropped ones included."""
        if node.op == "batch":
            return len(self.listed(node.inputs[0], 0, 0))
        return self.samples(node.inputs[0]) * (node.count if node.op == "repeat" else 1)

    def listed(self, node: Node, pass_: int, round_: int, start: int = 0, lap: int = 0) -> list:
        """items() as a cached list: resuming reads the same pass again."""
        key = (node, self.batch, pass_, round_, start, lap)
        if key not in self.memo:
            self.memo[key] = list(self.items(node, pass_, round_, start, lap))
        return self.memo[key]

    def permutation(self, size: int, seed: int, pass_: int, round_: int) -> list:
        order = self.order(size, seed, pass_, round_) if size else []
        if sorted(order) != list(range(size)):
            raise ValueError(f"order{(size, seed, pass_, round_)} is no permutation: {order[:20]}")
        return order

    def mixed_blocks(self, spec: dict, rows: list, when: tuple) -> Iterator[Row]:
        """The blocks in random order, then each window of blocks as one shuffle of its rows."""
        size, seed = spec["blocks"], spec["seed"]
        blocks = [rows[i : i + size] for i in range(0, len(rows), size)]
        order = self.permutation(len(blocks), random_key(seed, BLOCKS), *when)
        together = -(-spec["window"] // size) if spec.get("window") else 16
        for window, first in enumerate(range(0, len(blocks), together)):
            mixed = [row for i in order[first : first + together] for row in blocks[i]]
            own = (random_key(seed, MIXED) + window * GOLDEN) & MASK64
            yield from (mixed[i] for i in self.permutation(len(mixed), own, *when))

    def session(self, session: dict, state: tuple) -> tuple[list, tuple]:
        """The steps that a session delivers from a state (epoch, step, position), and its end.

        Without a pull the state does not change. After the last step of an epoch the state is the
        start of the next one. An epoch without (more) steps is skipped when a step is requested."""
        self.batch = session["batch"]
        epoch, step, position = state
        delivered: list[dict] = []
        while epoch < self.epochs and len(delivered) != session["pull"]:
            start, passed = (position, 0) if self.top.elastic else (0, step)
            for item in islice(self.items(self.top, epoch, 0, start), passed, None):
                if len(delivered) == session["pull"]:
                    break
                cut = shares(item, session["shares"], self.top.fields)
                delivered.append({"epoch": epoch, "step": step, "shares": cut})
                step, position = step + 1, item.end
            else:
                epoch, step, position = epoch + 1, 0, 0
        return delivered, (epoch, step, position)


def each_row(item: Any, function: Callable[[Row, int], Row]) -> Any:
    """Applies function(row, samples of its step) to a row, or to every row of a step."""
    if isinstance(item, Row):
        return function(item, 1)
    return item._replace(rows=[function(row, len(item.rows)) for row in item.rows])


def mapped(node: Node, pass_: int, row: Row, valid: int) -> Row:
    """The maps of every i64: x*a + b, x + random, x + a * samples of the step; and one that
    changes the sizes of arrays."""
    spec = node.spec
    if spec.get("fn") == "resize":
        length = wrap(total_of(row.values, node.fields)) % spec["most"]
        return row._replace(values=resized(row.values, node.fields, length))
    if spec["form"] == "whole":
        change = lambda x: x + spec["a"] * valid
    elif spec["fn"] == "affine":
        change = lambda x: x * spec["a"] + spec["b"]
    else:
        key = random_key(spec["seed"], node.ordinal, pass_, row.occurrence, row.source)
        stream = draws(key, row.number)
        change = lambda x: x + integer(stream, spec["range"])
    return row._replace(values=on_integers(row.values, node.fields, lambda x: wrap(change(x))))


NO_ID = MASK64  # of a row without a sample


def single(value: float) -> float:
    """The nearest 32-bit number."""
    return struct.unpack("f", struct.pack("f", value))[0]


def shares(step: Step, replicas: int, fields: list) -> list[dict]:
    """The cut: contiguous shares whose sizes differ by at most one, larger ones first. A padded
    share has empty rows up to its number of slots; its weights compensate for them, and the scale
    for the rounding of the weights to 32 bits."""
    rows, slots = step.rows, -(-step.slots // replicas)
    small, larger = divmod(len(rows), replicas)
    firsts = [replica * small + min(replica, larger) for replica in range(replicas + 1)]
    exact = replicas * slots / len(rows)
    weight = single(exact) if slots else 1
    cuts = []
    for share in (rows[first:end] for first, end in zip(firsts, firsts[1:])):
        empty = max(0, slots - len(share))
        cuts.append({
            "ids": [row.id for row in share] + [NO_ID] * empty,
            "loss_scale": exact / weight if slots else replicas * len(share) / len(rows),
            "weight": [weight] * len(share) + [0] * empty,
            "valid": [1] * len(share) + [0] * empty,
            "global_valid": len(rows),
            "fields": {path: [row.values[i] for row in share] + [None] * empty
                       for i, (path, _) in enumerate(fields)},
        })
    return cuts
