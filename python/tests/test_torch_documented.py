"""Behaviors that torch.utils.data's public documentation states, through our API."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from documented import documents

import penstock as ps

says = documents("torch DataLoader")
CORES = len(os.sched_getaffinity(0))


def rows(loader):
    return [row for batch in loader for row in batch.numpy().tolist()]


class Squares:
    """A map-style dataset, as torch wants it."""

    def __len__(self):
        return 10

    def __getitem__(self, index):
        return index * index


def no_name(name, remedy=" -> ."):
    with pytest.raises(AttributeError, match=f"'{name}'{remedy}"):
        getattr(ps, name)


def of(dataset):
    return ps.from_index(len(dataset), dataset.__getitem__)


@says("map-style datasets implement __getitem__ and __len__")
def test_map_style():
    assert rows(ps.Loader(of(Squares()).batch(4))) == [i * i for i in range(10)]


@says("iterable-style datasets implement __iter__; it is called anew each epoch")
def test_iterable_style():
    class Stream:
        def __iter__(self):
            return iter(range(5))

    loader = ps.Loader(ps.from_generator(Stream()).batch(2))
    assert [rows(loader), rows(loader)] == [[0, 1, 2, 3, 4]] * 2


@says("IterableDataset with several workers: each has a copy; avoid duplicates by get_worker_info",
      differs="one stream, read once: nothing is duplicated with any number of threads")
def test_streams_are_not_duplicated():
    assert rows(ps.Loader(ps.from_generator(lambda: iter(range(50))).batch(4), threads=2)) == list(
        range(50))


@says("batch_size (default 1)", differs="batch is a verb and has no default")
def test_batch_size():
    assert [len(batch) for batch in ps.Loader(of(Squares()).batch(3))] == [3, 3, 3, 1]


@says("drop_last=True drops the last incomplete batch")
def test_drop_last():
    assert [len(batch) for batch in ps.Loader(of(Squares()).batch(3), tail="drop")] == [3, 3, 3]


@says("shuffle=True: reshuffled at every epoch")
def test_shuffle():
    loader = ps.Loader(ps.range(30).shuffle().batch(30))
    first, second = rows(loader), rows(loader)
    assert sorted(first) == sorted(second) == list(range(30)) and first != second


@says("generator: the seed of the random order; without it, a different order each run",
      differs="without a seed runs have the order of seed 0; seed=\"random\" draws one")
def test_seed():
    assert rows(ps.Loader(ps.range(30).shuffle().batch(30))) == rows(
        ps.Loader(ps.range(30).shuffle(seed=0).batch(30)))
    drawn = ps.Loader(ps.range(30).shuffle(seed="random").batch(30))
    other = ps.Loader(ps.range(30).shuffle(seed="random").batch(30))
    assert rows(drawn) != rows(other)


@says("SequentialSampler: always in the same order")
def test_sequential():
    loader = ps.Loader(ps.range(7).batch(3))
    assert rows(loader) == rows(loader) == list(range(7))


@says("RandomSampler(replacement=False): every sample once, in random order",
      instead="`shuffle()`")
def test_random_sampler():
    assert sorted(rows(ps.Loader(ps.range(20).shuffle(seed=1).batch(4)))) == list(range(20))


@says("RandomSampler(replacement=True): samples are drawn with replacement",
      missing="for data that can be indexed: `ps.range(n).map(lambda i, rng: "
              "data[rng.integers(len(data))])`")
def test_with_replacement():
    data = np.arange(5) * 10
    drawn = rows(ps.Loader(ps.range(50).map(lambda i, rng: data[rng.integers(5)]).batch(10)))
    assert len(drawn) == 50 and set(drawn) <= set(data.tolist())
    no_name("RandomSampler")


@says("WeightedRandomSampler: samples are drawn with given probabilities",
      missing="for data that can be indexed: `ps.range(n).map(lambda i, rng: "
              "data[rng.choice(len(data), p=weights)])`")
def test_weighted():
    data, weights = np.arange(3) * 10, [0.5, 0.0, 0.5]
    drawn = rows(ps.Loader(ps.range(50).map(lambda i, rng: data[rng.choice(3, p=weights)])
                           .batch(10)))
    assert set(drawn) == {0, 20}
    no_name("WeightedRandomSampler")


@says("SubsetRandomSampler: given indices, in random order", missing="for data that can be "
      "indexed: `ps.from_tensor_slices(indices).shuffle().map(data.__getitem__)`")
def test_subset_random():
    indices = np.array([3, 1, 4])
    dataset = ps.from_tensor_slices(indices).shuffle(seed=1).map(Squares().__getitem__)
    assert sorted(rows(ps.Loader(dataset.batch(2)))) == [1, 9, 16]


@says("a sampler of one's own: any order of indices", missing="for data that can be indexed: "
      "`ps.from_tensor_slices(indices).map(data.__getitem__)`")
def test_an_order_of_ones_own():
    order = [3, 1, 4, 1, 5]
    dataset = ps.from_tensor_slices(np.array(order)).map(Squares().__getitem__)
    assert rows(ps.Loader(dataset.batch(5))) == [9, 1, 16, 1, 25]
    with pytest.raises(TypeError, match="there are no samplers yet"):
        ps.Loader(dataset.batch(5), sampler=order)


@says("BatchSampler, batch_sampler=: lists of indices",
      instead="`ps.torch.BatchSampler` for a DataLoader; `from_sequence` for batches by number")
def test_batch_sampler():
    lists = [[3, 1], [4]]
    dataset = ps.from_sequence([np.array([i * i for i in each]) for each in lists])
    assert [batch.numpy().tolist() for batch in ps.Loader(dataset)] == [[9, 1], [16]]


@says("Subset: the samples at given indices", missing="for data that can be indexed: "
      "`ps.from_tensor_slices(indices).map(data.__getitem__)`")
def test_subset():
    dataset = ps.from_tensor_slices(np.array([2, 5])).map(Squares().__getitem__)
    assert rows(ps.Loader(dataset.batch(2))) == [4, 25]
    no_name("Subset")


@says("random_split: parts that share no sample", instead="`split(0.7, seed=3)`: two parts")
def test_random_split():
    parts = [rows(ps.Loader(part.batch(10))) for part in ps.range(100).split(0.7, seed=3)]
    assert sorted(sum(parts, [])) == list(range(100)) and len(parts[0]) > len(parts[1]) > 0
    again = [rows(ps.Loader(part.batch(10))) for part in ps.range(100).split(0.7, seed=3)]
    assert parts == again


@says("StackDataset: tuples of the samples of several datasets", instead="`ps.zip(a, b)`")
def test_stack():
    assert list(ps.zip(ps.range(2), ps.range(5, 7))) == [(0, 5), (1, 6)]


@says("ChainDataset: iterable datasets one after the other", instead="`a.concatenate(b)`")
def test_chain():
    streams = [ps.from_generator(lambda n=n: iter(range(n))) for n in (2, 3)]
    assert rows(ps.Loader(streams[0].concatenate(streams[1]).batch(2))) == [0, 1, 0, 1, 2]


@says("get_worker_info: which worker a dataset runs in",
      differs="there are no copies of a dataset to distinguish")
def test_no_worker_info():
    no_name("get_worker_info", remedy="")


@says("ConcatDataset")
def test_concat():
    assert rows(ps.Loader(ps.range(2).concatenate(ps.range(5, 7)).batch(4))) == [0, 1, 5, 6]


@says("default_collate: NumPy arrays are stacked along a new first dimension")
def test_collate_stacks():
    batch = next(iter(ps.Loader(ps.from_index(4, lambda i: np.full((2, 3), i)).batch(4))))
    assert batch.numpy().shape == (4, 2, 3)


@says("default_collate: keeps dicts: the same keys, batched values")
def test_collate_dicts():
    batch = next(iter(ps.Loader(ps.from_index(2, lambda i: {"A": i, "B": i * 10}).batch(2))))
    assert {key: batch[key].tolist() for key in batch} == {"A": [0, 1], "B": [0, 10]}


@says("default_collate: keeps tuples")
def test_collate_tuples():
    x, y = next(iter(ps.Loader(ps.from_index(2, lambda i: (i, -i)).batch(2))))
    assert (x.tolist(), y.tolist()) == ([0, 1], [0, -1])


@says("default_collate: int becomes int64, float becomes float64")
def test_collate_numbers():
    batch = next(iter(ps.Loader(ps.from_index(2, lambda i: (i, i / 2)).batch(2))))
    assert [part.dtype for part in batch] == [np.int64, np.float64]


@says("default_collate: str (unchanged): a list of str")
def test_collate_text():
    batch = next(iter(ps.Loader(ps.from_index(2, lambda i: {"s": "ab"[i]}).batch(2))))
    assert batch["s"] == ["a", "b"]


@says("default_collate: other types raise TypeError naming the type",
      differs="a SampleError that also names sample, op and step")
def test_collate_other_types():
    with pytest.raises(ps.SampleError, match="object"):
        rows(ps.Loader(ps.from_index(2, lambda i: object()).batch(2)))


@says("collate_fn: merges a list of samples to a mini-batch; e.g. pads to the longest of the batch")
def test_collate_fn():
    def pad(samples):
        padded = np.zeros((len(samples), max(map(len, samples))), np.int64)
        for row, sample in zip(padded, samples):
            row[:len(sample)] = sample
        return padded

    dataset = ps.from_index(4, lambda i: np.arange(1, i + 2))
    loader = ps.Loader(dataset.batch(2, collate_fn=pad, spec=ps.Field("int64", (None,))))
    assert [batch.numpy().tolist() for batch in loader] == [
        [[1, 0], [1, 2]], [[1, 2, 3, 0], [1, 2, 3, 4]]]


@says("num_workers=0: data is loaded in the main process")
def test_no_workers():
    seen = set()
    dataset = ps.range(4).map(lambda x: seen.add(threading.get_ident()) or x).batch(2)
    rows(ps.Loader(dataset, threads=0))
    assert seen == {threading.get_ident()}


@says("num_workers=n: how many subprocesses to use for data loading",
      differs="set per function, map(fn, workers=n), for code that holds the GIL; all other work "
              "runs in threads of this process")
def test_workers(tmp_path):
    def meet(x):
        """Returns when two processes are in it."""
        (tmp_path / str(os.getpid())).touch()
        deadline = time.monotonic() + 30
        while len(os.listdir(tmp_path)) < 2 and time.monotonic() < deadline:
            pass
        return os.getpid()

    seen = set(rows(ps.Loader(ps.range(40).map(meet, workers=2).batch(4))))
    assert os.getpid() not in seen and len(seen) == 2


@says("an argument that cannot be pickled cannot be sent to workers (spawn)",
      differs="the same, but raised when the dataset is built, naming the object and the remedy")
def test_what_cannot_be_pickled():
    lock = threading.Lock()
    with pytest.raises(ps.ConfigError, match='"lock".*threads'):
        ps.range(4).map(lambda x: lock and x, workers=1)


@says("a worker that is killed: RuntimeError: DataLoader worker (pid) is killed by signal",
      differs="it is restarted and its block recomputed; three deaths raise an error")
def test_a_killed_worker(tmp_path):
    def die_once(x):
        if x == 5 and not (tmp_path / "died").exists():
            (tmp_path / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return x

    assert rows(ps.Loader(ps.range(8).map(die_once, workers=1).batch(4))) == list(range(8))


@says("worker_init_fn; worker seeds: base_seed + worker_id; NumPy's global seed repeats in workers",
      differs="random numbers are keyed by sample: nothing to set up per worker or thread")
def test_keyed_numbers():
    def draw(x):
        return ps.rng().random()

    first = rows(ps.Loader(ps.range(20).map(draw).batch(5), threads=1))
    assert first == rows(ps.Loader(ps.range(20).map(draw).batch(5), threads=2))


@says("an exception in a worker is re-raised in the main process, as its type with a message")
def test_exceptions_keep_their_type():
    with pytest.raises(ZeroDivisionError):
        rows(ps.Loader(ps.range(4).map(lambda x: 1 // int(x)).batch(2)))


@says("prefetch_factor: batches loaded in advance by each worker",
      differs="tuned by measurement, within a byte budget")
def test_lookahead():
    ahead, made, most = threading.Event(), [], 0

    def megabyte(x):
        made.append(int(x))
        if x == 4:
            ahead.set()
        return np.zeros(1 << 17)

    dataset = ps.range(64).map(megabyte, spec=ps.Field("float64", (1 << 17,))).batch(1)
    for received, _ in enumerate(ps.Loader(dataset, lookahead_bytes=8 << 20), 1):
        assert ahead.wait(20)  # step 4 is computed although only step 0 was requested
        most = max(most, len(made) - received)
    assert most <= 8 + CORES  # batches of the budget, and one more for each thread


@says("persistent_workers=True keeps workers between epochs",
      differs="one pool of threads for the process, always")
def test_one_pool():
    threads = set()
    dataset = ps.range(64).map(lambda x: threads.add(threading.get_ident()) or x).batch(4)
    loaders = [ps.Loader(dataset) for _ in range(4 * CORES)]
    for loader in loaders:
        rows(loader)
    assert len(threads) <= CORES + 1  # the pool's, and the caller


@says("timeout: a batch that takes longer is an error")
def test_timeout():
    never = threading.Event()
    loader = ps.Loader(ps.range(2).map(lambda x: never.wait(5) or x).batch(2), stall_after=0.2,
                       stall_is_error=True)
    with pytest.raises(ps.Error, match="map"):
        rows(loader)


@says("len(dataloader) is the number of batches; of an IterableDataset an estimate",
      differs="for a stream it raises TypeError")
def test_len():
    assert len(ps.Loader(of(Squares()).batch(3))) == 4
    with pytest.raises(TypeError):
        len(ps.Loader(ps.from_generator(Squares().__len__).batch(1)))


@says("DistributedSampler: each rank sees its part; samples are added to make it even",
      differs='no sample is repeated: shares differ by one; tail="wrap" repeats some')
def test_shares():
    parts = [rows(ps.Loader(ps.range(10).batch(4), world=3, rank=r)) for r in range(3)]
    assert sorted(sum(parts, [])) == list(range(10))


@says("DistributedSampler.set_epoch must be called for another order each epoch",
      differs="epochs advance by themselves; set_epoch selects one")
def test_set_epoch():
    loader = ps.Loader(ps.range(20).shuffle().batch(20))
    epochs = [rows(loader) for _ in range(3)]
    assert len({tuple(each) for each in epochs}) == 3
    loader.set_epoch(1)
    assert rows(loader) == epochs[1]


@says("pin_memory", missing="pinned memory: `batch.torch()` and `.to(device)`")
def test_no_pinning():
    with pytest.raises(TypeError, match="no pinned memory yet"):
        ps.Loader(ps.range(4).batch(2), pin_memory=True)


@says("multiprocessing_context: fork, spawn or forkserver",
      differs="worker processes are always spawned: engine threads do not survive a fork")
def test_no_context():
    with pytest.raises(TypeError, match="always spawned"):
        ps.Loader(ps.range(4).batch(2), multiprocessing_context="fork")


@says("in_order=False: batches as they are ready",
      differs="always in order, so that runs and resumed runs are the same")
def test_always_in_order():
    with pytest.raises(TypeError, match="the order is the same with any number"):
        ps.Loader(ps.range(4).batch(2), in_order=False)


@says("after an error the iterator continues with the next batch",
      differs="next() retries the same step, for transient errors; on_error=\"skip\" leaves "
              "samples out and lists them")
def test_a_step_that_failed_is_tried_again():
    calls = []

    def once(x):
        calls.append(int(x))
        if x == 2 and calls.count(2) == 1:
            raise OSError("busy")
        return x

    loop = iter(ps.Loader(ps.range(6).map(once).batch(2), threads=0))
    assert next(loop).numpy().tolist() == [0, 1]
    with pytest.raises(OSError):
        next(loop)
    assert next(loop).numpy().tolist() == [2, 3]


@says("StatefulDataLoader (torchdata): state_dict() and load_state_dict()")
def test_stateful():
    loader = ps.Loader(ps.range(10).batch(2))
    loop = iter(loader)
    next(loop)
    other = ps.Loader(ps.range(10).batch(2))
    other.load_state_dict(loader.state_dict())
    assert rows(other) == list(range(2, 10))


@says("state_dict of a loader with workers loads only at the same num_workers",
      differs="loads with any number of threads, shares or batch size")
def test_elastic_state():
    loader = ps.Loader(ps.range(12).batch(4))
    next(iter(loader))
    other = ps.Loader(ps.range(12).batch(3), threads=1)
    other.load_state_dict(loader.state_dict())
    assert rows(other) == list(range(4, 12))


@says("iterating again while an iterator is open gives an independent iterator")
def test_independent_iterators():
    loader = ps.Loader(ps.range(4).batch(2))
    assert [(a.numpy().tolist(), b.numpy().tolist()) for a, b in zip(loader, loader)] == [
        ([0, 1], [0, 1]), ([2, 3], [2, 3])]


@says("TensorDataset: samples are rows along the first dimension of all tensors")
def test_tensor_dataset():
    x, y = np.arange(6).reshape(3, 2), np.arange(3)
    sample = ps.from_tensor_slices((x, y)).sample(1)
    assert sample[0].tolist() == [2, 3] and sample[1] == 1


@says("batch_size=None: automatic batching is off, samples come as they are")
def test_without_batching():
    assert [int(x) for x in of(Squares())] == [i * i for i in range(10)]
