#!/usr/bin/env python3
"""Runs random cases through the engine and through the model and compares everything.

    python3 tests/property/run.py --driver build/dev/... --cases 1000 --seed 1 [--jobs 2]
    python3 tests/property/run.py --driver build/dev/... --only CASE_SEED
    python3 tests/property/run.py --driver build/dev/... --from 40000 --cases 60000 --seconds 500

A case that differs is printed with its seed, its JSON and the first difference in words.
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import select
import subprocess
import sys
import tempfile
import time
from collections import Counter
from typing import Any, NamedTuple

from cases import meets_half_rule
from cases_ragged import FEATURES, features, make_case
from fields import Learned, view_of
from ledger import failure_difference
from model import NO_ID
from stream_maker import has_mask, has_whole
from streams import expected

CASE_SECONDS_MAX = 120
STATE_BYTES_MAX = 1024
STREAM_STATE_BYTES_MAX = 65_536
FEATURE_SHARE_MIN = 0.01
FEATURE_CASES_MIN = 500  # fewer cases say nothing about frequencies
PRINTED_FAILURES_MAX = 10


class DriverFailure(Exception):
    """The driver died, hung, or wrote an invalid reply."""


class Driver:
    """One driver process, started at the first request, and again after it died."""

    def __init__(self, path: str):
        self.path = path
        self.process: subprocess.Popen | None = None
        self.deadline = 0.0

    def start_case(self) -> None:
        self.deadline = time.monotonic() + CASE_SECONDS_MAX

    def ask(self, request: dict) -> dict:
        if self.process is None:
            self.errors = tempfile.TemporaryFile()
            self.process = subprocess.Popen([self.path], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=self.errors)
            self.buffer = b""
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            self.fail("the driver died")
        line = self.read_line()
        try:
            reply = json.loads(line)
        except ValueError:
            self.fail(f"the driver wrote no JSON: {line[:200]!r}")
        if not isinstance(reply, dict):
            self.fail(f"the driver wrote no reply: {line[:200]!r}")
        return reply

    def read_line(self) -> bytes:
        pieces = [self.buffer]
        while b"\n" not in pieces[-1]:
            wait = max(0.0, self.deadline - time.monotonic())
            if not select.select([self.process.stdout], [], [], wait)[0]:
                self.fail(f"the driver gave no reply within {CASE_SECONDS_MAX} s")
            piece = os.read(self.process.stdout.fileno(), 1 << 20)
            if not piece:
                self.fail("the driver died")
            pieces.append(piece)
        line, _, self.buffer = b"".join(pieces).partition(b"\n")
        return line

    def fail(self, text: str) -> None:
        """Raises with the rest of the driver's output; the next request starts a new process."""
        process, self.process = self.process, None
        try:
            process.wait(timeout=1)  # a dead process has an exit code to report
            text += f" (exit code {process.returncode})"
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self.errors.seek(0)
        said = self.errors.read().decode(errors="replace").strip()[-2000:]
        raise DriverFailure(f"{text}; stderr: {said}" if said else text)


class Outcome(NamedTuple):
    seed: int
    difference: str | None
    features: set
    half_rule: bool
    rows: int
    steps: int


def case_seed(seed: int, index: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed} {index}".encode()).digest()[:6], "big")


def run_case(driver: Driver, seed: int) -> Outcome:
    case = make_case(seed)
    driver.start_case()
    orders: dict[tuple, list] = {}

    def order(*key: int) -> list:
        if key not in orders:
            request = dict(zip(("size", "seed", "pass", "round"), key))
            reply = driver.ask({"order": request})
            if "order" not in reply:
                raise DriverFailure(f"no order for {request}: {json.dumps(reply)[:200]}")
            orders[key] = reply["order"]
        return orders[key]

    found, rows, steps = set(), 0, 0
    try:
        want = expected(case, order)
        everything = [step for session in want["sessions"] for step in session["steps"]]
        steps, rows = len(everything), sum(s["shares"][0]["global_valid"] for s in everything)
        difference = first_difference(driver.ask({"case": case}), want, case)
        found = features(case, want)
    except DriverFailure as failure:
        difference = str(failure)
    except Exception as error:  # a bad order, a reply of another form, or a mistake of the model
        difference = f"{type(error).__name__}: {error}"
    return Outcome(seed, difference, found, meets_half_rule(case), rows, steps)


# Comparison: each function returns the first difference as a sentence, or None.


def first_difference(got: dict, want: dict, case: dict) -> str | None:
    if "sessions" not in got:
        return f"the driver answered {json.dumps(got)[:2000]}"
    for number, (mine, theirs) in enumerate(zip(want["sessions"], got["sessions"])):
        session = case["sessions"][number]
        learned = [Learned(has_mask(case["dataset"]), has_whole(case["dataset"]))
                   for _ in range(session["shares"] // session["local"])]
        difference = (steps_difference(theirs, mine, learned)
                      or failure_difference(theirs, mine, session))
        if not difference and mine["error"] is None:
            bytes_max = STREAM_STATE_BYTES_MAX if want["stream"] else STATE_BYTES_MAX
            difference = state_difference(theirs["state"], mine["state"], bytes_max)
        if difference:
            return f"session {number}, {difference}"
    return counted("sessions", got["sessions"], want["sessions"])


def steps_difference(got: dict, want: dict, learned: list[Learned]) -> str | None:
    """`learned`: one for each loader."""
    for theirs, mine in zip(got["steps"], want["steps"]):
        place = f"epoch {mine['epoch']} step {mine['step']}"
        if (theirs["epoch"], theirs["step"]) != (mine["epoch"], mine["step"]):
            return f"{place}: delivered as epoch {theirs['epoch']} step {theirs['step']}"
        for number, loader in enumerate(learned):
            local = slice(number * len(mine["shares"]) // len(learned),
                          (number + 1) * len(mine["shares"]) // len(learned))
            difference = loader.settle(theirs["shares"][local], mine["shares"][local])
            if difference:
                return f"{place} loader {number}{difference}"
        for share, (their_share, my_share) in enumerate(zip(theirs["shares"], mine["shares"])):
            difference = share_difference(their_share, my_share)
            if difference:
                return f"{place} share {share}{difference}"
        difference = counted("shares", theirs["shares"], mine["shares"])
        if difference:
            return f"{place}: {difference}"
    difference = counted("steps", got["steps"], want["steps"])
    if difference and got["error"]:
        difference += f"; then {got['error']}"
    return difference


def share_difference(got: dict, want: dict) -> str | None:
    columns = [("id", got["ids"], want["ids"])]
    columns += [(name, got[name], want[name]) for name in ("weight", "valid")]
    # A rank without a single row cannot know the result of an undeclared function.
    if all(id_ == NO_ID for id_ in want["ids"]) and not got["fields"]:
        got = got | {"fields": want["fields"], "forms": {}}
    if sorted(got["fields"]) != sorted(want["fields"]):
        return f": fields {sorted(got['fields'])}, expected {sorted(want['fields'])}"
    columns += [(f'field "{path}"', got["fields"][path], want["fields"][path])
                for path in want["fields"]]
    for name, theirs, mine in columns:
        if theirs == mine:
            continue
        for row, (their_value, my_value) in enumerate(zip(theirs, mine)):
            if their_value != my_value:
                return f" row {row}: {name} {their_value}, expected {my_value}"
        return f": {name}: {counted('rows', theirs, mine)}"
    if got["fields"] and got["forms"] and sorted(got["forms"]) != sorted(want["forms"]):
        return f": arrays {sorted(got['forms'])}, expected {sorted(want['forms'])}"
    for path, view in got["forms"].items():
        expected_view = view_of(want["fields"][path], want["forms"][path])
        if view != expected_view:
            return f': field "{path}" is stored as {view}, expected {expected_view}'
    for name in ("global_valid", "loss_scale"):
        if got[name] != want[name]:
            return f": {name} {got[name]!r}, expected {want[name]!r}"
    return None


def state_difference(got: dict, want: dict, bytes_max: int) -> str | None:
    for name in ("epoch", "step"):
        if got[name] != want[name]:
            return f"state at the end: {name} {got[name]}, expected {want[name]}, in {got}"
    position = want["position"]
    if position is not None and got["position"] != position:
        return f"state at the end: position {got['position']}, expected {position}, in {got}"
    if (got["position"] == 0) != (got["step"] == 0):
        return f"state at the end: position {got['position']} at step {got['step']}"
    if not 0 < got["bytes"] <= bytes_max:
        return f"state at the end: {got['bytes']} bytes, expected at most {bytes_max}"
    return None


def counted(what: str, got: Any, want: Any) -> str | None:
    return None if len(got) == len(want) else f"{len(got)} {what}, expected {len(want)}"


# Running many.

worker_driver: Driver


def start_worker(path: str) -> None:
    global worker_driver
    worker_driver = Driver(path)


def run_in_worker(seed: int) -> Outcome:
    return run_case(worker_driver, seed)


def run_all(path: str, seeds: list[int], jobs: int):
    if jobs == 1:
        driver = Driver(path)
        yield from (run_case(driver, seed) for seed in seeds)
        return
    with multiprocessing.Pool(jobs, start_worker, (path,)) as pool:
        # In order, so that an interrupted run has completed all cases up to some number.
        yield from pool.imap(run_in_worker, seeds, chunksize=4)
        pool.close()
        pool.join()


def report(outcome: Outcome) -> None:
    print(f"FAILED case seed {outcome.seed}\n  {outcome.difference}")
    print(f"  case: {json.dumps(make_case(outcome.seed))}")
    print(f"  again: --only {outcome.seed}\n", flush=True)


def print_coverage(outcomes: list[Outcome]) -> list[str]:
    """Prints how often each feature occurred; returns the complaints about it."""
    total, complaints = len(outcomes), []
    counts = Counter(name for outcome in outcomes for name in outcome.features)
    enough = total >= FEATURE_CASES_MIN
    print(f"{'feature':42}{'cases':>7}{'%':>8}")
    for name in FEATURES:
        print(f"{name:42}{counts[name]:7}{100 * counts[name] / total:8.1f}")
        if enough and counts[name] < FEATURE_SHARE_MIN * total:
            complaints.append(f"{name}: only {counts[name]} of {total} cases")
    half = sum(outcome.half_rule for outcome in outcomes)
    print(f"{'3 ops, 2 shares and 1 resume, or more':42}{half:7}{100 * half / total:8.1f}")
    rows, steps = (sorted(getattr(o, key) for o in outcomes) for key in ("rows", "steps"))
    print(f"rows delivered: mean {sum(rows) / total:.0f}, median {rows[total // 2]}, "
          f"largest {rows[-1]}; steps: mean {sum(steps) / total:.1f}, largest {steps[-1]}")
    if enough and 2 * half < total:
        complaints.append(f"only {half} of {total} cases have 3 ops, 2 shares and 1 resume")
    return complaints


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--driver", required=True, help="the program that runs cases on the engine")
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="driver processes in parallel")
    parser.add_argument("--from", type=int, default=0, dest="begin", metavar="NUMBER",
                        help="the first case; a long run can be done in parts")
    parser.add_argument("--seconds", type=float, default=float("inf"),
                        help="end with the first case that is done after so long")
    parser.add_argument("--first", action="store_true", help="end at the first case that differs")
    parser.add_argument("--only", type=int, metavar="CASE_SEED", help="run this one case")
    options = parser.parse_args()
    path = os.path.abspath(options.driver)
    if not os.access(path, os.X_OK):
        parser.error(f"{options.driver} is no program")
    if options.only is not None:
        seeds = [options.only]
    else:
        numbers = range(options.begin, options.begin + max(1, options.cases))
        seeds = [case_seed(options.seed, number) for number in numbers]
    begin, outcomes, failed = time.monotonic(), [], 0
    for outcome in run_all(path, seeds, max(1, options.jobs)):
        outcomes.append(outcome)
        if outcome.difference:
            failed += 1
            if failed <= PRINTED_FAILURES_MAX:
                report(outcome)
            else:
                print(f"FAILED case seed {outcome.seed}: {outcome.difference[:200]}", flush=True)
            if options.first:
                break
        if time.monotonic() - begin > options.seconds:
            break
    partial = options.only is not None or (options.first and failed)
    complaints = [] if partial else print_coverage(outcomes)
    for complaint in complaints:
        print(f"coverage: {complaint}")
    print(f"{time.monotonic() - begin:.1f} s")
    if not partial and len(outcomes) < len(seeds):
        print(f"ended early: continue with --from {options.begin + len(outcomes)}")
    print(f"{len(outcomes) - failed} passed, {failed} failed")
    return 1 if failed or complaints else 0


if __name__ == "__main__":
    sys.exit(main())
