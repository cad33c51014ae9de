"""Do the tests detect bugs? Builds the project with one line wrong at a time (mutants.py).

    python3 tests/mutants/run.py [--cases 1000] [--seed 1] [--only NAME ...]
    python3 tests/mutants/run.py --check     fails unless each right line occurs once in its file
    python3 tests/mutants/run.py --list

Works on a copy under build/mutants. First the unchanged copy must pass every test that is used.
Then each mutant is built and its test run: the line that detected it is printed, and the run fails
if a mutant was not detected. NAME is any part of a mutant's name.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from mutants import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]
COPY = ROOT / "build" / "mutants"
PYTHON = ROOT / ".venv/bin/python"
TEST_SECONDS_MAX = 300  # for one test run; a mutant may hang
BUILD_SECONDS_MAX = 3600
TARGETS = {"property": ["property_driver"], "gtest": ["penstock_tests"],
           "pytest": ["penstock_python", "penstock_command"], "train": ["penstock_train_tests"]}


def copy_tree() -> None:
    """The tracked files, written only where they differ, so that builds stay small."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True)
    names = set(filter(None, listed.stdout.decode().split("\0")))
    for path in COPY.rglob("*"):
        name = path.relative_to(COPY)
        if path.is_file() and name.parts[0] != "build" and str(name) not in names:
            path.unlink()  # removed or renamed since the last run
    for name in sorted(names):
        source, target = ROOT / name, COPY / name
        if not source.is_file():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_bytes() != source.read_bytes():
            target.write_bytes(source.read_bytes())
            target.chmod(source.stat().st_mode)


def settings(kinds: set[str]) -> list[str]:
    """The CMake options for the kinds of tests that are run."""
    found = []
    if "pytest" in kinds:
        found += ["-DPENSTOCK_PYTHON=ON", f"-DPython_EXECUTABLE={PYTHON}"]
    if "train" in kinds:
        prefix = subprocess.run(
            [PYTHON, "-W", "ignore", "-c", "import torch; print(torch.utils.cmake_prefix_path)"],
            check=True, capture_output=True, text=True).stdout.strip()
        found += ["-DPENSTOCK_TRAIN=ON", f"-DCMAKE_PREFIX_PATH={prefix}"]
    return found


def run(command: list[str], seconds_max: int = TEST_SECONDS_MAX) -> tuple[int, str]:
    """The exit status and the output; a hang counts as a failure."""
    environment = {**os.environ, "PYTHONPATH": str(COPY / "build/dev/python")}
    with subprocess.Popen(command, cwd=COPY, env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace",
                          start_new_session=True) as process:
        try:
            output, _ = process.communicate(timeout=seconds_max)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # its children, too
            return 1, f"still running after {seconds_max} s"
    return process.returncode, output


def build(kinds: set[str], configure: list[str]) -> str | None:
    """The errors of the compiler, or None."""
    targets = [target for kind in sorted(kinds) for target in TARGETS[kind]]
    for command in (["cmake", "--preset", "dev", *configure],
                    ["cmake", "--build", "--preset", "dev", "--target", *targets]):
        status, output = run(command, BUILD_SECONDS_MAX)
        if status != 0:
            return output
    return None


def first_failure(kind: str, tests: str, cases: int, seed: int,
                  seconds_max: int = TEST_SECONDS_MAX) -> str | None:
    """The first failure of a test run, or None if all passed."""
    if kind == "property":
        status, output = run([sys.executable, "tests/property/run.py", "--driver",
                              "build/dev/tests/property_driver", "--cases", str(cases), "--seed",
                              str(seed), "--jobs", "2", "--first"], seconds_max)
        pattern = r"^FAILED.*?: (.*)|^FAILED.*\n\s*(.*)"
    elif kind == "pytest":
        status, output = run([str(PYTHON), "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider",
                              *tests.split()], seconds_max)
        pattern = r"^(?:FAILED|ERROR) (.*)"
    else:
        program = {"gtest": "build/dev/tests/penstock_tests",
                   "train": "build/dev/train/penstock_train_tests"}[kind]
        status, output = run([program, f"--gtest_filter={tests}", "--gtest_fail_fast"],
                             seconds_max)
        if status == 0 and "[  PASSED  ] 0 tests" in output:
            return f"no test is called {tests}"
        pattern = r"^\[  FAILED  \] (\S+)"
    if status == 0:
        return None
    found = re.search(pattern, output, re.MULTILINE)
    words = next(filter(None, found.groups()), "") if found else ""
    return words or f"status {status}: {(output.strip().splitlines() or ['nothing printed'])[-1]}"


def misplaced(mutants: list[Mutant]) -> list[str]:
    """Mutants whose right line does not occur exactly once in its file."""
    found = []
    for mutant in mutants:
        path = ROOT / mutant.file
        count = path.read_text(encoding="utf-8").count(mutant.right) if path.is_file() else 0
        if count != 1:
            found.append(f"{mutant.name}: the line occurs {count} times in {mutant.file}")
    return found


def tests_of(mutant: Mutant) -> list[tuple[str, str]]:
    """The kind and the names of the tests, each of which must notice it."""
    if mutant.kind != "scenario":
        return [(mutant.kind, mutant.tests)]
    return [test for row in mutant.scenario.split() for test in
            (("gtest", f"Scenario.{row}"),
             ("pytest", f"python/tests/test_scenarios.py::test_{row}"))]


def named(parts: list[str]) -> list[Mutant]:
    return [mutant for mutant in MUTANTS if any(part in mutant.name for part in parts)]


def baseline(mutants: list[Mutant], args: argparse.Namespace) -> str | None:
    """Why the unchanged project does not pass the tests that are to notice, or None."""
    asked = {test for mutant in mutants for test in tests_of(mutant)}
    kinds = {kind for kind, _ in asked}
    if problem := build(kinds, settings(kinds)):
        return problem[-2000:]
    for kind in sorted(kinds):
        tests = sorted(names for own_kind, names in asked if own_kind == kind)
        joined = ":".join(tests) if kind in ("gtest", "train") else " ".join(tests)
        if problem := first_failure(kind, joined, args.cases, args.seed, BUILD_SECONDS_MAX):
            return f"{kind}: {problem}"
    return None


def noticed(mutant: Mutant, args: argparse.Namespace) -> str | None:
    """What the tests complained about, or None when one of them passed."""
    found = []
    for kind, tests in tests_of(mutant):
        failure = first_failure(kind, tests, args.cases, args.seed)
        if failure is None:
            return None
        found.append(failure)
    return "; ".join(found)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", metavar="NAME", help="mutants with NAME in it")
    parser.add_argument("--list", action="store_true", help="print the names and end")
    parser.add_argument("--check", action="store_true", help="look for the lines and end")
    args = parser.parse_args()
    if unknown := [part for part in args.only or [] if not named([part])]:
        parser.error(f"no mutant has {unknown[0]!r} in its name; --list prints them")
    mutants = named(args.only or [""])
    if args.list:
        print(*(mutant.name for mutant in mutants), sep="\n")
        return 0
    wrong = misplaced(mutants)
    if args.check or wrong:
        print(*wrong, f"mutants: {len(mutants)} lines, {len(wrong)} misplaced", sep="\n")
        return 1 if wrong else 0
    copy_tree()
    if problem := baseline(mutants, args):
        print(f"the unchanged project does not pass: {problem}")
        return 1
    survivors = 0
    for mutant in mutants:
        path = COPY / mutant.file
        original = path.read_text(encoding="utf-8")
        path.write_text(original.replace(mutant.right, mutant.wrong), encoding="utf-8")
        try:
            problem = build({kind for kind, _ in tests_of(mutant)}, [])
            found = None if problem else noticed(mutant, args)
        finally:
            path.write_text(original, encoding="utf-8")
        if problem is not None or found is None:
            survivors += 1
            found = f"NOT NOTICED ({'does not build: ' + problem[-500:] if problem else 'passed'})"
        print(f"{mutant.name:<50} {found[:150]}", flush=True)
    print(f"{len(mutants) - survivors} passed, {survivors} failed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
