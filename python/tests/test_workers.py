"""Python functions in worker processes: the same bytes, even if processes die."""

import errno
import functools
import gc
import itertools
import os
import pickle
import signal
import sys
import threading
import time
import warnings

import numpy as np
import pytest
from conftest import rows_of, run_program, steps_of

import penstock as ps


def workers_of(loader):
    return loader._native.worker_ids()


def alive(process_id):
    try:
        with open(f"/proc/{process_id}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def children():
    """Worker processes of this one, including zombies."""
    found = []
    for thread in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{thread}/children") as file:
            found += file.read().split()
    commands = {}
    for one in found:
        with open(f"/proc/{one}/cmdline", "rb") as file:
            commands[one] = file.read()
    return [one for one, command in commands.items() if b"worker_main" in command or not command]


def shared_memories():
    links = (f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd"))
    return [link for link in links if os.path.islink(link) and "penstock" in os.readlink(link)]


def noisy(x, rng):
    return x + rng.normal()


def drawn_below(x):
    return {"x": x, "draw": ps.rng().integers(1 << 60)}


def parts(x):
    return {"text": f"sample {x}", "raw": bytes([x % 256]) * int(x % 5),
            "nested": (np.full((2, 3), x, np.float32), {"flag": x % 2 == 0, "none": np.zeros(0)})}


def describe(batch):
    """The content of a batch, in a comparable form."""
    def plain(part):
        if isinstance(part, dict):
            return {name: plain(value) for name, value in part.items()}
        if isinstance(part, tuple):
            return tuple(plain(value) for value in part)
        return [plain(row) for row in part] if isinstance(part, list) else (
            (str(part.dtype), part.tolist()) if isinstance(part, np.ndarray) else part)
    return plain(batch.numpy()), batch.sample_id.tolist()


@pytest.mark.parametrize("fn", [noisy, drawn_below, parts])
def test_bytes_are_those_of_threads_at_any_number_of_workers(fn):
    def run(**options):
        loader = ps.Loader(ps.range(60).shuffle(seed=3).map(fn, **options).batch(7))
        return [describe(batch) for _ in range(2) for batch in loader]

    expected = run()
    for workers in (1, 2, 5):
        assert run(workers=workers) == expected


@pytest.mark.parametrize("threads", [0, 1, 2])
def test_any_number_of_threads_may_use_the_workers(threads):
    dataset = ps.range(50).map(noisy, workers=2).batch(8)
    assert steps_of(ps.Loader(dataset, threads=threads)) == steps_of(
        ps.Loader(ps.range(50).map(noisy).batch(8)))


def test_map_batch_in_workers_equals_map_batch():
    def double(x):
        return {"double": x["a"] * 2, "b": x["b"] + 1}

    data = ps.from_tensor_slices({"a": np.arange(500), "b": np.ones((500, 3), np.float32)})
    here = [describe(batch) for batch in ps.Loader(data.map_batch(double).batch(64))]
    there = data.map_batch(double, workers=2)
    assert there.element_spec == data.map_batch(double).element_spec
    assert [describe(batch) for batch in ps.Loader(there.batch(64))] == here
    unknown = ps.range(20).map(lambda x: x * 2.0).map_batch(lambda x: x + 1, workers=2)
    assert rows_of(ps.Loader(unknown.batch(5))) == [1 + 2 * i for i in range(20)]


def test_in_every_place_of_a_chain():
    def chain(**options):
        data = ps.range(40).map(lambda x: {"x": x, "s": "a" * int(x)}, **options)
        data = data.filter(lambda sample: sample["x"] % 3 != 0)
        data = data.map(lambda sample: (sample["x"] + 1.0, len(sample["s"])), **options)
        return data.map(lambda a, b: {"a": np.float32(a), "b": b},
                        spec={"a": ps.Field("float32"), "b": ps.Field("int64")}, **options)

    def whole(**options):
        return chain().batch(6).map(lambda s: {"a": s["a"] - s["a"].mean(), "b": s["b"]}, **options)

    for make in (lambda **o: chain(**o).batch(6), whole):
        assert [describe(b) for b in ps.Loader(make(workers=2))] == [
            describe(b) for b in ps.Loader(make())]


def test_a_run_resumes_with_another_number_of_workers():
    def loader(**options):
        return ps.Loader(ps.range(30).shuffle(seed=2).map(noisy, **options).batch(4))

    whole = rows_of(loader())
    first = loader(workers=2)
    loop = iter(first)
    seen = [row for _ in range(3) for row in next(loop).numpy().tolist()]
    other = loader(workers=1)
    other.load_state_dict(first.state_dict())
    assert seen + rows_of(other) == whole


def test_workers_are_other_processes_and_live_for_all_epochs():
    loader = ps.Loader(ps.range(40).map(lambda x: os.getpid(), workers=2).batch(4))
    assert workers_of(loader) == []
    seen = set(rows_of(loader)) | set(rows_of(loader))
    assert seen <= set(workers_of(loader)) and os.getpid() not in seen
    assert len(workers_of(loader)) == 2


def test_no_process_and_no_memory_is_left():
    def use(end):
        before = len(shared_memories())
        loader = ps.Loader(ps.range(40).map(lambda x: x + 1, workers=2).batch(4))
        loop = iter(loader)
        next(loop)
        ids = workers_of(loader)
        assert len(ids) == 2 and all(map(alive, ids)) and len(shared_memories()) > before
        end(loader)
        del loop, loader
        gc.collect()
        assert not any(map(alive, ids)) and len(shared_memories()) == before

    use(lambda loader: None)
    use(lambda loader: loader.stop())
    use(lambda loader: loader.__exit__())


def test_after_stop_the_next_loop_restarts_the_workers():
    loader = ps.Loader(ps.range(10).map(lambda x: x + 1, workers=1).batch(4))
    first = rows_of(loader)
    ids = workers_of(loader)
    loader.stop()
    assert workers_of(loader) == [] and not any(map(alive, ids))
    assert rows_of(loader) == first and workers_of(loader) != []


def test_loaders_of_one_dataset_share_the_workers():
    dataset = ps.range(20).map(lambda x: x + 1, workers=1).batch(4)
    first, second = ps.Loader(dataset), ps.Loader(dataset)
    assert rows_of(first) == rows_of(second)
    assert workers_of(first) == workers_of(second)
    first.stop()
    del first
    gc.collect()
    assert all(map(alive, workers_of(second))) and workers_of(second)
    assert rows_of(second) == list(range(1, 21))


def test_a_feed_of_a_strategy_ends_the_workers():
    marker = []

    def run():
        strategy = ps.MirroredStrategy(["cpu:0", "cpu:1"])
        feed = strategy.distribute(ps.range(20).map(lambda x: os.getpid(), workers=1).batch(4))
        marker.extend(int(row) for step in feed for share in step.shares for row in share.numpy())

    run()
    gc.collect()
    assert len(set(marker)) == 1 and not alive(marker[0])


# Failing functions

class Unlucky(Exception):
    def __init__(self, number):
        super().__init__(f"number {number}")
        self.number = number


def test_exceptions_keep_type_and_traceback_and_gain_sample_op_and_step():
    def fail(x):
        if x == 13:
            raise Unlucky(int(x))
        return x

    loader = ps.Loader(ps.range(50).map(fail, workers=2).batch(5))
    seen = []
    with pytest.raises(Unlucky, match=r"^number 13\b") as raised:
        for batch in loader:
            seen.append(batch.step)
    assert seen == [0, 1] and raised.value.number == 13
    note = "".join(raised.value.__notes__)
    assert "sample 13" in note and "step 2" in note and 'map "fail"' in note
    assert "in fail" in str(raised.value.__cause__) and "raise Unlucky" in str(
        raised.value.__cause__)


def test_an_exception_of_a_local_class_keeps_its_class():
    class Local(ValueError):
        pass

    def fail(x):
        raise Local("here", x)

    with pytest.raises(Local) as raised:
        list(ps.Loader(ps.range(4).map(fail, workers=1).batch(2)))
    assert raised.value.args == ("here", 0)


def raised_there(make):
    """The exception that arrives if `make()` creates it in a worker."""
    def fail(x):
        raise make()

    with pytest.raises(BaseException) as raised:
        list(ps.Loader(ps.range(2).map(fail, workers=1).batch(2)))
    return raised.value


def test_exceptions_keep_their_attributes():
    def missing():
        try:
            open("/no/such/file")
        except FileNotFoundError as error:
            return error

    error = raised_there(missing)
    assert type(error) is FileNotFoundError and error.filename == "/no/such/file"
    assert error.errno == errno.ENOENT and "/no/such/file" in str(error)
    error = raised_there(lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"))
    assert type(error) is UnicodeDecodeError and error.object == b"\xff"
    error = raised_there(lambda: ImportError("no", name="module"))
    assert error.name == "module"
    error = raised_there(lambda: ps.ConfigError("wrong", remedy="right"))
    assert type(error) is ps.ConfigError and error.remedy == "right"
    error = raised_there(lambda: SystemExit(3))
    assert type(error) is SystemExit and error.code == 3


def test_an_exception_that_cannot_be_pickled_is_named():
    def fail(x):
        raise ValueError("with a lock", threading.Lock())

    with pytest.raises(ps.SampleError, match="ValueError, which cannot be pickled") as raised:
        list(ps.Loader(ps.range(4).map(fail, workers=1).batch(2)))
    assert "in fail" in str(raised.value.__cause__)


def test_os_errors_that_may_pass_are_tried_again(tmp_path):
    def flaky(x):
        if x == 5 and len(os.listdir(tmp_path)) < 2:
            (tmp_path / str(len(os.listdir(tmp_path)))).touch()
            raise OSError(errno.EIO, "a bad moment")
        return x

    assert rows_of(ps.Loader(ps.range(8).map(flaky, workers=1).batch(4))) == list(range(8))


def test_results_that_are_not_samples_are_reported_as_in_threads():
    for fn, words in ((lambda x: None, "return missing"),
                      (lambda x: {"x": x} if x < 5 else {"y": x}, "same structure"),
                      (lambda x: np.zeros(2 if x < 5 else (2, 1)), "same structure")):
        with pytest.raises(ps.SampleError, match=words):
            list(ps.Loader(ps.range(10).map(fn, workers=2).batch(2)))
    with pytest.raises(ps.SampleError, match="one row per input row"):
        list(ps.Loader(ps.range(4).map_batch(lambda x: x[1:], spec=ps.Field("int64"),
                                             workers=1).batch(4)))


def test_failed_samples_are_skipped_and_the_others_keep_their_place():
    def fail(x):
        if x % 10 == 3:
            raise ValueError("three")
        return x

    for kind in ("map", "map_batch"):
        def fail_rows(x):
            return np.array([fail(each) for each in x], np.int64)

        dataset = (ps.range(60).map(fail, workers=2) if kind == "map" else
                   ps.range(60).map_batch(fail_rows, spec=ps.Field("int64"), workers=2))
        loader = ps.Loader(dataset.batch(8), on_error="skip")
        assert rows_of(loader) == [x for x in range(60) if x % 10 != 3]
        assert [entry["number"] for entry in loader.ledger] == [3, 13, 23, 33, 43, 53]


def test_global_randomness_is_warned_about_once():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        list(ps.Loader(ps.range(50).map(lambda x: x + np.random.rand(), workers=2).batch(5)))
    told = [str(each.message) for each in caught if "global random" in str(each.message)]
    assert len(told) == 1 and "ps.rng()" in told[0]


# Workers that die

ENDS = {
    "exits": lambda: os._exit(3),
    "is killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "crashes": lambda: os.kill(os.getpid(), signal.SIGSEGV),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_worker_that_dies_is_restarted_and_its_block_recomputed(end, tmp_path):
    def once(x, rng):
        if x in (5, 17) and not (tmp_path / str(x)).exists():
            (tmp_path / str(x)).touch()
            ENDS[end]()
        return x + rng.normal()

    expected = rows_of(ps.Loader(ps.range(40).map(noisy).batch(8)))
    assert rows_of(ps.Loader(ps.range(40).map(once, workers=2).batch(8))) == expected
    assert sorted(os.listdir(tmp_path)) == ["17", "5"]


@pytest.mark.parametrize("end", ENDS)
def test_three_deaths_on_a_block_name_the_sample(end, tmp_path):
    def fatal(x):
        if x == 13:
            (tmp_path / str(len(os.listdir(tmp_path)))).touch()
            ENDS[end]()
        return x

    def loader(**options):
        return ps.Loader(ps.range(40).map(fatal, workers=2).batch(5), **options)

    with pytest.raises(ps.SampleError, match="worker process.*3 times on this sample") as raised:
        list(loader())
    assert raised.value.where["sample"] == 13 and "debug=True" in raised.value.remedy
    assert len(os.listdir(tmp_path)) == 3
    skipping = loader(on_error="skip")
    assert rows_of(skipping) == [x for x in range(40) if x != 13]
    assert skipping.ledger[0]["number"] == 13


def test_a_worker_killed_from_outside_between_two_steps_is_replaced():
    loader = ps.Loader(ps.range(64).map(lambda x: x + 1, workers=1).batch(4), threads=0)
    seen, killed = [], []
    for batch in loader:
        seen += batch.numpy().tolist()
        killed += workers_of(loader)
        os.kill(killed[-1], signal.SIGKILL)
    assert seen == list(range(1, 65)) and len(set(killed)) == 16


def test_a_worker_that_does_not_return_does_not_block_stop(tmp_path):
    def stuck(x):
        if (tmp_path / "begun").exists() and not (tmp_path / "on").exists():
            (tmp_path / "stuck").touch()
            threading.Event().wait()
        return x

    loader = ps.Loader(ps.range(400).map(stuck, workers=1).batch(1), lookahead_bytes=1)
    loop = iter(loader)
    next(loop)
    (tmp_path / "begun").touch()
    told = []

    def consume():
        with pytest.raises(ps.CancelledError) as raised:
            list(loop)
        told.append(str(raised.value))

    waiting = threading.Thread(target=consume)
    waiting.start()
    while not (tmp_path / "stuck").exists():
        pass
    loader.stop()
    waiting.join()
    assert "stopped" in told[0]
    (tmp_path / "on").touch()
    assert rows_of(loader) == list(range(400))
    ids = workers_of(loader)
    loader.stop()
    assert not any(map(alive, ids))


def test_a_child_that_keeps_the_socket_does_not_hide_a_death(tmp_path):
    def leave_a_child(x):
        if x == 3 and not (tmp_path / "child").exists():
            child = os.fork()
            if child == 0:
                while not (tmp_path / "end").exists():
                    time.sleep(0.01)
                os._exit(0)
            (tmp_path / "child").write_text(str(child))
            os._exit(1)
        return x

    assert rows_of(ps.Loader(ps.range(8).map(leave_a_child, workers=1).batch(4))) == list(range(8))
    (tmp_path / "end").touch()


# Functions that cannot be pickled

def test_functions_that_cannot_be_pickled_raise_when_the_dataset_is_built():
    lock = threading.Lock()

    def locked(x):
        with lock:
            return x

    with pytest.raises(ps.ConfigError, match=r'"lock" of the scope around it \(lock\).*threads'):
        ps.range(4).map(locked, workers=1)
    with pytest.raises(ps.ConfigError, match=r'its argument "file".*inside the function'):
        ps.range(4).map(functools.partial(lambda x, file: x, file=sys.stderr.buffer), workers=1)
    with pytest.raises(ps.ConfigError, match=r'"loader" of the scope.*num_workers=0|"loader"'):
        loader = ps.Loader(ps.range(4).batch(2))
        ps.range(4).map(lambda x: loader and x, workers=1)
    with pytest.raises(ps.ConfigError, match="map_batch.*cannot be sent"):
        ps.range(4).map_batch(lambda x: lock and x, workers=1)


def test_without_cloudpickle_module_functions_work_and_others_raise(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    expected = rows_of(ps.Loader(ps.range(8).map(noisy).batch(4)))
    assert rows_of(ps.Loader(ps.range(8).map(noisy, workers=1).batch(4))) == expected
    with pytest.raises(ps.ConfigError, match="pip install cloudpickle"):
        ps.range(4).map(lambda x: x, workers=1)


def test_without_cloudpickle_functions_of_the_main_program_raise_before_running():
    code, out, error = run_program("""
        import sys
        sys.modules["cloudpickle"] = None
        import penstock as ps
        def fn(x): return x
        try: ps.range(4).map(fn, workers=1)
        except ps.ConfigError as error: print("__main__" in str(error), "cloudpickle" in str(error))
    """)
    assert (code, out) == (0, "True True\n"), error


def not_there():
    raise ImportError("only here")


class OnlyHere:
    def __call__(self, x):
        return x

    def __reduce__(self):
        return not_there, ()


def test_a_function_that_cannot_be_unpickled_is_a_config_error():
    with pytest.raises(ps.ConfigError, match="cannot be made in a worker.*ImportError: only here"):
        list(ps.Loader(ps.range(4).map(OnlyHere(), workers=1).batch(2)))


def test_numbers_of_workers():
    for bad in (-1, 1.5, "two", True, 1000):
        with pytest.raises(ps.ConfigError, match="worker"):
            ps.range(4).map(lambda x: x, workers=bad)
    with pytest.raises(ps.ConfigError, match="an op of penstock's"):
        ps.range(4).map(ps.cast("float32"), workers=2)
    assert rows_of(ps.Loader(ps.range(4).map(lambda x: os.getpid(), workers=0).batch(4))) == (
        [os.getpid()] * 4)


def test_the_plan_shows_the_number_of_workers():
    assert "2 worker processes" in ps.Loader(
        ps.range(4).map(lambda x: x, workers=2).batch(2)).plan.explain()


# Debugging

def test_debug_and_sample_call_the_function_here():
    dataset = ps.range(4).map(lambda x: os.getpid(), workers=2)
    assert dataset.sample(0) == os.getpid()
    loader = ps.Loader(dataset.batch(2), debug=True)
    assert rows_of(loader) == [os.getpid()] * 4 and workers_of(loader) == []


def test_a_function_is_pickled_when_the_dataset_is_built():
    box = [1]
    dataset = ps.range(3).map(lambda x: x + box[0], workers=1).batch(3)
    box[0] = 10
    assert rows_of(ps.Loader(dataset)) == [1, 2, 3]


def test_waiting_for_workers_releases_the_gil(tmp_path):
    def wait_for_the_file(x):
        while not (tmp_path / "go").exists():
            time.sleep(0.001)
        return x

    loader = ps.Loader(ps.range(4).map(wait_for_the_file, workers=2).batch(2))
    seen = threading.Event()

    def other():
        while not workers_of(loader):
            pass
        (tmp_path / "go").touch()
        seen.set()

    thread = threading.Thread(target=other)
    thread.start()
    assert rows_of(loader) == [0, 1, 2, 3]
    thread.join()
    assert seen.is_set()


def test_a_worker_has_its_next_block_before_it_is_done():
    def wait_for_the_next(x):
        import select

        from penstock.worker_main import SOCKET
        if 5 <= x < 30 and not select.select([SOCKET], [], [], 60)[0]:
            raise TimeoutError("no request has come while this one was worked on")
        return x

    dataset = ps.range(60).map(wait_for_the_next, workers=1).batch(1)
    assert rows_of(ps.Loader(dataset, threads=2)) == list(range(60))


def test_a_block_after_a_slow_one_goes_to_an_idle_worker(tmp_path):
    def wait_for_a_later_one(x):
        if x == 35:
            (tmp_path / "later").touch()
        began = time.monotonic()
        while x == 20 and not (tmp_path / "later").exists():
            if time.monotonic() - began > 60:
                raise TimeoutError("samples wait behind the slow one though a worker is idle")
        return x

    dataset = ps.range(80).map(wait_for_a_later_one, workers=2).batch(4)
    loader = ps.Loader(dataset.prefetch(16), threads=2)
    assert rows_of(loader) == list(range(80))


@pytest.mark.parametrize("threads", [2, 4])
def test_abandoned_loops_do_not_affect_the_next_one(threads):
    dataset = ps.range(48).map(lambda x: x * 3, workers=2).batch(4)
    loader = ps.Loader(dataset, threads=threads)
    for left_after in [*range(1, 12)] * 5:
        for batch in loader:
            assert batch.numpy().tolist() == [3 * x for x in batch.sample_id]
            if batch.step + 1 == left_after:
                break
    assert rows_of(loader) == [3 * x for x in range(48)]


def test_large_and_growing_results():
    sizes = [1, 10, 1000, 10 ** 6, 3 * 10 ** 6, 5]
    dataset = ps.range(6).map(lambda x: bytes(sizes[int(x)]), workers=1).batch(1)
    assert [len(batch.numpy()[0]) for batch in ps.Loader(dataset)] == sizes
    echo = ps.from_generator(lambda: (bytes(size) for size in sizes)).map(len, workers=1).batch(6)
    assert rows_of(ps.Loader(echo)) == sizes


def test_many_loaders_in_sequence_leak_nothing():
    dataset = ps.range(4).map(lambda x: x, workers=1).batch(2)
    gc.collect()  # objects of earlier tests
    before = len(os.listdir("/proc/self/fd"))
    for _ in itertools.repeat(None, 5):
        list(ps.Loader(dataset))
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before
    assert children() == []


def test_datasets_with_workers_are_still_values():
    dataset = ps.range(10).map(noisy, workers=1)
    with pytest.raises(TypeError):
        pickle.dumps(dataset)
    assert dataset.cardinality() == 10 and "noisy" in dataset.describe()
