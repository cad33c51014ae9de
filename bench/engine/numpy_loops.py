"""NumPy's own loops, one measurement per process: numpy_loops.py tiny|cast|rows [barrier file]

With a barrier file the process prints "ready" and waits until the file is gone, so that two can
start at once.
Prints one JSON line like engine_bench: steady rate from the first batch to the last.
"""

import json
import os
import sys
import time

import numpy as np


def wait_at_barrier():
    if len(sys.argv) > 2:
        print("ready", flush=True)
        while os.path.exists(sys.argv[2]):
            pass


def tiny():
    n = 5_000_000
    x, order = np.arange(n), np.random.default_rng(0).permutation(n)
    wait_at_barrier()
    for i in range(0, n, 256):
        yield x[order[i : i + 256]] * 2 + 1


def cast():
    n = 5_000_000
    x, order = np.arange(n), np.random.default_rng(0).permutation(n)
    for i in range(0, n, 256):
        yield x[order[i : i + 256]].astype(np.float32)


def rows():
    a = (np.arange(1_000_000 * 128) % 977).astype(np.float32).reshape(-1, 128)
    order = np.random.default_rng(0).permutation(len(a))
    wait_at_barrier()
    for i in range(0, len(a), 1024):
        yield a[order[i : i + 1024]]


def main():
    items, check, start = 0, 0, None
    for batch in {"tiny": tiny, "cast": cast, "rows": rows}[sys.argv[1]]():
        if start is None:
            start = time.perf_counter()
            continue
        check += batch.flat[0]  # one value of each batch: less than what engine_bench reads
        items += len(batch)
    seconds = time.perf_counter() - start
    print(json.dumps({"items": items, "seconds": seconds, "check": float(check)}))


main()
