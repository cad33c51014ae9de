"""The deliveries of streams, and the skipped rows: the definition of model.py, extended.

A stream is a list, too, but its length is unknown until it was traversed. So `StreamModel.items`
defines the additional nodes and delegates the rest to `Model.items`. It also models masked rows,
and failed rows: the fate of a row.
"""

from itertools import compress, count, islice
from typing import Any, Iterator

from fields import form_shares, on_integers
from model import (GOLDEN, MASK64, NO_ID, Model, Node, Order, Row, Step, each_row, is_known,
                   nested_round, occurrence, random_key, shares, wrap)
from packing import Document, pack_rows
from stream_nodes import EXPANDING, StreamNode, passes, spread, throws, total, with_element

MASKED = "masked"  # the fate of a row that a mask rejects; of one that failed it is its key
SPLIT = 0x73706C6974  # "split": keeps its permutations apart from those of shuffles


class Failure(Exception):
    """A failed row of a stream whose failures are raised; args[0] is its key."""


class Overrun(Exception):
    """Too many rows."""


class StreamModel(Model):
    """Model with streams. `left` are the keys of the rows that left streams since the last step."""

    def __init__(self, case: dict, order: Order, rows_max: int = 10**7):
        self.top = StreamNode(case["dataset"], 0, count(), count()).settle(False)
        self.epochs, self.order = case["epochs"], order
        self.batch, self.memo = 0, {}
        self.raising, self.left, self.rows_left = False, [], rows_max
        self.packs = any(node.op == "pack" for node in self.top.below())

    def items(self, node: Node, pass_: int, round_: int, start: Any = 0,
              lap: int = 0) -> Iterator[Any]:
        rows = self.all_items(node, pass_, round_, start, lap)  # lost where it becomes a stream
        return self.without_lost(rows) if node.edge and node.leaving else rows

    def all_items(self, node: Node, pass_: int, round_: int, start: Any,
                  lap: int) -> Iterator[Any]:
        """As in Model; `start` of an elastic stream is a place: (round of batch, rows in it)."""
        spec, op = node.spec, node.op
        inputs = [self.items(part, pass_, round_, start, lap) for part in node.inputs]  # lazy
        if op == "generator":
            for k in count() if spec["size"] == -1 else range(spec["size"]):
                self.spend()
                values = node.values(k, pass_, round_)
                yield Row(node.offset + k, node.source, k, round_, values)
        elif op == "filter" and spec["mask"]:
            for row in inputs[0]:
                stays = row.fate or passes(node, pass_, row)
                yield row if stays else row._replace(fate=MASKED)
        elif op in ("filter", "take_while"):
            for row in inputs[0]:
                self.spend()
                if throws(node, row):
                    self.lose(row)
                elif passes(node, pass_, row):
                    yield row
                elif op == "take_while":
                    return
        elif op == "scan":
            yield from self.scanned(node, inputs[0])
        elif op == "select":  # positions found in the first turn of a separate tree
            own = StreamNode(spec, 0, count(), count())
            first = self.items(own.inputs[0], 0, 0)
            yield from compress(inputs[0], [passes(own, 0, row) for row in first])
        elif op == "in_bucket":
            lengths = self.lengths(spec)
            yield from compress(inputs[0], [spec["low"] <= n < spec["high"] for n in lengths])
        elif op == "pack":
            when = occurrence(round_, lap)
            for number, values in enumerate(self.packed(node, (pass_, round_, lap), inputs[0])):
                yield Row(node.offset + number, node.source, number, when, values)
        elif op == "split":  # those that a permutation puts among the first
            rows = list(inputs[0])
            ranks = self.permutation(len(rows), random_key(spec["seed"], SPLIT), 0, 0)
            part = first_part(len(rows), spec["fraction"])
            yield from compress(rows, [(r < part) == (spec["half"] == 0) for r in ranks])
        elif op == "shuffle" and spec.get("window") and not spec.get("blocks"):
            when = (pass_, round_) if spec["reshuffle"] else (0, 0)
            yield from self.windows(spec, inputs[0], when)
        elif op == "zip":
            for parts in zip(*inputs):
                fate = next((part.fate for part in parts if part.fate), None)
                yield parts[0]._replace(values=sum((part.values for part in parts), ()), fate=fate)
        elif op == "map" and spec.get("fn") == "faulty":
            for item in inputs[0]:
                item = each_row(item, lambda row, _: tried(node, row))
                if node.leaving and node.stream and item.fate:
                    self.lose(item)
                else:
                    yield item
        elif op == "spread":
            yield from (row._replace(values=spread(node, row)) for row in inputs[0])
        elif op in EXPANDING:
            yield from self.expanded(node, self.opened(node, pass_, round_, inputs[0]), round_)
        elif op == "batch" and node.stream:
            yield from self.stream_steps(node, pass_, round_, start)
        elif op == "repeat" and node.stream and node.elastic:
            yield from self.stream_rounds(node, pass_, round_, start)
        else:
            yield from super().items(node, pass_, round_, start, lap)

    def scanned(self, node: Node, rows: Iterator[Row]) -> Iterator[Row]:
        """An element that fails leaves the state."""
        state = node.spec["start"]
        for row in rows:
            self.spend()
            if throws(node, row):
                self.lose(row)
                continue
            before, state = state, wrap(3 * state + total(node, row))
            less = lambda x: wrap(x - before)
            yield row._replace(values=on_integers(row.values, node.fields, less))

    def lengths(self, spec: dict) -> list[int]:
        """The lengths of the samples of an in_bucket, counted once, in a separate tree."""
        key = ("lengths", id(spec["input"]), spec["field"], self.batch)
        if key not in self.memo:
            own = StreamNode(spec["input"], 0, count(), count())
            at = [path for path, _ in own.fields].index(spec["field"])
            self.memo[key] = [len(row.values[at]) for row in self.items(own, 0, 0)]
        return self.memo[key]

    def packed(self, node: Node, turn: tuple, rows: Iterator[Row]) -> list[tuple]:
        """The values of all rows of a pack, cached like `listed`."""
        key = ("packed", node, self.batch, *turn)
        if key in self.memo:
            return self.memo[key]
        spec, paths = node.spec, [path for path, _ in node.inputs[0].fields]
        at, mask = paths.index(spec["field"]), spec["mask_field"]
        hidden = paths.index(mask) if mask else None
        documents = [Document(spec, row.values[at], row.values[hidden] if mask else None)
                     for row in rows]
        shuffle = spec.get("shuffle")

        def order(size: int, block: int) -> list[int]:
            if not shuffle:
                return list(range(size))
            when = turn[:2] if shuffle["reshuffle"] else (0, 0)
            return self.permutation(size, (shuffle["seed"] + block * GOLDEN) & MASK64, *when)

        self.memo[key] = list(pack_rows(spec, documents, order))
        return self.memo[key]

    def place(self, node: Node, offset: int) -> None:
        """Sets the first id of every node, since the rows of a pack are counted from the data."""
        node.offset, shift = offset, 0
        for part in node.inputs:
            self.place(part, offset + shift)
            shift += part.id_space if node.appends else 0
        if node.op == "pack":
            node.id_space = sum(1 for _ in self.items(node, 0, 0))
        elif node.inputs and node.op not in EXPANDING:
            node.id_space = shift if node.appends else node.inputs[0].id_space

    def without_lost(self, rows: Iterator) -> Iterator:
        for row in rows:
            if isinstance(row, Step):
                if kept := [each for each in row.rows if each.fate != MASKED]:
                    yield row._replace(rows=kept)
            elif not row.fate:
                yield row
            elif row.fate != MASKED:  # a stream also removes masked rows
                self.lose(row._replace(source=row.fate[0], number=row.fate[1]))

    def spend(self) -> None:
        """Counts rows that could be endless without completing a step."""
        self.rows_left -= 1
        if self.rows_left < 0:
            raise Overrun

    def lose(self, row: Row) -> None:
        self.left.append((row.source, row.number))
        if self.raising and len(self.left) > 64:  # any row of the step may be the reported one
            raise Failure(*self.left)

    def windows(self, spec: dict, rows: Iterator[Row], when: tuple) -> Iterator[Row]:
        for w in count():
            window = list(islice(rows, spec["window"]))
            if not window:
                return
            seed = (spec["seed"] + w * GOLDEN) & MASK64
            yield from (window[i] for i in self.permutation(len(window), seed, *when))

    def opened(self, node: Node, pass_: int, round_: int, rows: Iterator[Row]) -> Iterator:
        """For each element its rows, as tuples of values."""
        for j, row in enumerate(rows):
            if node.op == "unbatch_samples":
                yield zip(*row.values)
                continue
            inner = with_element(node.spec["inner"], total(node.inputs[0], row))
            tree = StreamNode(inner, 0, count(), count()).settle(True, True)
            turn = pass_, nested_round(round_, 2**32, j)
            yield map(lambda row: row.values, self.items(tree, *turn))

    def expanded(self, node: Node, opened: Iterator, round_: int) -> Iterator[Row]:
        """The order of tf.data: `cycle` slots take turns, `block` rows at a time."""
        cycle, block = node.spec.get("cycle", 1), node.spec.get("block", 2**64)
        slots: list[Iterator | None] = [None] * cycle
        number = c = b = 0
        while True:
            if slots[c] is None:
                slots[c] = next(opened, None)
            if slots[c] is None and all(slot is None for slot in slots):
                return
            values = next(slots[c], None) if slots[c] is not None else None
            if values is not None:
                yield Row(node.offset + number, node.source, number, round_, values)
                number, b = number + 1, b + 1
            else:
                slots[c] = None
            if values is None or b == block:
                c, b = (c + 1) % cycle, 0

    def stream_steps(self, node: Node, pass_: int, round_: int, start: Any) -> Iterator[Step]:
        """Groups of G. A resumed round is grouped from its place on; a short one has ended it."""
        size = self.batch if node.spec["size"] == "G" else node.spec["size"]
        rows = self.items(node.inputs[0], pass_, round_)
        passed = start[1] if start and start[0] == round_ else 0
        if passed:
            self.pass_over(rows, passed)
        while group := list(islice(rows, size)):
            if len(group) < size and node.spec["tail"] == "drop":
                return
            passed += len(group)
            end = (round_, passed) if len(group) == size else (round_ + 1, 0)
            slots = size if node.spec["tail"] == "pad" else 0
            yield Step(end, group, slots, node.spec.get("padding"))

    def stream_rounds(self, node: Node, pass_: int, round_: int, start: Any) -> Iterator[Step]:
        child, base = node.inputs[0], round_ * node.count
        resumed, first = None, 0
        if start:
            at, into = divmod(start[0], child.turns)
            if into or start[1]:
                resumed = at - base  # a round with steps before the place
            first = max(0, at - base)
        for r in range(first, node.count):
            item = None
            inner = nested_round(round_, node.count, r)
            for item in self.items(child, pass_, inner, start):
                yield item
            if item is None and r != resumed:
                return  # a round without a step ends it

    def pass_over(self, items: Iterator, number: int) -> None:
        """Removes the rows that earlier sessions delivered or reported."""
        for _ in islice(items, number):
            pass
        self.left.clear()

    def told(self, epoch: int) -> list:
        """The rows that left streams since the last call."""
        keys, self.left = self.left, []
        return [(epoch, *key) for key in keys]

    def session(self, session: dict, state: tuple) -> tuple[dict, tuple]:
        """As in Model, with a state (epoch, step, position, place), and with the skipped rows.

        left: (epoch, key) of the rows that left streams up to the last step; maybe_left: of those
        met after it, on the way to a next step or to the end of a pass. A failure that is raised
        ends the session; error: the keys that it may name."""
        self.batch, self.raising = session["batch"], session.get("on_error") == "raise"
        if self.packs:
            self.place(self.top, 0)
        self.left, steps, left, maybe, error = [], [], [], [], None
        epoch, step, position, place = state
        try:
            while epoch < self.epochs and len(steps) != session["pull"]:
                for item in self.steps_from(epoch, step, position, place):
                    if len(steps) == session["pull"]:
                        break
                    failed = [row.fate for row in item.rows if has_failed(row)]
                    if self.raising and (failed or self.left):
                        raise Failure(*failed, *self.left)
                    cuts = cut(item, session["shares"], self.top.fields)
                    steps.append({"epoch": epoch, "step": step, "shares": cuts,
                                  "padding": item.padding})
                    left += self.told(epoch)
                    step, place = step + 1, item.end
                    position = position + len(item.rows) if self.top.stream else place
                    steps[-1]["after"] = (epoch, step, position, place)
                else:
                    if self.raising and self.left:
                        raise Failure(*self.left)
                    maybe += self.told(epoch)
                    epoch, step, position, place = epoch + 1, 0, 0, 0
        except Failure as failure:
            error = failure.args if len(steps) != session["pull"] else None
        maybe += self.told(epoch)
        reply = {"steps": steps, "left": left, "maybe_left": maybe, "error": error}
        return reply, (epoch, step, position, place)

    def steps_from(self, epoch: int, step: int, position: int, place: Any) -> Iterator[Step]:
        if self.top.elastic:
            return self.items(self.top, epoch, 0, place if self.top.stream else position)
        steps = self.items(self.top, epoch, 0)
        self.pass_over(steps, step)
        return steps


def has_failed(row: Row) -> bool:
    return row.fate is not None and row.fate != MASKED


def tried(node: Node, row: Row) -> Row:
    """The faulty map: every i64 plus one, if it does not throw. It is not called for rows that
    are already masked or failed."""
    if row.fate:
        return row
    if throws(node, row):
        return row._replace(fate=(row.source, row.number))
    return row._replace(values=on_integers(row.values, node.fields, lambda x: wrap(x + 1)))


def cut(step: Step, replicas: int, fields: list) -> list[dict]:
    """Shares as planned; then failed rows leave theirs, or become empty rows in a padded one,
    and masked rows become empty ones."""
    cuts, firsts = shares(step, replicas, fields), iter(step.rows)
    for share in cuts:
        samples = sum(share["valid"])
        part = list(islice(firsts, samples))
        share["left"] = [row.fate for row in part if has_failed(row)]
        kept = [i for i, row in enumerate(part) if step.slots or not has_failed(row)]
        empty = [part[i].fate is not None for i in kept]
        columns = [("ids", NO_ID), ("weight", 0), ("valid", 0)]
        fills = [(share, name, none) for name, none in columns]
        fills += [(share["fields"], path, None) for path, _ in fields]
        for holder, name, none in fills:
            values = [holder[name][i] for i in kept]
            if name != "ids" or holder is not share:
                values = [none if bare else x for x, bare in zip(values, empty)]
            holder[name] = values + holder[name][samples:]
        for at, i in enumerate(kept):
            if has_failed(part[i]):
                share["ids"][at] = NO_ID
        if not step.slots:
            share["loss_scale"] = replicas * len(kept) / len(step.rows)
    return cuts


def first_part(size: int, fraction: float) -> int:
    """The number of samples of the first part of a split; halves are rounded up."""
    return int(fraction * size + 0.5)


def expected(case: dict, order: Order) -> dict:
    """The expected reply for the case. A position of None means: zero only at step zero."""
    model, state, sessions = StreamModel(case, order), (0, 0, 0, 0), []
    learned = not is_known(case["dataset"])
    for session in case["sessions"]:
        reply, state = model.session(session, state)
        for each in reply["steps"]:
            form_shares(each["shares"], model.top.fields, each["padding"], learned)
        epoch, step, position, _ = state
        if not model.top.elastic:
            position = step if model.top.stream else None
        end = {"epoch": epoch, "step": step, "position": position}
        sessions.append(reply | {"state": end})
    return {"sessions": sessions, "stream": model.top.stream, "elastic": model.top.elastic}
