"""Shared by the tests: running small programs, and collecting the rows of a loader."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import penstock as ps

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import doc_blocks  # noqa: E402

# A make in the background ignores SIGINT, which the programs of tests inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

if "PENSTOCK_OFF" in os.environ:  # tools/scenarios.py expects tests to fail without a promise
    ps._native._break_promise(os.environ["PENSTOCK_OFF"])


def rows_of(loader):
    """All rows of one epoch of single-array batches, as a list."""
    return [row for batch in loader for row in batch.numpy().tolist()]


def steps_of(loader):
    return [batch.numpy().tolist() for batch in loader]


def run_program(program, timeout=60):
    """Runs a program in another interpreter; returns its exit code, stdout and stderr."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], timeout=timeout,
                          capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def run_page(page, folder, having=()):
    """Runs the Python of a page in `folder`; tracebacks name its lines."""
    text = doc_blocks.python_program(page, having)
    return run_program(f"import os\nos.chdir({str(folder)!r})\n"
                       f"exec(compile({text!r}, {page!r}, 'exec'))\n", timeout=300)


@pytest.fixture
def table():
    """40 samples with ids."""
    return {"x": np.arange(120, dtype=np.float32).reshape(40, 3), "id": np.arange(40)}
