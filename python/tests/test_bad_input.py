"""Mistakes in the set-up raise before anything runs; errors in the data name the sample."""

import itertools
import multiprocessing
import pickle
import threading

import numpy as np
import pytest
from conftest import rows_of, run_program

import penstock as ps


def refused(match):
    return pytest.raises(ps.ConfigError, match=match)


def test_arrays_of_different_lengths():
    with refused(r"has 4 rows.*has 3|has 3 rows.*has 4"):
        ps.from_tensor_slices({"x": np.zeros(3), "y": np.zeros(4)})


def test_object_arrays():
    with refused("Python objects"):
        ps.from_tensor_slices(np.array([[1], [1, 2]], dtype=object))
    with refused("not an array"):
        ps.from_tensor_slices([[1], [1, 2]])


def test_scalars_have_no_slices():
    with refused("scalar"):
        ps.from_tensor_slices(3.0)
    with refused("no tensors"):
        ps.from_tensor_slices({})
    with refused("None"):
        ps.from_tensor_slices(None)


def test_non_contiguous_and_read_only_arrays_are_fine():
    array = np.arange(24).reshape(4, 6)
    assert rows_of(ps.Loader(ps.from_tensor_slices(array[:, ::2]).batch(4))) == (
        array[:, ::2].tolist())
    assert rows_of(ps.Loader(ps.from_tensor_slices(array.T).batch(6))) == array.T.tolist()
    array.flags.writeable = False
    assert rows_of(ps.Loader(ps.from_tensor_slices(array).batch(4))) == array.tolist()


def test_empty_arrays_are_fine():
    loader = ps.Loader(ps.from_tensor_slices(np.zeros((0, 3))).batch(4))
    assert len(loader) == 0 and list(loader) == []


@pytest.mark.parametrize("dtype", [">i4", ">f8"])
def test_big_endian_arrays(dtype):
    with refused("big-endian.*newbyteorder"):
        ps.from_tensor_slices(np.zeros(3, dtype))


@pytest.mark.parametrize("dtype", ["complex64", "datetime64[s]", "longdouble", "i4,i4"])
def test_unsupported_dtypes(dtype):
    with refused("dtype"):
        ps.from_tensor_slices(np.zeros(3, dtype))


@pytest.mark.parametrize("dtype", ["bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2",
                                   "f4", "f8"])
def test_supported_dtypes(dtype):
    array = np.array([0, 1, 1], dtype)
    batch = next(iter(ps.Loader(ps.from_tensor_slices(array).batch(3))))
    assert batch.numpy().dtype == array.dtype and batch.numpy().tolist() == array.tolist()
    assert type(ps.from_tensor_slices(array).sample(1)) is type(array[1])


def test_a_generator_instead_of_a_factory():
    def numbers():
        yield 1

    with refused("runs only once.*without calling it"):
        ps.from_generator(numbers())
    with refused("runs only once"):
        ps.from_generator(iter([1, 2]))
    with refused("cannot be iterated"):
        ps.from_generator(7)


def test_a_generator_function_instead_of_a_function():
    def several(x):
        yield x

    for word in ("map", "filter", "take_while", "select"):
        with refused(f"{word}: several is a generator function"):
            getattr(ps.range(3), word)(several)
    with refused("a generator is not a valid value"):
        ps.from_tensor_slices(x for x in range(3))


def test_a_factory_that_returns_no_iterator():
    with pytest.raises(TypeError, match="not iterable") as raised:
        list(ps.Loader(ps.from_generator(lambda: 3).batch(1)))
    assert "from_generator" in raised.value.__notes__[0]


def test_no_function_at_all():
    for bad in (3, "x", None):
        with refused("takes a function"):
            ps.range(3).map(bad)


def test_len_of_a_stream():
    loader = ps.Loader(ps.range(10).filter(lambda x: x > 3).batch(2))
    with pytest.raises(TypeError, match="no len"):
        len(loader)
    assert [batch.rows for batch in loader] == [2, 2, 2]
    assert loader.plan.steps is None


def test_len_of_a_stream_before_it_is_batched():
    with pytest.raises(TypeError, match="until it ends.*cardinality"):
        len(ps.from_generator(lambda: iter([1, 2])))
    with pytest.raises(TypeError, match="endless"):
        len(ps.range(3).repeat())


# Worker processes of other libraries around a loader

def test_a_loader_sent_to_spawned_workers():
    """torch's DataLoader with num_workers>0 under spawn pickles the object."""
    loader = ps.Loader(ps.range(10).batch(2))
    process = multiprocessing.get_context("spawn").Process(target=list, args=(loader,))
    with pytest.raises(TypeError, match="cannot be pickled.*num_workers=0"):
        process.start()
    for part in (ps.range(10), next(iter(loader)), iter(loader)):
        with pytest.raises(TypeError, match="pickle"):
            pickle.dumps(part)


FORKED = """
import os, sys, warnings
warnings.simplefilter("ignore")
import penstock as ps

class Around:  # an IterableDataset around a native loader, in a worker of num_workers=1
    def __init__(self, loader): self.loader = loader
    def __iter__(self): return iter(self.loader)

around = Around(ps.Loader(ps.range(10).batch(2)))
{before}
child = os.fork()
if child == 0:
    try:
        print([batch.numpy().tolist() for batch in around], flush=True)
    except ps.ConfigError as error:
        print("forked" in str(error), "num_workers=0" in str(error), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print([batch.numpy().tolist() for batch in around], flush=True)
"""


@pytest.mark.parametrize("before", ["", "next(iter(around))"])
def test_a_loader_in_forked_workers(before):
    """Under fork the worker raises, and the parent's loader is not affected."""
    code, out, error = run_program(FORKED.format(before=before))
    rows = "[[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]\n"
    assert (code, out) == (0, "True True\n" + rows), error


def test_torch_workers_around_a_loader():
    torch_data = pytest.importorskip("torch.utils.data")
    loader = ps.Loader(ps.range(8).map(lambda x: x + 1).batch(2))

    class Around(torch_data.IterableDataset):
        def __iter__(self):
            return (batch.torch() for batch in loader)

    def rows(**options):
        return [row for batch in torch_data.DataLoader(Around(), batch_size=None, **options)
                for row in batch.tolist()]

    assert rows(num_workers=0) == list(range(1, 9))
    with pytest.raises((ps.ConfigError, RuntimeError), match="forked while a loader was running"):
        rows(num_workers=1, multiprocessing_context="fork")
    with pytest.raises((TypeError, AttributeError), match="pickle"):
        rows(num_workers=1, multiprocessing_context="spawn")
    assert rows(num_workers=0) == list(range(1, 9))


# Loops

def test_every_batch_of_an_epoch_may_be_kept():
    x = np.arange(3000).reshape(300, 10)
    loader = ps.Loader(ps.from_tensor_slices(x).batch(7))
    kept = [batch for _ in range(3) for batch in loader]
    views = [batch.numpy() for batch in kept]
    del kept
    assert (np.concatenate(views) == np.concatenate([x] * 3)).all()


def test_threads_that_share_an_iterator_raise():
    inside, go = threading.Event(), threading.Event()

    def wait(x):
        inside.set()
        go.wait(60)
        return x

    loader = ps.Loader(ps.range(4).map(wait).batch(2))
    loop = iter(loader)
    got = []
    other = threading.Thread(target=lambda: got.extend(next(loop).numpy().tolist()))
    other.start()
    inside.wait(60)
    with refused("another thread waits in next.*its own iterator"):
        next(loop)
    states = []
    asking = threading.Thread(target=lambda: states.append(loader.state_dict()))
    asking.start()  # waits for next(): only two concurrent calls of next() are an error
    go.set()
    other.join()
    asking.join()
    assert [state["step"] for state in states] == [1]
    assert got + [row for batch in loop for row in batch.numpy().tolist()] == [0, 1, 2, 3]


def test_threads_that_iterate_one_loader_each_get_an_epoch():
    loader = ps.Loader(ps.range(1000).shuffle(seed=1).batch(8))
    seen = []
    threads = [threading.Thread(target=lambda: seen.append(sorted(rows_of(loader))))
               for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [list(range(1000))] * 6


# Results that change

def answers():
    first = itertools.count()
    return lambda *_: {"x": 1} if next(first) < 3 else {"x": 1, "more": 2}


@pytest.mark.parametrize("dataset", [
    lambda: ps.range(8).map(answers()),
    lambda: ps.from_index(8, answers()),
    lambda: ps.from_generator(lambda: (answer() for answer in [answers()] * 8)),
    lambda: ps.range(8).map(lambda x: {"x": x} if x < 3 else (x,), workers=1),
    lambda: ps.range(8).map(lambda x: {"x": x if x < 3 else float(x)}),
    lambda: ps.range(8).map(lambda x: np.zeros(2) if x < 3 else "text"),
])
def test_another_structure_the_second_time(dataset):
    with pytest.raises(ps.SampleError, match="same") as raised:
        list(ps.Loader(dataset().batch(1), threads=0))
    assert raised.value.where["sample"] == 3


def test_map_batch_with_another_structure_the_second_time():
    def changing(x):
        return {"x": x} if len(x) == 0 else {"y": x}

    with pytest.raises(ps.SampleError, match="same structure"):
        list(ps.Loader(ps.range(8).map_batch(changing).batch(4)))


def test_pickling_a_loader_says_what_to_do_instead():
    with pytest.raises(TypeError, match="num_workers=0"):
        pickle.dumps(ps.Loader(ps.range(10).batch(2)))


def test_arity_is_checked_before_anything_runs():
    with refused(r"map: one\(x\).*2 parts"):
        def one(x):
            return x
        ps.zip(ps.range(3), ps.range(3)).map(one)
    with refused("missing a required argument"):
        ps.range(3).map(lambda a, b: a)


def test_batches_are_not_batched_again():
    with refused("already batches"):
        ps.range(10).batch(2).batch(2)


def test_invalid_numbers():
    for call in (lambda: ps.range(10).batch(0), lambda: ps.range(10).batch(-3),
                 lambda: ps.range(10).take(-2), lambda: ps.range(10).repeat(-2),
                 lambda: ps.range(10).shard(2, 2), lambda: ps.range(0, 10, 0),
                 lambda: ps.range(10).shuffle(window=0), lambda: ps.range(10).split(1.5)):
        with pytest.raises(ps.ConfigError):
            call()


def test_options_of_a_loader():
    dataset = ps.range(10).batch(2)
    with refused("rank"):
        ps.Loader(dataset, world=2)
    with refused("rank 2 of a world of 2"):
        ps.Loader(dataset, world=2, rank=2)
    with refused("no policy"):
        ps.Loader(dataset, tail="round")
    with refused("no policy"):
        ps.Loader(dataset, on_error="ignore")
    with refused("debug"):
        ps.Loader(dataset, debug=True, threads=2)
    with refused("Dataset"):
        ps.Loader([1, 2, 3])
    with refused("batch"):
        ps.Loader(ps.range(10))
    with refused("strict"):
        ps.Loader(dataset.take(5), world=4, rank=0, tail="strict")


def test_keys_of_dicts_are_names():
    with refused("keys of a dict"):
        ps.from_tensor_slices({1: np.zeros(3)})


def test_invalid_specs():
    with refused(r"3 is not the spec of a field -> use penstock\.Field\(dtype, shape\)"):
        ps.range(3).map(lambda x: x, spec=3)
    with refused("not a dtype"):
        ps.range(3).map(lambda x: x, spec=ps.Field("float128"))


def test_a_declared_spec_is_checked():
    with pytest.raises(ps.SampleError, match="f64.*f32|f32.*f64"):
        list(ps.Loader(ps.range(3).map(lambda x: float(x), spec=ps.Field("float32")).batch(3)))


def test_a_function_of_flat_map_must_return_a_dataset():
    with pytest.raises(ps.SampleError, match="must return a Dataset"):
        list(ps.range(3).flat_map(lambda x: [x, x]))


def test_sample_out_of_range():
    with pytest.raises((ps.ConfigError, ps.SampleError, IndexError)):
        ps.range(3).sample(3)
    with pytest.raises(IndexError):
        ps.range(3).sample(-1)
