"""What all benchmarks share: facts about the machine, and rounds in alternating order.

A warm-up round comes first and is dropped: it pays for cold files and a sleeping CPU. Every second
round runs the measurements in reverse, so that none always follows the same other one.
"""

import datetime
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def commit() -> str:
    """The commit that is measured, with a mark where files differ from it."""
    done = subprocess.run(["git", "describe", "--always", "--dirty", "--exclude", "*"], cwd=ROOT,
                          capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def facts() -> dict[str, object]:
    """Machine, date and commit, for every result."""
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        cpu = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")),
                   platform.processor())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {"cpu": cpu, "cores": os.cpu_count(), "memory_gib": round(memory),
            "kernel": platform.release(), "python": platform.python_version(),
            "date": datetime.date.today().isoformat(), "commit": commit()}


def interleaved(jobs: dict[str, Callable], rounds: int) -> dict[str, list]:
    """Runs every job once per round, and returns the results by name, without the warm-up."""
    results: dict[str, list] = {name: [] for name in jobs}
    for number in range(rounds + 1):
        names = list(jobs) if number % 2 == 0 else list(reversed(jobs))
        for name in names:
            result = jobs[name]()
            if number > 0:
                results[name].append(result)
        label = "warm-up" if number == 0 else f"round {number} of {rounds}"
        print(label, file=sys.stderr, flush=True)
    return results


def ratio(ours: list[float], theirs: list[float]) -> tuple[float, list[float]]:
    """The median of the ratios of each round, and these."""
    each = [a / b for a, b in zip(ours, theirs, strict=True)]
    return statistics.median(each), each
