"""Processes that are killed while they build an index or write files: the next start is clean."""

import os
import pathlib
import random
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np

import penstock as ps

KILLS = 2000 if os.environ.get("PENSTOCK_LONG") else 20
LINES = 200_000
SAMPLES = 3000

PROGRAM = textwrap.dedent("""
    import pathlib, sys
    import numpy as np
    import penstock as ps

    folder = pathlib.Path(sys.argv[1])
    print("begun", flush=True)
    while True:
        data = ps.from_text(folder / "lines.txt", index=folder / "indexes", progress=False)
        assert len(data) == 200_000, len(data)
        rows = ps.from_tensor_slices({"x": np.arange(3000 * 64).reshape(3000, 64)})
        ps.write_records(rows, folder / "out", shards=40)
        for file in (folder / "out").glob("data-000[23]*"):
            file.unlink()
        for file in (folder / "indexes").iterdir():
            file.unlink()
""")


def killed_once(program, folder, delay):
    """Starts the program, and kills it `delay` seconds after it has begun to work."""
    process = subprocess.Popen([sys.executable, program, folder], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"begun\n"
    time.sleep(delay)
    assert process.poll() is None, "the program ended by itself"
    process.send_signal(signal.SIGKILL)
    process.wait()


def check(folder):
    """What was left is used or replaced; either way it is right."""
    text = ps.from_text(folder / "lines.txt", index=folder / "indexes", progress=False)
    assert len(text) == LINES
    for number in (0, 1, LINES // 2, LINES - 1):
        assert text.sample(number) == f"line {number}"
    values = np.arange(SAMPLES * 64).reshape(SAMPLES, 64)
    written = ps.write_records(ps.from_tensor_slices({"x": values}), folder / "out", shards=40)
    assert written.samples == SAMPLES
    read = ps.from_tfrecord(folder / "out/*.tfrecord", {"x": ps.Field("int64", (64,))})
    rows = np.concatenate([batch["x"] for batch in ps.Loader(read.batch(512))])
    assert np.array_equal(rows, values)


def test_indexes_and_files_survive_kills_at_any_moment(tmp_path):
    (tmp_path / "lines.txt").write_text("".join(f"line {i}\n" for i in range(LINES)))
    (tmp_path / "indexes").mkdir()
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    draw = random.Random(1)
    for kill in range(KILLS):
        killed_once(program, tmp_path, draw.random() * 0.5)
        if kill % 5 == 4 or kill == KILLS - 1:
            check(tmp_path)
    left = [path.name for path in pathlib.Path(tmp_path / "out").iterdir()
            if path.suffix == ".tmp" and path.name.startswith("data-")]
    assert not left, "a later call replaces what a killed one did not finish"
