#!/usr/bin/env python3
"""`make demo`: a small, deliberately awkward picture dataset, trained on 4 replicas, killed in the
middle, resumed, and what that proves.

The pictures are drawn here, always the same: 1,009 of them (a prime number), in three classes, one
of them broken. What is shown is what `penstock train` prints.
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

PICTURES, HELD_OUT, SIDE, EPOCHS = 1009, 199, 32, 6
BATCH, REPLICAS, SEED, BROKEN = 64, 4, 7, "disc/0100.png"


def write_png(path: Path, rows: list[bytearray]) -> None:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))
    head = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data)
                     + chunk(b"IEND", b""))


def draw(kind: str, dice: random.Random) -> list[bytearray]:
    """A disc, a square or a cross, anywhere, in any color, on noise."""
    rows = [bytearray(dice.randrange(70) for _ in range(3 * SIDE)) for _ in range(SIDE)]
    color = [dice.randrange(120, 256) for _ in range(3)]
    size = dice.randrange(6, 11)
    left, top = dice.randrange(size, SIDE - size), dice.randrange(size, SIDE - size)
    for y in range(top - size, top + size):
        for x in range(left - size, left + size):
            dx, dy = x - left, y - top
            inside = {"disc": dx * dx + dy * dy <= size * size,
                      "square": True,
                      "cross": abs(dx) < size // 3 or abs(dy) < size // 3}[kind]
            if inside:
                rows[y][3 * x:3 * x + 3] = bytes(color)
    return rows


def make_pictures(folder: Path, count: int, seed: int) -> None:
    dice = random.Random(seed)
    for number in range(count):
        kind = ("cross", "disc", "square")[number % 3]
        (folder / kind).mkdir(parents=True, exist_ok=True)
        write_png(folder / kind / f"{number:04}.png", draw(kind, dice))


def epochs_of(log: Path) -> list[dict]:
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def updates_saved(folder: Path) -> int:
    """The number of the newest checkpoint in a folder; 0 where there is none."""
    return max((int(path.name.removeprefix("step-")) for path in folder.glob("step-*")), default=0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--command", required=True, help="the penstock command")
    command = os.path.abspath(parser.parse_args().command)
    root = Path(tempfile.mkdtemp(prefix="penstock-demo-"))
    try:
        return Demo(command, root).run()
    finally:
        shutil.rmtree(root, ignore_errors=True)


class Demo:
    def __init__(self, command: str, root: Path) -> None:
        self.command, self.root = command, root
        self.began = time.monotonic()
        # By the seed that `penstock train` uses.
        self.shape = ["--data", str(root / "train"), "--batch", str(BATCH), "--replicas",
                      str(REPLICAS), "--seed", str(SEED)]

    def training(self, folder: str) -> list[str]:
        return [self.command, "train", *self.shape, "--val", str(self.root / "val"), "--epochs",
                str(EPOCHS), "--model", "cnn", "--size", str(SIDE), "--lr", "0.002",
                "--skip-broken", "--resume", str(self.root / folder), "--every", "4", "--json",
                str(self.log(folder))]

    def log(self, folder: str) -> Path:
        return self.root / f"{folder}.json"

    def run(self) -> int:
        make_pictures(self.root / "train", PICTURES, 1)
        make_pictures(self.root / "val", HELD_OUT, 2)
        victim = self.root / "train" / BROKEN
        victim.write_bytes(victim.read_bytes()[:300])
        print(f"{PICTURES} images of crosses, discs and squares, one of them truncated: "
              f"{BROKEN}\nthey are trained three times; on two cores that takes about 10 s\n",
              flush=True)
        plan = json.loads(subprocess.run([self.command, "plan", *self.shape, "--json"], check=True,
                                         capture_output=True, text=True).stdout)
        walked = subprocess.run([self.command, "plan", *self.shape, "--check"], check=False,
                                capture_output=True, text=True)
        verified = json.loads(subprocess.run([self.command, "verify", str(self.root / "train"),
                                              "--json"], check=False, capture_output=True,
                                             text=True).stdout)
        broken = [one["file"] for one in verified["broken"]]
        folder = self.killed_run(plan["steps"])
        if folder is None:
            return 1
        print("\nstarted again:\n", flush=True)
        again, output = self.shown(self.training(folder))
        if again != 0:
            return 1
        print("\nthe same run without a kill, for comparison:\n", flush=True)
        if subprocess.run(self.training("whole"), check=False,
                          stdout=subprocess.DEVNULL).returncode != 0:
            return 1
        return self.prove(plan, walked.returncode == 0 and "every sample once" in walked.stdout,
                          broken, output, epochs_of(self.log(folder)),
                          epochs_of(self.log("whole")))

    def killed_run(self, steps: int) -> str | None:
        """Trains and kills the process in the third epoch; returns the folder it saved to."""
        for attempt in range(1, 6):
            folder = f"saved{attempt}"
            print("$ penstock train --replicas 4 --batch 64 --skip-broken ...", flush=True)
            process = subprocess.Popen(self.training(folder))
            while process.poll() is None and updates_saved(self.root / folder) <= 2 * steps:
                time.sleep(0.01)
            process.kill()
            process.wait()
            done = len(epochs_of(self.log(folder)))
            if process.returncode == -signal.SIGKILL and done < EPOCHS:
                print(f"\n\nkilled (kill -9) after {done} of {EPOCHS} epochs, with a checkpoint of "
                      f"update {updates_saved(self.root / folder)}", flush=True)
                return folder
            if process.returncode not in (0, -signal.SIGKILL):
                return None
            print("\nthe run ended before it was killed; trying again:\n", flush=True)
        print("five runs ended before they could be killed: nothing was checked")
        return None

    def shown(self, command: list[str]) -> tuple[int, str]:
        """Runs a command and shows its output; returns its exit code and the output."""
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            lines = []
            for line in process.stdout:
                print(line, end="", flush=True)
                lines.append(line)
        return process.returncode, "".join(lines)

    def prove(self, plan: dict, every_sample_once: bool, broken: list[str], output: str,
              killed: list[dict], whole: list[dict]) -> int:
        fields = ("epoch", "steps", "samples", "loss", "accuracy", "val_loss", "val_accuracy")
        def numbers(epochs: list[dict]) -> list[tuple]:
            return [tuple(one[name] for name in fields) for one in epochs]
        first, last = sum(plan["first_cut"]), sum(plan["last_cut"])
        # The order that was trained is the order that `plan --check` walked through.
        order = re.search(r"order ([0-9a-f]{16})", output)
        planned = (every_sample_once and order is not None
                   and order[1] == plan["digests"]["order"] and plan["delivered"] == PICTURES
                   and plan["padded"] == plan["dropped"] == plan["repeated"] == 0
                   and first * (plan["steps"] - 1) + last == PICTURES)
        counted = broken == [BROKEN] and all(
            (one["samples"], one["steps"]) == (PICTURES - 1, plan["steps"])
            for one in killed + whole)
        resumed = re.search(r"resumed from .*: epoch (\d+), after step (\d+)", output)
        same = (numbers(killed) == numbers(whole)
                and [one["epoch"] for one in killed] == list(range(EPOCHS)))
        final = killed[-1]
        learned = final["val_accuracy"] > 0.9
        wait = (sum(one["input_wait"] * one["seconds"] for one in whole)
                / sum(one["seconds"] for one in whole))
        claims = [
            (f"{plan['steps'] - 1} steps of {first} and one of {last} over {REPLICAS} replicas; "
             "each image in exactly one of them; no padding, no dropped samples", planned),
            (f"each epoch trained on {PICTURES - 1} images: all but the broken one, {BROKEN}",
             counted),
            ("the killed run resumed "
             + (f"in epoch {resumed[1]} after step {resumed[2]}" if resumed else "from the start"),
             resumed is not None),
            ("it ended with the same losses, to the last bit, as a run that was not killed", same),
            (f"{100 * final['val_accuracy']:.1f} % of {HELD_OUT} held-out images are classified "
             "correctly", learned)]
        print("\nwhat this run checked")
        for claim, holds in claims:
            print(f"  {claim}:  {'yes' if holds else 'NO'}")
        print(f"  waiting for input took {100 * wait:.1f} % of the training time")
        print(f"  total time {time.monotonic() - self.began:.0f} s")
        return 0 if all(holds for _, holds in claims) else 1


if __name__ == "__main__":
    sys.exit(main())
