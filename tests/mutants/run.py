"""Does the property test notice? Builds the project with one line wrong at a time (mutants.py).

    python3 tests/mutants/run.py [--cases 1000] [--seed 1] [--only NAME ...]
    python3 tests/mutants/run.py --list

Works on a copy under build/mutants. Prints the difference that gave each mutant away, and fails
when one got through. NAME is any part of a mutant's name.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from mutants import MUTANTS

ROOT = Path(__file__).resolve().parents[2]
COPY = ROOT / "build" / "mutants"


def copy_tree() -> None:
    """The tracked files, written only where they differ, so that builds stay small."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        source, target = ROOT / name, COPY / name
        if not source.is_file():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_bytes() != source.read_bytes():
            target.write_bytes(source.read_bytes())
            target.chmod(source.stat().st_mode)


def build() -> str | None:
    """What the compiler said, or None when it was content."""
    for command in (["cmake", "--preset", "dev"],
                    ["cmake", "--build", "--preset", "dev", "--target", "property_driver"]):
        done = subprocess.run(command, cwd=COPY, capture_output=True, text=True)
        if done.returncode != 0:
            return done.stdout + done.stderr
    return None


def first_difference(cases: int, seed: int) -> str | None:
    """What the property test said of the first failing case, or None when all passed."""
    command = [sys.executable, "tests/property/run.py", "--driver",
               "build/dev/tests/property_driver", "--cases", str(cases), "--seed", str(seed),
               "--jobs", "2", "--first"]
    done = subprocess.run(command, cwd=COPY, capture_output=True, text=True)
    if done.returncode == 0:
        return None
    lines = done.stdout.splitlines()
    for line, after in zip(lines, lines[1:]):
        if line.startswith("FAILED"):
            return line.split(": ", 1)[1] if ": " in line else after.strip()
    return f"the test ended with {done.returncode}: {(lines or [done.stderr])[-1]}"


def named(parts: list[str]) -> list[tuple[str, str, str, str]]:
    return [mutant for mutant in MUTANTS if any(part in mutant[0] for part in parts)]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", metavar="NAME", help="mutants with NAME in it")
    parser.add_argument("--list", action="store_true", help="print the names and end")
    args = parser.parse_args()
    if unknown := [part for part in args.only or [] if not named([part])]:
        parser.error(f"no mutant has {unknown[0]!r} in its name; --list prints them")
    mutants = named(args.only or [""])
    if args.list:
        print(*(mutant[0] for mutant in mutants), sep="\n")
        return 0
    copy_tree()
    if problem := build() or first_difference(args.cases, args.seed):
        print(f"the unchanged project does not pass: {problem}")
        return 1
    survivors = 0
    for name, file, right, wrong in mutants:
        path = COPY / file
        original = path.read_text()
        if original.count(right) != 1:
            print(f"{name}: the line stands {original.count(right)} times in {file}")
            survivors += 1
            continue
        path.write_text(original.replace(right, wrong))
        try:
            problem = build()
            found = first_difference(args.cases, args.seed) if problem is None else None
        finally:
            path.write_text(original)
        if problem is not None or found is None:
            survivors += 1
            found = f"NOT NOTICED ({'does not build: ' + problem[-500:] if problem else 'passed'})"
        print(f"{name:<50} {found[:150]}", flush=True)
    print(f"{len(mutants) - survivors} passed, {survivors} failed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
