"""Samples of different lengths beside memcpy, torch and Hugging Face datasets, interleaved.

    python bench/lengths/run.py [--rounds 5] [--data DIR] [--hf PYTHON] [--out FILE]

Each measurement is a process of its own with two threads or processes; ratios are medians over the
rounds. Packing is compared if --hf names an interpreter that has `datasets`. Writes all figures
with machine, date and commit to --out, and exits with 1 when a figure is below what is wanted.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from rounds import ROOT, facts, interleaved, ratio  # noqa: E402

WANTED = {("windows", "memcpy"): 0.8, ("windows", "torch"): 10, ("padded", "torch"): 5,
          ("pack", "datasets"): 20}
NEXT_MICROSECONDS_MAX = 200


def measured(python, workload, who, data):
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
    args.add_argument("--out", type=Path, default=ROOT / "bench/results/lengths.json")
    options = args.parse_args()
    data = options.data or tempfile.mkdtemp()
    pairs = [pair for pair in WANTED if pair[1] != "datasets" or options.hf]
    jobs = {}
    for workload, other in pairs:
        for who in ("penstock", other):
            python = options.hf if who == "datasets" else sys.executable
            jobs[f"{workload}: {who}"] = (lambda python=python, workload=workload, who=who:
                                          measured(python, workload, who, data))
    jobs["next"] = lambda: measured(sys.executable, "next", "", data)
    figures = interleaved(jobs, options.rounds)
    below = 0
    ratios = {}
    for workload, other in pairs:
        ours = figures[f"{workload}: penstock"]
        median, each = ratio(ours, figures[f"{workload}: {other}"])
        ratios[f"{workload} / {other}"] = {"median": median, "rounds": each}
        below += median < WANTED[workload, other]
        print(f"{workload}: penstock {statistics.median(ours):,.0f} rows/s, "
              f"{median:.2f} of {other} (wanted {WANTED[workload, other]})")
    micros = statistics.median(figures["next"])
    below += micros > NEXT_MICROSECONDS_MAX
    print(f"next() at 512 x 2048: {micros:.0f} us (wanted at most {NEXT_MICROSECONDS_MAX})")
    options.out.write_text(json.dumps({"facts": facts(), "rounds": options.rounds,
                                       "ratios": ratios, "figures": figures}, indent=1) + "\n")
    sys.exit(below > 0)


if __name__ == "__main__":
    main()
