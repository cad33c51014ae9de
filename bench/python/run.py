"""Python beside C++, and W4 beside plain loops: ratios, medians of interleaved rounds.

    python bench/python/run.py --bench build/bench/bench [--rounds 5] [--data DIR] [--only WORD]

Each measurement is a process of its own. W1 and W2 need the images that `make rivals` makes
(--data); without them they are left out, and so is torch where it is not installed. Exits with 1
when a figure misses what is wanted. Every second round runs in reverse, after a warm-up.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))
from rounds import facts, interleaved, ratio  # noqa: E402

PYTHON = [sys.executable, str(HERE / "engine.py")]
W4 = [sys.executable, str(HERE / "w4.py")]
NUMPY = [sys.executable, str(HERE.parent / "engine/numpy_loops.py")]


class Figure(NamedTuple):
    rate: float  # items a second
    cpu_ms: float | None = None  # an item: other programs disturb it less than they do rates


def answer(command, **environment):
    done = subprocess.run(command, check=False, capture_output=True, text=True,
                          env={**os.environ, **environment})
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def rate(command):
    figures = answer(command)
    if "items_per_s" in figures:  # bench/rivals
        return Figure(figures["items_per_s"], figures["cpu_ms_per_item"])
    cpu = figures["cpu_seconds"] / figures["items"] * 1e3 if "cpu_seconds" in figures else None
    return Figure(figures["items"] / figures["seconds"], cpu)


def w4_rate(kind, turns):
    figures = answer([*W4, kind, "penstock", "2", "300"], PENSTOCK_W4=turns)
    return Figure(figures["items"] / figures["seconds"], figures["cpu_ms_per_item"])


def two_loops(kind, turns):
    """Two plain loops that begin at once; their rates add up."""
    with tempfile.NamedTemporaryFile(delete=False) as start:
        pass
    environment = {**os.environ, "PENSTOCK_START": start.name, "PENSTOCK_W4": turns}
    both = [subprocess.Popen([*W4, kind, "loop", "1", "150"], stdout=subprocess.PIPE, text=True,
                             env=environment) for _ in range(2)]
    for each in both:
        assert each.stdout.readline() == "ready\n"
    os.unlink(start.name)
    figures = [json.loads(each.communicate()[0]) for each in both]
    cpu = statistics.mean(figure["cpu_ms_per_item"] for figure in figures)
    return Figure(sum(figure["items"] / figure["seconds"] for figure in figures), cpu)


def measurements(bench, data):
    def cpp(workload, threads):
        return lambda: rate([f"{bench}/engine_bench", workload, str(threads)])

    def python(workload, threads, *more):
        return lambda: rate([*PYTHON, workload, str(threads), *more])

    # One calibration for both sides: how much work 5 ms are must not differ.
    turns = {kind: str(answer([*W4, kind, "turns"])["turns"]) for kind in ("holds", "releases")}
    jobs = {
        "W4 holds: two plain loops": lambda: two_loops("holds", turns["holds"]),
        "W4 holds: two workers": lambda: w4_rate("holds", turns["holds"]),
        "W4 releases: two plain loops": lambda: two_loops("releases", turns["releases"]),
        "W4 releases: two threads": lambda: w4_rate("releases", turns["releases"]),
        "rows: C++": cpp("rows20", 2), "rows: Python": python("rows20", 2),
        "W3 at batch 4096: C++": cpp("tiny4096", 2),
        "W3 at batch 4096: Python": python("tiny4096", 2),
        "W3 at batch 256: C++": cpp("tiny", 2),
        "W3 at batch 256: map_batch": python("tiny", 2),
        "W3 at batch 256: op": python("tiny-op", 2),
        "W3 at batch 256: map(lambda)": python("tiny-lambda", 2),
        "W3 at batch 256: NumPy": lambda: rate([*NUMPY, "tiny"]),
        "W3 at batch 256: NumPy, cast": lambda: rate([*NUMPY, "cast"]),
        "steps: C++": cpp("steps", 0), "steps: Python": python("steps", 0),
    }
    if data:
        for workload in ("W1", "W2"):
            jobs[f"{workload}: C++"] = lambda word=workload: rate(
                [f"{bench}/penstock_images", word, data])
            jobs[f"{workload}: Python"] = python(workload, 2, data)
    if subprocess.run([sys.executable, "-c", "import torch"], capture_output=True,
                      check=False).returncode == 0:
        jobs["batch.torch()"] = python("torch", 1)
    return jobs


RATIOS = [  # (name, ours, theirs, wanted)
    ("W4, lock held: 2 workers / 2 loops", "W4 holds: two workers", "W4 holds: two plain loops",
     0.9),
    ("W4, lock let go: 2 threads / 2 loops", "W4 releases: two threads",
     "W4 releases: two plain loops", 0.9),
    ("W1: Python / C++", "W1: Python", "W1: C++", 0.95),
    ("W2: Python / C++", "W2: Python", "W2: C++", 0.95),
    ("rows: Python / C++", "rows: Python", "rows: C++", 0.95),
    ("W3 at batch 4096: Python / C++", "W3 at batch 4096: Python", "W3 at batch 4096: C++", 0.8),
    ("W3 at batch 256: map_batch / C++", "W3 at batch 256: map_batch", "W3 at batch 256: C++",
     None),
    ("W3 at batch 256: map_batch / NumPy", "W3 at batch 256: map_batch", "W3 at batch 256: NumPy",
     1.0),
    ("W3 at batch 256: op / NumPy", "W3 at batch 256: op", "W3 at batch 256: NumPy, cast", 1.0),
    ("W3 at batch 256: map(lambda) / NumPy", "W3 at batch 256: map(lambda)",
     "W3 at batch 256: NumPy", None),
]


def verdict(name, figures, text, wanted, good):
    spread = " ".join(text.format(figure) for figure in figures)
    middle = statistics.median(figures)
    goal = "" if wanted is None else f"wanted {wanted}  {'ok' if good(middle) else 'MISSED'}"
    print(f"{name:<40} {text.format(middle):>8}   [{spread}]  {goal}")
    return {"name": name, "median": middle, "rounds": figures, "wanted": wanted,
            "ok": wanted is None or good(middle)}


def summary(figures):
    rows = []
    rates = {name: [each.rate for each in runs] for name, runs in figures.items()}
    for name, ours, theirs, wanted in RATIOS:
        if ours not in figures or theirs not in figures:
            continue
        rows.append(verdict(name, ratio(rates[ours], rates[theirs])[1], "{:.2f}", wanted,
                            lambda median, wanted=wanted: median >= wanted))
        cpu = [[each.cpu_ms for each in figures[side]] for side in (theirs, ours)]
        if all(value is not None for side in cpu for value in side):
            rows.append(verdict("  in CPU time", ratio(*cpu)[1], "{:.2f}", None, None))
    if "steps: Python" in figures:
        over = [(1 / ours - 1 / theirs) * 1e6
                for ours, theirs in zip(rates["steps: Python"], rates["steps: C++"])]
        rows.append(verdict("next and a view, us over C++", over, "{:.2f}", "at most 5",
                            lambda us: us <= 5))
    if "batch.torch()" in figures:
        rows.append(verdict("batch.torch() of 64 images, us",
                            [1e6 / each for each in rates["batch.torch()"]], "{:.1f}",
                            "at most 20", lambda us: us <= 20))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--data", default="")
    parser.add_argument("--only", default="", help="measurements whose name begins with this")
    parser.add_argument("--out", default=str(HERE.parent / "results" / "python.json"))
    args = parser.parse_args()
    os.environ["PYTHONPATH"] = str(Path(args.bench).resolve().parent / "python")
    jobs = {name: job for name, job in measurements(args.bench, args.data).items()
            if name.startswith(args.only)}
    figures = interleaved(jobs, args.rounds)
    for name, runs in figures.items():
        spread = " ".join(f"{each.rate:,.0f}" for each in runs)
        middle = statistics.median(each.rate for each in runs)
        print(f"{name:<32} {middle:>14,.0f}/s   [{spread}]")
    print()
    rows = summary(figures)
    if not args.only:
        Path(args.out).write_text(json.dumps(
            {"facts": facts(), "rounds": args.rounds,
             "rates": {name: [each.rate for each in runs] for name, runs in figures.items()},
             "ratios": rows}, indent=1) + "\n")
    return 0 if all(row["ok"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
