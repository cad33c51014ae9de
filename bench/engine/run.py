"""The engine beside NumPy and bare threads: rounds interleaved, medians, every figure kept.

    python bench/engine/run.py --bench build/bench/bench/engine_bench [--rounds 7] [--out FILE]

Each measurement is a process of its own. Writes all figures with machine, date and commit to --out,
and exits with 1 when a figure is below what is wanted.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
from rounds import facts, interleaved, ratio  # noqa: E402

LOOPS = [sys.executable, str(HERE / "numpy_loops.py")]


def rate(command: list[str]) -> float:
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    result = json.loads(out)
    return result["items"] / result["seconds"]


def calibrated_turns(bench: str) -> int:
    """How many turns of the spinning loop take 100 us here."""
    out = subprocess.run([bench, "turns", "1"], check=True, capture_output=True, text=True).stdout
    return json.loads(out)["items"]


def two_numpy_loops(workload: str) -> float:
    """Both loops start when the file is removed; their rates add up."""
    with tempfile.NamedTemporaryFile(delete=False) as barrier:
        pass
    command = [*LOOPS, workload, barrier.name]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for process in both:  # each makes its array first
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    os.unlink(barrier.name)
    results = [json.loads(process.communicate()[0]) for process in both]
    return sum(result["items"] / result["seconds"] for result in results)


def measurements(bench: str) -> dict:
    engine = lambda workload, threads: lambda: rate([bench, workload, str(threads)])
    beside = str(Path(bench).with_name("stream_bench"))
    streams = lambda workload, threads: lambda: rate([beside, workload, str(threads)])
    return {
        "tiny: numpy, 1 thread": lambda: rate([*LOOPS, "tiny"]),
        "tiny: numpy, 2 loops at once": lambda: two_numpy_loops("tiny"),
        "tiny: penstock, inline": engine("tiny", 0),
        "tiny: penstock, 1 thread": engine("tiny", 1),
        "tiny: penstock, 2 threads": engine("tiny", 2),
        "tiny: repeated 20 times and shuffled, 2 threads": engine("tiny-repeated", 2),
        "tiny: two halves shuffled, 2 threads": engine("tiny-concatenated", 2),
        "permutation alone, 1 thread": engine("permutation", 1),
        "rows: numpy, 1 thread": lambda: rate([*LOOPS, "rows"]),
        "rows: numpy, 2 loops at once": lambda: two_numpy_loops("rows"),
        "rows: penstock, 1 thread": engine("rows", 1),
        "rows: penstock, 2 threads": engine("rows", 2),
        "rows: 20 epochs, 2 threads": engine("rows20", 2),
        "rows: repeated 20 times and shuffled, 2 threads": engine("rows-repeated", 2),
        "overhead: 100 us spins, 2 bare threads": engine("bare", 2),
        "overhead: 100 us spins, penstock, 2 threads": engine("overhead", 2),
        "stream: generator, filter, window, batch, 2 threads": streams("stream", 2),
        "stream: 16 interleaved, 2 threads": streams("interleave16", 2),
        "stream: 1 interleaved, 2 threads": streams("interleave1", 2),
        "stream: going on after 1e6 elements": streams("replay", 2),
        "skip: one sample in ten fails, 2 threads": streams("skip", 2),
        "skip: none fails, 2 threads": streams("clean", 2),
        "replicas: rows over 8 shares, 2 threads": streams("shares8", 2),
        "replicas: rows over 1 share, 2 threads": streams("shares1", 2),
        "replicas: cutting steps of 1000 over 8": streams("cutting", 1),
    }


RATIOS = [
    ("tiny, 1 thread / numpy", "tiny: penstock, 1 thread", "tiny: numpy, 1 thread", 1.3),
    ("tiny, 2 threads / 2 numpy loops", "tiny: penstock, 2 threads",
     "tiny: numpy, 2 loops at once", 1.0),
    ("tiny, inline / numpy", "tiny: penstock, inline", "tiny: numpy, 1 thread", None),
    ("tiny repeated / not", "tiny: repeated 20 times and shuffled, 2 threads",
     "tiny: penstock, 2 threads", None),
    ("tiny halves / whole", "tiny: two halves shuffled, 2 threads", "tiny: penstock, 2 threads",
     None),
    ("rows repeated / epochs", "rows: repeated 20 times and shuffled, 2 threads",
     "rows: 20 epochs, 2 threads", None),
    ("rows, 1 thread / numpy", "rows: penstock, 1 thread", "rows: numpy, 1 thread", 1.0),
    ("rows, 2 threads / 2 numpy loops", "rows: penstock, 2 threads",
     "rows: numpy, 2 loops at once", 0.85),
    ("overhead, 2 threads / bare", "overhead: 100 us spins, penstock, 2 threads",
     "overhead: 100 us spins, 2 bare threads", 0.97),
    ("16 interleaved / 1", "stream: 16 interleaved, 2 threads",
     "stream: 1 interleaved, 2 threads", 1 / 1.3),
    ("one in ten bad / none", "skip: one sample in ten fails, 2 threads",
     "skip: none fails, 2 threads", 0.95),
    ("8 shares / 1 share", "replicas: rows over 8 shares, 2 threads",
     "replicas: rows over 1 share, 2 threads", 0.95),
]
FLOORS = [  # (name, million a second)
    ("permutation alone, 1 thread", 40),
    ("stream: generator, filter, window, batch, 2 threads", 10),
    ("stream: going on after 1e6 elements", 1),
]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bench", required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", default=str(HERE.parent / "results" / "engine.json"))
    args = parser.parse_args()
    # One calibration for all: both sides of a ratio do the same number of turns.
    os.environ["PENSTOCK_SPIN_TURNS"] = str(calibrated_turns(args.bench))
    figures = interleaved(measurements(args.bench), args.rounds)
    for name, rates in figures.items():
        spread = " ".join(f"{value / 1e6:.3g}" for value in rates)
        print(f"{name:<52} {statistics.median(rates) / 1e6:9.3f} M/s   [{spread}]")
    print()
    verdict = []
    for name, ours, theirs, wanted in RATIOS:
        median, each = ratio(figures[ours], figures[theirs])
        spread = " ".join(f"{value:.2f}" for value in each)
        goal = f"wanted {wanted:.2f}  {'ok' if median >= wanted else 'BELOW'}" if wanted else ""
        print(f"{name:<34} {median:6.2f}   [{spread}]  {goal}")
        verdict.append({"name": name, "median": median, "rounds": each, "wanted": wanted})
    slow = []
    for name, wanted in FLOORS:
        median = statistics.median(figures[name]) / 1e6
        print(f"{name:<52} {median:6.1f} M/s   wanted {wanted}  "
              f"{'ok' if median >= wanted else 'BELOW'}")
        slow += [name] if median < wanted else []
    Path(args.out).parent.mkdir(exist_ok=True)
    Path(args.out).write_text(json.dumps(
        {"facts": facts(), "rounds": args.rounds, "rates": figures, "ratios": verdict},
        indent=1) + "\n")
    below = [entry for entry in verdict if entry["wanted"] and entry["median"] < entry["wanted"]]
    return 1 if below or slow else 0


if __name__ == "__main__":
    sys.exit(main())
