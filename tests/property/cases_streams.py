"""Random cases with streams: whole datasets of stream_maker.py, their sessions, their features.
"""

import random
from dataclasses import replace

from cases import (ELASTIC, FEATURES as INDEXED_FEATURES, Counter, Part,
                   features as indexed_features, walk)
from stream_maker import (LOOKED_AT_MAX, StreamMaker, has_faulty, in_order, is_stream,
                          nodes)
from stream_nodes import EXPANDING, StreamNode
from streams import Overrun, StreamModel

FOREVER_STEPS = 60  # checked for an endless pass
STEP_OPS = {"take": 16, "skip": 16, "shard": 16, "shuffle": 8, "concatenate": 12, "endless": 8}


class StreamCases(StreamMaker):
    def __init__(self, rng: random.Random):
        super().__init__(rng)
        self.forever = False  # a pass is endless
        self.step_ops = STEP_OPS

    def dataset(self) -> Part:
        ops = self.rng.choice([0, 1, 1, 2, 2, 3])
        weights = ELASTIC | {"faulty": 8} | ({} if self.elastic else self.step_ops)
        if self.streamed and self.chance(0.1):
            part = self.endless_dataset()
            if self.elastic or self.chance(0.5):
                self.forever, self.epochs = True, 1
                return self.grow(part, ops, {"map": 3, "prefetch": 1, "faulty": 2}, 0)
            part = self.over_take(part, self.rng.randint(0, max(1, len(part.sizes))))
            return self.grow(part, ops, weights, 0)
        return self.steps(self.shape(), ops, weights)

    def endless_dataset(self) -> Part:
        """Endless steps: of a generator, or of repeated samples or steps."""
        part = self.samples(self.shape(), self.rng.randint(0, 2), 1)
        if part.endless or not is_stream(part.node) or self.chance(0.3):
            shape = self.rng.choice(self.elements)
            part = self.batched(self.prefix(self.generator(shape, endless=True)), 0)
        elif self.chance(0.5):
            part = self.batched(part.over(part.sizes * 3, op="repeat", count=-1), 0)
        else:
            part = self.batched(part, 0)
            part = part.over(part.sizes * 3, op="repeat", count=-1)
        return replace(part, endless=True)

    def counter(self, part: Part) -> "StreamCounter":
        self.faulty_below = has_faulty(part.node)
        self.counted = StreamCounter(part, self.epochs, FOREVER_STEPS if self.forever else -1)
        return self.counted

    def session(self, before: dict | None) -> dict:
        on_error = "skip" if self.faulty_below else self.rng.choice(["raise", "skip"])
        return super().session(before) | {"on_error": on_error}

    def pull(self, rest: int, ends: list[int], left: int) -> int:
        if self.forever and left == 0:
            return self.rng.randint(1, max(1, rest))
        return super().pull(rest, ends, left)

    def case(self) -> dict | None:
        try:
            case = super().case()
        except Overrun:
            return None
        if case and self.forever and not self.counted.good_rows:
            return None  # endless data without one good row never shows its fields
        if case and self.chance(0.8):
            # Only a last session raises, and only if it is clear which sample fails first and
            # nothing is pulled again that others skipped.
            kinds = failure_kinds(StreamModel(case, in_order).top)
            if kinds == {"share"} or (kinds == {"stream"} and len(case["sessions"]) == 1):
                case["sessions"][-1]["on_error"] = "raise"
        return case


class StreamCounter(Counter):
    """Counts the steps of the dataset itself, with shuffles that keep the order."""

    def __init__(self, part: Part, epochs: int, steps_max: int):
        self.model = StreamModel({"dataset": part.node, "epochs": epochs}, in_order, LOOKED_AT_MAX)
        self.state, self.delivered, self.steps_max = (0, 0, 0, 0), 0, steps_max
        self.good_rows = 0

    def steps_left(self, session: dict) -> tuple[int, list[int]]:
        asked = session | {"pull": self.steps_max, "shares": 1}
        steps = self.steps = self.model.session(asked, self.state)[0]["steps"]
        firsts = [min(step["shares"][0]["ids"], default=0) for step in steps]
        ends = [i for i in range(1, len(firsts)) if firsts[i] <= firsts[i - 1]]
        return len(steps), ends + [len(steps)] * (len(steps) > 0 and self.steps_max == -1)

    def pull(self, session: dict) -> None:
        """Of the steps that `steps_left` has counted."""
        count = session["pull"] if session["pull"] >= 0 else len(self.steps)
        taken, following = self.steps[:count], self.steps[count : count + 1]
        if taken:
            epoch = taken[-1]["epoch"]
            ended = following[0]["epoch"] != epoch if following else len(taken) != self.steps_max
            self.state = (epoch + 1, 0, 0, 0) if ended else taken[-1]["after"]
        self.delivered += len(taken)
        self.good_rows += sum(sum(step["shares"][0]["valid"]) for step in taken)


def failure_kinds(node: StreamNode) -> set[str]:
    """Which part failed rows at or below a node leave: a "stream", or their "share"."""
    kinds = {kind for part in node.inputs for kind in failure_kinds(part)}
    if "inner" in node.spec and has_faulty(node.spec["inner"]):
        kinds.add("stream")
    if "faulty" in node.spec:
        kinds.add("stream" if node.leaving or node.op != "map" else "share")
    return kinds


# What a case exercises.


def node_features(node: dict) -> set[str]:
    op, found = node["op"], set()
    if op in ("filter", "take_while", "select"):
        name = "mask" if node["mask"] else op
        found = {name, f"{name} {node['form']}", f"{name} {node['fn']}"}
        if "faulty" in node:
            found.add(f"{name} throws")
    elif op == "generator":
        found = {f"generator of {node['element']}", f"generator {node['form']}",
                 "generator with a cursor" if node["cursor"] else "generator without a cursor"}
        if node["size"] == -1:
            found.add("generator endless")
        if node["turned"] and node["element"] in ("int", "tuple"):
            found.add("generator that knows its turn")
        if "declared" in node:
            found.add("generator declared" if node["declared"] else "generator undeclared")
    elif op in EXPANDING:
        found = {op}
        if "inner" in node:
            found.add(f"{op} {node['form']}")
            found.add(f"{op} declared" if node["declared"] else f"{op} undeclared")
            found |= {f"inner {each['op']}" for each in nodes(node["inner"])}
            if has_faulty(node["inner"]):
                found.add("inner failure")
    elif op == "shuffle" and node.get("window") and not node.get("blocks"):
        found = {"shuffle windows"}
    elif op == "split":
        found = {"split"}
    elif op == "scan":
        found = {"scan", "scan throws"} if "faulty" in node else {"scan"}
    return found


def features(case: dict, reply: dict) -> set[str]:
    """The names from FEATURES that hold for a case, given the reply that the model expects."""
    found = indexed_features(case, reply)
    for node, level in walk(case["dataset"]):
        found |= node_features(node)
        if is_stream(node):
            name = f"stream step {node['op']}" if level == "step" else f"stream {node['op']}"
            found.add(name)
            if node["op"] == "repeat" and node["count"] == -1:
                found.add(f"{name} endless")
    replies = reply["sessions"]
    shares = [share for each in replies for step in each["steps"] for share in step["shares"]]
    checks = {
        "stream": reply["stream"],
        "masked row": any(0 in share["valid"] for share in shares),
        "row left its share": any(share["left"] for share in shares),
        "row left a stream": any(each["left"] for each in replies),
        "raised": any(each["error"] for each in replies),
        "pass without an end": case["sessions"][-1]["pull"] != -1,
    }
    if reply["stream"]:
        found |= {f"stream {name}" for name in found if name.startswith("resume")}
        found.add("stream elastic" if reply["elastic"] else "stream not elastic")
    return found | {name for name, holds in checks.items() if holds}


FEATURES = INDEXED_FEATURES + [
    "stream", "stream elastic", "stream not elastic",
    *(f"generator {what}" for what in (
        "of int", "of tuple", "of pairs", "of slices", "typed", "sample", "declared", "undeclared",
        "with a cursor", "without a cursor", "endless", "that knows its turn")),
    *(f"{op} {what}" for op in ("filter", "take_while", "mask", "select")
      for what in ("typed", "sample", "rest", "random")),
    "filter throws", "take_while throws", "flat_map", "interleave", "unbatch_samples", "split",
    "scan", "scan throws",
    *(f"{op} {what}" for op in ("flat_map", "interleave")
      for what in ("typed", "sample", "declared", "undeclared")),
    *(f"inner {op}" for op in ("map", "shuffle", "filter", "repeat", "take", "skip", "flat_map",
                                  "scan")),
    "inner failure", "shuffle windows",
    *(f"stream {op}" for op in (
        "map", "cast", "shuffle", "repeat", "repeat endless", "take", "skip", "shard",
        "concatenate", "zip", "enumerate", "prefetch", "unbatch", "filter", "take_while", "scan")),
    *(f"stream step {op}" for op in (
        "batch", "map", "repeat", "repeat endless", "take", "skip", "shard", "concatenate",
        "prefetch")),
    "map typed faulty", "map sample faulty", "step map typed faulty",
    "masked row", "row left its share", "row left a stream", "raised", "pass without an end",
    "stream resume inside an epoch", "stream resume at an epoch's start",
    *(f"stream resume inside an epoch, other {what}" for what in ("G", "R", "threads")),
]
