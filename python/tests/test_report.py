"""Reports, traces, pages, the progress bar and the doctor."""

import io
import json
import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import penstock as ps

KEYS = ["epoch", "steps", "rows", "cause", "verdict", "advice", "wall_seconds", "wait_seconds",
        "wait_share", "waits", "consumer_seconds", "input_rows_per_second",
        "consumer_rows_per_second", "tasks", "work_seconds", "skipped", "retried", "ops", "slowest",
        "replicas", "what_if", "retries", "decisions", "cut"]


def consumed(loader):
    for _ in loader:
        pass
    return loader.report()


def double(x):
    return x * 2


def test_a_report_is_a_dict_whose_text_begins_with_the_verdict():
    report = consumed(ps.Loader(ps.range(100).map(double, name="double").batch(10)))
    assert list(report) == KEYS
    assert report["rows"] == 100 and report["steps"] == 10
    assert str(report).splitlines()[1] == report.verdict == report["verdict"]
    assert [op["name"] for op in report["ops"]] == ["range", "double"]
    # The first sample is computed when the loader starts, to learn what the function returns.
    assert sum(op["rows"] for op in report["ops"] if op["name"] == "double") in (99, 100)
    assert report["cut"] == ""


def test_a_loader_that_has_not_begun_has_a_report_too():
    report = ps.Loader(ps.range(100).batch(10)).report()
    assert report["cause"] == "nothing_ran" and report["ops"] == []


def test_a_function_that_blocks_is_the_cause():
    held = threading.Event()

    def slow(x):
        held.wait(0.002)
        return x

    report = consumed(ps.Loader(ps.range(200).map(slow, name="slow").batch(10)))
    assert report["cause"] == "function_waits" and "slow sleeps" in report.verdict
    assert report["ops"][1]["blocked_seconds"] > 0.5 * report["ops"][1]["seconds"]


def test_a_random_op_before_a_cache_is_the_cause():
    def jitter(x, rng):
        return x + rng.random()

    data = ps.range(100).map(jitter, name="jitter").cache().batch(10)
    report = consumed(ps.Loader(data))
    assert report["cause"] == "cache_after_random" and "jitter" in report.verdict


def test_a_report_is_saved_as_a_page_and_as_a_trace(tmp_path):
    report = consumed(ps.Loader(ps.range(100).map(double, name="double").batch(10)))
    report.save(tmp_path / "run.html")
    page = (tmp_path / "run.html").read_text()
    assert page.startswith("<!doctype html>") and "double" in page
    report.save(tmp_path / "run.json")
    events = json.loads((tmp_path / "run.json").read_text())["traceEvents"]
    assert {"wait", "op", "task"} <= {event.get("cat") for event in events}
    again = ps.Report.read(tmp_path / "run.json")
    assert str(again) == str(report) and again["ops"] == report["ops"]
    assert "samples/s:" in again.compare(report)


def test_what_cannot_be_saved_or_read_is_refused(tmp_path):
    report = consumed(ps.Loader(ps.range(10).batch(10)))
    with pytest.raises(ps.ConfigError, match="no known extension"):
        report.save(tmp_path / "run.pdf")
    with pytest.raises(ps.ResourceError, match="nowhere"):
        report.save(tmp_path / "nowhere" / "run.json")
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(ps.ConfigError, match="no trace of penstock"):
        ps.Report.read(tmp_path / "other.json")
    with pytest.raises(ps.ConfigError, match="not a Report"):
        report.compare({})
    with pytest.raises(ps.ConfigError):
        ps.Report({})


def test_every_epoch_leaves_a_trace_in_report_dir(tmp_path):
    loader = ps.Loader(ps.range(100).batch(10), report_dir=tmp_path / "runs")
    for _ in range(2):
        consumed(loader)
    loader.close()
    assert sorted(os.listdir(tmp_path / "runs")) == ["epoch-0.json", "epoch-1.json"]
    second = ps.Report.read(tmp_path / "runs" / "epoch-1.json")
    assert second["epoch"] == 1 and second["rows"] == 100 and second["cut"] == ""


KILLED = textwrap.dedent("""
    import os, signal, sys
    import penstock as ps

    loader = ps.Loader(ps.range(100_000).map(lambda x: x + 1, name="add").batch(10),
                       report_dir=sys.argv[1])
    for number, batch in enumerate(loader):
        if number == 100:
            print("there", flush=True)
            sys.stdin.readline()
            os.kill(os.getpid(), signal.SIGKILL)
""")


def test_a_killed_program_leaves_a_trace_that_says_so(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", KILLED, tmp_path], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == "there\n"
    trace = tmp_path / "epoch-0.json"
    # The totals are written once a second.
    while trace.read_text().count("penstock_totals") < 3:
        pass
    process.communicate("go\n")
    report = ps.Report.read(trace)
    assert report["steps"] == 101 and report["ops"][1]["name"] == "add"
    assert report["cut"] == "the run goes on, or its program ended before it was complete"
    assert "The recording is cut" in str(report)


def test_replicas_are_in_the_report_of_a_feed():
    strategy = ps.MirroredStrategy(["cpu:0", "cpu:1"])
    feed = strategy.distribute(ps.range(100).batch(10))
    for step in feed:
        strategy.run(lambda replica, batch: float(batch.numpy().sum()), step)
    report = feed.report()
    assert [replica["name"] for replica in report["replicas"]] == ["replica cpu:0", "replica cpu:1"]
    assert sum(replica["rows"] for replica in report["replicas"]) == 100


def test_progress_yields_every_batch_and_draws_a_line(monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    loader = ps.Loader(ps.range(100).batch(10))
    rows = sum(len(batch) for batch in ps.progress(loader, show=True))
    assert rows == 100
    last = shown.getvalue().split("\r")[-1]
    assert "10/10" in last and "samples/s, waiting" in last and last.endswith("left\n")
    stream = ps.Loader(ps.from_generator(lambda: iter(range(20))).batch(10))
    assert len(list(ps.progress(stream, show=True))) == 2
    assert "step 2, " in shown.getvalue()


def test_progress_is_silent_where_there_is_no_terminal(monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    assert sum(len(batch) for batch in ps.progress(ps.Loader(ps.range(30).batch(10)))) == 30
    assert shown.getvalue() == ""
    with pytest.raises(ps.ConfigError, match="no Loader"):
        ps.progress([1, 2])


def test_the_doctor_lists_facts_and_versions(tmp_path):
    found = ps.doctor()
    assert found["facts"]["numpy"] == np.__version__
    assert str(found).startswith("penstock ")
    (tmp_path / "a.bin").write_bytes(b"x" * 1000)
    assert "1 files read" in ps.doctor(tmp_path)["facts"]["data"]
    with pytest.raises(ps.ConfigError, match="no folder"):
        ps.doctor(tmp_path / "a.bin")


def test_a_program_with_a_status_is_seen_by_others(tmp_path):
    program = textwrap.dedent("""
        import sys
        import penstock as ps
        loader = ps.Loader(ps.range(1000).batch(10))
        batches = iter(loader)
        next(batches)
        print("there", flush=True)
        sys.stdin.readline()
    """)
    process = subprocess.Popen([sys.executable, "-c", program], text=True, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE,
                               env={**os.environ, "PENSTOCK_STATUS": str(tmp_path)})
    assert process.stdout.readline() == "there\n"
    assert os.listdir(tmp_path) == [f"penstock-{process.pid}.status"]
    process.communicate("end\n")
    assert process.returncode == 0 and os.listdir(tmp_path) == []
