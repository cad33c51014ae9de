"""W4: 5 ms of Python work per item, and 1.5 MB of output. Prints items and seconds as JSON.

    python bench/python/w4.py holds|releases loop|penstock [workers or threads] [items]

`loop` is a plain Python loop, the reference; run.py runs two of them at once. `holds` keeps
Python's lock all the time, and penstock runs it in worker processes; `releases` lets it go (a
digest of large buffers), and penstock runs it in threads. The work is counted, not timed: as many
turns as take 5 ms on a free core, so that a core that is shared shows in both figures.
"""

import hashlib
import json
import os
import sys
import time

import numpy as np

SHAPE = (128, 1024, 3)  # 1.5 MB as float32
WARM_ITEMS = 20


def turns_for(kind, seconds=0.005):
    """Turns of the inner loop that take `seconds` here; given down by PENSTOCK_W4 to all."""
    if "PENSTOCK_W4" in os.environ:
        return int(os.environ["PENSTOCK_W4"])
    turns = 1000
    best = float("inf")
    for _ in range(40):
        began = time.perf_counter()
        WORK[kind](turns)
        best = min(best, time.perf_counter() - began)
    return max(1, round(turns * seconds / best))


def work_that_holds(turns):
    total = 0
    for i in range(turns):
        total += i & 7
    return total


BUFFER = bytes(1 << 16)


def work_that_releases(turns):
    digest = hashlib.sha256()
    for _ in range(turns // 100):
        digest.update(BUFFER)  # large enough that Python lets its lock go
    return digest.digest()[0]


WORK = {"holds": work_that_holds, "releases": work_that_releases}


class Item:
    def __init__(self, kind, turns):
        self.work, self.turns = WORK[kind], turns

    def __call__(self, index):
        self.work(self.turns)
        return np.full(SHAPE, index, np.float32)


def loop(item, items):
    batch = np.empty((16, *SHAPE), np.float32)
    for i in range(WARM_ITEMS):
        batch[i % 16] = item(i)
    wait_for_start()
    began, cpu = time.perf_counter(), time.process_time()
    for i in range(items):
        batch[i % 16] = item(i)  # what any loader must do with it
    return items, time.perf_counter() - began, time.process_time() - cpu


def penstock(item, kind, count, items):
    import penstock as ps
    data = ps.range(items + WARM_ITEMS)
    spec = ps.Field("float32", SHAPE)
    if kind == "holds":
        data, threads = data.map(item, name="item", workers=count, spec=spec), None
    else:
        data, threads = data.map(item, name="item", spec=spec), count
    loader = ps.Loader(data.batch(4), threads=threads, lookahead_bytes=64 << 20)
    began, cpu, rows = 0.0, 0.0, 0
    for batch in loader:
        if began:
            rows += len(batch)
        elif (batch.step + 1) * 4 >= WARM_ITEMS:
            began, cpu = time.perf_counter(), cpu_seconds(loader)
    return rows, time.perf_counter() - began, cpu_seconds(loader) - cpu


def cpu_seconds(loader):
    """Of this process and its workers."""
    seconds = time.process_time()
    for process in loader._native.worker_ids():
        with open(f"/proc/{process}/stat") as file:
            user, system = file.read().rsplit(")", 1)[1].split()[11:13]
        seconds += (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    return seconds


def wait_for_start():
    """Until the file named in PENSTOCK_START goes away: loops that run at once begin at once."""
    name = os.environ.get("PENSTOCK_START")
    if name:
        print("ready", flush=True)
        while os.path.exists(name):
            pass


def main():
    kind, how = sys.argv[1:3]
    if how == "turns":
        print(json.dumps({"turns": turns_for(kind)}))
        return
    item = Item(kind, turns_for(kind))
    count, items = (int(word) for word in (sys.argv[3:5] + ["2", "200"][len(sys.argv) - 3:]))
    if how == "loop":
        items, seconds, cpu = loop(item, items)
    else:
        items, seconds, cpu = penstock(item, kind, count, items)
    print(json.dumps({"items": items, "seconds": seconds, "cpu_ms_per_item": cpu / items * 1e3}))


if __name__ == "__main__":
    main()
