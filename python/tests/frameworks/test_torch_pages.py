"""Whole programs of the pages, run under torchrun; and README's claims about torch."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))
import doc_blocks  # noqa: E402
from test_pages import make_photos  # noqa: E402

import penstock as ps  # noqa: E402

PRINTED = re.compile(r"accuracy (\S+) of (\d+), weights (\S+)")


@pytest.fixture
def page(tmp_path):
    """Runs the program of the page, and returns accuracy, count and the sum of all weights."""
    make_photos(tmp_path)
    program = tmp_path / "train.py"
    program.write_text(doc_blocks.python_program("docs/guide/ddp_pictures.md", ("torch",)))

    def run(processes, epochs):
        command = [sys.executable, program]
        if processes > 1:
            command = [sys.executable, "-m", "torch.distributed.run", "--standalone",
                       "--nproc-per-node", str(processes), program]
        done = subprocess.run(command, cwd=tmp_path, check=False, text=True, capture_output=True,
                              env={**os.environ, "EPOCHS": str(epochs)}, timeout=600)
        found = PRINTED.findall(done.stdout)
        assert done.returncode == 0 and len(found) == 1, done.stdout + done.stderr
        return float(found[0][0]), int(found[0][1]), float(found[0][2])

    run.saved = tmp_path / "saved.pt"
    return run


def test_pictures_train_to_the_same_weights_on_any_number_of_processes_and_resume(page):
    accuracy, count, weights = page(processes=1, epochs=3)
    assert count == 30  # a fifth of 150
    page.saved.unlink()
    page(processes=2, epochs=1)
    resumed = page(processes=3, epochs=3)
    assert resumed[:2] == (accuracy, count)
    assert resumed[2] == pytest.approx(weights, abs=1e-4)  # float32


def test_103_samples_on_3_processes_are_105_in_torch():
    data = TensorDataset(torch.arange(103))
    ids = [int(each) for rank in range(3)
           for (part,) in DataLoader(data, 6, sampler=DistributedSampler(data, 3, rank))
           for each in part]
    assert len(ids) == 105 and len(set(ids)) == 103


def test_103_samples_on_3_processes_are_103_here():
    ds = ps.range(103).shuffle(seed=7).batch(16)
    ids = [int(each) for rank in range(3) for batch in ps.Loader(ds, world=3, rank=rank)
           for each in batch.numpy()]
    assert sorted(ids) == list(range(103))
