#!/usr/bin/env python3
"""The page of scenarios, docs/scenarios.md, and the runs behind it.

    tools/scenarios.py             runs the scenarios, with and without promises; writes the page
    tools/scenarios.py --check     fails when page, rows and tests name different scenarios
    tools/scenarios.py --off       breaks the promise behind each row; fails if a test still passes
                                   [--rows a,b] [--python-only]
    tools/scenarios.py --self-test

With --off each row must first pass as it is, and then fail by an assertion: a crash, a hang or a
test that could not run proves nothing. Rows whose promise is a line of the source and not a switch
are broken by `make mutants`, which names the row.

A scenario is a program from the articles. Its test is TEST(Scenario, <row>) in tests/scenarios, and
test_<row> in python/tests/test_scenarios.py, which needs `make python`. Programs with fit are also
TEST(FitScenario, <row>) in train/tests, which `make test-train` runs, and test_<row> under Keras in
python/tests/frameworks, which `make test-frameworks` runs; the page names both and runs neither.
"""

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/scenarios.md"
TESTS = ROOT / "tests/scenarios"
PYTHON_TESTS = ROOT / "python/tests/test_scenarios.py"
KERAS_TESTS = ROOT / "python/tests/frameworks"
FIT_TESTS = ROOT / "train/tests/fit_scenarios_test.cc"
PYTHON = ROOT / ".venv/bin/python"
SECONDS_MAX = 120
OFF_SECONDS_MAX = 60  # for one row without its promise
TEST = re.compile(r"^TEST(?:_F)?\(Scenario, (\w+)\)", re.MULTILINE)
FIT_TEST = re.compile(r"^TEST\(FitScenario, (\w+)\)", re.MULTILINE)
PYTHON_TEST = re.compile(r"^def test_([abcd]\w*)\(", re.MULTILINE)
LINE = re.compile(r"^\| `(\w+)` \|(?:[^|\n]*\|){3} (\w[^|\n]*?) \|", re.MULTILINE)


class Row(NamedTuple):
    here: str
    missing: str = ""  # what the row waits for, or which part of it does
    compiled: str = ""  # a program in tests/compile that the row needs too


PARTS = {
    "a": "The articles' own programs",
    "b": "Uneven data, weights, the end",
    "c": "Order, cache, shards",
    "d": "Bad input, stalls, stopping",
}
ROWS = {
    "a000_sequence_uneven": Row("7 steps of a Sequence, each sample once"),
    "a000_sequence_even": Row("each index is requested once per pass"),
    "a000_sequence_odd_batch": Row("one result, wherever the odd batch comes"),
    "a000_zero_padding": Row("padding has weight zero and is counted; the loss is exact"),
    "a000_double_batch": Row("a generator of batches, batched again, prints a warning and trains "
                             "right; a Sequence is refused"),
    "a000_scope": Row("leaving a scope never replaces the user's error"),
    "a000_popping_sequence": Row("works, since each index is requested once"),
    "a001_batch_100_by_16": Row("any batch on any number of replicas"),
    "a001_finite_generator": Row("7, 7, 7 steps and a clean end"),
    "a001_repeat_steps": Row("10 steps per epoch over passes of 7, in order"),
    "a001_take": Row("take after batch counts global steps"),
    "a002_shard_by_replica": Row("replica ids exist only inside run; the error names distribute"),
    "a002_map_batch_cache_prefetch": Row("decodes once, then reads the cache"),
    "a002_run_undistributed": Row("a compile error names distribute; the mean divides by the count",
                                  compiled="run_undistributed"),
    "a003_slow_sequence": Row("parallel and in order"),
    "a003_inner_iterator": Row("every sample once; the check at the end prints a warning"),
    "a003_brightness_range": Row("ops know the range of their values"),
    "a003_full_pipeline": Row("PNG to trained model; with fit in examples/pictures_to_model.cc"),
    "a004_iterator_per_step": Row("the third one-batch iterator in a row prints a warning"),
    "a004_map_arity": Row("the error names op, function and elements"),
    "a004_slow_map": Row("runs for every sample, several at once"),
    "a004_prefetch": Row("prefetches by default", "the report's advice"),
    "a004_threads": Row("16 pipelines share one pool"),
    "b_103_by_16": Row("every sample has weight 1.000, for R = 1, 2, 3, 4, 8"),
    "b_tail_of_one": Row("a tail of one sample has weight 1.000"),
    "b_custom_mean": Row("reduce(mean) divides by the true count"),
    "b_custom_global": Row("dividing by the step's own count gives 1.000"),
    "b_10_batches_4_replicas": Row("3 steps, 40 samples, the last step balanced"),
    "b_cut_rule": Row("3, 2, 2, 2 from every source"),
    "b_drop_remainder": Row("the plan states how many are dropped; a different 7 each epoch"),
    "b_ghost_step": Row("no step without data: weights equal to the last bit"),
    "b_short_generator": Row("an error with both numbers, or what was declared"),
    "b_steps_below_pass": Row("5, 5, 5 steps that continue, or restart"),
    "b_peek": Row("batches 0 to 11 in order, none lost"),
    "b_validation": Row("a fresh pass and an exact mean each time"),
    "c_shuffle_then_shard": Row("one order for all shards: none missing"),
    "c_cache_partial": Row("the part that was read is kept"),
    "c_cache_two_readers": Row("two readers share one cache, in memory or in a folder"),
    "c_random_cache": Row("a warning, with the remedy, or `place=\"auto\"`"),
    "c_workers_epochs": Row("every epoch is a full pass"),
    "d_getitem_raises": Row("the user's own exception, at its step"),
    "d_ragged_last": Row("a short last batch has the right weight"),
    "d_other_width": Row("names the item and both shapes"),
    "d_blocked": Row("a report of what blocks, and since when"),
    "d_worker_killed": Row("detected at once, and the block is computed again"),
    "d_corrupt_png": Row("file, sample and reason; or skipped and listed"),
    "d_resume_replicas": Row("one position, any number of replicas"),
    "d_resume_random": Row("the same numbers from every position on"),
    "d_resume_size": Row("under 1 KB"),
    "d_resume_fit": Row("resumes at the next step: 80 visits for 80"),
    "d_ctrl_c": Row("ends in under a second, with a clean exit code"),
}


def tests_in(folder: Path) -> dict[str, str]:
    """Row -> file, for every scenario test."""
    return {name: path.name for path in sorted(folder.glob("*.cc"))
            for name in TEST.findall(path.read_text(encoding="utf-8"))}


def python_tests() -> set[str]:
    return set(PYTHON_TEST.findall(PYTHON_TESTS.read_text(encoding="utf-8"))) & set(ROWS)


def keras_tests() -> list[str]:
    """Lines of the page: tests under Keras whose name begins with a row's, row by row."""
    found: dict[str, list[str]] = {}
    for path in sorted(KERAS_TESTS.glob("test_keras*.py")):
        for name in PYTHON_TEST.findall(path.read_text(encoding="utf-8")):
            rows = [row for row in ROWS if f"{name}_".startswith(f"{row}_")]
            if rows:
                found.setdefault(max(rows, key=len), []).append(
                    f"[test_{name}](../{path.relative_to(ROOT)})")
    return [f"| `{row}` | {', '.join(found[row])} |" for row in ROWS if row in found]


def python_results(rows: set[str], off: str = "") -> dict[str, str]:
    """Row -> passes, fails (by an assertion) or what else became of its Python test."""
    command = [str(PYTHON), "-m", "pytest", "-p", "no:cacheprovider", "-rA", "--tb=line",
               *(f"{PYTHON_TESTS}::test_{row}" for row in sorted(rows))]
    # Wide, or pytest cuts what it says of a failure.
    environment = {**os.environ, "COLUMNS": "400", **({"PENSTOCK_OFF": off} if off else {})}
    try:
        limit = OFF_SECONDS_MAX if off else 5 * SECONDS_MAX
        done = subprocess.run(command, env=environment, timeout=limit, check=False,
                              capture_output=True, text=True, cwd=ROOT)
    except subprocess.TimeoutExpired:
        return dict.fromkeys(rows, "hangs")
    return {row: python_result(done.stdout, row) for row in rows}


def python_result(output: str, row: str) -> str:
    """What pytest's summary says of a row's test; only an assertion is a failure."""
    if re.search(rf"^PASSED \S+::test_{row}$", output, re.MULTILINE):
        return "passes"
    found = re.search(rf"^(FAILED|ERROR) \S+::test_{row}(?: - (.*))?$", output, re.MULTILINE)
    if found is None:
        return "did not run"
    why = found[2] or ""
    asserted = found[1] == "FAILED" and why.startswith(("assert", "AssertionError", "Failed: "))
    return "fails" if asserted else f"ends in {why or 'an error'}"


def faults() -> dict[str, str]:
    spec = importlib.util.spec_from_file_location("faults", TESTS / "faults.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.FAULTS


def mutants() -> dict[str, str]:
    """Row -> the mutant that breaks its promise."""
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "tests/mutants/mutants.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {row: mutant.name for mutant in module.MUTANTS for row in mutant.scenario.split()}


def run_tests(binary: Path, row: str, off: str = "") -> tuple[bool, dict[str, str]]:
    """Whether the process ended well, and row -> result of what gtest reports."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        environment = {**os.environ, **({"PENSTOCK_OFF": off} if off else {})}
        command = [str(binary), f"--gtest_filter=Scenario.{row}", f"--gtest_output=json:{report}"]
        try:
            done = subprocess.run(command, env=environment, check=False,
                                  timeout=OFF_SECONDS_MAX if off else SECONDS_MAX,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  errors="replace")
        except subprocess.TimeoutExpired:
            return False, {}
        if not report.is_file():
            return False, {}
        suites = json.loads(report.read_text(encoding="utf-8"))["testsuites"]
        results = {test["name"]: "fails" if test.get("failures") else "passes"
                   for suite in suites for test in suite["testsuite"]}
        if done.returncode and not off:
            print(done.stdout)
        return done.returncode == 0, results


def run_compiled(build: Path, name: str) -> bool:
    """Whether the compiler refuses the program with the words that it must say."""
    command = ["ctest", "--test-dir", str(build), "--no-tests=error", "-R", f"^compile[.]{name}$"]
    return subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == 0


def page(results: dict[str, str], files: dict[str, str], promises: dict[str, str],
         python: set[str]) -> str:
    lines = ["# Scenarios", "",
             "The programs of the articles, and what penstock does. `make scenarios` runs the "
             "tests and writes this page;", "`make scenarios-off` switches off the feature "
             "behind each row and expects its test to fail. Programs with", "fit are listed too; "
             f"`make test-train` runs {FIT_TESTS.name}; its results are not included.", ""]
    tested = [row for row in ROWS if row in files]
    fits = set(FIT_TEST.findall(FIT_TESTS.read_text(encoding="utf-8")))
    lines += [f"{len(tested)} of {len(ROWS)} rows have a test in C++, {len(python)} in Python. For "
              f"{len(promises)} rows the tests were also run with", "the feature behind them "
              f"switched off, and failed as they should; for {len(mutants())} others `make "
              "mutants` breaks the line of", "the source that implements it."]
    for letter, title in PARTS.items():
        lines += ["", f"## {title}", "",
                  "| row | here | test | language | result | fails without | missing |",
                  "|---|---|---|---|---|---|---|"]
        for name, row in ROWS.items():
            if not name.startswith(letter):
                continue
            test = f"[{files[name]}](../tests/scenarios/{files[name]})" if name in files else ""
            if name in python:
                path = f"../{PYTHON_TESTS.relative_to(ROOT)}"
                test += f"{', ' if test else ''}[{PYTHON_TESTS.name}]({path})"
            if name in fits:
                test += f", [{FIT_TESTS.name}](../{FIT_TESTS.relative_to(ROOT)})"
            if row.compiled:
                test += f", [{row.compiled}.cc](../tests/compile/{row.compiled}.cc)"
            has_test = name in files or name in python
            result = results.get(name, "not run") if has_test else "none"
            promise = f"`{promises[name]}`" if name in promises else ""
            if name in mutants():
                promise += f"{', ' if promise else ''}mutant: {mutants()[name]}"
            language = ", ".join(["C++"] * (name in files) + ["Python"] * (name in python))
            lines.append(f"| `{name}` | {row.here} | {test} | {language} | {result} | {promise} | "
                         f"{row.missing} |")
    lines += ["", "## Under Keras, in `make test-frameworks`", "",
              "Named here and not run by `make scenarios`: they need the libraries. Those of "
              "test_keras_replicas.py are", "TensorFlow's; the others run on three backends.", "",
              "| row | tests |", "|---|---|", *keras_tests()]
    return "\n".join(lines) + "\n"


def differences(text: str, files: dict[str, str], promises: dict[str, str],
                names: set[str]) -> list[str]:
    """What is wrong with page, table of faults and rows, against the tests there are."""
    shown = dict(LINE.findall(text))
    with_test = {row for row, result in shown.items() if result != "none"}
    return [*(f"{row}: a test, but no row in tools/scenarios.py" for row in
              sorted(files.keys() - names)),
            *(f"{row}: missing on the page" for row in sorted(names - shown.keys())),
            *(f"{row}: a test that the page does not show" for row in
              sorted((files.keys() & names) - with_test)),
            *(f"{row}: the page shows a test that is not there" for row in
              sorted(with_test - files.keys())),
            *(f"{row}: {result}" for row, result in sorted(shown.items())
              if result not in ("passes", "none")),
            *(f"{row}: in faults.py, but there is no such test" for row in
              sorted(promises.keys() - files.keys())),
            *(f"{row}: nothing breaks its promise, neither a switch nor a mutant" for row in
              sorted(with_test & names - promises.keys()))]


def check() -> int:
    text = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
    files = dict.fromkeys(python_tests(), PYTHON_TESTS.name) | tests_in(TESTS)
    found = differences(text, files, mutants() | faults(), set(ROWS))
    shown = {row for row in ROWS if re.search(rf"^\| `{row}` .*test_scenarios\.py", text, re.M)}
    found += [f"{row}: Python's test and the page differ" for row in shown ^ python_tests()]
    keras = re.findall(r"^\| `\w+` \| [^|\n]* \|$", text, re.MULTILINE)
    found += [f"Keras: the page and the tests differ in {line}" for line in
              sorted(set(keras) ^ set(keras_tests()))]
    found += [f"{name}: tests/compile/{row.compiled}.cc is not there" for name, row in ROWS.items()
              if row.compiled and not (ROOT / f"tests/compile/{row.compiled}.cc").is_file()]
    print(*(f"docs/scenarios.md: {line}" for line in found),
          f"scenarios: {len(tests_in(TESTS))} tests, {len(found)} findings"
          + (" -> make scenarios" if found else ""), sep="\n")
    return 1 if found else 0


def outcomes(binary: Path | None, row: str, off: str = "") -> dict[str, str]:
    """Language -> what became of the row's test: passes, fails (by an assertion) or else."""
    found = {}
    if binary is not None and row in tests_in(TESTS):
        found["C++"] = run_tests(binary, row, off)[1].get(row, "crashes or hangs")
    if row in python_tests():
        found["Python"] = python_results({row}, off)[row]
    return found


def seen_to_fail(binary: Path | None, rows: list[str]) -> dict[str, str]:
    """The rows whose tests pass as they are and fail by an assertion without their promise."""
    seen = {}
    for row in rows:
        promise = faults()[row]
        wrong = [f"its {language} test {outcome} as it is" for language, outcome in
                 outcomes(binary, row).items() if outcome != "passes"]
        without = outcomes(binary, row, promise)
        wrong += [f"its {language} test {outcome}" for language, outcome in without.items()
                  if outcome != "fails"]
        if not without:
            wrong.append("it has no test here")
        print(f"{row}: " + ("; ".join(wrong) if wrong else f"fails without {promise}"), flush=True)
        if not wrong:
            seen[row] = promise
    return seen


def switch_off(binary: Path | None, rows: list[str]) -> int:
    seen = seen_to_fail(binary, rows or list(faults()))
    unseen = len(rows or faults()) - len(seen)
    promises = set(faults().values())
    text = "\n".join(path.read_text(encoding="utf-8") for pattern in ("*.cc", "*.h")
                     for folder in ("src", "python/bindings")
                     for path in (ROOT / folder).rglob(pattern))
    unused = sorted(set(re.findall(r'PENSTOCK_OFF\("([\w.]+)"\)', text)) - promises)
    for name in unused:
        print(f"{name}: in the source, but no row fails without it")
    print(f"scenarios-off: {len(seen)} passed, {unseen} failed; {len(mutants())} more rows are "
          "broken by make mutants")
    return 1 if unseen or unused else 0


def self_test() -> int:
    names = {"a1", "a2"}
    good = "| `a1` | x | [t](t) | C++ | passes | | |\n| `a2` | y | | | none | | z |\n"
    cases = [
        (good, {"a1": "t"}, {"a1": "p"}, []),
        (good, {"a1": "t"}, {}, ["a1: nothing breaks its promise, neither a switch nor a mutant"]),
        (good, {"a1": "t", "a2": "t"}, {"a1": "p"}, ["a2: a test that the page does not show"]),
        (good, {}, {"a1": "p"}, ["a1: the page shows a test that is not there",
                                 "a1: in faults.py, but there is no such test"]),
        (good, {"a1": "t", "b": "t"}, {"a1": "p"}, ["b: a test, but no row in tools/scenarios.py"]),
        (good.split("\n")[0], {"a1": "t"}, {"a1": "p"}, ["a2: missing on the page"]),
        (good.replace("passes", "fails"), {"a1": "t"}, {"a1": "p"}, ["a1: fails"]),
        (good + "| `a1` | [k](k) |\n| `a2` | k |\n| x | y |\n", {"a1": "t"}, {"a1": "p"}, []),
        (good, {"a1": "t"}, {"a1": "p", "a2": "p"},
         ["a2: in faults.py, but there is no such test"]),
    ]
    failed = [(found, expected) for text, files, promises, expected in cases
              if (found := differences(text, files, promises, names)) != expected]
    output = ("PASSED t.py::test_a\nFAILED t.py::test_b - AssertionError: assert 3 == 4\n"
              "FAILED t.py::test_c - Failed: DID NOT RAISE\nFAILED t.py::test_d - KeyError: 'x'\n"
              "ERROR t.py::test_e - ImportError\nFAILED t.py::test_aa - assert False\n")
    expected = {"a": "passes", "b": "fails", "c": "fails", "d": "ends in KeyError: 'x'",
                "e": "ends in ImportError", "f": "did not run", "aa": "fails"}
    failed += [(row, found) for row, outcome in expected.items()
               if (found := python_result(output, row)) != outcome]
    count = len(cases) + len(expected)
    print(*failed, f"scenarios self-test: {count} cases, {len(failed)} failed", sep="\n")
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tests", type=Path, default=ROOT / "build/dev/tests/penstock_tests")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--off", action="store_true")
    parser.add_argument("--rows", default="", help="with --off: only these, by commas")
    parser.add_argument("--python-only", action="store_true", help="with --off: no C++ tests")
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    if arguments.check:
        return check()
    if arguments.off:
        return switch_off(None if arguments.python_only else arguments.tests,
                          [row for row in arguments.rows.split(",") if row])
    well, results = run_tests(arguments.tests, "*")
    PAGE.parent.mkdir(exist_ok=True)
    for name, row in ROWS.items():
        if row.compiled and not run_compiled(arguments.tests.parent.parent, row.compiled):
            results[name] = "fails"
    results |= {row: results.get(row, "passes") for row in python_tests()}
    results |= {row: result for row, result in python_results(python_tests()).items()
                if result != "passes"}
    seen = seen_to_fail(arguments.tests, list(faults()))
    PAGE.write_text(page(results, tests_in(TESTS), seen, python_tests()), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {len(results)} tests, "
          f"{sum(result == 'passes' for result in results.values())} pass")
    return 0 if well and check() == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
