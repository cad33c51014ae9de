"""The engine beside NumPy and bare threads: rounds interleaved, medians, every figure kept.

    python bench/engine/run.py --bench build/bench/bench/engine_bench [--rounds 7] [--out FILE]

Each measurement is a process of its own. Writes all figures with the machine's facts to --out.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
LOOPS = [sys.executable, str(HERE / "numpy_loops.py")]


def rate(command: list[str]) -> float:
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    result = json.loads(out)
    return result["items"] / result["seconds"]


def two_numpy_loops() -> float:
    """Both loops start when the file goes; their rates add up."""
    with tempfile.NamedTemporaryFile(delete=False) as barrier:
        pass
    command = [*LOOPS, "rows", barrier.name]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    # Each makes its array first; the barrier goes when both are sure to wait at it.
    subprocess.run([*LOOPS, "rows"], check=True, capture_output=True)
    os.unlink(barrier.name)
    results = [json.loads(process.communicate()[0]) for process in both]
    return sum(result["items"] / result["seconds"] for result in results)


def measurements(bench: str) -> dict:
    engine = lambda workload, threads: lambda: rate([bench, workload, str(threads)])
    beside = str(Path(bench).with_name("stream_bench"))
    streams = lambda workload, threads: lambda: rate([beside, workload, str(threads)])
    return {
        "tiny: numpy, 1 thread": lambda: rate([*LOOPS, "tiny"]),
        "tiny: penstock, inline": engine("tiny", 0),
        "tiny: penstock, 1 thread": engine("tiny", 1),
        "tiny: penstock, 2 threads": engine("tiny", 2),
        "tiny: repeated 20 times and shuffled, 2 threads": engine("tiny-repeated", 2),
        "tiny: two halves shuffled, 2 threads": engine("tiny-concatenated", 2),
        "permutation alone, 1 thread": engine("permutation", 1),
        "rows: numpy, 1 thread": lambda: rate([*LOOPS, "rows"]),
        "rows: numpy, 2 loops at once": two_numpy_loops,
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
    ("tiny, 2 threads / numpy", "tiny: penstock, 2 threads", "tiny: numpy, 1 thread", 1.5),
    ("tiny, 1 thread / numpy", "tiny: penstock, 1 thread", "tiny: numpy, 1 thread", None),
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


def machine() -> dict:
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo")
                  if line.startswith("model name")), platform.processor())
    return {"cpu": model, "cores": os.cpu_count(), "kernel": platform.release(),
            "python": platform.python_version()}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bench", required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", default=str(HERE.parent / "results" / "engine.json"))
    args = parser.parse_args()
    jobs = measurements(args.bench)
    figures: dict[str, list[float]] = {name: [] for name in jobs}
    for round_ in range(args.rounds):
        for name, job in jobs.items():
            figures[name].append(job())
        print(f"round {round_ + 1} of {args.rounds}", file=sys.stderr, flush=True)
    for name, rates in figures.items():
        spread = " ".join(f"{value / 1e6:.3g}" for value in rates)
        print(f"{name:<52} {statistics.median(rates) / 1e6:9.3f} M/s   [{spread}]")
    print()
    verdict = []
    for name, ours, theirs, wanted in RATIOS:
        per_round = [a / b for a, b in zip(figures[ours], figures[theirs])]
        ratio = statistics.median(per_round)
        spread = " ".join(f"{value:.2f}" for value in per_round)
        goal = f"wanted {wanted}  {'ok' if ratio >= wanted else 'BELOW'}" if wanted else ""
        print(f"{name:<34} {ratio:6.2f}   [{spread}]  {goal}")
        verdict.append({"name": name, "median": ratio, "rounds": per_round, "wanted": wanted})
    slow = []
    for name, wanted in FLOORS:
        median = statistics.median(figures[name]) / 1e6
        print(f"{name:<52} {median:6.1f} M/s   wanted {wanted}  "
              f"{'ok' if median >= wanted else 'BELOW'}")
        slow += [name] if median < wanted else []
    Path(args.out).parent.mkdir(exist_ok=True)
    Path(args.out).write_text(json.dumps(
        {"machine": machine(), "rounds": args.rounds, "rates": figures, "ratios": verdict},
        indent=1) + "\n")
    below = [entry for entry in verdict if entry["wanted"] and entry["median"] < entry["wanted"]]
    return 1 if below or slow else 0


if __name__ == "__main__":
    sys.exit(main())
