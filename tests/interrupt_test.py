#!/usr/bin/env python3
"""Ctrl-C and SIGTERM, against the command as a process: it ends in time and reports where it was.

    python3 tests/interrupt_test.py --command build/dev/bin/penstock [--rounds 20] [--seed 1]

20 rounds, 200 with PENSTOCK_LONG=1; each with other options and at another moment of the run.
Standard library only. Prints one line per failure and exits 1 if there is one.
"""

import argparse
import contextlib
import os
import random
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

END_WITHIN_S = 1.0
POSITION = re.compile(r"(interrupted|terminated) at epoch (\d+), step (\d+), (\d+) samples")
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


def default_signals() -> None:
    # A make in the background ignores SIGINT, which its programs inherit.
    for number in CODES:
        signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def running(command: str, *options: str) -> Iterator["Run"]:
    with tempfile.TemporaryFile("w+") as told, subprocess.Popen(
            [command, "demo", *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=told, preexec_fn=default_signals) as process:
        try:
            yield Run(process, told)
        finally:
            process.kill()


class Run:
    def __init__(self, process, told) -> None:
        self.process, self.told, self.output = process, told, b""

    def read_until(self, words: bytes, seconds: float = 60.0) -> None:
        until = time.monotonic() + seconds
        while words not in self.output:
            left = until - time.monotonic()
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, left))
            piece = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not piece:
                raise AssertionError(f"never said {words!r}, but {self.output!r}")
            self.output += piece

    def read_for(self, seconds: float) -> None:
        """Lets it run, and reads its output, so that it never blocks on a full pipe."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if select.select([self.process.stdout], [], [], left)[0]:
                self.output += os.read(self.process.stdout.fileno(), 65536)

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self, number: signal.Signals, since: float) -> str:
        """Waits for the end, which must come in time; returns stderr."""
        try:
            code = self.process.wait(timeout=10)
        except subprocess.TimeoutExpired as late:
            raise AssertionError("still running 10 s after the signal") from late
        took = time.monotonic() - since
        self.output += self.process.stdout.read()  # the rest of the pipe
        self.told.seek(0)
        told = self.told.read()
        assert code == CODES[number], f"exit code {code} after {number.name}: {told}"
        assert took <= END_WITHIN_S, f"took {took:.2f} s to end"
        return told


def position_in(told: str, number: signal.Signals) -> tuple[int, int, int]:
    found = POSITION.search(told)
    assert found, f"no position in {told!r}"
    word = "interrupted" if number == signal.SIGINT else "terminated"
    assert found[1] == word, told
    epoch, step, samples = (int(text) for text in found.groups()[1:])
    return epoch, step, samples


def a_moment_of_a_run(command: str, random_: random.Random) -> None:
    batch = random_.choice((1, 7, 64))
    samples = random_.choice((50, 1003, 20011))
    options = ["--endless", "--samples", str(samples), "--batch", str(batch), "--work-us",
               random_.choice(("0", "20", "500")), "--threads", random_.choice(("0", "1", "2"))]
    number = random_.choice(list(CODES))
    with running(command, *options) as run:
        run.read_until(b"\n")
        run.read_for(random_.choice((0.0, 0.01, 0.1, 0.5)) * random_.random())
        since = time.monotonic()
        run.send(number)
        epoch, step, received = position_in(run.end(number, since), number)
        steps = -(-samples // batch)
        assert epoch <= run.output.count(b"it holds"), "an epoch that was not finished"
        assert step <= steps and received == min(step * batch, samples), (step, received, options)


def wait_for_the_stuck_function(run: "Run") -> None:
    run.read_until(b"\n")
    run.read_for(0.6)  # 100 samples, of which the one in the middle never arrives


STUCK = ("--endless", "--stuck", "--samples", "100", "--batch", "10")


def a_function_that_never_returns(command: str, _: random.Random) -> None:
    for number in CODES:
        with running(command, *STUCK) as run:
            wait_for_the_stuck_function(run)
            since = time.monotonic()
            run.send(number)
            told = run.end(number, since)
            position_in(told, number)
            assert "1 thread did not return and was abandoned" in told, told
            assert re.search(r'in .*"features".* with sample 50 of source 0', told), told


def a_function_that_never_returns_in_the_main_thread(command: str, _: random.Random) -> None:
    with running(command, *STUCK, "--threads", "0") as run:
        wait_for_the_stuck_function(run)
        since = time.monotonic()
        run.send(signal.SIGINT)
        told = run.end(signal.SIGINT, since)
        position_in(told, signal.SIGINT)
        assert "held up in a function" in told, told


def a_second_signal_leaves_at_once(command: str, _: random.Random) -> None:
    for first, second in ((signal.SIGINT, signal.SIGINT), (signal.SIGTERM, signal.SIGINT)):
        with running(command, *STUCK) as run:
            wait_for_the_stuck_function(run)
            run.send(first)
            time.sleep(0.1)
            assert run.process.poll() is None, "the stuck thread is waited for, for half a second"
            since = time.monotonic()
            run.send(second)
            run.end(second, since)
            assert time.monotonic() - since < 0.3, "waited for the thread all the same"


def nobody_reads_what_it_prints(command: str, _: random.Random) -> None:
    with running(command, "--endless", "--samples", "10", "--batch", "1") as run:
        run.read_until(b"\n")
        time.sleep(0.5)  # the pipe is full by now, or nearly
        since = time.monotonic()
        run.send(signal.SIGINT)
        position_in(run.end(signal.SIGINT, since), signal.SIGINT)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--command", default="build/dev/bin/penstock")
    parser.add_argument("--rounds", type=int,
                        default=200 if os.environ.get("PENSTOCK_LONG") else 20)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    special = (a_function_that_never_returns, a_function_that_never_returns_in_the_main_thread,
               a_second_signal_leaves_at_once, nobody_reads_what_it_prints)
    failures = 0
    for number, case in enumerate([*special, *[a_moment_of_a_run] * arguments.rounds]):
        try:
            case(arguments.command, random.Random(f"{arguments.seed} {number}"))
        except AssertionError as error:
            failures += 1
            print(f"FAILED {case.__name__} ({number}): {error}", flush=True)
    print(f"interrupt_test: {len(special) + arguments.rounds} cases, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
