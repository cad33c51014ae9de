#!/usr/bin/env python3
"""`penstock report`, `top` and `doctor` as processes: output, errors, exit codes.

    python3 tests/report_test.py --command build/dev/bin/penstock
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

OPTIONS = argparse.Namespace()


def penstock(*arguments: object, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run([OPTIONS.command, *map(str, arguments)], capture_output=True, text=True,
                          timeout=60, env={**os.environ, **environment})


class ReportTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def record(self, name: str, *options: object) -> pathlib.Path:
        done = penstock("demo", "--samples", 500, "--epochs", 2, "--report", self.folder / name,
                        *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.folder / name

    def test_a_folder_shows_its_newest_trace(self) -> None:
        runs = self.record("runs")
        self.assertIn("epoch-1.json", os.listdir(runs))
        done = penstock("report", runs)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        first, second, *_ = done.stdout.splitlines()
        self.assertTrue(first.startswith(f"{runs}/epoch-1.json: epoch 1: 8 steps, 500 samples"))
        self.assertIn("aining waited", second)
        self.assertIn("features", done.stdout)

    def test_two_traces_are_compared(self) -> None:
        done = penstock("report", self.record("fast"), self.record("slow", "--work-us", 300))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith("samples/s: "))
        self.assertIn("features: ", done.stdout)

    def test_a_page_is_written(self) -> None:
        page = self.folder / "run.html"
        done = penstock("report", self.record("runs"), "--html", page)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(page.read_text().startswith("<!doctype html>"))
        self.assertEqual(done.stdout.splitlines()[1], str(page))

    def test_what_is_no_trace_is_refused_with_a_remedy(self) -> None:
        (self.folder / "a.json").write_text("{}")
        (self.folder / "empty").mkdir()
        for path, words in ((self.folder / "a.json", "is no trace of penstock"),
                            (self.folder / "empty", "there is no trace in"),
                            (self.folder / "nowhere", "nowhere")):
            done = penstock("report", path)
            self.assertEqual(done.returncode, 2, path)
            self.assertIn(words, done.stderr)
            self.assertIn("->", done.stderr)
        self.assertEqual(penstock("report", self.folder, "--html", "page.pdf").returncode, 2)

    def test_a_killed_run_leaves_a_trace_that_says_so(self) -> None:
        runs = self.folder / "runs"
        process = subprocess.Popen([OPTIONS.command, "demo", "--work-us", "1000", "--endless",
                                    "--report", runs], stdout=subprocess.DEVNULL)
        trace = runs / "epoch-0.json"
        # The totals are written at the beginning, and then once a second.
        while not trace.exists() or trace.read_text().count("penstock_totals") < 2:
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGKILL)
        process.wait()
        done = penstock("report", runs)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("The recording is cut", done.stdout)

    def test_top_shows_a_running_program(self) -> None:
        process = subprocess.Popen([OPTIONS.command, "demo", "--work-us", "1000", "--endless"],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                   env={**os.environ, "PENSTOCK_STATUS": str(self.folder)})
        try:
            shown = ""
            while "samples/s" not in shown:
                self.assertIsNone(process.poll())
                shown = penstock("top", process.pid, "--folder", self.folder, "--once").stdout
        finally:
            process.terminate()  # a shell in the background ignores SIGINT
            process.communicate()
        self.assertIn("demo: epoch 0, step ", shown)
        self.assertEqual(os.listdir(self.folder), [])
        done = penstock("top", "--once", PENSTOCK_STATUS=str(self.folder))
        self.assertEqual(done.returncode, 0)
        self.assertIn("No process", done.stdout)

    def test_top_needs_a_folder(self) -> None:
        done = penstock("top", "--once", PENSTOCK_STATUS="")
        self.assertEqual(done.returncode, 2)
        self.assertIn("PENSTOCK_STATUS", done.stderr)
        self.assertEqual(penstock("top", 1, "--folder", self.folder).returncode, 2)

    def test_the_doctor_lists_facts_also_as_json(self) -> None:
        done = penstock("doctor")
        self.assertIn("cores", done.stdout)
        facts = json.loads(penstock("doctor", "--json").stdout)
        self.assertIn("cores", [fact["name"] for fact in facts["facts"]])
        self.assertEqual(done.returncode, 1 if facts["problems"] else 0)
        self.assertEqual(penstock("doctor", "--data", "/nowhere").returncode, 2)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--command", required=True)
    OPTIONS = arguments.parse_args()
    OPTIONS.command = str(pathlib.Path(OPTIONS.command).resolve())
    unittest.main(argv=[sys.argv[0]], verbosity=1)
