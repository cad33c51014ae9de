"""Samples of different lengths beside memcpy, torch and Hugging Face datasets, interleaved.

    python bench/lengths/run.py [--rounds 5] [--data DIR] [--hf PYTHON]

Each measurement is a process of its own with two threads or processes; ratios are medians over the
rounds. Packing is compared if --hf names an interpreter that has `datasets`.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAIRS = {"windows": ("memcpy", "torch"), "padded": ("torch",), "pack": ("datasets",)}
WANTED = {("windows", "memcpy"): 0.8, ("windows", "torch"): 10, ("padded", "torch"): 5,
          ("pack", "datasets"): 20}


def rate(python, workload, who, data):
    done = subprocess.run([python, HERE / "workloads.py", workload, who, data],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])["rate"]


def main():
    args = argparse.ArgumentParser(description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--rounds", type=int, default=5)
    args.add_argument("--data", default=None)
    args.add_argument("--hf", default=None)
    options = args.parse_args()
    data = options.data or tempfile.mkdtemp()
    below = 0
    for workload, others in PAIRS.items():
        if workload == "pack" and not options.hf:
            continue
        figures = {}
        for number in range(options.rounds + 1):
            who = ("penstock", *others)
            for each in who if number % 2 else who[::-1]:
                python = options.hf if each == "datasets" else sys.executable
                value = rate(python, workload, each, data)
                if number:  # the first round is a warm-up
                    figures.setdefault(each, []).append(value)
        for other in others:
            ratio = statistics.median(a / b for a, b in
                                      zip(figures["penstock"], figures[other], strict=True))
            wanted = WANTED[workload, other]
            below += ratio < wanted
            print(f"{workload}: penstock {statistics.median(figures['penstock']):,.0f} rows/s, "
                  f"{ratio:.2f} of {other} (wanted {wanted})", flush=True)
    micros = statistics.median(rate(sys.executable, "next", "", data) for _ in range(3))
    below += micros > 200
    print(f"next() at 512 x 2048: {micros:.0f} us (wanted at most 200)")
    sys.exit(below > 0)


if __name__ == "__main__":
    main()
