"""Random cases with arrays of different lengths: whole datasets of ragged_maker.py, their features.

`make_case(seed)` draws one of these, one of the streams of cases_streams.py, or one of the indexed
cases of cases.py, and returns the same case for the same seed.
"""

import random

from cases import ELASTIC, Maker, Part, walk
from cases_streams import STEP_OPS, StreamCases
from cases_streams import FEATURES as STREAM_FEATURES, features as stream_features
from fields import is_open
from model import NO_ID, is_known
from packing import BLOCK_DOCUMENTS, is_whole_shuffle
from ragged_maker import RaggedMaker
from stream_maker import in_order, is_stream
from stream_nodes import StreamNode
from streams import StreamModel

KINDS = {Maker: 0.16, StreamCases: 0.42}  # the rest are RaggedCases


class RaggedCases(RaggedMaker, StreamCases):
    def __init__(self, rng: random.Random):
        super().__init__(rng)
        self.goal = rng.choices(["ragged", "bucket", "pack"], [50, 22, 28])[0]
        self.failing = self.failing or self.chance(0.4)
        self.step_ops = STEP_OPS | {"shuffle": 80, "repeat": 36, "concatenate": 32, "map": 36,
                                    "take": 28, "faulty": 36}
        if self.goal == "bucket":
            self.streamed = self.flexible = self.elastic = False
        self.streamed = self.streamed and (self.goal == "ragged" or self.chance(0.5))

    def shape(self, depth: int = 2) -> tuple:
        if depth < 2 or self.counting:
            return super().shape(depth)
        if self.goal == "pack":
            return self.packed_shape()
        return self.ragged_shape()

    def dataset(self) -> Part:
        if self.goal != "bucket":
            return super().dataset()
        ops = self.rng.choice([0, 1, 1, 2, 3])
        return self.grow(self.bucket(), ops, ELASTIC | self.step_ops, 0)


def make_case(seed: int) -> dict:
    rng = random.Random(seed)
    kinds = [*KINDS, RaggedCases]
    kind = rng.choices(kinds, [*KINDS.values(), 1 - sum(KINDS.values())])[0]
    while True:
        case = kind(rng).case()
        if case is not None:
            return case


# What a case exercises.


def padding_features(node: dict, prefix: str) -> set[str]:
    padding = node["padding"]
    rules = [*padding["fields"].values(), *([padding["all"]] if padding["all"] else [])]
    found = {prefix, f"{prefix} tail {node['tail']}"}
    found |= {f"padding {rule['side']}" for rule in rules}
    found |= {"padding to a length" for rule in rules if "length" in rule}
    found |= {"padding to a multiple" for rule in rules if rule["multiple_of"] > 1}
    found |= {"padding with a value" for rule in rules if rule["value"]}
    if padding["fields"]:
        found.add("padding of named fields")
    if not padding["all"]:
        found.add("padding of no other fields")
    return found


def bucket_features(node: dict) -> set[str]:
    name = "batch_by_tokens" if "max_tokens" in node else "bucket_by_length"
    found = {name, f"bucket tail {node['tail']}"}
    found.add("bucket shuffled" if is_whole_shuffle(node["input"]) else "bucket not shuffled")
    found.add("bucket padded" if node["padding"] else "bucket ragged")
    if name == "batch_by_tokens":
        found.add(f"{name} boundaries" if node["boundaries"] else f"{name} own boundaries")
    return found


def pack_features(node: dict) -> set[str]:
    found = {f"pack {node['how']}"}
    found.add("pack shuffled" if is_whole_shuffle(node["input"]) else "pack not shuffled")
    if node["how"] == "best_fit":
        found.add(f"pack too_long {node['too_long']}")
    if node["separator"] is not None:
        found.add("pack separator")
    if node["mask_field"]:
        found.add("pack mask")
    if node["cu_seqlens"]:
        found.add("pack cu_seqlens")
    model = StreamModel({"dataset": node["input"], "epochs": 1}, in_order)
    if not any(each.get("size") == "G" for each, _ in walk(node)):
        documents = sum(1 for _ in model.items(model.top, 0, 0))
        found |= {"pack several blocks"} if documents > BLOCK_DOCUMENTS else set()
    return found


def tree_features(case: dict) -> set[str]:
    """The ops on elements with an open size, and those above buckets and packed rows."""
    found = set()
    for node, level in walk(case["dataset"]):
        op = node["op"]
        if node.get("padding"):
            found |= padding_features(node, "padded_batch" if op == "batch" else "bucket padded")
            if op == "batch" and is_stream(node):
                found.add("stream padded_batch")
        if op == "bucket":
            found |= bucket_features(node)
        elif op == "pack":
            found |= pack_features(node)
        else:
            below = {each["op"] for each, _ in walk(node)}
            prefix = "step " if level == "step" and op != "batch" else ""
            found |= {f"{word}, then {prefix}{op}" for word in ("pack", "bucket") if word in below}
            fields = StreamNode(node, 0, iter(range(10**6)), iter(range(10**6))).fields
            if any(is_open(kind) for _, kind in fields):
                name = "mask" if node.get("mask") else op
                found.add(f"ragged {prefix}{name}")
                found.add("ragged windows" if node.get("window") else "")
                found |= {f"ragged tail {node['tail']}"} if op == "batch" else set()
                found |= {f"ragged {node['fn']}"} if op == "map" and "fn" in node else set()
                found |= {f"ragged stream {op}"} if is_stream(node) else set()
    return found


def share_features(share: dict, learned: bool) -> set[str]:
    found = set()
    for path, form in share["forms"].items():
        if form["kind"] == "bytes" or not (is_open(form["kind"]) or learned):
            continue
        rows, ids, ragged = share["fields"][path], share["ids"], form["form"] == "ragged"
        found.add("ragged field" if ragged else "padded field" if is_open(form["kind"]) else "")
        if learned:
            found.add("ragged undeclared" if ragged else "undeclared tensor")
        if "," in form["kind"]:
            found.add("ragged of two dimensions" if ragged else "padded of two dimensions")
        if any(id_ != NO_ID and not row for id_, row in zip(ids, rows)) and ragged:
            found.add("ragged row of length 0")
        if NO_ID in ids:
            found.add("ragged filler row" if ragged else "padded filler row")
        if share["left"]:
            found.add("ragged row left its share" if ragged else "padded row left its share")
    return found


def features(case: dict, reply: dict) -> set[str]:
    """The names from FEATURES that hold for a case, given the reply that the model expects."""
    found = stream_features(case, reply) | tree_features(case)
    learned = not is_known(case["dataset"])
    shares = [share for each in reply["sessions"] for step in each["steps"]
              for share in step["shares"]]
    for share in shares[:400]:
        found |= share_features(share, learned)
    if "ragged field" in found and not learned:
        found.add("ragged declared")
    for word, holds in (("ragged", "ragged field" in found), ("padded", "padded_batch" in found),
                        ("bucket", "bucket" in found), ("pack", "pack" in found)):
        if holds:
            found |= {f"{word} {name}" for name in found if name.startswith("resume")}
    return found


RAGGED_OPS = ("map", "shuffle", "repeat", "take", "skip", "shard", "concatenate", "zip",
              "enumerate", "cache", "prefetch", "unbatch", "select", "split", "mask", "filter",
              "take_while", "scan", "generator", "ragged", "tokens", "wide", "spread", "flat_map",
              "interleave")
RESUMES = ("resume inside an epoch", "resume inside an epoch, other R",
           "resume inside an epoch, other threads")
TAILS = ("short", "drop", "even", "pad", "wrap")

FEATURES = STREAM_FEATURES + [
    "ragged field", "ragged declared", "ragged undeclared", "undeclared tensor",
    "ragged of two dimensions", "padded of two dimensions", "ragged row of length 0",
    "ragged filler row", "padded filler row", "ragged row left its share",
    "padded row left its share",
    *(f"ragged {op}" for op in RAGGED_OPS),
    *(f"ragged {fn}" for fn in ("affine", "random", "resize", "faulty")),
    "ragged windows", *(f"ragged tail {tail}" for tail in (*TAILS, "strict")),
    *(f"ragged step {op}" for op in ("map", "repeat", "take", "skip", "shard", "concatenate",
                                     "shuffle", "cache")),
    *(f"ragged stream {op}" for op in ("map", "shuffle", "batch", "concatenate", "zip",
                                       "enumerate", "unbatch")),
    "padded_batch", "stream padded_batch", *(f"padded_batch tail {tail}" for tail in TAILS),
    "padding left", "padding right", "padding to a length", "padding to a multiple",
    "padding with a value", "padding of named fields", "padding of no other fields",
    "bucket_by_length", "batch_by_tokens", "batch_by_tokens boundaries",
    "batch_by_tokens own boundaries", "bucket shuffled", "bucket not shuffled", "bucket padded",
    "bucket ragged", *(f"bucket tail {tail}" for tail in TAILS),
    *(f"bucket, then step {op}" for op in ("map", "repeat", "take", "shuffle", "concatenate")),
    "pack stream", "pack best_fit", "pack too_long split", "pack too_long cut",
    "pack too_long drop", "pack separator", "pack mask", "pack cu_seqlens", "pack shuffled",
    "pack not shuffled", "pack several blocks",
    *(f"pack, then {op}" for op in ("shuffle", "repeat", "map", "filter", "concatenate", "cache",
                                    "batch", "step shuffle", "step repeat")),
    *(f"{word} {name}" for word in ("ragged", "padded", "bucket", "pack") for name in RESUMES),
    "ragged resume inside an epoch, other G", "padded resume inside an epoch, other G",
    "pack resume inside an epoch, other G",
]
