"""Calls from another thread while a loop is running."""

import os
import subprocess
import sys
import textwrap
import threading

import pytest
from conftest import rows_of, run_program

import penstock as ps


def asked_meanwhile(ask, dataset, **options):
    """Runs an epoch while another thread calls repeatedly; returns rows and number of calls."""
    loader = ps.Loader(dataset, **options)
    over = threading.Event()
    asked, wrong = [0], []

    def keep_asking():
        while not over.is_set():
            try:
                ask(loader)
                asked[0] += 1
            except BaseException as error:
                wrong.append(error)
                return

    thread = threading.Thread(target=keep_asking)
    thread.start()
    try:
        rows = rows_of(loader)
        while asked[0] == 0 and not wrong:
            rows_of(loader)
    finally:
        over.set()
        thread.join()
    assert not wrong, wrong
    return rows, asked[0]


def some_fail(i):
    if i % 3 == 0:
        raise ValueError("bad " * 20)
    return i


def test_the_ledger_can_be_read_while_samples_are_skipped():
    rows, asked = asked_meanwhile(
        lambda loader: (list(loader.ledger), str(loader.ledger), loader.ledger.count),
        ps.range(6000).map(some_fail).batch(16), on_error="skip", skip_limit=10**6)
    assert rows == [i for i in range(6000) if i % 3]
    assert asked > 0


def test_the_report_can_be_read_while_epochs_start_and_end():
    loader = ps.Loader(ps.range(40).map(lambda x: x).batch(4))
    over = threading.Event()
    reports = []

    def keep_asking():
        while not over.is_set():
            reports.append(loader.report())

    thread = threading.Thread(target=keep_asking)
    thread.start()
    try:
        for _ in range(100):
            assert rows_of(loader) == list(range(40))
    finally:
        over.set()
        thread.join()
    assert reports and all(report["steps"] <= 10 for report in reports)


def test_a_state_can_be_taken_by_another_thread():
    dataset = ps.range(4000).shuffle(seed=1).batch(4)
    whole = rows_of(ps.Loader(dataset))
    states = []
    rows, _ = asked_meanwhile(lambda loader: states.append(loader.state_dict()), dataset)
    assert rows == whole
    state = states[len(states) // 2]
    later = ps.Loader(dataset)
    later.load_state_dict(state)
    assert state["epoch"] > 0 or rows_of(later) == whole[4 * state["step"]:]


def test_next_waits_for_a_state_of_another_thread():
    """state_dict() of a stream waits for the next element; next() must wait with it."""
    give = threading.Event()
    waits = threading.Event()

    def numbers():
        yield from range(4)
        waits.set()
        assert give.wait(60)
        yield from range(4, 8)

    loader = ps.Loader(ps.from_generator(numbers, spec=ps.Field("int64")).batch(4), threads=1)
    loop = iter(loader)
    assert next(loop).numpy().tolist() == [0, 1, 2, 3]
    states = []
    thread = threading.Thread(target=lambda: states.append(loader.state_dict()))
    thread.start()
    assert waits.wait(60)
    threading.Thread(target=give.set).start()
    assert next(loop).numpy().tolist() == [4, 5, 6, 7]
    thread.join()
    assert len(states) == 1


def test_two_threads_in_next_are_an_error():
    inside, go_on = threading.Event(), threading.Event()

    def wait(x):
        inside.set()
        assert go_on.wait(60)
        return x

    loop = iter(ps.Loader(ps.range(4).map(wait).batch(4)))
    thread = threading.Thread(target=lambda: next(loop))
    thread.start()
    assert inside.wait(60)
    try:
        with pytest.raises(ps.ConfigError, match=r"another thread waits in next\(\)"):
            next(loop)
    finally:
        go_on.set()
        thread.join()


@pytest.mark.parametrize("options", [{}, {"debug": True}])
def test_a_function_that_uses_its_own_loader_raises(options):
    def ask(x):
        loader.state_dict()
        return x

    loader = ps.Loader(ps.range(4).map(ask).batch(2), **options)
    with pytest.raises(ps.ConfigError, match="a function of the pipeline uses a loader"):
        list(loader)


def test_a_feed_can_be_read_by_another_thread():
    feed = ps.MirroredStrategy(["cpu:0", "cpu:1"]).distribute(
        ps.range(4000).map(some_fail).batch(4), on_error="skip", skip_limit=10**6)
    over = threading.Event()
    states = []

    def keep_asking():
        while not over.is_set():
            states.append(feed.state_dict())
            len(list(feed.ledger))

    thread = threading.Thread(target=keep_asking)
    thread.start()
    try:
        rows = [row for step in feed for share in step.shares for row in share.numpy().tolist()]
    finally:
        over.set()
        thread.join()
    assert rows == [i for i in range(4000) if i % 3]
    assert states


def test_stopping_a_feed_ends_its_worker_processes():
    code, out, err = run_program("""
        import os
        import penstock as ps
        pids = ps.range(8).map(lambda x: os.getpid(), workers=2).batch(4)
        feed = ps.OneDeviceStrategy().distribute(pids)
        found = {pid for step in feed for pid in step.shares[0].numpy().tolist()}
        assert found and os.getpid() not in found
        alive = lambda: [pid for pid in found if os.path.exists(f"/proc/{pid}")]
        assert alive()
        feed.stop()
        print(alive())
        assert len(list(feed)) == 2, "and the next step starts them again"
        """)
    assert (code, out) == (0, "[]\n"), err


def test_the_program_may_end_while_a_daemon_thread_waits_in_a_feed():
    program = textwrap.dedent("""
        import atexit, os, threading, time
        atexit.register(lambda: os.environ.get("X"))
        import penstock as ps
        inside = threading.Event()
        def slow(x):
            inside.set()
            threading.Event().wait(30)
            return x
        feed = ps.OneDeviceStrategy().distribute(ps.range(8).map(slow).batch(4))
        threading.Thread(target=feed.next, daemon=True).start()
        assert inside.wait(60)
        print("ends")
        """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          timeout=60, check=False, env={**os.environ, "MALLOC_PERTURB_": "165"})
    assert (done.returncode, done.stdout) == (0, "ends\n"), done.stderr


def test_closing_a_loader_ends_its_worker_processes():
    loader = ps.Loader(ps.range(8).map(lambda x: x, workers=1).batch(4))
    assert rows_of(loader) == list(range(8))
    assert loader._native.worker_ids()
    loader.close()
    assert not loader._native.worker_ids()


def test_entries_of_the_ledger_name_the_file(tmp_path):
    for i in range(4):
        (tmp_path / f"{i}.txt").write_text("good" if i != 2 else "bad")

    def check(data):
        if b"bad" in data:
            raise ValueError("broken")
        return len(data)

    dataset = ps.list_files(str(tmp_path / "*.txt")).map(ps.read_file()).map(check).batch(2)
    loader = ps.Loader(dataset, on_error="skip")
    assert rows_of(loader) == [4, 4, 4]
    (entry,) = loader.ledger
    assert entry["file"] == str(tmp_path / "2.txt")
    loader = ps.Loader(ps.range(4).map(lambda i: 1 // int(i)).batch(2), on_error="skip")
    list(loader)
    assert ["file" in entry for entry in loader.ledger] == [False]
