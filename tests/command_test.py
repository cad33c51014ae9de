#!/usr/bin/env python3
"""The `penstock` command as a process: output, errors, exit codes.

    python3 tests/command_test.py --command build/dev/bin/penstock

Standard library only. A test that needs a fault point is skipped if the build has none.
"""

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import unittest

COMMAND = "build/dev/bin/penstock"
TAILS = ("short", "even", "pad", "drop", "wrap")


def run(*arguments: object, faults: str = "") -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PENSTOCK_FAULTS"}
    if faults:
        environment["PENSTOCK_FAULTS"] = faults
    return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True,
                          timeout=120, env=environment, check=False)


def plan(samples: object, batch: object, replicas: object, *more: str,
         faults: str = "") -> subprocess.CompletedProcess[str]:
    return run("plan", "--samples", samples, "--batch", batch, "--replicas", replicas, *more,
               faults=faults)


def limited(arguments: list[object], what: int, most: int) -> subprocess.CompletedProcess[str]:
    """Runs the command with a limit of the kernel."""
    return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True,
                          timeout=120, check=False,
                          preexec_fn=lambda: resource.setrlimit(what, (most, most)))


def has_faults() -> bool:
    return run("--version", faults="no colon").returncode == 2


def cut(samples: int, replicas: int) -> list[int]:
    return [samples // replicas + (share < samples % replicas) for share in range(replicas)]


def expected(samples: int, batch: int, replicas: int, tail: str) -> dict[str, object]:
    """The expected plan, counted explicitly."""
    full, rest = divmod(samples, batch)
    steps = full + (rest > 0 and tail != "drop")
    first, last = min(samples, batch), rest or batch
    if tail == "even" and steps:
        first, last = -(-samples // steps), samples // steps
    if tail == "wrap":
        first = last = batch
    if tail == "drop":
        first = last = batch
    slots = -(-batch // replicas) * replicas * steps
    return {"samples": samples, "steps": steps, "global_batch": batch, "replicas": replicas,
            "tail": tail, "dropped": rest if tail == "drop" else 0,
            "repeated": (batch - rest) % batch if tail == "wrap" else 0,
            "padded": slots - samples if tail == "pad" else 0,
            "first_cut": cut(first, replicas) if steps else [],
            "last_cut": cut(last, replicas) if steps else []}


class PlanInJson(unittest.TestCase):
    def test_the_plan_equals_explicit_counting(self) -> None:
        for samples in (0, 1, 7, 16, 96, 103):
            for batch, replicas in ((1, 1), (16, 5), (4, 8), (200, 3)):
                for tail in TAILS:
                    if samples == 0 and tail == "wrap":
                        continue  # wrapping an empty dataset is tested below
                    done = plan(samples, batch, replicas, "--tail", tail, "--json", "--check")
                    self.assertEqual(done.returncode, 0, done.stderr)
                    said = json.loads(done.stdout)
                    for key, value in expected(samples, batch, replicas, tail).items():
                        self.assertEqual(said[key], value, (samples, batch, replicas, tail, key))
                    self.assertTrue(said["check"]["ok"])
                    self.assertEqual(len(said["check"]["dropped_first"]),
                                     min(16, said["dropped"]))
                    self.assertEqual(said["check"]["repeated"], said["repeated"])

    def test_no_samples_give_no_steps(self) -> None:
        said = json.loads(plan(0, 4, 2, "--tail", "wrap", "--json", "--check").stdout)
        self.assertEqual((said["steps"], said["first_cut"], said["repeated"]), (0, [], 0))

    def test_the_order_depends_on_the_seed_and_not_on_the_replicas(self) -> None:
        def order(replicas: int, seed: int) -> str:
            done = plan(100, 8, replicas, "--seed", str(seed), "--json")
            return json.loads(done.stdout)["digests"]["order"]
        self.assertEqual(order(2, 1), order(3, 1))
        self.assertNotEqual(order(2, 1), order(2, 2))

    def test_strict_accepts_sizes_that_divide(self) -> None:
        said = json.loads(plan(96, 16, 4, "--tail", "strict", "--json", "--check").stdout)
        self.assertEqual((said["steps"], said["refused_if_strict"]), (6, None))


class PlanInWords(unittest.TestCase):
    def test_names_steps_cuts_costs_and_means(self) -> None:
        text = plan(103, 16, 5, "--tail", "drop").stdout
        for words in ("6 steps, 96 samples", "over 5 shares: 4, 3, 3, 3, 3", "one batch: ",
                      "threads: ", "weight 1", "tail drop: 7 samples dropped",
                      "tail strict would refuse it: batch(16, tail=strict)"):
            self.assertIn(words, text)

    def test_epochs_of_steps_are_shown_with_passes(self) -> None:
        for more, words in ((("5",), "a pass is 1 epoch and 2 steps of the next"),
                            (("5", "--restart"), "the first 5 of the 7 steps"),
                            (("9", "--short-epoch"), "7 steps, although 9 were requested")):
            done = plan(103, 16, 5, "--steps-per-epoch", *more)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(words, done.stdout)
        said = json.loads(plan(103, 16, 5, "--steps-per-epoch", "5", "--json").stdout)
        self.assertEqual(said["epoch"], {"asked": 5, "steps": 5, "restart": False})

    def test_the_check_names_what_is_dropped(self) -> None:
        done = plan(10, 4, 2, "--tail", "drop", "--check")
        self.assertRegex(done.stdout, r"it holds: 2 steps.* 8 samples(.|\n)*2 dropped: \d, \d\n")

    def test_a_cut_that_delivers_a_sample_twice_fails_the_check(self) -> None:
        if not has_faults():
            self.skipTest("a build without fault points")
        done = plan(100, 10, 2, "--check", faults="cut.twice:4")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"DOES NOT HOLD: sample \d+ is delivered too often .*step 3")
        wrong = json.loads(plan(100, 10, 2, "--check", "--json", faults="cut.twice:4").stdout)
        self.assertFalse(wrong["check"]["ok"])
        self.assertEqual(wrong["check"]["wrong"]["replica"], 1)


class Refused(unittest.TestCase):
    def assert_refused(self, done: subprocess.CompletedProcess[str], words: str) -> None:
        self.assertEqual(done.returncode, 2, done)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("penstock: "), done.stderr)
        self.assertIn(words, done.stderr)

    def test_strict_plans_that_do_not_divide(self) -> None:
        self.assert_refused(plan(103, 16, 4, "--tail", "strict"), "the last step has 7 samples")
        self.assert_refused(plan(96, 16, 5, "--tail", "strict", "--json"), "R = 5 shares")
        self.assert_refused(plan(96, 16, 32, "--tail", "strict", "--check"), "without samples")

    def test_epochs_longer_than_a_pass(self) -> None:
        self.assert_refused(plan(103, 16, 5, "--steps-per-epoch", "9"), "the data has 7 steps")
        self.assert_refused(plan(103, 16, 5, "--restart"), "--steps-per-epoch")
        self.assert_refused(plan(103, 16, 5, "--steps-per-epoch", "0"), 'got "0"')

    def test_arguments_that_are_not_numbers(self) -> None:
        for value in ("-5", "ten", "1.5", "", "5x", "99999999999999999999", "0x10"):
            self.assert_refused(plan(value, 2, 1), "--samples")
            self.assert_refused(plan(5, value, 1), "--batch")
            self.assert_refused(plan(5, 2, value), "--replicas")
            self.assert_refused(plan(5, 2, 1, "--seed", value), "--seed")

    def test_numbers_out_of_range(self) -> None:
        self.assert_refused(plan(5, 2, 0), 'got "0"')
        self.assert_refused(plan(5, 0, 1), 'got "0"')
        self.assert_refused(plan(5, 2, 2**20 + 1), "from 1 to 1048576")
        self.assert_refused(plan(2**40, 2, 1, "--json", "--check"), "check: ")

    def test_options_that_do_not_exist(self) -> None:
        self.assert_refused(plan(5, 2, 1, "--tail", "long"), "--tail")
        self.assert_refused(plan(5, 2, 1, "--fast"), "--fast")
        self.assert_refused(run("plan", "--samples", 3), "required")
        self.assert_refused(run("dance"), "")
        self.assert_refused(run("demo", "--samples", "many"), "--samples")


    def test_empty_names_and_wrong_numbers_of_threads(self) -> None:
        self.assert_refused(run("plan", "--data", "", "--batch", 2, "--replicas", 1), "not the")
        for verb in ("verify", "bench"):
            self.assert_refused(run(verb, ""), "not the path of a folder")
            for threads in ("-1", "0", "1.5", "99999999999", "many", ""):
                self.assert_refused(run(verb, "/", "--threads", threads), "--threads")


class PlanOfAFolder(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name, "train")
        for name, size in (("cat/1.jpg", 3), ("cat/deep/2.PNG", 4), ("dog/3.jpg", 5),
                           ("dog/empty.jpg", 0), ("dog/notes.txt", 1), (".hidden", 1)):
            file = self.root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(b"x" * size)

    def plan(self, *more: str) -> subprocess.CompletedProcess[str]:
        return run("plan", "--data", self.root, "--batch", 2, "--replicas", 2, *more)

    def test_names_the_classes_and_the_skipped_files(self) -> None:
        done = self.plan()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for words in ("2 steps, 3 samples", "3 files, 12 bytes, 2 classes", "class 0: cat, 2 files",
                      "class 1: dog, 1 files", "1 empty (dog/empty.jpg)", "1 hidden (.hidden)",
                      "1 of another extension (dog/notes.txt)"):
            self.assertIn(words, done.stdout)

    def test_as_json(self) -> None:
        said = json.loads(self.plan("--json", "--check").stdout)
        self.assertEqual((said["samples"], said["steps"], said["files"], said["bytes"]),
                         (3, 2, 3, 12))
        self.assertEqual(said["classes"],
                         [{"name": "cat", "files": 2}, {"name": "dog", "files": 1}])
        self.assertEqual({left["reason"]: left["count"] for left in said["left_out"]},
                         {"hidden": 1, "empty": 1, "of another extension": 1})
        self.assertTrue(said["check"]["ok"])

    def test_the_order_depends_on_names_and_sizes_and_not_on_the_place(self) -> None:
        def order() -> str:
            return json.loads(self.plan("--json").stdout)["digests"]["order"]
        before = order()
        self.root = self.root.rename(self.root.with_name("moved"))
        self.assertEqual(order(), before)
        (self.root / "cat/1.jpg").write_bytes(b"larger")
        self.assertNotEqual(order(), before)

    def test_folders_without_images_are_rejected(self) -> None:
        for name, words in (("cat/deep", "no class folder"), ("not_there", "No such file")):
            done = run("plan", "--data", self.root / name, "--batch", 2, "--replicas", 1)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(words, done.stderr)
        done = run("plan", "--data", self.root, "--samples", 3, "--batch", 2, "--replicas", 1)
        self.assertEqual(done.returncode, 2, done)


def ppm(width: int, height: int) -> bytes:
    values = bytes(i * 7 % 256 for i in range(3 * width * height))
    return b"P6 %d %d 255\n" % (width, height) + values


class ImagesOfAFolder(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for i in range(40):
            self.write(f"{'ab'[i % 2]}/{i}.ppm", ppm(20 + i, 30))

    def write(self, name: str, content: bytes) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_bytes(content)

    def test_verify_finds_nothing_wrong_with_whole_files(self) -> None:
        done = run("verify", self.root)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        self.assertIn("40 files", done.stdout)
        self.assertIn("0 broken, 0 odd", done.stdout)
        self.assertIn("height 30 to 30, width 20 to 59", done.stdout)

    def test_verify_names_what_is_broken_or_odd(self) -> None:
        self.write("a/cut.ppm", ppm(20, 30)[:500])
        self.write("a/text.jpg", b"this is not a picture")
        self.write("b/wrong.png", ppm(5, 5))
        self.write("b/empty.png", b"")
        self.write("b/bomb.ppm", b"P6 60000 60000 255\n" + bytes(900))
        done = run("verify", self.root)
        self.assertEqual(done.returncode, 1, done)
        for words in ("broken  a/cut.ppm: ", "broken  a/text.jpg: ", "broken  b/bomb.ppm: ",
                      "odd     b/wrong.png: contains PPM/PGM data", "3 broken, 1 odd",
                      "left out: 1 empty (b/empty.png)"):
            self.assertIn(words, done.stdout)
        said = json.loads(run("verify", self.root, "--json").stdout)
        self.assertEqual([file["file"] for file in said["broken"]],
                         ["a/cut.ppm", "a/text.jpg", "b/bomb.ppm"])
        self.assertEqual(said["formats"], {"PPM/PGM": 41})

    def test_verify_has_one_line_for_each_kind_of_odd_files(self) -> None:
        for i in range(1437):
            self.write(f"gray/{i:04}.pgm", b"P5 2 2 255\nabcd")
        self.write("gray/wide.pgm", b"P5 2 1 65535\nabcd")
        done = run("verify", self.root)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("odd     1,438 files: 1 channel, for example gray/0000.pgm\n", done.stdout)
        self.assertIn("odd     gray/wide.pgm: 16 bit\n", done.stdout)
        self.assertEqual(done.stdout.count("odd     "), 2)
        self.assertIn("0 broken, 1438 odd", done.stdout)
        each = run("verify", self.root, "--all").stdout
        self.assertEqual(each.count("odd     "), 1438)
        self.assertIn("odd     gray/wide.pgm: 1 channel, 16 bit\n", each)

    def test_verify_rejects_a_huge_file_without_reading_it(self) -> None:
        self.write("a/huge.ppm", ppm(2, 2))
        os.truncate(self.root / "a/huge.ppm", 6 << 30)  # sparse
        done = limited(["verify", self.root], resource.RLIMIT_AS, 1 << 30)
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("broken  a/huge.ppm: ", done.stdout)
        self.assertIn("more than the limit", done.stdout)
        self.assertIn("1 broken, 0 odd", done.stdout)

    def test_verify_names_a_file_that_exceeds_memory_and_continues(self) -> None:
        (self.root / "a/large.pgm").write_bytes(b"P2 11000 11000 9\n" + b"1 " * (11000 * 11000))
        done = limited(["verify", self.root, "--threads", 1], resource.RLIMIT_AS, 300 << 20)
        self.assertEqual(done.returncode, 1, done)
        self.assertRegex(done.stdout, "unread  a/large.pgm: (out of memory|.*Cannot allocate)")
        self.assertIn("0 broken, 0 odd, 1 that could not be read", done.stdout)

    def test_verify_does_not_blame_files_for_a_lack_of_descriptors(self) -> None:
        if not has_faults():
            self.skipTest("a build without fault points")
        done = run("verify", self.root, "--threads", 1, faults="read.descriptors:3")
        self.assertEqual(done.returncode, 1, done)
        self.assertRegex(done.stdout, "unread  .*ppm: cannot open .*Too many open files")
        self.assertIn("0 broken, 0 odd, 1 that could not be read; 39 PPM/PGM", done.stdout)

    def test_a_failed_write_to_stdout_is_a_failure(self) -> None:
        for words in (["verify", self.root], ["verify", self.root, "--json"],
                      ["plan", "--samples", "9", "--batch", "2", "--replicas", "1"],
                      ["plan", "--data", self.root, "--batch", "2", "--replicas", "1", "--json"],
                      ["bench", self.root, "--size", "8"], ["bench", self.root, "--json"],
                      ["demo", "--samples", "9"], ["--help"], ["--version"], []):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([COMMAND, *map(str, words)], stdout=full,
                                      stderr=subprocess.PIPE, text=True, timeout=120, check=False)
            self.assertEqual(done.returncode, 1, words)
            self.assertRegex(done.stderr, "No space left on device|could not be written")

    def test_bench_counts_every_image_and_shows_where_time_goes(self) -> None:
        self.write("a/cut.ppm", ppm(20, 30)[:500])
        said = json.loads(run("bench", self.root, "--batch", 8, "--size", 16, "--json").stdout)
        self.assertEqual(said["skipped"], 1)
        self.assertIn(said["images"], (32, 33))  # without the first batch
        self.assertGreater(said["images_per_s"], 0)
        self.assertAlmostEqual(sum(said["share"].values()), 1, places=6)
        done = run("bench", self.root, "--batch", 8, "--size", 16, "--chain", "resize")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        self.assertIn("limited by", done.stdout)
        self.assertIn("1 images could not be decoded", done.stdout)


class Packed(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        rows = ({"id": i, "text": f"täxt {i}", "x": [i, 2]} for i in range(500))
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (self.root / "in.jsonl").write_text(lines, encoding="utf-8")

    def pack(self, out: str, *more: object) -> subprocess.CompletedProcess[str]:
        return run("pack", self.root / "in.jsonl", self.root / out, "--format", *more)

    def test_every_format_is_written_once_and_continued(self) -> None:
        for form in ("tfrecord", "tar", "arrow"):
            out = self.root / form
            done = self.pack(form, form, "--shards", 3, "--json")
            self.assertEqual((done.returncode, done.stderr), (0, ""), done)
            facts = json.loads(done.stdout)
            self.assertEqual((facts["samples"], facts["found"]), (500, 0))
            names = [f"data-0000{i}.{form}" for i in range(3)]
            self.assertEqual([pathlib.Path(file).name for file in facts["files"]], names)
            written = {name: (out / name).read_bytes() for name in names}
            (out / names[1]).unlink()
            done = self.pack(form, form, "--shards", 3)
            self.assertIn("500 samples in 3 files", done.stdout)
            self.assertIn("; 1 were there", done.stdout)
            self.assertEqual({name: (out / name).read_bytes() for name in names}, written)

    def test_arrow_files_are_complete_and_as_large_as_asked(self) -> None:
        done = self.pack("out", "arrow", "--shard-size", "5KB", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        files = [pathlib.Path(file).read_bytes() for file in json.loads(done.stdout)["files"]]
        self.assertGreater(len(files), 2)
        for file in files:
            self.assertEqual((file[:8], file[-6:]), (b"ARROW1\0\0", b"ARROW1"))
            self.assertLess(len(file), 10_000)
        self.assertIn("täxt 499".encode(), files[-1])

    def test_other_formats_are_refused(self) -> None:
        done = self.pack("out", "zip")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("arrow", done.stderr)


class Others(unittest.TestCase):
    def test_help_and_version_exit_with_success(self) -> None:
        version = run("--version")
        self.assertEqual(version.returncode, 0)
        for words in ("libjpeg", "libpng "):
            self.assertIn(words, version.stdout)
        self.assertEqual(run().returncode, 0)
        self.assertEqual(run().stdout, run("--help").stdout)
        done = run("--help")
        self.assertEqual(done.returncode, 0)
        for words in ("plan", "demo", "Exit codes", "130"):
            self.assertIn(words, done.stdout)
        self.assertNotIn("stuck", run("demo", "--help").stdout)

    def test_the_demo_proves_every_epoch(self) -> None:
        for threads in ("0", "2"):
            done = run("demo", "--samples", 1003, "--epochs", 3, "--threads", threads)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.count("it holds"), 3)

    def test_the_demo_of_nothing_ends(self) -> None:
        self.assertEqual(run("demo", "--samples", 0).returncode, 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--command", default=COMMAND)
    known, rest = parser.parse_known_args()
    COMMAND = known.command
    unittest.main(argv=[sys.argv[0], *rest])
