"""One workload of one library over samples of different lengths; prints its rate as JSON.

    python workloads.py WORKLOAD WHO FOLDER

Workloads: windows (rows of 2048 tokens of a mapped file), padded (512 short sequences a batch),
pack (documents to rows of 2048 tokens) and next (the time that next() takes while a model trains).
"""

import json
import pathlib
import statistics
import sys
import time

import numpy as np

LENGTH = 2048
TOKENS = 64 << 20


def token_file(folder):
    path = pathlib.Path(folder) / "tokens.bin"
    if not path.exists():
        np.random.default_rng(0).integers(0, 50000, TOKENS, dtype=np.uint16).tofile(path)
    return path


def documents(count, mean):
    """Documents of log-normal length, as values and offsets."""
    rng = np.random.default_rng(1)
    lengths = np.maximum(1, rng.lognormal(np.log(mean), 1, count)).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return rng.integers(0, 50000, offsets[-1], dtype=np.int32), offsets


def timed(batches, size):
    """Items a second, from the second batch on."""
    batches = iter(batches)
    next(batches)
    start, items = time.perf_counter(), 0
    for batch in batches:
        items += size(batch)
    return items / (time.perf_counter() - start)


def windows(who, folder):
    path = token_file(folder)
    if who == "memcpy":
        data, out = np.memmap(path, np.uint16), np.empty((64, LENGTH), np.uint16)
        blocks = range(0, len(data) - out.size, out.size)

        def copied():
            for first in blocks:
                np.copyto(out.reshape(-1), data[first:first + out.size])
                yield out
        return timed(copied(), lambda batch: len(batch))
    if who == "penstock":
        import penstock as ps
        loader = ps.Loader(ps.tokens(path, "uint16", LENGTH).shuffle(seed=1).batch(64), threads=2)
        return timed(loader, len)
    import torch

    class Windows(torch.utils.data.Dataset):
        def __len__(self):
            return TOKENS // LENGTH

        def __getitem__(self, i):
            if not hasattr(self, "data"):
                self.data = np.memmap(path, np.uint16)
            return torch.from_numpy(self.data[i * LENGTH:(i + 1) * LENGTH].copy())
    loader = torch.utils.data.DataLoader(Windows(), 64, shuffle=True, num_workers=2)
    return timed(loader, len)


def padded(who, _):
    values, offsets = documents(200_000, 40)
    if who == "penstock":
        import penstock as ps
        dataset = ps.from_ragged(values, offsets).shuffle(seed=1).padded_batch(512)
        return timed(ps.Loader(dataset, threads=2), len)
    import torch
    rows = [torch.from_numpy(values[a:b]) for a, b in zip(offsets, offsets[1:], strict=False)]
    loader = torch.utils.data.DataLoader(
        rows, 512, shuffle=True, num_workers=2,
        collate_fn=lambda some: torch.nn.utils.rnn.pad_sequence(some, batch_first=True))
    return timed(loader, len)


def pack(who, _):
    values, offsets = documents(40_000, 500)
    if who == "penstock":
        import penstock as ps
        loader = ps.Loader(ps.from_ragged(values, offsets).pack(LENGTH).batch(64), threads=2)
        return timed(loader, len)
    import datasets
    import pyarrow as pa
    table = pa.table({"tokens": pa.LargeListArray.from_arrays(offsets, pa.array(values))})
    source = datasets.Dataset(table)

    def grouped(some):  # as the training examples of that library do it
        joined = np.concatenate([np.asarray(each) for each in some["tokens"]])
        rows = [joined[i:i + LENGTH] for i in range(0, len(joined) // LENGTH * LENGTH, LENGTH)]
        return {"tokens": rows, "labels": [row.copy() for row in rows]}
    datasets.disable_caching()
    datasets.disable_progress_bars()
    start = time.perf_counter()
    packed = source.map(grouped, batched=True, num_proc=2, remove_columns=["tokens"])
    return len(packed) / (time.perf_counter() - start)


def next_time(_, folder):
    """Microseconds of next() in steady state, at batch 512 x 2048."""
    import penstock as ps
    dataset = ps.tokens(token_file(folder), "uint16", LENGTH).shuffle(seed=1).repeat().batch(512)
    loader = iter(ps.Loader(dataset, threads=2))
    times = []
    for step in range(120):
        time.sleep(0.01)  # a model trains
        start = time.perf_counter()
        batch = next(loader)
        times.append(time.perf_counter() - start)
        del batch
    return statistics.median(times[20:]) * 1e6


if __name__ == "__main__":
    kind = {"windows": windows, "padded": padded, "pack": pack, "next": next_time}[sys.argv[1]]
    print(json.dumps({"rate": kind(sys.argv[2], sys.argv[3])}))
