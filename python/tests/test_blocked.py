"""Functions that do not return: the report, and how programs still end."""

import inspect
import signal
import subprocess
import sys
import threading

import penstock as ps
import pytest

BLOCKED = """
import sys, threading
import penstock as ps

def stuck(x):
    if x == 4:
        threading.Event().wait()
    return x

def select(x):
    print("selecting", file=sys.stderr, flush=True)
    threading.Event().wait()

def body(replica, share):
    if replica.local_id == 1:
        print("computing", file=sys.stderr, flush=True)
        threading.Event().wait()
    elif sys.argv[1] == "barrier":
        replica.barrier()
    return 1.0

def run(what):
    if what == "map":
        list(ps.Loader(ps.range(100).map(stuck).batch(2), stall_after=0.2))
    elif what == "select":
        ps.Loader(ps.range(100).select(select).batch(2))
    else:
        strategy = ps.MirroredStrategy(["cpu:0", "cpu:1"])
        feed = strategy.distribute(ps.range(100).batch(4))
        strategy.run(body, next(iter(feed)))

try:
    run(sys.argv[1])
except KeyboardInterrupt:
    print("interrupted", flush=True)
    raise
"""


def test_a_stall_report_shows_where_the_function_is():
    never = threading.Event()

    def wait_for_ever():
        never.wait(60)

    def stuck(x):
        if x == 4:
            wait_for_ever()
        return x

    loader = ps.Loader(ps.range(100).map(stuck).batch(2), stall_after=0.2, stall_is_error=True)
    with pytest.raises(ps.ResourceError) as raised:
        list(loader)
    never.set()
    text = str(raised.value)
    first = inspect.getsourcelines(wait_for_ever)[1]
    assert f'File "{__file__}", line {first + 1}, in wait_for_ever: never.wait(60)' in text
    assert "in stuck: wait_for_ever()" in text
    # The frames follow the line about their thread, before the other tasks in flight.
    assert text.index("sample 4") < text.index("in stuck") < text.index("in wait_for_ever")
    assert text.index("in wait_for_ever") < text.index("steps are in flight")


def test_a_thread_that_runs_no_python_code_has_no_stack():
    never = threading.Event()

    class Slow:
        def __len__(self):
            return 4

        def __getitem__(self, index):
            never.wait(60)
            return index

    loader = ps.Loader(ps.from_index(4, Slow().__getitem__).batch(2), threads=1, stall_after=0.2,
                       stall_is_error=True)
    with pytest.raises(ps.ResourceError) as raised:
        list(loader)
    never.set()
    assert str(raised.value).count("in __getitem__") == 1


@pytest.mark.parametrize("what, shows", [
    ("map", "in stuck"), ("select", "selecting"), ("run", "computing"), ("barrier", "computing")])
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_program_whose_function_does_not_return(what, shows, how):
    program = subprocess.Popen([sys.executable, "-c", BLOCKED, what], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    try:
        assert any(shows in line for line in program.stderr)
        program.send_signal(how)
        out, _ = program.communicate(timeout=60)
    finally:
        program.kill()
        program.wait()
    if how == signal.SIGTERM:
        assert program.returncode == -signal.SIGTERM
    else:
        assert "interrupted" in out
        assert program.returncode in (1, 130, -signal.SIGINT)
