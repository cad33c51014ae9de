"""examples/python/gpt.py: the same losses on any number of processes, and after kill -9."""

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import penstock as ps  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples/python/gpt.py"
SMALL = ("--length", 32, "--batch", 8, "--layers", 1, "--heads", 2, "--width", 16,
         "--learning-rate", 0.01, "--save-every", 2)
STEPS = 60  # more than an epoch, which has 49
CLOSE = 1e-9  # the program promises 1e-5
SECONDS_MAX = 120  # to wait for a process; it takes about 10


@pytest.fixture(scope="module")
def gpt():
    spec = importlib.util.spec_from_file_location("gpt", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """240 documents, of no letters up to several rows."""
    folder = tmp_path_factory.mktemp("text")
    draw = np.random.default_rng(0)
    for number, letters in enumerate(draw.lognormal(3.5, 1, 240).astype(int)):
        words = "".join(draw.choice(list("the cat sat on a mat. "), letters))
        (folder / f"{number:03}.txt").write_text(words if number else "")
    return folder / "*.txt"


@pytest.fixture(scope="module")
def start(text):
    """Starts the example on some processes; returns the process of the launcher."""
    started = []

    def start(processes, *arguments):
        environment = {name: value for name, value in os.environ.items() if name != "RANK"}
        environment.update(OMP_NUM_THREADS="1", PYTHONPATH=os.pathsep.join(sys.path))
        launch = [] if processes == 1 else ["-m", "torch.distributed.run", "--standalone",
                                            f"--nproc-per-node={processes}"]
        command = [sys.executable, *launch, EXAMPLE, "--text", text, *SMALL, *arguments]
        started.append(subprocess.Popen([str(each) for each in command], env=environment, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:  # a test has failed
            kill_everything(process)


@pytest.fixture(scope="module")
def curve(start, tmp_path_factory):
    """Runs the example to its end; returns its losses, and what it printed."""

    def curve(processes, *arguments):
        out = tmp_path_factory.mktemp("curve") / "losses.json"
        process = start(processes, *arguments, "--out", out)
        printed, _ = process.communicate(timeout=SECONDS_MAX)
        assert process.returncode == 0, printed
        result = json.loads(out.read_text())
        return np.array([*result["losses"], result["validation"]]), printed

    return curve


@pytest.fixture(scope="module")
def one_process(curve):
    return curve(1, "--steps", STEPS)[0]


@pytest.mark.parametrize("processes", [2, 3])
def test_any_number_of_processes_gives_the_same_losses(one_process, curve, processes):
    losses, _ = curve(processes, "--steps", STEPS)
    assert len(losses) == STEPS + 1 and losses[STEPS - 1] < losses[0] - 1  # it learns
    assert np.abs(losses - one_process).max() < CLOSE


def saved_steps(folder):
    path = folder / "last.pt"
    return len(torch.load(path, weights_only=True)["losses"]) if path.exists() else 0


def wait_until(condition, process=None):
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert process is None or process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.01)  # another process works meanwhile


def children_of(process):
    tasks = Path(f"/proc/{process.pid}/task").iterdir()
    return [int(pid) for task in tasks for pid in (task / "children").read_text().split()]


def runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def kill_everything(process):
    pids = [process.pid, *children_of(process)]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=SECONDS_MAX)
    wait_until(lambda: not any(runs(pid) for pid in pids))


def kill_one_worker(process):
    os.kill(children_of(process)[-1], signal.SIGKILL)  # torchrun then ends the others
    process.communicate(timeout=SECONDS_MAX)
    assert process.returncode != 0


def test_a_killed_run_resumes_exactly_with_another_number_of_processes(one_process, start, curve,
                                                                        tmp_path):
    options = ("--checkpoint", tmp_path)
    killed_at = [0]
    for processes, kill in ((2, kill_everything), (3, kill_one_worker)):
        process = start(processes, *options, "--steps", 10**5)  # does not get there
        wait_until(lambda: saved_steps(tmp_path) >= killed_at[-1] + 8, process)
        kill(process)
        killed_at.append(saved_steps(tmp_path))
    steps = max(STEPS, killed_at[-1] + 10)  # more if this machine was slow to kill
    losses, printed = curve(1, *options, "--steps", steps)
    assert re.findall(r"resumed after step (\d+)", printed) == [str(killed_at[-1])]
    uninterrupted = one_process if steps == STEPS else curve(1, "--steps", steps)[0]
    assert np.abs(losses - uninterrupted).max() < CLOSE


@pytest.fixture
def model(gpt):
    torch.manual_seed(0)
    return gpt.GPT(length=32, layers=2, heads=2, width=16).double()


def test_a_document_of_a_row_is_computed_as_if_it_were_alone(gpt, model):
    lengths = [9, 1, 14, 3]
    offsets = np.cumsum([0, *lengths])
    documents = ps.from_ragged(np.arange(offsets[-1], dtype=np.uint8), offsets)
    packed = documents.pack(32, separator=gpt.SEPARATOR).batch(1)
    (row,) = [batch.torch() for batch in ps.Loader(packed)]
    logits = model(row["tokens"], row["positions"], row["document"])[0]
    for number, sample in enumerate(documents):
        alone = torch.tensor([[*sample.tolist(), gpt.SEPARATOR]])
        expected = model(alone, torch.arange(alone.shape[1])[None], torch.zeros_like(alone))[0]
        assert torch.allclose(logits[row["document"][0] == number], expected, atol=1e-12)
    assert torch.isfinite(logits).all()  # padding too


def test_a_token_does_not_see_those_after_it(model):
    tokens = torch.arange(32)[None]
    inputs = torch.arange(32)[None], torch.zeros_like(tokens)
    logits, shorter = model(tokens, *inputs)[0], model(tokens.clamp(max=20), *inputs)[0]
    assert torch.allclose(logits[:21], shorter[:21], atol=1e-12)
    assert not torch.allclose(logits[21:], shorter[21:], atol=1e-3)
