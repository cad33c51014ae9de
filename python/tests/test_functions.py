"""Python functions in the engine's threads: arguments, exceptions, random numbers."""

import gc
import threading
import time
import traceback
import warnings
import weakref

import numpy as np
import pytest
from conftest import rows_of

import penstock as ps


def test_the_users_exception_keeps_type_and_traceback_and_names_its_place():
    class Unlucky(Exception):
        def __init__(self, number):
            super().__init__(f"number {number}")
            self.number = number

    def fail(x):
        if x == 13:
            raise Unlucky(int(x))
        return x

    loader = ps.Loader(ps.range(50).map(fail).batch(5))
    seen = []
    with pytest.raises(Unlucky, match="number 13") as raised:
        for batch in loader:
            seen.append(batch.step)
    assert seen == [0, 1]
    assert raised.value.number == 13
    assert any(frame.name == "fail" for frame in traceback.extract_tb(raised.value.__traceback__))
    note = "".join(raised.value.__notes__)
    assert "sample 13" in note and "step 2" in note and "map" in note


def test_a_failed_step_can_be_requested_again():
    failures = [True]

    def fail_once(x):
        if x == 3 and failures:
            failures.pop()
            raise OSError("gone for a moment")
        return x

    loop = iter(ps.Loader(ps.range(6).map(fail_once).batch(2)))
    assert next(loop).numpy().tolist() == [0, 1]
    with pytest.raises(OSError, match="for a moment"):
        next(loop)
    assert [batch.numpy().tolist() for batch in loop] == [[2, 3], [4, 5]]


def test_os_errors_that_may_pass_are_tried_again():
    import errno
    failures = [errno.EIO, errno.EAGAIN]

    def flaky(x):
        if x == 1 and failures:
            raise OSError(failures.pop(), "a bad moment")
        return x

    assert rows_of(ps.Loader(ps.range(4).map(flaky).batch(2))) == [0, 1, 2, 3]


def test_stop_iteration_does_not_end_the_loop_silently():
    def leak(x):
        return next(iter([]))

    with pytest.raises(RuntimeError, match="StopIteration"):
        list(ps.Loader(ps.range(4).map(leak).batch(2)))


def test_another_structure_the_second_time_is_a_clear_error():
    def changing(x):
        return {"x": x} if x < 5 else {"x": x, "extra": x}

    with pytest.raises(ps.SampleError, match="same structure") as raised:
        list(ps.Loader(ps.range(10).map(changing).batch(2)))
    assert raised.value.where["sample"] == 5


def test_another_number_of_dimensions_names_both():
    with pytest.raises(ps.SampleError, match=r"\[2\].*\[2, 1\]|\[2, 1\].*\[2\]"):
        list(ps.Loader(ps.range(4).map(lambda x: np.zeros(2 if x < 3 else (2, 1))).batch(2)))


def test_none_is_not_a_sample():
    with pytest.raises(ps.SampleError, match="return missing"):
        list(ps.Loader(ps.range(4).map(lambda x: None).batch(2)))


def test_functions_that_release_the_gil_run_concurrently():
    both = threading.Barrier(2)

    def meet(x):
        both.wait(20)
        return x

    loader = ps.Loader(ps.range(2).map(meet, spec=ps.Field("int64")).batch(1), threads=2)
    assert rows_of(loader) == [0, 1]


def test_short_calls_do_not_block_each_other():
    both, waited = threading.Barrier(2, timeout=60), set()

    def fn(x):
        if x[0] > 60_000 and threading.get_ident() not in waited and len(waited) < 2:
            waited.add(threading.get_ident())
            both.wait()  # after many short calls: the other thread must still get its turn
        return x + 1

    loader = ps.Loader(ps.range(200_000).map_batch(fn, spec=ps.Field("int64")).batch(64), threads=2)
    assert sum(int(batch.numpy().sum()) for batch in loader) == sum(range(1, 200_001))
    assert len(waited) == 2


def test_thread_local_values_persist_between_calls():
    local = threading.local()

    def count(x):
        local.calls = getattr(local, "calls", 0) + 1
        return local.calls

    assert max(rows_of(ps.Loader(ps.range(20).map(count).batch(5), threads=2))) >= 10


def test_thread_local_values_are_released_when_the_thread_ends():
    local, kept = threading.local(), []

    class Thing:
        pass

    def keep(x):
        if not hasattr(local, "thing"):
            local.thing = Thing()
            kept.append(weakref.ref(local.thing))
        return x

    loader = ps.Loader(ps.range(20).map(keep).batch(5), threads=2)
    rows_of(loader)
    del loader
    gc.collect()
    assert kept and all(each() is None for each in kept)


def test_a_function_owns_its_arguments():
    kept = []
    dataset = ps.from_tensor_slices(np.arange(4000).reshape(4, 1000))
    list(ps.Loader(dataset.map(lambda x: kept.append(x) or x.sum()).batch(2)))
    assert sorted(int(x[0]) for x in kept) == [0, 1000, 2000, 3000]
    assert all(x[-1] - x[0] == 999 for x in kept)


def test_a_returned_array_may_be_changed_later():
    scratch = np.zeros(3000)

    def reuse(x):
        scratch[:] = x
        return scratch

    batches = ps.Loader(ps.range(8).map(reuse).batch(2), threads=0)
    assert [row[0] for batch in batches for row in batch.numpy()] == list(range(8))


def test_functions_are_released_with_their_dataset():
    class Model:
        def __call__(self, x):
            return x + 1

    model = Model()
    alive = weakref.ref(model)
    loader = ps.Loader(ps.range(100).map(model).batch(10))
    assert rows_of(loader) == list(range(1, 101))
    del loader, model
    gc.collect()
    assert alive() is None


def test_map_batch_receives_many_rows_and_equals_map():
    sizes = []

    def double(x):
        sizes.append(len(x))
        return {"double": x * 2, "half": (x / 2).astype(np.float32)}

    dataset = ps.range(1000).shuffle(seed=4).map_batch(double)
    assert dataset.element_spec == {"double": ps.Field("int64"), "half": ps.Field("float32")}
    batches = list(ps.Loader(dataset.batch(100)))
    assert sorted(np.concatenate([batch["double"] for batch in batches])) == list(range(0, 2000, 2))
    assert sizes[0] == 0 and max(sizes) > 1
    after = list(ps.Loader(ps.range(1000).shuffle(seed=4).batch(100).map_batch(double)))
    assert all((a["half"] == b["half"]).all() for a, b in zip(batches, after))


def test_map_batch_of_short_batches_receives_rows_of_several_batches():
    sizes = []

    def double(x):
        sizes.append(len(x))
        return x * 2

    dataset = ps.range(100_000).map_batch(double, spec=ps.Field("int64")).shuffle(seed=4).batch(16)
    together = [batch.numpy().tolist() for batch in ps.Loader(dataset, threads=1)]
    assert max(sizes) > 16 and len(sizes) < 6250
    sizes.clear()
    assert [batch.numpy().tolist() for batch in ps.Loader(dataset, threads=0)] == together
    assert max(sizes) == 16


def test_map_batch_that_fails_names_the_step_of_the_failure_for_any_number_of_threads():
    def fail(x):
        if (x == 77_777).any():
            raise ValueError("this one")
        return x

    def failure(threads):
        dataset = ps.range(100_000).map_batch(fail).batch(16)
        with pytest.raises(ValueError, match="this one") as raised:
            list(ps.Loader(dataset, threads=threads))
        return raised.value.__notes__[0]

    assert f"step {77_777 // 16}" in failure(0)
    assert failure(2) == failure(0)


def test_map_batch_of_short_batches_skips_the_same_samples_for_any_number_of_threads():
    def fail(x):
        if (x % 5_000 == 3).any():
            raise ValueError("this one")
        return x

    def skipped(threads):
        loader = ps.Loader(ps.range(20_000).map_batch(fail).batch(16), threads=threads,
                           on_error="skip")
        rows = rows_of(loader)
        return rows, list(loader.ledger)

    assert skipped(2) == skipped(0)


def test_map_batch_after_a_function_of_unknown_result_works_row_by_row():
    dataset = ps.range(10).map(lambda x: x * 2.0).map_batch(lambda x: x + 1)
    assert rows_of(ps.Loader(dataset.batch(5))) == [1 + 2 * i for i in range(10)]


def test_map_batch_reports_wrong_results():
    with pytest.raises(ps.ConfigError, match="0 rows"):
        ps.range(4).map_batch(lambda x: x.max())
    spec = ps.Field("int64")
    with pytest.raises(ps.SampleError, match="one row per input row"):
        list(ps.Loader(ps.range(4).map_batch(lambda x: x[1:], spec=spec).batch(4)))
    with pytest.raises(ps.SampleError, match="rows of f64"):
        list(ps.Loader(ps.range(4).map_batch(lambda x: x * 1.0, spec=spec).batch(4)))

    def fail(x):
        return x if len(x) == 0 else 1 // 0

    with pytest.raises(ZeroDivisionError) as raised:
        list(ps.Loader(ps.range(4).map_batch(fail).batch(4)))
    assert "step 0" in raised.value.__notes__[0]


def test_map_after_batch_receives_the_whole_global_batch():
    dataset = ps.range(8).batch(4).map(lambda x: x - x.mean().astype(np.int64))
    for world in (1, 2):
        rows = [rows_of(ps.Loader(dataset, world=world, rank=rank)) for rank in range(world)]
        assert sorted(sum(rows, [])) == sorted([-1, 0, 1, 2] * 2)


def noisy(x, rng):
    return x + rng.normal()


def test_keyed_random_numbers_are_the_same_at_any_thread_count_and_fresh_each_epoch():
    def run(**options):
        loader = ps.Loader(ps.range(40).map(noisy).shuffle(seed=1).batch(7), **options)
        return [rows_of(loader) for _ in range(2)]

    first = run(threads=0)
    assert first == run(threads=2) == run()
    assert sorted(first[0]) != sorted(first[1])


def test_ps_rng_is_the_generator_of_the_sample():
    def draw(x):
        generator = ps.rng()
        assert generator is ps.rng()
        return generator.integers(1 << 60)

    first = rows_of(ps.Loader(ps.range(100).map(draw).batch(10)))
    assert first == rows_of(ps.Loader(ps.range(100).map(draw).batch(7)))
    assert len(set(first)) == 100
    assert first != rows_of(ps.Loader(ps.range(100).map(draw, seed=1).batch(10)))


def test_random_numbers_continue_after_a_resume():
    def loader():
        return ps.Loader(ps.range(30).shuffle(seed=2).map(noisy).batch(4))

    whole = rows_of(loader())
    first = loader()
    loop = iter(first)
    seen = [row for _ in range(3) for row in next(loop).numpy().tolist()]
    other = loader()
    other.load_state_dict(first.state_dict())
    assert seen + rows_of(other) == whole


def test_rng_without_a_sample_raises():
    with pytest.raises(ps.ConfigError, match="outside a map function"):
        ps.rng()

    def hidden(x):
        return getattr(ps, "r" + "ng")().normal()

    with pytest.raises(ps.ConfigError, match="random=True"):
        list(ps.Loader(ps.range(4).map(hidden).batch(2)))
    assert len(rows_of(ps.Loader(ps.range(4).map(hidden, random=True).batch(2)))) == 4


def test_global_randomness_is_warned_about_once():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        list(ps.Loader(ps.range(50).map(lambda x: x + np.random.rand()).batch(5), threads=0))
        list(ps.Loader(ps.range(50).map(lambda x: x + 1).batch(5), threads=0))
    told = [str(each.message) for each in caught if "global random" in str(each.message)]
    assert len(told) == 1 and "ps.rng()" in told[0]


def test_a_random_op_before_cache_is_warned_about(capfd):
    list(ps.Loader(ps.range(4).map(noisy).cache().batch(2)))
    assert "cache" in capfd.readouterr().err


def test_generators_are_started_for_every_pass():
    started = []

    def numbers():
        started.append(1)
        yield from range(5)

    loader = ps.Loader(ps.from_generator(numbers).batch(2))
    assert [rows_of(loader) for _ in range(3)] == [[0, 1, 2, 3, 4]] * 3
    assert len(started) == 3
    with pytest.raises(TypeError, match="stream"):
        len(loader)


def test_a_generator_may_receive_its_epoch():
    def numbers(epoch):
        yield epoch * 10

    loader = ps.Loader(ps.from_generator(numbers).batch(1))
    assert [rows_of(loader) for _ in range(3)] == [[0], [10], [20]]


def test_a_list_is_an_iterable_that_can_be_iterated_again():
    loader = ps.Loader(ps.from_generator([{"x": 1}, {"x": 2}]).batch(2))
    assert [[batch["x"].tolist() for batch in loader] for _ in range(2)] == [[[1, 2]]] * 2


class Counter:
    """An iterator that can save its position."""

    pulled = 0

    def __init__(self):
        self.at = 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.at == 1000:
            raise StopIteration
        Counter.pulled += 1
        self.at += 1
        return self.at - 1

    def save(self):
        return str(self.at)

    def restore(self, text):
        self.at = int(text)


def test_an_iterator_that_saves_is_not_pulled_again():
    first = ps.Loader(ps.from_generator(Counter).batch(10))
    loop = iter(first)
    seen = [row for _ in range(50) for row in next(loop).numpy().tolist()]
    state = first.state_dict()
    first.stop()
    Counter.pulled = 0
    other = ps.Loader(ps.from_generator(Counter).batch(10))
    other.load_state_dict(state)
    assert seen + rows_of(other) == list(range(1000))
    assert Counter.pulled == 500


def test_a_generator_that_raises_names_its_element():
    def numbers():
        yield 0
        yield 1
        raise KeyError("third")

    with pytest.raises(KeyError, match="third") as raised:
        list(ps.Loader(ps.from_generator(numbers).batch(1)))
    assert "sample 2" in raised.value.__notes__[0]


def test_generators_are_closed_when_the_loop_ends():
    closed = threading.Event()

    def endless():
        try:
            while True:
                yield 1
        finally:
            closed.set()

    loader = ps.Loader(ps.from_generator(endless).batch(2))
    next(iter(loader))
    del loader
    gc.collect()
    deadline = time.monotonic() + 20
    while not closed.is_set() and time.monotonic() < deadline:
        pass
    assert closed.is_set()
