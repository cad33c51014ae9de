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
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

PICTURES, HELD_OUT, SIDE, EPOCHS = 1009, 199, 32, 6


def write_png(path: Path, rows: list[bytearray]) -> None:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))
    head = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data)
                     + chunk(b"IEND", b""))


def draw(kind: str, dice: random.Random) -> list[bytearray]:
    """A disc, a square or a cross, anywhere, in any colour, on noise."""
    rows = [bytearray(dice.randrange(70) for _ in range(3 * SIDE)) for _ in range(SIDE)]
    colour = [dice.randrange(120, 256) for _ in range(3)]
    size = dice.randrange(6, 11)
    left, top = dice.randrange(size, SIDE - size), dice.randrange(size, SIDE - size)
    for y in range(top - size, top + size):
        for x in range(left - size, left + size):
            dx, dy = x - left, y - top
            inside = {"disc": dx * dx + dy * dy <= size * size,
                      "square": True,
                      "cross": abs(dx) < size // 3 or abs(dy) < size // 3}[kind]
            if inside:
                rows[y][3 * x:3 * x + 3] = bytes(colour)
    return rows


def make_pictures(folder: Path, count: int, seed: int) -> None:
    dice = random.Random(seed)
    for number in range(count):
        kind = ("cross", "disc", "square")[number % 3]
        (folder / kind).mkdir(parents=True, exist_ok=True)
        write_png(folder / kind / f"{number:04}.png", draw(kind, dice))


def epochs_of(log: Path) -> list[dict]:
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--command", required=True, help="the penstock command")
    command = os.path.abspath(parser.parse_args().command)
    root = Path(tempfile.mkdtemp(prefix="penstock-demo-"))
    began = time.monotonic()
    try:
        return run(command, root, began)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def run(command: str, root: Path, began: float) -> int:
    make_pictures(root / "train", PICTURES, 1)
    make_pictures(root / "val", HELD_OUT, 2)
    victim = root / "train" / "disc" / "0100.png"
    victim.write_bytes(victim.read_bytes()[:300])
    print(f"{PICTURES} pictures of crosses, discs and squares, one of them cut short: "
          "disc/0100.png\n", flush=True)
    log, whole_log = root / "log.json", root / "whole.json"

    def arguments(folder: str, log: Path) -> list[str]:
        return [command, "train", "--data", str(root / "train"), "--val", str(root / "val"),
                "--replicas", "4", "--batch", "64", "--epochs", str(EPOCHS), "--model", "cnn",
                "--size", str(SIDE), "--lr", "0.002", "--skip-broken", "--resume",
                str(root / folder), "--every", "4", "--json", str(log)]

    print("$ penstock train --replicas 4 --batch 64 --skip-broken ...", flush=True)
    process = subprocess.Popen(arguments("saved", log))
    while process.poll() is None and len(epochs_of(log)) < 2:
        time.sleep(0.05)
    # Somewhere in the third epoch.
    time.sleep(0.2)
    process.kill()
    process.wait()
    done = len(epochs_of(log))
    print(f"\n\nkilled (kill -9) in epoch {done + 1}; started again:\n", flush=True)
    if subprocess.run(arguments("saved", log), check=False).returncode != 0:
        return 1
    print("\nand the same once more without a kill, to compare:\n", flush=True)
    if subprocess.run(arguments("whole", whole_log), check=False,
                      stdout=subprocess.DEVNULL).returncode != 0:
        return 1
    return prove(epochs_of(log), epochs_of(whole_log), time.monotonic() - began)


def prove(killed: list[dict], whole: list[dict], seconds: float) -> int:
    fields = ("epoch", "steps", "samples", "loss", "accuracy", "val_loss", "val_accuracy")
    same = [tuple(one[name] for name in fields) for one in killed] == \
        [tuple(one[name] for name in fields) for one in whole]
    once = all(one["samples"] == PICTURES - 1 for one in killed)
    last = killed[-1]
    learnt = last["val_accuracy"] > 0.9
    wait = sum(one["input_wait"] * one["seconds"] for one in whole) / \
        sum(one["seconds"] for one in whole)
    def verdict(holds: bool) -> str:
        return "yes" if holds else "NO"
    print("what this proved")
    print(f"  each epoch trained on {PICTURES - 1} pictures, each once, the broken one left out:  "
          f"{verdict(once)}")
    print("  15 steps of 64 and one of 49 over 4 replicas: nothing padded, nothing dropped")
    print(f"  the killed run ended with the same losses, to the last bit, as one that was not:  "
          f"{verdict(same)}")
    print(f"  {100 * last['val_accuracy']:.1f} % of {HELD_OUT} pictures it never saw are named "
          f"right:  {verdict(learnt)}")
    print(f"  waiting for input took {100 * wait:.1f} % of the training time")
    print(f"  all of it in {seconds:.0f} s")
    return 0 if same and once and learnt else 1


if __name__ == "__main__":
    sys.exit(main())
