"""Python beside C++, and W4 beside plain loops: ratios, medians of interleaved rounds.

    python bench/python/run.py --bench build/bench/bench [--rounds 5] [--data DIR] [--only WORD]

Each measurement is a process of its own. W1 and W2 need the images that `make rivals` makes
(--data); without them they are left out, and so is torch where it is not installed. Exits with 1
when a figure misses what is wanted.
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

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PYTHON = [sys.executable, str(HERE / "engine.py")]
W4 = [sys.executable, str(HERE / "w4.py")]
CPU = {}  # ms of CPU an item, by measurement: other programs disturb it less than they do rates


def answer(command, **environment):
    done = subprocess.run(command, check=False, capture_output=True, text=True,
                          env={**os.environ, **environment})
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def rate(command, name):
    figures = answer(command)
    if "items_per_s" in figures:  # bench/rivals
        CPU.setdefault(name, []).append(figures["cpu_ms_per_item"])
        return figures["items_per_s"]
    if "cpu_seconds" in figures:
        CPU.setdefault(name, []).append(figures["cpu_seconds"] / figures["items"] * 1e3)
    return figures["items"] / figures["seconds"]


def w4_rate(kind, name):
    figures = answer([*W4, kind, "penstock", "2", "300"])
    CPU.setdefault(name, []).append(figures["cpu_ms_per_item"])
    return figures["items"] / figures["seconds"]


def two_loops(kind, name):
    """Two plain loops that begin at once; their rates add up."""
    with tempfile.NamedTemporaryFile(delete=False) as start:
        pass
    both = [subprocess.Popen([*W4, kind, "loop", "1", "150"], stdout=subprocess.PIPE, text=True,
                             env={**os.environ, "PENSTOCK_START": start.name}) for _ in range(2)]
    for each in both:
        assert each.stdout.readline() == "ready\n"
    os.unlink(start.name)
    figures = [json.loads(each.communicate()[0]) for each in both]
    CPU.setdefault(name, []).append(
        statistics.mean(figure["cpu_ms_per_item"] for figure in figures))
    return sum(figure["items"] / figure["seconds"] for figure in figures)


def measurements(bench, data):
    def cpp(workload, threads):
        return lambda name: rate([f"{bench}/engine_bench", workload, str(threads)], name)

    def python(workload, threads, *more):
        return lambda name: rate([*PYTHON, workload, str(threads), *more], name)

    jobs = {
        "W4 holds: two plain loops": lambda name: two_loops("holds", name),
        "W4 holds: two workers": lambda name: w4_rate("holds", name),
        "W4 releases: two plain loops": lambda name: two_loops("releases", name),
        "W4 releases: two threads": lambda name: w4_rate("releases", name),
        "rows: C++": cpp("rows20", 2), "rows: Python": python("rows20", 2),
        "W3 at batch 4096: C++": cpp("tiny4096", 2),
        "W3 at batch 4096: Python": python("tiny4096", 2),
        "W3 at batch 256: C++": cpp("tiny", 2), "W3 at batch 256: Python": python("tiny", 2),
        "steps: C++": cpp("steps", 0), "steps: Python": python("steps", 0),
    }
    if data:
        for workload in ("W1", "W2"):
            jobs[f"{workload}: C++"] = lambda name, word=workload: rate(
                [f"{bench}/penstock_images", word, data], name)
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
    ("W3 at batch 256: Python / C++", "W3 at batch 256: Python", "W3 at batch 256: C++", None),
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
    for name, ours, theirs, wanted in RATIOS:
        if ours in figures and theirs in figures:
            rows.append(verdict(name, [a / b for a, b in zip(figures[ours], figures[theirs])],
                                "{:.2f}", wanted, lambda ratio, wanted=wanted: ratio >= wanted))
            rows.append(verdict("  in CPU time", [b / a for a, b in zip(CPU[ours], CPU[theirs])],
                                "{:.2f}", None, None))
    if "steps: Python" in figures:
        over = [(1 / ours - 1 / theirs) * 1e6
                for ours, theirs in zip(figures["steps: Python"], figures["steps: C++"])]
        rows.append(verdict("next and a view, us over C++", over, "{:.2f}", "at most 5",
                            lambda us: us <= 5))
    if "batch.torch()" in figures:
        rows.append(verdict("batch.torch() of 64 images, us",
                            [1e6 / each for each in figures["batch.torch()"]], "{:.1f}",
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
    # One calibration for all: how much work 5 ms are must not differ between the two sides.
    turns = {kind: answer([*W4, kind, "turns"])["turns"] for kind in ("holds", "releases")}
    jobs = {name: job for name, job in measurements(args.bench, args.data).items()
            if name.startswith(args.only)}
    figures = {name: [] for name in jobs}
    for number in range(args.rounds):
        for name, job in jobs.items():
            kind = "releases" if "releases" in name else "holds"
            os.environ["PENSTOCK_W4"] = str(turns[kind])
            figures[name].append(job(name))
        print(f"round {number + 1} of {args.rounds}", file=sys.stderr, flush=True)
    for name, rates in figures.items():
        spread = " ".join(f"{value:,.0f}" for value in rates)
        print(f"{name:<32} {statistics.median(rates):>14,.0f}/s   [{spread}]")
    print()
    rows = summary(figures)
    if not args.only:
        Path(args.out).write_text(json.dumps(
            {"machine": {"cores": os.cpu_count(), "kernel": platform.release(),
                         "python": platform.python_version()},
             "rounds": args.rounds, "rates": figures, "ratios": rows}, indent=1) + "\n")
    return 0 if all(row["ok"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
