"""The engine's workloads from Python, as bench/engine and bench/rivals have them in C++.

    python bench/python/engine.py WORKLOAD THREADS [DATA]

WORKLOAD is tiny, tiny4096 (W3 by map_batch), tiny-op (W3 by the op cast), tiny-lambda (W3 by a
function of one sample), steps, rows20 (twenty epochs: one is too short to compare), W1, W2 or
torch. Prints one line of JSON: items, seconds and seconds of CPU, from the first batch to the
last; every batch is looked at as a NumPy view.
"""

import json
import sys
import time

import numpy as np

import penstock as ps


def tiny(count, batch):
    return ps.range(count).map_batch(lambda x: x * 2 + 1).shuffle(seed=1).batch(batch)


def tiny_op():
    return ps.range(5_000_000).map(ps.cast("float32")).shuffle(seed=1).batch(256)


def tiny_lambda():
    return ps.range(500_000).map(lambda x: x * 2 + 1).shuffle(seed=1).batch(256)


def rows():
    values = (np.arange(1_000_000 * 128) % 977).astype(np.float32).reshape(-1, 128)
    return ps.from_tensor_slices(values).shuffle(seed=1).batch(1024)


def w1(data):
    chain = ps.image.decode().resize(64, 64).random_flip().random_brightness(0.125).to_float()
    return ps.image_folder(f"{data}/png_photos").shuffle(seed=1).map(chain).batch(64)


def w2(data):
    chain = (ps.image.decode().random_resized_crop(224, 224).random_flip().normalize()
             .channels_first())
    return ps.image_folder(f"{data}/photos").repeat(4).shuffle(seed=1).map(chain).batch(64)


def walk(loader, view=None, epochs=1):
    """Looks at each batch, or has a value of every page of `view(batch)`, as in C++."""
    items = 0
    steps = iter(loader)
    next(steps)
    began, cpu = time.perf_counter(), time.process_time()
    for _ in range(epochs):
        if view is None:
            for batch in steps:
                batch.numpy()
                items += batch.rows
        else:
            for batch in steps:
                view(batch).ravel()[::1024].sum()
                items += batch.rows
        steps = loader
    return items, time.perf_counter() - began, time.process_time() - cpu


def hand_over(loader):
    """Items are steps: nothing is done with one but to look at it."""
    steps = iter(loader)
    next(steps)
    count = 0
    began, cpu = time.perf_counter(), time.process_time()
    for batch in steps:
        batch.numpy()
        count += 1
    return count, time.perf_counter() - began, time.process_time() - cpu


def torch_batches():
    """Items are calls of batch.torch() on 64 images with labels, which must not copy."""
    images = np.zeros((256, 3, 224, 224), np.float32)
    data = ps.from_tensor_slices({"image": images, "label": np.arange(256)}).batch(64)
    batch = next(iter(ps.Loader(data)))
    assert batch.torch()["image"].data_ptr() == batch["image"].ctypes.data, "it was copied"
    calls, best = 200, float("inf")
    for _ in range(25):  # the best of short runs: what it costs, not what else the machine does
        began = time.perf_counter()
        for _ in range(calls):
            batch.torch()
        best = min(best, time.perf_counter() - began)
    return calls, best, best


def main():
    workload, threads = sys.argv[1], int(sys.argv[2])
    if workload == "torch":
        items, seconds, cpu = torch_batches()
    elif workload == "steps":
        items, seconds, cpu = hand_over(ps.Loader(ps.range(3_200_000).batch(16), threads=threads))
    elif workload in ("W1", "W2"):
        dataset = {"W1": w1, "W2": w2}[workload](sys.argv[3])
        items, seconds, cpu = walk(ps.Loader(dataset, threads=threads),
                                   lambda batch: batch["image"])
    else:
        dataset = {"tiny": lambda: tiny(5_000_000, 256), "tiny-op": tiny_op,
                   "tiny-lambda": tiny_lambda, "rows20": rows,
                   "tiny4096": lambda: tiny(400_000_000, 4096)}[workload]()
        pages, epochs = (lambda batch: batch.numpy(), 20) if workload == "rows20" else (None, 1)
        items, seconds, cpu = walk(ps.Loader(dataset, threads=threads), pages, epochs)
    print(json.dumps({"items": items, "seconds": seconds, "cpu_seconds": cpu}))


if __name__ == "__main__":
    main()
