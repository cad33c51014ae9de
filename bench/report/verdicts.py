#!/usr/bin/env python3
"""Does the verdict name the right cause? Situations that are slow for a known reason, each at
several magnitudes, and healthy runs; the verdict sees only what was recorded.

    python bench/report/verdicts.py [--rounds 10] [--only NAME,...] [--verbose]

Run it with an interpreter whose path has the package, on a machine that does nothing else.
"""

import argparse
import errno
import json
import pathlib
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import penstock as ps

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from rounds import facts  # noqa: E402

STEP = 0.004  # seconds that training takes for a step, where nothing else is said
SITUATIONS: dict[str, tuple[set[str], Callable[[float], dict[str, Any]]]] = {}


def situation(*causes: str) -> Callable[[Any], Any]:
    def add(run: Any) -> Any:
        SITUATIONS[run.__name__] = (set(causes), run)
        return run
    return add


def spin(seconds: float) -> None:
    """Computes, and holds the interpreter's lock."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def compute(seconds: float) -> None:
    """Computes without the lock: NumPy releases it for large arrays."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        np.dot(_LARGE, _LARGE)


_LARGE = np.ones((96, 96), np.float32)


def train(loader: Any, step: float = STEP, steps: int = 10_000) -> dict[str, Any]:
    for _, batch in zip(range(steps), loader):
        if step:
            time.sleep(step)
    return loader.report()


def numbers(count: int = 600) -> Any:
    return ps.range(count)


# Input is too slow, by a factor of `magnitude`

@situation("interpreter_lock")
def lock_bound_map(magnitude: float) -> dict[str, Any]:
    each = STEP * magnitude / 8

    def parse(x: int) -> int:
        spin(each)
        return x
    return train(ps.Loader(numbers(400).map(parse, name="parse").batch(8)))


@situation("interpreter_lock")
def lock_held_by_the_program(magnitude: float) -> dict[str, Any]:
    ends = threading.Event()

    def hold() -> None:
        while not ends.is_set():
            spin(0.002)
    holders = [threading.Thread(target=hold) for _ in range(2)]
    for holder in holders:
        holder.start()
    try:
        return train(ps.Loader(numbers(int(60 * magnitude)).map(lambda x: x + 1, name="add")
                               .batch(4)), 0)
    finally:
        ends.set()
        for holder in holders:
            holder.join()


@situation("function_waits")
def sleeping_map(magnitude: float) -> dict[str, Any]:
    each = 2 * STEP * magnitude / 8

    def fetch(x: int) -> int:
        time.sleep(each)
        return x
    return train(ps.Loader(numbers(400).map(fetch, name="fetch").batch(8)))


@situation("compute")
def slow_decode(magnitude: float) -> dict[str, Any]:
    return train(ps.Loader(_photos(16, 512).repeat(4).map(
        ps.image.decode().resize(160, 160).gaussian_blur(2.0)).batch(8)), 0.012 / magnitude)


@situation("few_threads")
def one_thread(magnitude: float) -> dict[str, Any]:
    return train(ps.Loader(_photos(16, 512).repeat(4).map(
        ps.image.decode().resize(160, 160).gaussian_blur(2.0)).batch(8), threads=1),
        0.02 / magnitude)


@situation("few_threads", "compute")
def no_threads(magnitude: float) -> dict[str, Any]:
    return train(ps.Loader(_photos(16, 512).repeat(2).map(
        ps.image.decode().resize(160, 160)).batch(8), threads=0), 0.004 / magnitude)


@situation("in_order")
def slow_generator(magnitude: float) -> dict[str, Any]:
    each = STEP * magnitude / 8

    def rows() -> Any:
        for i in range(400):
            time.sleep(each)
            yield i
    return train(ps.Loader(ps.from_generator(rows).batch(8)))


@situation("in_order")
def computing_generator(magnitude: float) -> dict[str, Any]:
    each = STEP * magnitude / 8

    def rows() -> Any:
        for i in range(400):
            compute(each)
            yield i
    return train(ps.Loader(ps.from_generator(rows).batch(8)))


@situation("worker_processes")
def busy_worker_processes(magnitude: float) -> dict[str, Any]:
    each = 2 * STEP * magnitude / 8

    def parse(x: int) -> int:
        until = time.perf_counter() + each
        while time.perf_counter() < until:
            pass
        return x
    loader = ps.Loader(numbers(400).map(parse, name="parse", workers=2).batch(8))
    next(iter(loader))  # the processes start
    return train(loader)


@situation("stragglers")
def stragglers(magnitude: float) -> dict[str, Any]:
    slow = 0.02 * magnitude

    def parse(x: int) -> int:
        time.sleep(slow if x % 101 == 100 else 0.0004)
        return x
    return train(ps.Loader(numbers(1500).map(parse, name="parse").batch(8)), 0.001)


@situation("memory")
def small_budget(magnitude: float) -> dict[str, Any]:
    def make(x: int) -> Any:
        time.sleep(0.001 * magnitude)
        return np.zeros(20_000, np.float32)
    data = numbers(160).map(make, spec=ps.Field("float32", (20_000,)), name="make").batch(1)
    return train(ps.Loader(data, lookahead_bytes=1), 0.0005)


@situation("small_steps")
def tiny_batches(magnitude: float) -> dict[str, Any]:
    return train(ps.Loader(ps.range(int(20_000 * magnitude)).batch(1)), 0)


@situation("other_loaders")
def two_loaders(magnitude: float) -> dict[str, Any]:
    chain = ps.image.decode().resize(160, 160).gaussian_blur(2.0)
    other = ps.Loader(_photos(16, 512).repeat(100).map(chain).batch(8))
    ends = threading.Event()

    def drain() -> None:
        try:
            for _ in other:
                if ends.is_set():
                    return
        except ps.CancelledError:
            pass
    thread = threading.Thread(target=drain)
    thread.start()
    try:
        time.sleep(0.05)
        return train(ps.Loader(_photos(16, 512).repeat(3).map(chain).batch(8)),
                     0.02 / magnitude)
    finally:
        ends.set()
        other.stop()
        thread.join()


@situation("slow_replica")
def one_slow_replica(magnitude: float) -> dict[str, Any]:
    strategy = ps.MirroredStrategy(["cpu:0", "cpu:1"])
    feed = strategy.distribute(ps.range(400).batch(10))

    def step(replica: Any, batch: Any) -> int:
        time.sleep(0.002 * (magnitude if replica.id == 1 else 1))
        return 0
    for each in feed:
        strategy.run(step, each)
    return feed.report()


@situation("cache_after_random")
def cache_after_a_random_op(magnitude: float) -> dict[str, Any]:
    def jitter(x: int, rng: Any) -> float:
        return x + rng.random()
    loader = ps.Loader(ps.range(int(100 * magnitude)).map(jitter, name="jitter").cache().batch(8))
    train(loader, 0)
    return train(loader, 0)


@situation("start_up")
def slow_first_batch(magnitude: float) -> dict[str, Any]:
    def parse(x: int) -> int:
        if x < 8:
            time.sleep(0.02 * magnitude)
        return x
    return train(ps.Loader(ps.range(400).map(parse, name="parse").batch(8)), 0.002)


@situation("whole_batches", "function_waits", "interpreter_lock", "compute")
def slow_collate(magnitude: float) -> dict[str, Any]:
    def collate(samples: list[Any]) -> Any:
        time.sleep(2 * STEP * magnitude)
        return np.asarray(samples)
    return train(ps.Loader(ps.range(300).batch(8, collate_fn=collate)))


@situation("retries")
def reads_that_fail_at_first(magnitude: float) -> dict[str, Any]:
    tried: set[int] = set()

    def parse(x: int) -> int:
        if x % 5 == 0 and x not in tried:
            tried.add(x)
            raise OSError(errno.EIO, "the disk is tired")
        time.sleep(0.002 / magnitude)
        return x
    return train(ps.Loader(numbers(400).map(parse, name="parse").batch(8)), 0)


# Nothing is wrong: training is the limit

@situation("healthy")
def slow_consumer(magnitude: float) -> dict[str, Any]:
    return train(ps.Loader(ps.range(400).map(lambda x: x, name="same").batch(8)),
                 0.002 * magnitude)


@situation("healthy")
def healthy_photos(magnitude: float) -> dict[str, Any]:
    return train(ps.Loader(_photos(16, 256).repeat(6).map(
        ps.image.decode().resize(64, 64)).batch(8)), 0.02 * magnitude)


@situation("healthy")
def healthy_generator(magnitude: float) -> dict[str, Any]:
    return train(ps.Loader(ps.from_generator(lambda: iter(range(300))).batch(8)),
                 0.002 * magnitude)


@situation("healthy")
def healthy_replicas(magnitude: float) -> dict[str, Any]:
    strategy = ps.MirroredStrategy(["cpu:0", "cpu:1"])
    feed = strategy.distribute(ps.range(300).batch(10))
    for each in feed:
        strategy.run(lambda replica, batch: time.sleep(0.002 * magnitude), each)
    return feed.report()


def _photos(count: int, size: int) -> Any:
    folder = _FOLDER / f"photos-{count}-{size}"
    if not folder.exists():
        (folder / "a").mkdir(parents=True)
        y, x = np.mgrid[0:size, 0:size].astype(np.float32)

        def picture(i: int) -> dict[str, Any]:
            plane = 128 + 60 * np.sin(x / (9 + i)) + 50 * np.cos(y / (7 + i))
            return {"image": np.stack([plane, plane.T, 255 - plane], -1).clip(0, 255)
                    .astype(np.uint8)}
        encoded = ps.from_index(count, picture).map(ps.image.encode("jpeg"))
        for i, sample in enumerate(encoded):
            (folder / "a" / f"{i:04}.jpg").write_bytes(sample["image"])
    return ps.image_folder(folder)


_FOLDER = pathlib.Path(tempfile.mkdtemp())


def main() -> None:
    args = argparse.ArgumentParser(description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--rounds", type=int, default=10)
    args.add_argument("--only", default="")
    args.add_argument("--verbose", action="store_true")
    args.add_argument("--out", type=pathlib.Path,
                      default=HERE.parent / "results" / "verdicts.json")
    options = args.parse_args()
    chosen = options.only.split(",") if options.only else list(SITUATIONS)
    draw = random.Random(7)
    results: dict[str, dict[str, int]] = {}
    right = runs = 0
    for name in chosen:
        causes, run = SITUATIONS[name]
        found: dict[str, int] = {}
        for _ in range(options.rounds):
            magnitude = 1.5 * (20 / 1.5) ** draw.random()
            report = run(magnitude)
            found[report["cause"]] = found.get(report["cause"], 0) + 1
            if report["cause"] not in causes or options.verbose:
                print(f"  {name} x{magnitude:.1f}: {report['cause']}: {report['verdict']}")
        good = sum(count for cause, count in found.items() if cause in causes)
        right, runs = right + good, runs + options.rounds
        results[name] = found
        print(f"{name}: {good} of {options.rounds} {found}", flush=True)
    print(f"right: {right} of {runs} ({100 * right / runs:.1f} %)")
    if not options.only:
        options.out.write_text(json.dumps({"facts": facts(), "right": right, "runs": runs,
                                           "found": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
