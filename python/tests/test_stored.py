"""Rows on disk: cache(folder), snapshot, save and load; processes that share a folder, and kills.

PENSTOCK_LONG=1 kills 2,000 processes instead of 20.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
from conftest import rows_of

import penstock as ps

KILLS = 2000 if os.environ.get("PENSTOCK_LONG") == "1" else 20

# A process that fills a folder; `kind` says how.
PROGRAM = """
import sys
import numpy as np
import penstock as ps

kind, folder = sys.argv[1:]

def row(x):
    return {"x": x, "bytes": b"%d" % x * (x % 50), "values": np.full(x % 7, x, "int32")}

data = ps.range(1500).map(row, name="row")
def stream():
    return (x for x in range(1500))
streamed = ps.from_generator(lambda: stream(), name="stream", spec=ps.Field("int64")).map(
    row, name="row")
print("go", flush=True)
if kind == "cache":
    for _ in ps.Loader(data.cache(folder).shuffle().batch(10)):
        pass
elif kind == "stream":
    streamed.cache(folder).resolve()
else:
    (data if kind == "save" else streamed).save(folder, files=2)
print("done", flush=True)
"""
SCOPE = {"__name__": "rows"}
exec(PROGRAM[:PROGRAM.index("print(")].replace("kind, folder = sys.argv[1:]", ""), SCOPE)


def is_row(number, sample):
    wanted = SCOPE["row"](number)
    return (int(sample["x"]) == number and sample["bytes"] == wanted["bytes"]
            and np.array_equal(sample["values"], wanted["values"]))


def filled(kind, folder):
    """The dataset that the folder belongs to, or None if it is not complete and must not load."""
    if kind == "cache":
        return SCOPE["data"].cache(folder)
    if kind == "stream":
        return SCOPE["streamed"].cache(folder).resolve()
    try:
        loaded = ps.load(folder)
    except ps.ConfigError as error:
        assert "incomplete" in str(error) or "dataset.json" in str(error), error
        return None
    return loaded


@pytest.mark.parametrize("kind", ["cache", "stream", "save", "save stream"])
def test_a_killed_process_leaves_no_wrong_row(kind, tmp_path):
    draw = random.Random(kind)
    folder, copy = tmp_path / "folder", tmp_path / "copy"
    complete = 0
    for kill in range(max(1, KILLS // 4)):
        with subprocess.Popen([sys.executable, "-c", PROGRAM, kind, str(folder)],
                              stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "go\n"
            # Sooner and sooner, so that some are killed while they begin.
            time.sleep(draw.random() * draw.choice([0.01, 0.1, 0.5]))
            process.kill()
            done = process.stdout.readline() == "done\n"
        if not folder.exists():
            continue
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy)
        dataset = filled(kind, copy)
        if done or dataset is not None and "save" in kind:
            complete += 1
            assert dataset is not None, "what is done is complete"
            shutil.rmtree(folder)
        if dataset is None:
            continue
        numbers = range(1500) if kill % 5 == 0 else draw.sample(range(1500), 100)
        assert len(dataset) == 1500
        assert all(is_row(number, dataset.sample(number)) for number in numbers), kill
    # What is left can be completed.
    subprocess.run([sys.executable, "-c", PROGRAM, kind, str(folder)], check=True, timeout=120,
                   stdout=subprocess.DEVNULL)
    dataset = filled(kind, folder)
    assert all(is_row(number, dataset.sample(number)) for number in range(1500))


def test_two_processes_share_a_folder(tmp_path):
    processes = [subprocess.Popen([sys.executable, "-c", PROGRAM, "cache", str(tmp_path)],
                                  stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for process in processes:
        assert process.communicate(timeout=120)[0] == "go\ndone\n"
    dataset = filled("cache", tmp_path)
    assert all(is_row(number, dataset.sample(number)) for number in range(1500))


def test_processes_that_cache_one_stream_wait_for_each_other(tmp_path):
    processes = [subprocess.Popen([sys.executable, "-c", PROGRAM, "stream", str(tmp_path)],
                                  stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for process in processes:
        assert process.communicate(timeout=120)[0] == "go\ndone\n"
    assert len(list(tmp_path.glob("*.psr"))) == 1, "one of them has read it"
    assert json.loads((tmp_path / "dataset.json").read_text())["complete"]


def test_a_cache_in_a_folder_is_found_by_a_later_run(tmp_path):
    calls = []

    def data():
        return ps.range(30).map(lambda x: calls.append(1) or x * 2, name="double")
    assert rows_of(ps.Loader(data().cache(tmp_path).batch(4))) == list(range(0, 60, 2))
    assert len(calls) == 30
    assert rows_of(ps.Loader(data().cache(str(tmp_path)).batch(7))) == list(range(0, 60, 2))
    assert len(calls) == 30
    assert "30 of 30 rows on disk" in ps.Loader(data().cache(tmp_path).batch(7)).plan.explain()
    with pytest.raises(ps.ConfigError, match="other data"):
        ps.range(31).cache(tmp_path)


def test_a_cached_stream_has_a_length_and_can_be_shuffled(tmp_path):
    def stream():
        return ps.range(40).filter(lambda x: x % 3 == 0, name="third")
    cached = stream().cache(tmp_path)
    with pytest.raises(TypeError, match="resolve"):
        len(cached)
    assert len(cached.resolve()) == 14
    assert len(stream().cache(tmp_path)) == 14, "known at once"
    assert sorted(rows_of(ps.Loader(cached.shuffle(seed=1).batch(5)))) == list(range(0, 40, 3))
    assert rows_of(ps.Loader(stream().cache().batch(5))) == list(range(0, 40, 3))


def test_rows_that_do_not_fit_spill(tmp_path):
    calls = []
    data = ps.range(4000).map(lambda x: calls.append(1) or x, name="x", spec=ps.Field("int64"))
    cached = data.cache(tmp_path, bytes_max=20_000, when_full="spill")
    for _ in range(2):
        assert rows_of(ps.Loader(cached.batch(100))) == list(range(4000))
    assert len(calls) == 4000
    with pytest.raises(ps.ConfigError, match="there is none"):
        data.cache(when_full="spill")


def test_what_is_saved_is_loaded(tmp_path):
    data = ps.from_tensor_slices({"x": np.arange(50), "y": np.ones((50, 3), "float32")})
    data.shuffle(seed=3).save(tmp_path / "a", files=3)
    loaded = ps.load(tmp_path / "a")
    assert loaded.element_spec == data.element_spec and len(loaded) == 50
    rows = [int(each["x"]) for each in loaded]
    assert sorted(rows) == list(range(50)) and rows != list(range(50))
    with pytest.raises(ps.ConfigError, match="already"):
        data.save(tmp_path / "a")
    data.save(tmp_path / "a", overwrite=True)
    assert [int(each["x"]) for each in ps.load(str(tmp_path / "a"))] == list(range(50))


def test_what_cannot_be_stored_is_refused(tmp_path):
    for call in (lambda: ps.range(4).batch(2).save(tmp_path),
                 lambda: ps.range(4).repeat().save("x"),
                 lambda: ps.range(4).save(""), lambda: ps.range(4).save(tmp_path, files=0),
                 lambda: ps.range(4).cache(""), lambda: ps.range(4).cache(3),
                 lambda: ps.range(4).snapshot(None), lambda: ps.range(4).cache(place="there"),
                 lambda: ps.load(tmp_path), lambda: ps.load(3),
                 lambda: ps.range(4).shuffle(seed="random").cache(tmp_path)):
        with pytest.raises((ps.ConfigError, TypeError, ValueError)):
            call()
    (tmp_path / "file").write_text("")
    with pytest.raises(ps.IoError, match="file"):
        ps.range(4).save(tmp_path / "file")
    with pytest.raises(ps.ConfigError, match="file"):
        ps.range(4).cache(tmp_path / "file")
