"""Random cases for the property test: a dataset, and the sessions that read it.

These are the indexed cases; cases_ragged.py has `make_case`, and draws from all. Trees grow from
sources upwards, one op at a time; each Part knows the rows of its items, so that parameters
are near the edges that matter and no case delivers more than ROWS_MAX rows. Probabilities are
steered so that every name in FEATURES appears in more than 1 % of the cases; run.py counts them.
"""

import random
from dataclasses import dataclass, replace
from math import gcd
from typing import Callable

from model import NO_ID, Model, is_known

ROWS_MAX = 20_000  # delivered in a case, over all epochs
STEPS_MAX = 1_200
WORK_MAX = 60_000  # rows computed anywhere in the tree, over all epochs
LOOKAHEAD_BYTES = [1, 500, 4_000, 65_536, 1 << 20, 64 << 20]
I64_MAX = 2**63 - 1
SOURCES = ("range", "tensors", "slices", "index", "pairs", "generator")


@dataclass
class Part:
    """A tree under construction."""

    node: dict
    shape: tuple  # of an element: (kind,), or ("zip", shape, ..), or ("enumerate", shape)
    sizes: list  # rows of each item: 1 for every sample, or the sizes of the steps
    work: int  # rows computed in one round
    endless: int = 0  # repeat(-1) below; from the third one on rounds are more than 2**64
    batched: bool = False
    whole: bool = False  # there is a map of whole steps below, after which no cache is allowed
    samples: int = 0  # of the order below the last batch

    def over(self, sizes: list, work: int | None = None, **node) -> "Part":
        """This part with one more op on top."""
        work = self.work if work is None else work
        node["input"] = self.node
        return replace(self, node=node, sizes=sizes, work=work + sum(sizes))


class Maker:
    """Draws one case; every method that adds an op returns None if the op does not fit."""

    depth_ops = ("concatenate", "unbatch", "replay")

    def __init__(self, rng: random.Random):
        self.rng = rng
        self.flexible = rng.random() < 0.4  # restores may come with another G
        self.elastic = self.flexible or rng.random() < 0.15
        self.epochs = rng.choice([1, 1, 2, 2, 3])
        self.batch = self.batch_size()
        self.strict = 0  # the number that shares must divide; 0: any

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def log_uniform(self, low: int, high: int) -> int:
        return int(low * ((high + 1) / low) ** self.rng.random())

    def batch_size(self) -> int:
        return self.log_uniform(1, 400 if self.chance(0.1) else 48)

    def size(self) -> int:
        if self.chance(0.02):
            return 0
        low, high = self.rng.choices([(1, 30), (20, 600), (300, 10_000)], [20, 65, 15])[0]
        return self.log_uniform(low, high)

    def seed(self) -> int:
        return self.rng.choice([0, self.rng.randint(1, 100), self.rng.randint(0, I64_MAX)])

    def number(self) -> int:
        if self.chance(0.3):
            return self.rng.randint(-I64_MAX - 1, I64_MAX)
        return self.rng.randint(-20, 20)

    # Sources and shapes.

    def shape(self, depth: int = 2) -> tuple:
        kinds = ["int", "i32", "slices", "pairs", "zip", "enumerate"]
        kind = self.rng.choices(kinds, [44, 9, 14, 12, 11 * (depth > 0), 10 * (depth > 0)])[0]
        if kind == "zip":
            return ("zip", *(self.shape(depth - 1) for _ in range(self.rng.choice([2, 2, 2, 3]))))
        return (kind, self.shape(depth - 1)) if kind == "enumerate" else (kind,)

    def source(self, shape: tuple) -> Part:
        size, salt, op = self.size(), self.rng.randint(0, 999), shape[0]
        if op == "slices":
            node = {"op": "slices", "rows": size, "salt": salt}
        elif op == "pairs":
            node = {"op": "pairs", "size": size, "salt": salt, "declared": self.chance(0.6)}
        else:
            op = self.rng.choices(["range", "index", "tensors"], [50, 44, 6])[0]
            node = {"op": op, "size": size, "salt": salt}
            if op == "range":
                reach = self.rng.choice([0, 50, 10**12])
                start = self.rng.randint(-reach, reach)
                step = self.rng.choice([1, 1, 2, 3, -1, -7])
                # A stop that the last stride skips; for size 0 one on the wrong side of start.
                slack = self.rng.randrange(abs(step)) * (1 if step > 0 else -1)
                node = {"op": op, "start": start, "stop": start + step * size - slack, "step": step}
            elif op == "tensors":
                size, node = 1, {"op": op, "value": self.number()}
        return Part(node, shape, [1] * size, size)

    def base(self, shape: tuple, depth: int) -> Part:
        """The smallest tree of a shape, with a few ops in its branches."""
        if shape[0] == "zip":
            parts = [self.samples(part, self.rng.randint(0, 2), depth + 1) for part in shape[1:]]
            sizes = min((part.sizes for part in parts), key=len)
            node = {"op": "zip", "inputs": [part.node for part in parts]}
            return Part(node, shape, sizes, sum(part.work for part in parts) + len(sizes),
                        max(part.endless for part in parts))
        if shape[0] == "enumerate":
            part = self.samples(shape[1], self.rng.randint(0, 2), depth + 1)
            return replace(part.over(part.sizes, op="enumerate"), shape=shape)
        if shape[0] == "i32":
            part = self.samples(("int",), self.rng.randint(0, 2), depth + 1)
            return replace(part.over(part.sizes, op="cast"), shape=shape)
        return self.source(shape)

    def samples(self, shape: tuple, ops: int, depth: int = 0) -> Part:
        return self.grow(self.base(shape, depth), ops, {
            "map": 26, "shuffle": 20, "repeat": 9, "endless": 4, "take": 9, "skip": 9, "shard": 8,
            "concatenate": 8 / (1 + depth), "cache": 12, "prefetch": 7, "unbatch": 7 / (1 + depth),
            "replay": 10 / (1 + depth),
        }, depth)

    def steps(self, shape: tuple, ops: int, weights: dict, depth: int = 0) -> Part:
        """Samples, a batch, and ops on steps."""
        part = self.samples(shape, self.rng.randint(0, 4 if depth == 0 else 1), depth)
        return self.grow(self.batched(part, depth), ops, weights, depth)

    def batched(self, part: Part, depth: int) -> Part:
        """If G may change it is the size of the top batch only: the order must not depend on it."""
        by_session = depth == 0 if self.flexible else self.chance(0.65)
        size = "G" if by_session else self.rng.randint(1, 40)
        tails = self.tails(part)
        tail = self.rng.choices(list(tails), list(tails.values()))[0]
        if tail == "strict":
            # Its size divides the samples, and the shares of all sessions divide its size.
            by_session, size = False, self.strict_size(len(part.sizes))
        width = self.batch if by_session else size
        whole, rest = divmod(len(part.sizes), width)
        steps, total = whole + (rest > 0), len(part.sizes)
        sizes = [width] * whole + [rest] * (rest > 0 and tail != "drop")
        if tail == "wrap":
            sizes = [width] * steps
        elif tail == "even" and rest:
            sizes = [total // steps + (i < total % steps) for i in range(steps)]
        steps = part.over(sizes, op="batch", size=size, tail=tail)
        if part.node["op"] == "unbatch" and (size == "G" or size % 2 == 0):
            steps.node["rebatch"] = True  # the driver uses one verb for both
        return replace(steps, batched=True, samples=len(part.sizes))

    def tails(self, part: Part) -> dict:
        weights = {"short": 34, "drop": 24, "even": 13, "pad": 12, "wrap": 12}
        # A size that divides must be certain, and must not change.
        sure = not self.flexible and not {"select", "filter"} & set(op_names(part.node))
        return weights | ({"strict": 8} if sure and len(part.sizes) > 0 else {})

    def strict_size(self, samples: int) -> int:
        sizes = [n for n in range(1, 41) if samples % n == 0]
        size = self.rng.choice(sizes)
        self.strict = gcd(self.strict, size)
        return size

    def grow(self, part: Part, ops: int, weights: dict, depth: int) -> Part:
        for _ in range(ops):
            name = self.rng.choices(list(weights), list(weights.values()))[0]
            make: Callable = getattr(self, name)
            taller = make(part, depth) if name in self.depth_ops else make(part)
            if taller and sum(taller.sizes) <= ROWS_MAX // 2 and taller.work <= WORK_MAX:
                part = taller
        return part

    # Ops with the same meaning for samples and for steps.

    def repeat(self, part: Part) -> Part:
        count = self.rng.choices([0, 1, 2, 3, 4, 9], [16, 8, 37, 22, 13, 4])[0]
        return part.over(part.sizes * count, part.work * count, op="repeat", count=count)

    def endless(self, part: Part) -> Part | None:
        if part.endless > 2 or len(part.sizes) > 2_000:
            return None
        if part.endless == 0 and self.chance(0.2):  # three: more rounds than fit into 64 bits
            for _ in range(2):
                part = self.endless_round(part)
        return self.endless_round(part)

    def endless_round(self, part: Part) -> Part:
        length = len(part.sizes)
        count = self.rng.randint(0, 3 * length + 2)
        rounds = count // length + 1 if length else 0
        forever = part.over([], part.work * rounds, op="repeat", count=-1)
        sizes = (part.sizes * rounds)[:count]
        endless = part.endless + 1
        return replace(forever.over(sizes, op="take", count=count), endless=endless)

    def take(self, part: Part) -> Part:
        length = len(part.sizes)
        count = self.rng.choices([-1, length, self.rng.randint(length // 3, length + 2),
                                  self.rng.randint(0, length)], [12, 8, 70, 10])[0]
        return part.over(part.sizes if count == -1 else part.sizes[:count], op="take", count=count)

    def skip(self, part: Part) -> Part:
        length = len(part.sizes)
        count = self.rng.choices([-1, 0, self.rng.randint(0, 1 + length // 2),
                                  self.rng.randint(0, length + 2)], [28, 6, 56, 10])[0]
        return part.over([] if count == -1 else part.sizes[count:], op="skip", count=count)

    def shard(self, part: Part) -> Part:
        count = self.rng.randint(1, 4)
        index = self.rng.randrange(count)
        return part.over(part.sizes[index::count], op="shard", count=count, index=index)

    def shuffle(self, part: Part) -> Part:
        part = self.whole_shuffle(part)
        if not part.batched and self.chance(0.5):
            part.node.update(self.blocks(len(part.sizes)))
        return part

    def whole_shuffle(self, part: Part) -> Part:
        reshuffle = self.chance(0.7)
        return part.over(part.sizes, op="shuffle", seed=self.seed(), reshuffle=reshuffle)

    def blocks(self, length: int) -> dict:
        """The sizes of a shuffle of blocks."""
        rng = self.rng
        size = rng.choice([1, rng.randint(2, 8), rng.randint(2, 8), rng.randint(2, 64),
                           max(1, length // 3), length + 1])
        window = rng.choice([1, rng.randint(1, 4 * size), rng.randint(size, 8 * size),
                             max(1, length), 2**62])
        return {"blocks": size} | ({"window": window} if self.chance(0.6) else {})

    def cache(self, part: Part) -> Part | None:
        fits = not part.whole and (not part.batched or rows_stay(part.node))
        return part.over(part.sizes, op="cache") if fits else None

    def prefetch(self, part: Part) -> Part:
        return part.over(part.sizes, op="prefetch", steps=self.rng.randint(1, 5))

    def concatenate(self, part: Part, depth: int) -> Part:
        if part.batched:
            other = self.steps(part.shape, self.rng.randint(0, 1), UNBATCHABLE, depth + 1)
        else:
            other = self.samples(part.shape, self.rng.randint(0, 2), depth + 1)
        first, second = (part, other) if self.chance(0.6) else (other, part)
        sizes = first.sizes + second.sizes
        return replace(part, node={"op": "concatenate", "inputs": [first.node, second.node]},
                       sizes=sizes, work=part.work + other.work + sum(sizes),
                       endless=max(part.endless, other.endless))

    # Maps, and the way through steps and back.

    def map(self, part: Part) -> Part | None:
        single = part.shape == ("int",)
        if part.batched:
            return self.rowwise(part) if single and self.chance(0.5) else self.whole(part)
        form = self.rng.choice(["typed", "sample", "block"]) if single else "sample"
        if form == "block" or self.chance(0.45):
            return self.affine(part, form)
        return self.random(part, form)

    def random(self, part: Part, form: str) -> Part:
        # With 3 * 2**61 a quarter of all draws are rejected.
        range_ = self.rng.choice([1, 2, 10, 1_000, 2**32, 3 * 2**61, I64_MAX])
        spec = {"form": form, "fn": "random", "seed": self.seed(), "range": range_}
        return part.over(part.sizes, op="map", **spec, **self.declared(part, form))

    def declared(self, part: Part, form: str) -> dict:
        """Whether a function of samples declares the spec of its result."""
        return {"declared": is_known(part.node) and self.chance(0.6)} if form == "sample" else {}

    def affine(self, part: Part, form: str) -> Part:
        spec = {"form": form, "fn": "affine", "a": self.number(), "b": self.number()}
        return part.over(part.sizes, op="map", **spec, **self.declared(part, form))

    def rowwise(self, part: Part) -> Part | None:
        if "'whole'" in str(part.node) and not is_known(part.node):
            return None  # rejected: after a function of whole batches the result must be known
        return self.affine(part, "typed") if part.shape == ("int",) else None

    def whole(self, part: Part) -> Part | None:
        if not is_known(part.node) or "slices" in str(part.shape):
            return None  # strings have no batch tensor
        return replace(part.over(part.sizes, op="map", form="whole", a=self.number()), whole=True)

    def unbatch(self, part: Part, depth: int) -> Part:
        steps = self.batched(part, depth + 1)
        steps = self.grow(steps, self.rng.randint(0, 2), UNBATCHABLE, depth + 1)
        return replace(steps.over([1] * sum(steps.sizes), op="unbatch"), batched=False)

    def replay(self, part: Part, depth: int) -> Part:
        """Rounds below a cache, rounds above it, and draws that must differ for all of them."""
        through_steps = self.chance(0.3)
        part = self.grow(part, 1, {"repeat": 50, "concatenate": 25, "endless": 25}, depth)
        if through_steps:
            part = self.batched(part, depth + 1)
            through_steps = rows_stay(part.node)
            if not through_steps:
                part = replace(part.over([1] * sum(part.sizes), op="unbatch"), batched=False)
        part = self.grow(part.over(part.sizes, op="cache"), 1, {"repeat": 80, "endless": 20}, depth)
        if through_steps:
            part = replace(part.over([1] * sum(part.sizes), op="unbatch"), batched=False)
        return self.random(part, "sample")

    # The whole case.

    def dataset(self) -> Part:
        ops = self.rng.choice([0, 1, 1, 2, 2, 3])
        weights = ELASTIC if self.elastic else ELASTIC | {
            "take": 16, "skip": 16, "shard": 16, "shuffle": 18, "concatenate": 14, "endless": 5}
        return self.steps(self.shape(), ops, weights)

    def sessions(self, counter: "Counter") -> list[dict]:
        """Sessions that stop anywhere, at the end of a round or an epoch, or at once."""
        count = self.rng.choices([1, 2, 3, 4, 5, 6], [18, 30, 22, 14, 9, 7])[0]
        sessions: list[dict] = []
        for left in range(count - 1, -1, -1):
            session = self.session(sessions[-1] if sessions else None)
            rest, ends = counter.steps_left(session)
            session["pull"] = self.pull(rest, ends, left)
            if sessions and session["batch"] != sessions[-1]["batch"] and session["pull"] == 0:
                # Whether a restored position moves over a tail that only the new G drops, before
                # any step is requested, is not specified.
                session["pull"] = -1 if left == 0 else min(1, rest)
                if session["pull"] == 0:
                    session["batch"] = sessions[-1]["batch"]
            counter.pull(session)
            sessions.append(session)
        return sessions

    def pull(self, rest: int, ends: list[int], left: int) -> int:
        """How many of the remaining steps a session takes; `left` sessions follow."""
        if left == 0:
            return -1
        kind = self.rng.random()
        if kind < 0.06:
            return 0
        if kind < 0.26 and ends:
            return self.rng.choice(ends[:4])
        return min(rest, self.rng.randint(1, 1 + 2 * rest // (left + 1)))

    def session(self, before: dict | None) -> dict:
        shares = self.rng.choices(range(1, 9), [10, 20, 15, 15, 8, 8, 6, 10])[0]
        if before and self.chance(0.3):
            shares = before["shares"]
        shares = gcd(shares, self.strict) if self.strict else shares
        batch = before["batch"] if before else self.batch
        if before and self.flexible and self.chance(0.6):
            batch = self.batch_size()
        return {
            "threads": 0 if self.chance(0.2) else self.rng.randint(1, 8),
            "shares": shares,
            "local": self.rng.choice([n for n in range(1, shares + 1) if shares % n == 0]),
            "batch": batch,
            "pull": 0,
            "hold": self.rng.randint(0, 3),
            "lookahead": self.rng.choice(LOOKAHEAD_BYTES),
            "yield_seed": self.rng.randrange(2**32),
        }

    def counter(self, part: Part) -> "Counter":
        return Counter(part, self.epochs)

    def case(self) -> dict | None:
        """A case, or None if it is too large to run, or if there are too many empty ones."""
        part = self.dataset()
        if not part.sizes and self.chance(0.7):
            return None
        if sum(part.sizes) * self.epochs > ROWS_MAX or part.work * self.epochs > WORK_MAX:
            return None
        counter = self.counter(part)
        sessions = self.sessions(counter)
        if counter.delivered > STEPS_MAX:
            return None
        return {"dataset": part.node, "epochs": self.epochs, "sessions": sessions}


ELASTIC = {"map": 20, "repeat": 12, "cache": 12, "prefetch": 8}
UNBATCHABLE = {"rowwise": 20, "repeat": 12, "cache": 12, "prefetch": 8, "take": 10, "skip": 10,
               "concatenate": 6}


class Counter:
    """Counts steps with the model, over a dataset of plain numbers that has the same geometry."""

    def __init__(self, part: Part, epochs: int):
        rounds, node = 1, part.node
        while node["op"] in ("repeat", "cache", "prefetch", "map"):
            rounds *= node.get("count", 1)
            node = node["input"]
        if node["op"] != "batch":  # steps are counted as wholes
            rounds, node, rows = 1, {"size": 1, "tail": "short"}, len(part.sizes)
        else:
            rows = part.samples
        numbers = {"op": "range", "start": 0, "stop": rows, "step": 1}
        batch = {"op": "batch", "size": node["size"], "tail": node["tail"], "input": numbers}
        dataset = {"op": "repeat", "count": rounds, "input": batch}
        self.model = Model({"dataset": dataset, "epochs": epochs}, lambda *_: [])
        self.state = (0, 0, 0)
        self.delivered = 0

    def steps_left(self, session: dict) -> tuple[int, list[int]]:
        """How many steps remain, and after how many of them a round or an epoch ends."""
        steps, _ = self.model.session(session | {"pull": -1, "shares": 1}, self.state)
        firsts = [step["shares"][0]["ids"][0] for step in steps]
        ends = [i for i in range(1, len(firsts)) if firsts[i] <= firsts[i - 1]]
        return len(steps), ends + [len(steps)] * (len(steps) > 0)

    def pull(self, session: dict) -> None:
        steps, self.state = self.model.session(session | {"shares": 1}, self.state)
        self.delivered += len(steps)


def rows_stay(node: dict) -> bool:
    """True when nothing reorders or counts steps since their batch: a cache may follow."""
    while node["op"] in ("map", "cache", "prefetch"):
        node = node["input"]
    # A cache of batches that wrap stores rows, not batches; the model does not support that.
    return node["op"] == "batch" and node["tail"] != "wrap"


def op_names(node: dict) -> list[str]:
    return [each["op"] for each, _ in walk(node)]


# What a case exercises.


def walk(node: dict):
    """All nodes, each with its level: "sample" or "step"."""
    inputs = node.get("inputs", [node["input"]] if "input" in node else [])
    level = "sample"
    for i, part in enumerate(inputs):
        for below, below_level in walk(part):
            yield below, below_level
        if i == 0:
            level = below_level  # the last one that walk yields is the part itself
    if node["op"] in ("batch", "bucket", "unbatch"):
        level = "sample" if node["op"] == "unbatch" else "step"
    yield node, level


def op_count(case: dict) -> int:
    return sum(node["op"] not in SOURCES for node, _ in walk(case["dataset"]))


def meets_half_rule(case: dict) -> bool:
    """At least 3 ops, 2 shares and 1 resume: run.py requires that of half of the cases."""
    sessions = case["sessions"]
    return op_count(case) >= 3 and max(s["shares"] for s in sessions) >= 2 and len(sessions) >= 2


def features(case: dict, reply: dict) -> set[str]:
    """The names from FEATURES that hold for a case, given the reply that the model expects."""
    found = set()
    for node, level in walk(case["dataset"]):
        op = node["op"]
        name = f"step {op}" if level == "step" and op not in ("batch", "bucket") else op
        if op == "map":
            name += f" {node['form']} {node.get('fn', '')}".rstrip()
        found.add(name)
        if op == "batch":
            found.add(f"tail {node['tail']}")
            found.add("batch G" if node["size"] == "G" else "batch fixed size")
            found.update({"rebatch"} if "rebatch" in node else ())
        if op == "repeat" and node["count"] in (-1, 0):
            found.add("repeat endless" if node["count"] else "repeat 0")
            below = [each for each, _ in walk(node) if each["op"] == "repeat"]
            if sum(each["count"] == -1 for each in below) > 2:
                found.add("repeat endless thrice")
        if op in ("take", "skip") and node["count"] == -1:
            found.add(f"{op} -1")
        if op == "shuffle":
            found.add("shuffle reshuffled" if node["reshuffle"] else "shuffle fixed")
            if node.get("blocks"):
                found.add("shuffle blocks of a window" if "window" in node else "shuffle blocks")
    sessions, replies = case["sessions"], reply["sessions"]
    steps = [step for each in replies for step in each["steps"]]
    found.add("elastic" if reply["elastic"] else "not elastic")
    checks = {
        "empty dataset": not steps,
        "several epochs": case["epochs"] > 1,
        "epoch end inside a session": any(
            len({step["epoch"] for step in each["steps"]}) > 1 for each in replies),
        "padded row": any(NO_ID in share["ids"] for step in steps for share in step["shares"]),
        "empty share": any(not share["ids"] for step in steps for share in step["shares"]),
        "zero threads": any(s["threads"] == 0 for s in sessions),
        "several loaders": any(s["local"] < s["shares"] for s in sessions),
        "several local shares": any(s["local"] > 1 for s in sessions),
        "held batches": any(s["hold"] for s in sessions),
        "resume": len(sessions) > 1,
        "pull 0": any(s["pull"] == 0 for s in sessions),
    }
    for before, after, reply_before in zip(sessions, sessions[1:], replies):
        state = reply_before["state"]
        mid_epoch = state["step"] > 0
        checks["resume inside an epoch"] = checks.get("resume inside an epoch") or mid_epoch
        checks["resume at an epoch's start"] = checks.get("resume at an epoch's start") or (
            0 < state["epoch"] < case["epochs"] and not mid_epoch)
        for name, key in (("G", "batch"), ("R", "shares"), ("threads", "threads")):
            name = f"resume inside an epoch, other {name}"
            checks[name] = checks.get(name) or (mid_epoch and before[key] != after[key])
    return found | {name for name, holds in checks.items() if holds}


FEATURES = [
    *SOURCES,
    "map typed affine", "map sample affine", "map block affine", "map typed random",
    "map sample random", "cast", "shuffle", "repeat", "take", "skip", "shard", "concatenate",
    "zip", "enumerate", "cache", "prefetch", "batch", "unbatch", "rebatch",
    "step map typed affine", "step map whole", "step shuffle", "step repeat", "step take",
    "step skip", "step shard", "step concatenate", "step cache", "step prefetch",
    "tail short", "tail drop", "tail even", "tail pad", "tail wrap", "tail strict",
    "padded row", "batch G", "batch fixed size", "repeat endless", "repeat endless thrice",
    "repeat 0",
    "take -1", "skip -1", "shuffle reshuffled", "shuffle fixed", "shuffle blocks",
    "shuffle blocks of a window",
    "elastic", "not elastic", "empty dataset", "empty share", "several epochs",
    "epoch end inside a session", "zero threads", "several loaders", "several local shares",
    "held batches", "pull 0", "resume", "resume inside an epoch", "resume at an epoch's start",
    "resume inside an epoch, other G", "resume inside an epoch, other R",
    "resume inside an epoch, other threads",
]
