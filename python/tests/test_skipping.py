"""What on_error="skip" skips, and what it never skips."""

import socket
import urllib.error

import pytest
from conftest import rows_of, run_program

import penstock as ps

MAY_PASS = {
    "time-out": lambda: TimeoutError("timed out"),
    "socket": lambda: socket.timeout("timed out"),
    "reset": lambda: ConnectionResetError("connection reset by peer"),
    "broken pipe": lambda: BrokenPipeError("broken pipe"),
    "url": lambda: urllib.error.URLError(ConnectionRefusedError("refused")),
    "url timed out": lambda: urllib.error.URLError(TimeoutError("timed out")),
    "busy server": lambda: urllib.error.HTTPError("http://x", 503, "busy", None, None),
    "memory": lambda: MemoryError(),
}
STAYS = {
    "value": lambda: ValueError("bad data"),
    "missing": lambda: FileNotFoundError(2, "no such file"),
    "url": lambda: urllib.error.URLError("unknown url type: foo"),
    "gone": lambda: urllib.error.HTTPError("http://x", 404, "not found", None, None),
}


def wrapped(error):
    try:
        raise error
    except BaseException:
        raise OSError("a library's own error")


def failing(error, workers=0):
    def work(i):
        if i == 3:
            raise error()
        return i

    return ps.range(8).map(work, workers=workers).batch(4)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("name", MAY_PASS)
def test_a_transient_error_is_raised_after_retries_and_not_skipped(name, workers):
    loader = ps.Loader(failing(MAY_PASS[name], workers), on_error="skip")
    with pytest.raises((OSError, MemoryError, ps.SampleError)) as caught:
        list(loader)
    assert loader.ledger.count == 0
    if name != "busy server" or workers == 0:  # it holds an open file and cannot be pickled
        assert type(caught.value) is type(MAY_PASS[name]())


@pytest.mark.parametrize("name", MAY_PASS)
def test_an_error_that_passes_on_a_retry_loses_no_sample(name):
    tries = []

    def work(i):
        if i == 3 and len(tries) < 2:
            tries.append(i)
            raise MAY_PASS[name]()
        return i

    loader = ps.Loader(ps.range(8).map(work).batch(4), on_error="skip")
    assert rows_of(loader) == list(range(8))
    assert len(tries) == 2 and loader.ledger.count == 0


def test_the_cause_of_an_error_without_an_errno_decides():
    def work(i):
        if i == 3:
            wrapped(ConnectionResetError("connection reset by peer"))
        return i

    for workers in (0, 1):
        loader = ps.Loader(ps.range(8).map(work, workers=workers).batch(4), on_error="skip")
        with pytest.raises(OSError, match="a library's own error"):
            list(loader)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("name", STAYS)
def test_an_error_of_the_data_is_skipped(name, workers):
    loader = ps.Loader(failing(STAYS[name], workers), on_error="skip")
    assert rows_of(loader) == [0, 1, 2, 4, 5, 6, 7]
    assert [entry["number"] for entry in loader.ledger] == [3]


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("error", [SystemExit, GeneratorExit, KeyboardInterrupt])
def test_exit_exceptions_are_never_skipped(error, workers):
    calls = []

    def work(i):
        calls.append(i)
        if i == 3:
            raise error(7)
        return i

    loader = ps.Loader(ps.range(8).map(work, workers=workers).batch(4), on_error="skip")
    with pytest.raises(error):
        list(loader)
    assert loader.ledger.count == 0
    assert workers or calls.count(3) == 1, "and not tried again"


def test_sys_exit_in_a_function_ends_the_program():
    code, out, err = run_program("""
        import sys
        import penstock as ps
        def work(i):
            if i == 5:
                sys.exit(7)
            return i
        for batch in ps.Loader(ps.range(100).map(work).batch(4), on_error="skip"):
            pass
        print("not reached")
        """)
    assert (code, out) == (7, ""), err


def test_a_function_of_flat_map_that_times_out_is_not_skipped():
    def inner(i):
        if i == 2:
            raise TimeoutError("timed out")
        return ps.range(int(i))

    loader = ps.Loader(ps.range(4).flat_map(inner).batch(2), on_error="skip")
    with pytest.raises(TimeoutError):
        list(loader)
    assert loader.ledger.count == 0
