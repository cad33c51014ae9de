"""Python's garbage collector frees objects that hold a loader of their own methods."""

import gc
import weakref

import numpy as np
import pytest
from conftest import rows_of

import penstock as ps


class Trainer:
    """Holds a loader whose dataset calls one of its methods."""

    def __init__(self, build, use):
        self.dataset = build(self)
        self.loader = ps.Loader(self.dataset.batch(4))
        use(self)

    def double(self, x):
        return x * 2

    def rows(self, x):
        return np.asarray(x) * 2

    def numbers(self):
        yield from np.arange(8) * 2

    def inner(self, x):
        return ps.from_tensors(x * 2)

    def get(self, i):
        return i * 2

    def passes(self, x):
        return True


BUILDS = {
    "map": lambda self: ps.range(8).map(self.double),
    "map_batch": lambda self: ps.range(8).map_batch(self.rows),
    "from_index": lambda self: ps.from_index(8, self.get),
    "from_generator": lambda self: ps.from_generator(self.numbers),
    "flat_map": lambda self: ps.range(8).flat_map(self.inner),
    "filter": lambda self: ps.range(0, 16, 2).filter(self.passes),
    "select": lambda self: ps.range(0, 16, 2).select(self.passes),
    "zip": lambda self: ps.zip(ps.range(8).map(self.double), ps.range(8)).map(lambda x, _: x),
    "concatenate": lambda self: ps.range(4).map(self.double).concatenate(
        ps.range(4, 8).map(self.double)),
}


def leave_it(self):
    pass


def one_epoch(self):
    assert sorted(rows_of(self.loader)) == list(range(0, 16, 2))


def keep_the_loop(self):
    self.loop = iter(self.loader)
    list(self.loop)


def collected(make):
    alive = weakref.ref(make())
    for _ in range(100):  # threads of the engine release references a little later
        gc.collect()
        if alive() is None:
            return True
    return False


@pytest.mark.parametrize("use", [leave_it, one_epoch, keep_the_loop])
@pytest.mark.parametrize("build", BUILDS)
def test_an_object_that_keeps_a_loader_of_its_methods_is_freed(build, use):
    assert collected(lambda: Trainer(BUILDS[build], use))


def test_an_object_that_keeps_a_feed_of_its_methods_is_freed():
    def feed(self):
        self.feed = ps.OneDeviceStrategy().distribute(self.dataset.batch(4))
        assert len(list(self.feed)) == 2

    assert collected(lambda: Trainer(BUILDS["map"], feed))


def test_a_loop_keeps_the_functions_of_a_deleted_loader_alive():
    def double(x):
        return x * 2

    loop = iter(ps.Loader(ps.range(800).map(double).batch(4)))
    gone = weakref.ref(double)
    del double
    gc.collect()
    assert gone() is not None
    assert [row for batch in loop for row in batch.numpy().tolist()] == list(range(0, 1600, 2))
    del loop
    gc.collect()


def test_the_functions_of_inner_datasets_live_as_long_as_they_are_used():
    def inner(x):
        offset = int(x) * 10
        return ps.range(10).map(lambda y: y + offset)

    loader = ps.Loader(ps.range(20).flat_map(inner).batch(7))
    for _ in range(2):
        assert rows_of(loader) == list(range(200))
    interleaved = ps.Loader(ps.range(20).interleave(inner, cycle=4).batch(7))
    assert sorted(rows_of(interleaved)) == list(range(200))


def test_collecting_while_loaders_run_breaks_nothing():
    loader = ps.Loader(ps.range(2000).map(lambda x: x * 2).shuffle(seed=1).batch(4))
    rows = []
    for batch in loader:
        rows += batch.numpy().tolist()
        if batch.step % 50 == 0:
            gc.collect()
    assert sorted(rows) == list(range(0, 4000, 2))


def test_a_closed_loader_releases_its_functions():
    def double(x):
        return x * 2

    gone = weakref.ref(double)
    loader = ps.Loader(ps.range(8).map(double).batch(4))
    assert rows_of(loader) == list(range(0, 16, 2))
    del double
    loader.close()
    gc.collect()
    assert gone() is None
