"""Ctrl-C, exit, fork: how programs with a live engine end."""

import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from conftest import run_program

LONG = bool(os.environ.get("PENSTOCK_LONG"))
INTERRUPTED = int(os.environ.get("PENSTOCK_INTERRUPTS", "1000" if LONG else "20"))

WAITING = """
import sys, time
import numpy as np
import penstock as ps

def slow(x):
    time.sleep(3)
    return x

def numbers():
    while True:
        yield np.arange(1000)

work = {
    "sleeps": ps.range(100).map(slow).batch(4),
    "spins": ps.range(10**9).map(lambda x: sum(range(300)) + x).batch(256),
    "stream": ps.from_generator(numbers).filter(lambda x: x.sum() < 0).batch(2),
    "native": ps.range(10**12).shuffle(seed=1).batch(4096),
    "sequence": ps.range(50).batch(4).map(lambda x: time.sleep(12) or x),
    "workers": lambda: ps.range(10**9).map(lambda x: sum(range(300)) + x, workers=2).batch(256),
    "busy workers": lambda: ps.range(100).map(slow, workers=2).batch(4),
    "inline workers": lambda: ps.range(100).map(slow, workers=2).batch(4),
}[sys.argv[1]]
work = work() if callable(work) else work
print("ready", flush=True)
for _ in range(10**9):
    for batch in ps.Loader(work, threads=0 if "inline" in sys.argv[1] else None):
        pass
"""
KINDS = ["sleeps", "spins", "stream", "native", "sequence", "workers", "busy workers",
         "inline workers"]


class Group:
    """Marks a program and its children, so that leftover processes can be found."""

    def __init__(self):
        self.mark = f"{os.getpid()}-{time.monotonic_ns()}"
        self.environment = {**os.environ, "PENSTOCK_TEST_MARK": self.mark}

    def processes(self):
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if self.mark.encode() in file.read():
                        found.append(int(name))
            except OSError:  # it has ended, or belongs to another user
                continue
        return found

    def all_gone(self, seconds=20):
        deadline = time.monotonic() + seconds
        while self.processes() and time.monotonic() < deadline:
            pass
        return self.processes() == []


def interrupted(kind, after):
    """Seconds from SIGINT to the end, the exit code and stderr; no process may be left."""
    group = Group()
    program = subprocess.Popen([sys.executable, "-c", WAITING, kind], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env=group.environment,
                               start_new_session=True)
    assert program.stdout.readline() == "ready\n"
    time.sleep(after)
    began = time.monotonic()
    os.killpg(program.pid, signal.SIGINT)  # like a terminal: workers get it, too
    try:
        program.wait(timeout=20)
        took = time.monotonic() - began
        left = group.processes()
        _, error = program.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        program.kill()
        raise
    assert left == [], f"{kind}: {left} were left"
    return took, program.returncode, error


@pytest.mark.parametrize("kind", KINDS)
def test_ctrl_c_ends_a_program_in_a_second(kind):
    rng = random.Random(kind)

    def once():
        took, code, error = interrupted(kind, rng.uniform(0, 0.8 if "workers" in kind else 0.4))
        assert code == -signal.SIGINT, error
        assert "KeyboardInterrupt" in error and "Fatal" not in error
        assert error.count("Traceback") == 1, error  # workers print nothing
        return took

    for _ in range(max(1, INTERRUPTED // len(KINDS))):
        assert quickest(once, 1.0) < 1.0


def quickest(once, limit):
    """Seconds that `once` returns; the best of three, since the machine may be busy."""
    took = []
    while len(took) < 3 and (not took or min(took) >= limit):
        took.append(once())
    return min(took)


WORKERS = """
import os, sys, time
import penstock as ps
def slow(x):
    time.sleep(0.001 if x < 8 else 100)
    return x
loop = iter(ps.Loader(ps.range(100).map(slow, workers=2).batch(4)))
next(loop)
print("ready", flush=True)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_when_the_parent_is_killed_its_workers_end(how):
    group = Group()
    program = subprocess.Popen([sys.executable, "-c", WORKERS + "next(loop), next(loop)"],
                               stdout=subprocess.PIPE, env=group.environment)
    assert program.stdout.readline() == b"ready\n"
    assert len(group.processes()) == 3
    program.send_signal(how)
    program.wait(timeout=20)
    program.stdout.close()
    assert group.all_gone()


@pytest.mark.parametrize("ending", ["", "del loop", "raise SystemExit(0)", "os._exit(0)"])
def test_exit_with_workers_alive_is_clean_and_leaves_none(ending):
    group = Group()
    done = subprocess.run([sys.executable, "-c", WORKERS + ending], timeout=60, text=True,
                          capture_output=True, env=group.environment, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ready\n", "")
    assert group.all_gone()


def test_a_forked_child_neither_uses_nor_ends_the_workers():
    code, out, error = run_program("""
        import os, sys, warnings
        warnings.simplefilter("ignore")
        import penstock as ps
        loader = ps.Loader(ps.range(40).map(lambda x: x + 1, workers=1).batch(4))
        loop = iter(loader)
        next(loop)
        before = loader._native.worker_ids()
        child = os.fork()
        if child == 0:
            try: next(loop)
            except ps.ConfigError as error: print("spawn" in str(error), flush=True)
            del loop, loader
            sys.exit(7)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        rows = [row for batch in loop for row in batch.numpy().tolist()]
        print(status, rows == list(range(5, 41)), loader._native.worker_ids() == before)
    """)
    assert (code, out) == (0, "True\n7 True True\n"), error


def test_ctrl_c_ends_a_wait_in_a_tenth_of_a_second_and_the_loop_can_continue():
    def once():
        code, out, error = run_program("""
            import os, signal, threading, time
            import penstock as ps
            gate, sent = threading.Event(), []
            loader = ps.Loader(ps.range(4).map(lambda x: gate.wait(20) and x).batch(2))
            loop = iter(loader)
            def interrupt():
                sent.append(time.monotonic())
                os.kill(os.getpid(), signal.SIGINT)
            threading.Timer(0.2, interrupt).start()
            try:
                next(loop)
            except KeyboardInterrupt:
                print(time.monotonic() - sent[0])
            gate.set()
            print([batch.numpy().tolist() for batch in loop])
        """)
        took, rows = out.splitlines()
        assert (code, rows) == (0, "[[0, 1], [2, 3]]"), error
        return float(took)

    assert quickest(once, 0.1) < 0.1


def test_a_signal_handler_that_returns_does_not_disturb_the_wait():
    code, out, error = run_program("""
        import os, signal, threading
        import penstock as ps
        gate = threading.Event()
        signal.signal(signal.SIGUSR1, lambda *_: gate.set())
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()
        print(len(list(ps.Loader(ps.range(4).map(lambda x: gate.wait(20) and x).batch(2)))))
    """)
    assert (code, out) == (0, "2\n"), error


def test_ctrl_c_is_not_skipped_as_a_bad_sample():
    code, out, error = run_program("""
        import os, signal
        import penstock as ps
        def interrupt(x):
            if x == 3:
                os.kill(os.getpid(), signal.SIGINT)
                for _ in range(10**7): pass
            return x
        loader = ps.Loader(ps.range(100).map(interrupt).batch(2), debug=True, on_error="skip")
        try:
            list(loader)
        except KeyboardInterrupt:
            print("interrupted")
    """)
    assert (code, out) == (0, "interrupted\n"), error


@pytest.mark.parametrize("ending", ["pass", "sys.exit(0)", "raise SystemExit(0)"])
def test_exit_with_live_iterators_is_clean(ending):
    code, out, error = run_program(f"""
        import sys, time
        import numpy as np
        import penstock as ps
        def numbers():
            n = 0
            while True:
                yield np.full(3000, n)
                n += 1
        loaders = [ps.Loader(ps.range(10**9).map(lambda x: x + 1.0).batch(64)),
                   ps.Loader(ps.from_generator(numbers).map(lambda x: x * 2).batch(8)),
                   ps.Loader(ps.range(10**9).shuffle().batch(64))]
        loops = [iter(loader) for loader in loaders]
        kept = [next(loop).numpy() for loop in loops for _ in range(5)]
        views = [batch.numpy() for batch in (next(loop) for loop in loops)]
        strategy = ps.MirroredStrategy(["cpu:0", "cpu:1"])
        feed = strategy.distribute(ps.range(100).batch(4))
        strategy.run(lambda share: 1.0, next(iter(feed)))
        print("done")
        {ending}
    """)
    assert (code, out, error) == (0, "done\n", "")


def test_exit_while_functions_run_is_clean():
    code, out, error = run_program("""
        import time
        import penstock as ps
        def busy(x):
            end = time.monotonic() + 0.05
            while time.monotonic() < end: pass
            return x
        loop = iter(ps.Loader(ps.range(10**6).map(busy).batch(2)))
        next(loop)
        print("done")
    """)
    assert (code, out, error) == (0, "done\n", "")


def test_exit_while_a_function_never_returns():
    began = time.monotonic()
    code, out, error = run_program("""
        import threading
        import penstock as ps
        never, there = threading.Event(), threading.Event()
        def stuck(x):
            if x == 4:
                there.set()
                never.wait()
            return x
        loop = iter(ps.Loader(ps.range(10**6).map(stuck).batch(2), threads=1))
        next(loop)
        there.wait()
        print("done")
    """)
    assert (code, out) == (0, "done\n")
    assert "abandoned" in error and "Fatal" not in error
    assert time.monotonic() - began < 20


def test_exit_with_a_consumer_in_another_thread_is_clean():
    code, out, error = run_program("""
        import threading
        import penstock as ps
        def consume():
            for batch in ps.Loader(ps.range(10**9).map(lambda x: x + 1).batch(16)):
                started.set()
        started = threading.Event()
        threading.Thread(target=consume, daemon=True).start()
        started.wait()
        print("done")
    """)
    assert (code, out, error) == (0, "done\n", "")


FORK = """
import os, sys, warnings
warnings.simplefilter("ignore")
import penstock as ps
loader = ps.Loader(ps.range(10**6).batch(16))
loop = iter(loader)
first = next(loop)
child = os.fork()
if child == 0:
    for use in (lambda: next(loop), lambda: list(loader), lambda: ps.Loader(ps.range(4).batch(2)),
                loader.state_dict):
        try:
            use()
            print("no error", flush=True)
        except ps.ConfigError as error:
            print("forked" in str(error) and "spawn" in str(error), flush=True)
    print(first.numpy()[:3].tolist(), flush=True)
    del loop, loader, first
    sys.exit(7)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status), next(loop).step)
"""


def test_fork_with_a_live_engine_raises_in_the_child_and_is_harmless_in_the_parent():
    code, out, error = run_program(FORK)
    assert (code, out) == (0, "True\nTrue\nTrue\nTrue\n[0, 1, 2]\n7 1\n"), error


def test_fork_before_the_first_loader_is_fine():
    code, out, error = run_program("""
        import os
        import penstock as ps
        dataset = ps.range(10).map(lambda x: x + 1).batch(5)
        list(ps.Loader(dataset))
        child = os.fork()
        rows = [batch.numpy().tolist() for batch in ps.Loader(dataset)]
        if child: print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        print(rows, flush=True)
    """)
    rows = "[[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]]\n"
    assert (code, out) == (0, rows + "0\n" + rows), error


def test_importing_is_quick_and_imports_only_numpy():
    code, out, error = run_program("""
        import resource, sys, time
        import numpy
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began = time.process_time()
        import penstock
        print(time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
              - before, any(name in sys.modules for name in ("torch", "tensorflow", "keras")))
    """)
    seconds, kilobytes, others = out.split()
    assert float(seconds) < 0.1 and int(kilobytes) < 30_000 and others == "False", error


def test_ten_thousand_iterators_leak_nothing():
    code, out, error = run_program("""
        import gc, os, threading
        import numpy as np
        import penstock as ps

        def memory():
            gc.collect()
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * 4096

        dataset = ps.from_tensor_slices(np.zeros((64, 256))).map(lambda x: x + 1).batch(16)
        loader = ps.Loader(dataset)

        def use(count):
            for i in range(count):
                loop = iter(loader)
                if i % 3 == 0: next(loop)
                if i % 10 == 0: iter(ps.Loader(dataset, threads=i % 3))

        use(1000)
        before = memory()
        use(10_000)
        print((memory() - before) / 1e6, len(os.listdir("/proc/self/task")))
    """, timeout=200)
    megabytes, threads = out.split()
    assert float(megabytes) < 5 and int(threads) < 50, (out, error)
