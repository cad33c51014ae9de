#!/usr/bin/env python3
"""`penstock train` as a process: what it prints and refuses, exit codes, Ctrl-C, kill and resume.

Needs nothing but Python. PENSTOCK_LONG=1: 200 kills.
"""

import argparse
import json
import os
import random
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib
from pathlib import Path

COMMAND = TORCHRUN = None
LONG = os.environ.get("PENSTOCK_LONG") == "1"
BOUND = 240  # seconds; only a hang takes so long


def write_png(path: Path, pixels: list[bytes], width: int) -> None:
    """An RGB picture from rows of bytes."""
    def chunk(kind: bytes, data: bytes) -> bytes:
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))
    head = struct.pack(">IIBBBBB", width, len(pixels), 8, 2, 0, 0, 0)
    rows = b"".join(b"\0" + row for row in pixels)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head)
                     + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def make_pictures(root: Path, count: int, seed: int = 1) -> None:
    """Three classes that differ in the color of a bar, 16 x 16."""
    draw = random.Random(seed)
    for number in range(count):
        label = number % 3
        folder = root / "red green blue".split()[label]
        folder.mkdir(parents=True, exist_ok=True)
        column = draw.randrange(12)
        rows = []
        for _ in range(16):
            row = bytearray(draw.randrange(90) for _ in range(48))
            for x in range(column, column + 4):
                row[3 * x + label] = 200 + draw.randrange(55)
            rows.append(bytes(row))
        write_png(folder / f"{number:04}.png", rows, 16)


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"}


def run(*arguments: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run([COMMAND, "train", *arguments], capture_output=True, text=True,
                          timeout=BOUND, env=environment(), **options)


def children(process: int) -> list[int]:
    """Those that it started, oldest first."""
    return [int(word) for word in
            Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def wait_for_port(port: int) -> None:
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=BOUND).close()
            return
        except ConnectionRefusedError:
            os.sched_yield()


def logs(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


class TrainCommandTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = Path(tempfile.mkdtemp(prefix="penstock-train-"))
        make_pictures(cls.root / "data", 97)
        make_pictures(cls.root / "val", 31, seed=2)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.root)

    def arguments(self, *more: str) -> list[str]:
        return ["--data", str(self.root / "data"), "--size", "16", "--batch", "16", *more]

    def test_trains_and_logs_each_epoch(self):
        log = self.root / "log.json"
        done = run(*self.arguments("--val", str(self.root / "val"), "--replicas", "3", "--epochs",
                                   "3", "--json", str(log)))
        self.assertEqual(done.returncode, 0, done.stderr)
        epochs = logs(log)
        self.assertEqual([one["epoch"] for one in epochs], [0, 1, 2])
        for one in epochs:
            self.assertEqual((one["steps"], one["samples"], one["val_samples"]), (7, 97, 31))
            self.assertTrue({"loss", "accuracy", "val_loss", "val_accuracy", "input_wait"}
                            <= set(one))
        self.assertLess(epochs[-1]["loss"], epochs[0]["loss"])
        self.assertIn("epoch 3/3", done.stdout)
        self.assertIn("3 replicas", done.stdout)

    def test_replicas_give_the_same_weights(self):
        losses = []
        for replicas in ("1", "4"):
            log = self.root / f"same{replicas}.json"
            done = run(*self.arguments("--replicas", replicas, "--epochs", "2", "--optimizer",
                                       "sgd", "--lr", "0.01", "--json", str(log)))
            self.assertEqual(done.returncode, 0, done.stderr)
            losses.append([one["loss"] for one in logs(log)])
        for one, four in zip(*losses):
            self.assertAlmostEqual(one, four, places=4)

    def test_refuses_what_cannot_work(self):
        for arguments, words in (
                (["--data", str(self.root / "nowhere")], "nowhere"),
                (self.arguments("--model", "vgg"), "vgg"),
                (self.arguments("--device", "cuda", "--replicas", "9"), "GPU"),
                (self.arguments("--tail", "strict"), "strict"),
                (self.arguments("--lr", "-1"), "learning rate"),
                (self.arguments("--lr", "nan"), "learning rate"),
                (self.arguments("--lr", "0"), "learning rate"),
                (self.arguments("--epochs", "0"), "--epochs"),
                (self.arguments("--epochs", "-1"), "--epochs"),
                (self.arguments("--batch", "-16"), "--batch"),
                (self.arguments("--replicas", "1000000000"), "--replicas"),
                (self.arguments("--size", "0"), "--size"),
                (self.arguments("--seed", "-1"), "--seed"),
                (self.arguments("--every", "-3", "--checkpoints", "c"), "--every"),
                (self.arguments("--every", "3"), "--checkpoints"),
                (self.arguments("--timeout", "nan"), "--timeout"),
                (self.arguments("--resume-older"), "--resume"),
                (self.arguments("--json", "log", "--csv", "log"), "both write to log"),
                (self.arguments("--json", str(self.root / "nowhere" / "log")), "nowhere")):
            done = run(*arguments)
            self.assertEqual(done.returncode, 2, done.stderr + done.stdout)
            self.assertIn(words, done.stderr)
        self.assertEqual(run("--help").returncode, 0)

    def test_a_broken_picture_is_named_or_left_out(self):
        broken = self.root / "broken"
        shutil.copytree(self.root / "data", broken)
        victim = broken / "red" / "0003.png"
        victim.write_bytes(victim.read_bytes()[:60])
        done = run("--data", str(broken), "--size", "16", "--epochs", "1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("red/0003.png", done.stderr)
        log = self.root / "broken.json"
        done = run("--data", str(broken), "--size", "16", "--epochs", "1", "--skip-broken",
                   "--json", str(log))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(logs(log)[0]["samples"], 96)

    def test_ctrl_c_finishes_the_step_saves_and_resumes(self):
        saved, log = self.root / "ctrl_c", self.root / "ctrl_c.json"
        process = subprocess.Popen(
            [COMMAND, "train", *self.arguments("--epochs", "100000", "--checkpoints", str(saved),
                                               "--json", str(log))],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
        for line in process.stdout:
            if line.startswith("epoch 2/"):
                break
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=BOUND)
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn("--resume", errors)
        reached = len(logs(log))
        done = run(*self.arguments("--epochs", str(reached + 1), "--resume", str(saved),
                                   "--json", str(log)))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("resumed from", done.stdout)
        self.assertEqual([one["epoch"] for one in logs(log)], list(range(reached + 1)))
        self.assertTrue(all(one["samples"] == 97 for one in logs(log)))

    def test_a_full_disk_costs_checkpoints_and_not_the_run(self):
        if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
            self.skipTest("a small file system needs a namespace of its own")
        saved = self.root / "small"
        saved.mkdir()
        def training(epochs: int) -> str:
            return " ".join([COMMAND, "train", *self.arguments(
                "--model", "linear", "--epochs", str(epochs), "--resume", str(saved))])
        # One checkpoint takes 40 KB there.
        done = subprocess.run(
            ["unshare", "-rm", "sh", "-ec", f"mount -t tmpfs -o size=64k none {saved}; "
             f"{training(3)} || echo CODE $?; mount -o remount,size=1m {saved}; echo LARGER; "
             f"{training(4)}"],
            capture_output=True, text=True, timeout=BOUND, env=environment())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("training continues"), 1, done.stderr)
        self.assertIn("No space left on device", done.stderr)
        self.assertRegex(done.stderr, "after 21 updates the last save failed: .*that of update 7")
        small, larger = done.stdout.split("LARGER")
        self.assertIn("epoch 3/3", small)
        self.assertIn("CODE 1", small)
        self.assertRegex(larger, "resumed from .*step-0000000007")  # the first one is whole
        self.assertIn("epoch 4/4", larger)

    def test_a_new_run_is_refused_where_another_one_saved(self):
        saved = self.root / "taken"
        training = self.arguments("--model", "linear", "--checkpoints", str(saved))
        done = run(*training, "--epochs", "4")
        self.assertEqual(done.returncode, 0, done.stderr)
        names = sorted(os.listdir(saved))
        self.assertEqual(names, ["step-0000000014", "step-0000000021", "step-0000000028"])
        done = run(*training, "--epochs", "2", "--lr", "0.1")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("step-0000000028 of another run", done.stderr)
        self.assertIn("--resume", done.stderr)
        self.assertEqual(sorted(os.listdir(saved)), names)
        done = run(*training, "--epochs", "5", "--resume", str(saved))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, "resumed from .*step-0000000028")
        self.assertEqual(sorted(os.listdir(saved))[-1], "step-0000000035")

    def test_where_nothing_can_be_saved_nobody_says_that_it_was(self):
        (self.root / "file").write_text("")
        training = self.arguments("--model", "linear", "--checkpoints", str(self.root / "file/c"))
        done = run(*training, "--epochs", "2")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("epoch 2/2", done.stdout)
        self.assertIn("after 14 updates the last save failed", done.stderr)
        self.assertIn("no checkpoint of this run", done.stderr)
        process = subprocess.Popen(
            [COMMAND, "train", *training, "--epochs", "100000"], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env=environment(),
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
        for line in process.stdout:
            if line.startswith("epoch 2/"):
                break
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=BOUND)
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn("the last save failed", errors.splitlines()[-1])
        self.assertNotIn("--resume", errors.splitlines()[-1])

    def test_a_resume_says_where_there_is_nothing_and_refuses_what_it_cannot_read(self):
        saved = self.root / "unread"
        training = self.arguments("--model", "linear", "--resume", str(saved))
        done = run(*training, "--epochs", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"nothing to resume in {saved}, starting from the beginning", done.stdout)
        for folder in saved.iterdir():
            model = folder / "model.safetensors"
            model.write_bytes(model.read_bytes()[:-1] + b"\x55")
        for more in ([], ["--resume-older"]):
            done = run(*training, *more, "--epochs", "3")
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn("none of the 2 checkpoints", done.stderr)
            self.assertNotIn("epoch 1", done.stdout)

    def test_what_cannot_be_shown_or_logged_does_not_end_the_run(self):
        saved, log = self.root / "full", self.root / "full.json"
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [COMMAND, "train", *self.arguments("--model", "linear", "--epochs", "2",
                                                   "--json", str(log))],
                stdout=full, stderr=subprocess.PIPE, text=True, timeout=BOUND, env=environment())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(logs(log)), 2)
        done = run(*self.arguments("--model", "linear", "--epochs", "2", "--json", "/dev/full",
                                   "--checkpoints", str(saved)))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("epoch 2/2", done.stdout)
        self.assertIn("log /dev/full is not complete", done.stderr)
        self.assertTrue((saved / "step-0000000014").exists())

    def test_a_limit_on_the_size_of_files_is_an_error_of_the_save(self):
        limit = 1 << 14  # less than the weights of a checkpoint
        done = run(*self.arguments("--epochs", "2", "--checkpoints", str(self.root / "limited")),
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("File too large", done.stderr)
        self.assertIn("epoch 2/2", done.stdout)

    def test_killed_at_any_moment_it_goes_on_as_if_it_had_not_been(self):
        """Each epoch's loss is a fingerprint of weights and samples: it must be that of a run
        that was never killed, bit for bit, or to rounding on another number of replicas."""
        draw = random.Random(7)
        epochs = 12
        def arguments(folder: Path, replicas: int, log: Path) -> list[str]:
            return self.arguments("--epochs", str(epochs), "--model", "linear", "--optimizer",
                                  "sgd", "--lr", "0.01", "--replicas", str(replicas), "--every",
                                  "3", "--resume", str(folder), "--json", str(log))
        whole = self.root / "whole.json"
        self.assertEqual(run(*arguments(self.root / "whole", 2, whole)).returncode, 0)
        wanted = [one["loss"] for one in logs(whole)]
        kills = 200 if LONG else 6
        killed = rounds = 0
        while killed < kills:
            rounds += 1
            folder, log = self.root / f"killed{rounds}", self.root / f"killed{rounds}.json"
            same = rounds % 2 == 1
            for attempt in range(40):
                replicas = 2 if same else draw.choice((1, 2, 3))
                process = subprocess.Popen(
                    [COMMAND, "train", *arguments(folder, replicas, log)], env=environment(),
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                if attempt == 39 or (killed >= kills and attempt > 0):
                    out, errors = process.communicate(timeout=BOUND)
                    break
                try:
                    out, errors = process.communicate(timeout=draw.uniform(0.2, 1.2))
                    break
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.communicate()
                    killed += 1
            self.assertEqual(process.returncode, 0, errors)
            losses = logs(log)
            self.assertEqual([one["epoch"] for one in losses], list(range(epochs)))
            for epoch, loss in enumerate(wanted):
                self.assertEqual(losses[epoch]["samples"], 97)
                if same:
                    self.assertEqual(losses[epoch]["loss"], loss, (rounds, epoch))
                else:
                    self.assertAlmostEqual(losses[epoch]["loss"], loss, places=5)
            shutil.rmtree(folder)
        print(f"{killed} kills in {rounds} runs", file=sys.stderr)


class TorchrunTest(unittest.TestCase):
    """Several processes on this machine."""

    setUpClass = classmethod(lambda cls: TrainCommandTest.setUpClass.__func__(cls))
    tearDownClass = classmethod(lambda cls: TrainCommandTest.tearDownClass.__func__(cls))
    arguments = TrainCommandTest.arguments

    def torchrun(self, processes: int, *arguments: str, restarts: int = 0) -> subprocess.Popen:
        return subprocess.Popen(
            [TORCHRUN, "--no-python", "--nproc-per-node", str(processes), "--max-restarts",
             str(restarts), "--master-addr", "127.0.0.1", "--master-port",
             str(random.randrange(20000, 30000)), COMMAND, "train", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())

    def losses_alone(self, *training: str) -> list[float]:
        log = self.root / f"alone{random.randrange(10 ** 9)}.json"
        done = run(*self.arguments(*training, "--json", str(log)))
        self.assertEqual(done.returncode, 0, done.stderr)
        return [one["loss"] for one in logs(log)]

    def expect_losses(self, log: Path, wanted: list[float]) -> None:
        """Every epoch once, over all samples, with the weights of a run that nothing disturbed."""
        self.assertEqual([one["epoch"] for one in logs(log)], list(range(len(wanted))))
        for one, loss in zip(logs(log), wanted):
            self.assertEqual(one["samples"], 97)
            self.assertAlmostEqual(one["loss"], loss, places=5)

    def test_processes_train_as_one_does(self):
        training = ("--epochs", "2", "--optimizer", "sgd", "--lr", "0.01", "--model", "linear")
        wanted = self.losses_alone(*training)
        for processes, replicas in ((2, 1), (3, 1), (2, 2)):
            log = self.root / f"p{processes}r{replicas}.json"
            process = self.torchrun(processes, *self.arguments(
                *training, "--replicas", str(replicas), "--val", str(self.root / "val"), "--json",
                str(log)))
            _, errors = process.communicate(timeout=BOUND)
            self.assertEqual(process.returncode, 0, errors)
            self.assertEqual([one["val_samples"] for one in logs(log)], [31, 31])
            self.expect_losses(log, wanted)

    def test_a_dead_rank_is_named_and_the_rest_resume(self):
        saved, log = self.root / "dead", self.root / "dead.json"
        processes = []
        port = str(random.randrange(20000, 30000))
        for rank in range(3):
            own = {**environment(), "RANK": str(rank), "WORLD_SIZE": "3", "LOCAL_RANK": str(rank),
                   "LOCAL_WORLD_SIZE": "3", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
            processes.append(subprocess.Popen(
                [COMMAND, "train", *self.arguments("--epochs", "100000", "--model", "linear",
                                                   "--checkpoints", str(saved), "--json",
                                                   str(log), "--timeout", "20")],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=own))
        for line in processes[0].stdout:
            if line.startswith("epoch 2/"):
                break
        processes[2].kill()
        for rank in (0, 1):
            _, errors = processes[rank].communicate(timeout=BOUND)
            self.assertEqual(processes[rank].returncode, 1)
            self.assertIn("rank 2 of 3 has sent no heartbeat", errors)
        processes[2].communicate()
        done = len(logs(log))
        process = self.torchrun(2, *self.arguments(
            "--epochs", str(done + 1), "--model", "linear", "--resume", str(saved), "--json",
            str(log)))
        out, errors = process.communicate(timeout=BOUND)
        self.assertEqual(process.returncode, 0, errors)
        self.assertIn("resumed from", out)
        self.assertEqual(logs(log)[-1]["epoch"], done)

    def test_torchrun_starts_them_again_and_they_go_on(self):
        training = ("--epochs", "40", "--optimizer", "sgd", "--lr", "0.01", "--model", "linear")
        wanted = self.losses_alone(*training)
        saved, log = self.root / "again", self.root / "again.json"
        process = self.torchrun(2, *self.arguments(*training, "--every", "3", "--resume",
                                                   str(saved), "--json", str(log)), restarts=1)
        for line in process.stdout:
            if line.startswith("epoch 2/"):
                break
        os.kill(children(process.pid)[1], signal.SIGKILL)
        out, errors = process.communicate(timeout=BOUND)
        self.assertEqual(process.returncode, 0, errors)
        self.assertIn("resumed from", out)
        self.expect_losses(log, wanted)

    @unittest.skipUnless(LONG, "torch takes a minute to notice that an agent is gone")
    def test_torchrun_goes_on_with_the_hosts_that_are_left(self):
        training = ("--epochs", "400", "--optimizer", "sgd", "--lr", "0.01", "--model", "linear")
        wanted = self.losses_alone(*training)
        saved, log = self.root / "left", self.root / "left.json"
        port, agents = random.randrange(20000, 30000), []
        for _ in range(2):
            agents.append(subprocess.Popen(
                [TORCHRUN, "--no-python", "--nnodes", "1:2", "--nproc-per-node", "1",
                 "--max-restarts", "3", "--rdzv-backend", "c10d", "--rdzv-endpoint",
                 f"127.0.0.1:{port}", "--rdzv-id", "left", "--local-addr", "127.0.0.1",
                 "--rdzv-conf", "last_call_timeout=5", COMMAND, "train",
                 *self.arguments(*training, "--every", "3", "--resume", str(saved), "--json",
                                 str(log), "--timeout", "10")],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
                start_new_session=True))
            if len(agents) == 1:  # the first one holds the store
                wait_for_port(port)
        for line in agents[0].stdout:
            if line.startswith("epoch 2/"):
                break
        killed = [*children(agents[1].pid), agents[1].pid]
        for process in killed:
            os.kill(process, signal.SIGKILL)
        out, errors = agents[0].communicate(timeout=BOUND)
        agents[1].communicate()
        self.assertEqual(agents[0].returncode, 0, errors)
        self.assertIn("resumed from", out)
        self.expect_losses(log, wanted)

    def test_ranks_that_differ_are_told(self):
        arguments = self.arguments("--epochs", "1", "--model", "linear", "--seed", "7",
                                   "--timeout", "15")
        for ranks, second, words in (
                ((0, 1), ("7", "8"), "differ in"), ((0, 1), ("linear", "cnn"), "the model"),
                ((0, 0), ("", ""), "started twice")):
            port = str(random.randrange(20000, 30000))
            processes = []
            for number, rank in enumerate(ranks):
                own = {**environment(), "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": "0",
                       "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
                if ranks == (0, 0):
                    own["TORCHELASTIC_USE_AGENT_STORE"] = "False" if number == 0 else "True"
                processes.append(subprocess.Popen(
                    [COMMAND, "train", *(second[1] if number and word == second[0] else word
                                         for word in arguments)],
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=own))
            _, errors = processes[1].communicate(timeout=BOUND)
            if ranks == (0, 0):  # either may have come second; the first one waits for a rank 1
                processes[0].kill()
            errors += processes[0].communicate(timeout=BOUND)[1]
            self.assertIn(words, errors)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--command", required=True, help="the penstock command")
    parser.add_argument("--torchrun", required=True)
    known, rest = parser.parse_known_args()
    COMMAND, TORCHRUN = os.path.abspath(known.command), os.path.abspath(known.torchrun)
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
