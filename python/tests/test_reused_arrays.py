"""Arrays that a function reuses: earlier results must not change."""

import threading

import numpy as np
import pytest

import penstock as ps

LARGE = 1000  # floats: more than the size that is always copied


def first_values(dataset, **options):
    return [int(row[0]) for batch in ps.Loader(dataset, **options) for row in batch.numpy()]


def test_a_generator_may_yield_one_buffer_repeatedly():
    def numbers():
        buffer = np.zeros(LARGE, np.float32)
        for i in range(40):
            buffer[:] = i
            yield buffer

    assert first_values(ps.from_generator(numbers).batch(8)) == list(range(40))


def test_a_generator_may_yield_views_of_one_buffer():
    def numbers():
        buffer = np.zeros((2, LARGE), np.float32)
        for i in range(40):
            buffer[:] = i
            yield buffer[1]

    assert first_values(ps.from_generator(numbers).batch(8)) == list(range(40))


@pytest.mark.parametrize("wrap", [lambda d: d, lambda d: (d["x"], d["y"])])
def test_a_generator_may_yield_one_dict_repeatedly(wrap):
    def numbers():
        record = {"x": None, "y": np.zeros(LARGE)}
        for i in range(40):
            record["x"] = np.full(LARGE, i, np.float32)
            record["y"][:] = i
            yield wrap(record)

    for batch in ps.Loader(ps.from_generator(numbers).batch(8)):
        x, y = batch.numpy().values() if isinstance(batch.numpy(), dict) else batch.numpy()
        assert x[:, 0].tolist() == y[:, 0].tolist()


def test_a_map_function_may_fill_one_buffer_per_thread():
    own = threading.local()

    def fill(i):
        if not hasattr(own, "buffer"):
            own.buffer = np.zeros(LARGE, np.float32)
        own.buffer[:] = i
        return own.buffer

    dataset = ps.range(40).map(fill)
    assert first_values(dataset.map(lambda x: x + 0).batch(8)) == list(range(40))
    assert first_values(dataset.batch(8)) == list(range(40))


def test_a_cache_copies_the_result_of_the_function():
    buffer = np.zeros(LARGE, np.float32)

    def fill(i):
        buffer[:] = i
        return buffer

    loader = ps.Loader(ps.range(40).map(fill).cache().batch(8), threads=0)
    for _ in range(2):
        assert [int(row[0]) for batch in loader for row in batch.numpy()] == list(range(40))


def test_map_batch_and_collate_functions_may_reuse_one_buffer_per_thread():
    own = threading.local()

    def rows(x):
        if not hasattr(own, "buffer"):  # large enough to be copied without the interpreter lock
            own.buffer = np.zeros((64, 20 * LARGE), np.float32)
        own.buffer[:len(x)] = np.asarray(x)[:, None]
        return own.buffer[:len(x)]

    assert first_values(ps.range(40).map_batch(rows).batch(8)) == list(range(40))
    assert first_values(ps.range(40).batch(8, collate_fn=rows)) == list(range(40))


def test_from_index_may_fill_one_buffer():
    buffer = np.zeros(LARGE, np.float32)

    def get(i):
        buffer[:] = i
        return buffer

    assert first_values(ps.from_index(40, get).batch(8), threads=0) == list(range(40))


def test_objects_that_convert_to_arrays_may_change_later():
    class Frame:
        def __init__(self, memory):
            self.memory = memory

        def __array__(self, dtype=None, copy=None):
            return self.memory

    memory = np.zeros(LARGE, np.float32)

    def frames():
        for i in range(40):
            memory[:] = i
            yield Frame(memory)

    assert first_values(ps.from_generator(frames).batch(8)) == list(range(40))


def nested(depth):
    value = 1
    for _ in range(depth):
        value = (value,)
    return value


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("depth", [65, 100, 100_000])
def test_a_result_that_is_nested_too_deep_names_the_sample(depth, workers):
    dataset = ps.range(4).map(lambda i, depth=depth: nested(depth), workers=workers)
    with pytest.raises(ps.SampleError, match="nested deeper than 64") as caught:
        list(ps.Loader(dataset.batch(2)))
    assert "sample 0" in str(caught.value)


def test_sixty_levels_are_fine():
    batch = next(iter(ps.Loader(ps.range(2).map(lambda i: nested(60)).batch(2))))
    value = batch.numpy()
    for _ in range(60):
        value = value[0]
    assert value.tolist() == [1, 1]


@pytest.mark.parametrize("make", [lambda v: ps.from_tensors(v), lambda v: ps.from_tensor_slices(v)])
def test_data_that_is_nested_too_deep_raises(make):
    with pytest.raises(ps.ConfigError, match="nested deeper than 64"):
        make(nested(100_000))
