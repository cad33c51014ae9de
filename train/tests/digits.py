#!/usr/bin/env python3
"""Does it learn? The handwritten digits shipped inside scikit-learn (1,797 of 8 x 8), written as
PNG files, trained by `penstock train` on 3 replicas; every fifth is held out.

Needs scikit-learn, and is not part of `make test`:
    python3 train/tests/digits.py --command build/release/bin/penstock
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from sklearn.datasets import load_digits

from command import write_png


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--command", required=True)
    command = os.path.abspath(parser.parse_args().command)
    digits = load_digits()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for number, (image, label) in enumerate(zip(digits.images, digits.target)):
            folder = root / ("test" if number % 5 == 4 else "train") / str(label)
            folder.mkdir(parents=True, exist_ok=True)
            rows = [bytes(int(value * 255 / 16) for value in row for _ in range(3))
                    for row in image]
            write_png(folder / f"{number:04}.png", rows, 8)
        log = root / "log.json"
        done = subprocess.run(
            [command, "train", "--data", str(root / "train"), "--val", str(root / "test"),
             "--replicas", "3", "--batch", "32", "--epochs", "12", "--size", "16", "--model", "cnn",
             "--lr", "0.002", "--decay", "--json", str(log)], check=False)
        epochs = [json.loads(line) for line in log.read_text().splitlines()]
    accuracy = epochs[-1]["val_accuracy"]
    print(f"{epochs[-1]['val_samples']} digits it never saw: {100 * accuracy:.2f} % right "
          "(wanted 97)")
    return 0 if done.returncode == 0 and accuracy >= 0.97 else 1


if __name__ == "__main__":
    sys.exit(main())
