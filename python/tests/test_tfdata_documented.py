"""Behaviors that tf.data's public documentation states, through our API.

Each test quotes the documentation in short form. Most are the examples of the API reference.
"""

import functools
import threading

import numpy as np
import pytest
from article import Meeting
from documented import documents

import penstock as ps

says = documents("tf.data")


def elements(dataset):
    return [np.asarray(element).tolist() for element in dataset]


def batches(dataset):
    return [batch.numpy().tolist() for batch in ps.Loader(dataset)]


@says("from_tensor_slices: slices along the first dimension, removing it; all must have the same "
      "size in it")
def test_from_tensor_slices():
    assert elements(ps.from_tensor_slices([1, 2, 3])) == [1, 2, 3]
    assert elements(ps.from_tensor_slices([[1, 2], [3, 4]])) == [[1, 2], [3, 4]]
    with pytest.raises(ps.ConfigError):
        ps.from_tensor_slices((np.arange(2), np.arange(3)))


@says("slicing a tuple of 1D tensors produces tuple elements containing scalars")
def test_slices_of_a_tuple():
    assert list(ps.from_tensor_slices(([1, 2], [3, 4], [5, 6]))) == [(1, 3, 5), (2, 4, 6)]


@says("dictionary structure is also preserved")
def test_slices_of_a_dict():
    assert list(ps.from_tensor_slices({"a": [1, 2], "b": [3, 4]})) == [{"a": 1, "b": 3},
                                                                       {"a": 2, "b": 4}]


@says("from_tensors: creates a dataset with a single element")
def test_from_tensors():
    assert elements(ps.from_tensors([1, 2, 3])) == [[1, 2, 3]]


@says("range(5), range(2, 5), range(1, 5, 2), range(5, 1, -2): as Python's range")
def test_range():
    assert elements(ps.range(5)) == [0, 1, 2, 3, 4]
    assert elements(ps.range(2, 5)) == [2, 3, 4]
    assert elements(ps.range(1, 5, 2)) == [1, 3]
    assert elements(ps.range(5, 1, -2)) == [5, 3]
    assert elements(ps.range(5, 1)) == []


@says("from_generator: takes a callable that returns an object supporting iter(); it is called "
      "anew for each iteration")
def test_from_generator():
    def generate():
        for i in range(10):
            yield 2 * i

    dataset = ps.from_generator(generate)
    assert elements(dataset.take(3)) == [0, 2, 4]
    assert elements(dataset.take(3)) == [0, 2, 4]


@says("from_generator: values are converted to the dtypes of output_signature",
      differs="spec= is checked, nothing is converted: 1.0 is not float32, np.float32(1) is")
def test_output_signature():
    dataset = ps.from_generator(lambda: iter([1.0, 2.0]), spec=ps.Field("float32"))
    with pytest.raises(ps.SampleError, match="f32"):
        elements(dataset)
    good = ps.from_generator(lambda: iter([np.float32(1)]), spec=ps.Field("float32"))
    assert good.element_spec == ps.Field("float32")


@says("element_spec: the type specification of an element")
def test_element_spec():
    assert ps.from_tensor_slices([1, 2, 3]).element_spec == ps.Field("int64", ())


@says("map(lambda x: x + 1)")
def test_map():
    assert elements(ps.range(1, 6).map(lambda x: x + 1)) == [2, 3, 4, 5, 6]


@says("map: a tuple element is passed as separate arguments")
def test_map_of_tuples():
    dataset = ps.from_tensor_slices(([1, 3], [2, 4])).map(lambda a, b: a * 10 + b)
    assert elements(dataset) == [12, 34]


@says("map: a nested dictionary is passed as one argument")
def test_map_of_dicts():
    dataset = ps.from_tensor_slices({"a": [1, 2], "b": [3, 4]}).map(lambda d: d["a"] + d["b"])
    assert elements(dataset) == [4, 6]


@says("map: the returned structure determines that of the elements; several values make a tuple")
def test_map_returns_structures():
    assert list(ps.range(2).map(lambda x: (x, {"y": x * 2}))) == [(0, {"y": 0}), (1, {"y": 2})]


@says("map: the function is traced; Python side effects happen once",
      differs="runs for every sample, so prints and counts in it are real")
def test_map_runs_for_every_sample():
    calls = []
    elements(ps.range(5).map(lambda x: calls.append(int(x)) or x))
    assert sorted(calls) == [0, 1, 2, 3, 4]


@says("map(num_parallel_calls=AUTOTUNE) runs in parallel; order is kept by default",
      differs="always parallel and in order; Loader(threads=n) sets a limit")
def test_map_is_parallel_and_in_order():
    meeting = Meeting()

    def meet(x):
        with meeting:  # two calls at once
            return x * 2

    loader = ps.Loader(ps.range(40).map(meet, spec=ps.Field("int64")).batch(4), threads=2)
    assert [row for batch in loader for row in batch.numpy().tolist()] == list(range(0, 80, 2))
    assert meeting.met.is_set()


@says("filter(lambda x: x < 3)")
def test_filter():
    assert elements(ps.from_tensor_slices([1, 2, 3]).filter(lambda x: x < 3)) == [1, 2]


@says("flat_map: maps and flattens the result, keeping the order")
def test_flat_map():
    nested = ps.from_tensor_slices([[1, 2, 3], [4, 5, 6]]).flat_map(ps.from_tensor_slices)
    assert elements(nested) == [1, 2, 3, 4, 5, 6]


@says("interleave(cycle_length=2, block_length=4): the example of the reference")
def test_interleave():
    dataset = ps.range(1, 6).interleave(lambda x: ps.from_tensors(x).repeat(6), cycle=2, block=4)
    assert elements(dataset) == [1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 3, 3,
                                 4, 4, 5, 5, 5, 5, 5, 5]


@says("shuffle(buffer_size, seed, reshuffle_each_iteration)",
      differs="no buffer: the whole dataset is permuted in O(1) memory; window=n on streams")
def test_shuffle_is_complete():
    first = elements(ps.range(1000).shuffle(seed=1).take(10))
    assert max(first) > 100  # a buffer of 10 could not reach that far


@says("reshuffle_each_iteration=True: a different order in every epoch")
def test_reshuffle_each_iteration():
    dataset = ps.range(20).shuffle(seed=1)
    assert elements(dataset) != elements(dataset)


@says("reshuffle_each_iteration=False: the same order in every epoch")
def test_no_reshuffle():
    dataset = ps.range(20).shuffle(seed=1, reshuffle_each_epoch=False)
    assert elements(dataset) == elements(dataset)


@says("repeat after shuffle: every epoch's elements are seen before the next epoch's")
def test_repeat_after_shuffle_keeps_epochs_apart():
    rows = elements(ps.range(10).shuffle(seed=1).repeat(3))
    assert all(sorted(rows[i:i + 10]) == list(range(10)) for i in (0, 10, 20))
    assert rows[:10] != rows[10:20]


@says("repeat(3)")
def test_repeat():
    assert elements(ps.from_tensor_slices([1, 2, 3]).repeat(3)) == [1, 2, 3] * 3


@says("repeat(None or -1): indefinitely; cardinality is INFINITE_CARDINALITY (-1)")
def test_repeat_for_ever():
    for dataset in (ps.range(42).repeat(), ps.range(42).repeat(None), ps.range(42).repeat(-1)):
        assert dataset.cardinality() == ps.INFINITE == -1
        assert elements(dataset.take(43))[-1] == 0


@says("cardinality of filter is UNKNOWN_CARDINALITY (-2)")
def test_unknown_cardinality():
    assert ps.range(42).filter(lambda x: True).cardinality() == ps.UNKNOWN == -2


@says("len(dataset); TypeError when it is infinite or unknown")
def test_len():
    assert len(ps.range(42)) == 42
    with pytest.raises(TypeError):
        len(ps.range(42).repeat())


@says("take(3)")
def test_take():
    assert elements(ps.range(10).take(3)) == [0, 1, 2]


@says("take(-1): all elements")
def test_take_all():
    assert elements(ps.range(4).take(-1)) == [0, 1, 2, 3]


@says("skip(7); more than there are: an empty dataset")
def test_skip():
    assert elements(ps.range(10).skip(7)) == [7, 8, 9]
    assert elements(ps.range(10).skip(20)) == []


@says("shard(num_shards=3, index=0): elements 0, 3, 6, 9; deterministic")
def test_shard():
    assert elements(ps.range(10).shard(3, 0)) == [0, 3, 6, 9]


@says("shard: index must be less than num_shards")
def test_shard_out_of_range():
    with pytest.raises(ValueError):
        ps.range(10).shard(3, 3)


@says("concatenate: [1, 2, 3, 4, 5, 6, 7]")
def test_concatenate():
    assert elements(ps.range(1, 4).concatenate(ps.range(4, 8))) == [1, 2, 3, 4, 5, 6, 7]


@says("concatenate: datasets of different element types are refused")
def test_concatenate_other_types():
    with pytest.raises(ValueError):
        ps.range(3).concatenate(ps.from_tensor_slices([1.5]))


@says("zip: tuples in the given order; as long as the smallest")
def test_zip():
    assert list(ps.zip(ps.range(1, 4), ps.range(4, 9))) == [(1, 4), (2, 5), (3, 6)]
    assert list(ps.zip((ps.range(1, 3), ps.range(4, 6)))) == [(1, 4), (2, 5)]


@says("enumerate(start=5)", missing="a start: enumerate() counts from 0; map adds to it")
def test_enumerate_from_a_start():
    dataset = ps.from_tensor_slices([1, 2, 3]).enumerate().map(lambda i, x: (i + 5, x))
    assert list(dataset) == [(5, 1), (6, 2), (7, 3)]


@says("batch(3): [0 1 2] [3 4 5] [6 7]")
def test_batch():
    assert batches(ps.range(8).batch(3)) == [[0, 1, 2], [3, 4, 5], [6, 7]]


@says("batch(3, drop_remainder=True)")
def test_batch_drop_remainder():
    assert batches(ps.range(8).batch(3, drop_remainder=True)) == [[0, 1, 2], [3, 4, 5]]


@says("batch: elements of different shapes are an error",
      differs="the field is ragged: its rows, and where each begins")
def test_batch_of_other_shapes():
    (batch,) = ps.Loader(ps.from_generator([np.zeros(1), np.zeros(2)]).batch(2))
    assert batch.numpy().lengths.tolist() == [1, 2]


@says("padded_batch: pads to the longest element of the batch")
def test_padded_batch():
    dataset = ps.range(1, 5).map(lambda x: np.full(x, x)).padded_batch(4)
    assert batches(dataset) == [[[1, 0, 0, 0], [2, 2, 0, 0], [3, 3, 3, 0], [4, 4, 4, 4]]]


@says("batch of batches: each batch gets another dimension",
      differs="refused, since it is almost always a mistake; the error names unbatch")
def test_batch_twice():
    with pytest.raises(ps.ConfigError, match="already batches"):
        ps.range(8).batch(2).batch(2)


@says("unbatch: the inverse of batch")
def test_unbatch():
    assert elements(ps.range(5).batch(2).unbatch()) == [0, 1, 2, 3, 4]


@says("cache(): the first iteration computes, later ones read what was kept")
def test_cache():
    calls = []
    dataset = ps.range(5).map(lambda x: calls.append(1) or x ** 2).cache()
    assert elements(dataset) == elements(dataset) == [0, 1, 4, 9, 16]
    assert len(calls) == 5


@says("cache(): must be read completely before it is of use",
      differs="what was read is kept, even if the loop stops early")
def test_cache_read_in_part():
    calls = []
    dataset = ps.range(50).map(lambda x: calls.append(int(x)) or x).cache()
    assert elements(dataset.take(8)) == elements(dataset.take(8)) == list(range(8))
    assert sorted(calls) == list(range(8))


@says("cache(filename): keeps elements in a file",
      differs="a folder, which other processes may use at the same time")
def test_cache_in_a_folder(tmp_path):
    calls = []
    for _ in range(2):
        dataset = ps.range(5).map(lambda x: calls.append(1) or x ** 2, name="square")
        assert elements(dataset.cache(tmp_path / "cache")) == [0, 1, 4, 9, 16]
    assert len(calls) == 5


@says("save(path) and load(path): the elements with their structure")
def test_save_and_load(tmp_path):
    ps.range(3).map(lambda x: {"x": x, "text": "ab"}).save(tmp_path / "saved")
    loaded = ps.load(tmp_path / "saved")
    assert [(int(each["x"]), each["text"]) for each in loaded] == [(0, "ab"), (1, "ab"), (2, "ab")]


@says("snapshot(path): the first use writes, later ones read")
def test_snapshot(tmp_path):
    calls = []
    for _ in range(2):
        dataset = ps.range(5).map(lambda x: calls.append(1) or x, name="x").snapshot(tmp_path / "s")
        assert elements(dataset) == [0, 1, 2, 3, 4]
    assert len(calls) == 5


@says("prefetch(2): prepares later elements while the current one is processed",
      differs="the loader prefetches by itself; prefetch asks for more")
def test_prefetch():
    ahead = threading.Event()

    def watch(x):
        if x == 79:
            ahead.set()
        return x

    def decided(dataset):
        loader = ps.Loader(dataset, threads=1)
        loop = iter(loader)
        next(loop)
        return loader.report()["decisions"][0], loop

    plain = ps.range(500).map(watch, spec=ps.Field("int64")).batch(2)
    assert decided(plain)[0].startswith("2 steps ahead")
    wished, loop = decided(plain.prefetch(40))
    assert wished.startswith("40 steps ahead")
    assert ahead.wait(20)  # step 39 is computed although only step 0 was requested
    assert next(loop).numpy().tolist() == [2, 3]


@says("apply(transformation_func)")
def test_apply():
    assert elements(ps.range(10).apply(lambda ds: ds.filter(lambda x: x < 3))) == [0, 1, 2]


@says("take_while(lambda x: x < 5)")
def test_take_while():
    assert elements(ps.range(10).take_while(lambda x: x < 5)) == [0, 1, 2, 3, 4]


@says("datasets are Python iterables")
def test_iterable():
    assert list(ps.range(3)) == [0, 1, 2] == list(iter(ps.range(3)))


@says("as_numpy_iterator: yields NumPy values", instead="`for x in dataset`")
def test_iterable_of_numpy():
    (first, *_) = ps.from_tensor_slices(np.arange(3, dtype=np.float32))
    assert isinstance(first, np.float32)
    with pytest.raises(AttributeError, match="for x in dataset"):
        ps.range(3).as_numpy_iterator()


@says("get_single_element", instead="`(x,) = dataset`")
def test_single_element():
    (x,) = ps.from_tensors(7)
    assert x == 7


@says("rebatch(n)", differs="a list of sizes is missing")
def test_rebatch():
    assert batches(ps.range(6).batch(2).rebatch(3)) == [[0, 1, 2], [3, 4, 5]]
    assert batches(ps.range(5).batch(2).rebatch(3, drop_remainder=True)) == [[0, 1, 2]]


@says("scan(initial_state, scan_func)")
def test_scan():
    assert elements(ps.range(5).scan(0, lambda state, x: (state + x, state + x))) == [
        0, 1, 3, 6, 10]


@says("reduce(0, fn)", instead="Python: `functools.reduce(fn, dataset, 0)`")
def test_reduce_in_python():
    assert functools.reduce(lambda a, b: a + b, ps.range(5), 0) == 10


@says("counter(start, step)", instead="`ps.range(start, 2**62, step)`")
def test_counter():
    assert elements(ps.range(5, 2**62, 3).take(3)) == [5, 8, 11]


@says("random(seed): a dataset of random numbers",
      instead="`ps.range(n).map(lambda i, rng: rng.random(), seed=1)`")
def test_random():
    dataset = ps.range(4).map(lambda i, rng: rng.random(), seed=1)
    assert len(set(elements(dataset))) == 4


@says("with_options(options)", instead="`with_options(name=, threads=, lookahead_bytes=)`, and "
                                       "the arguments of `ps.Loader`")
def test_with_options():
    assert batches(ps.range(4).batch(2).with_options(threads=1)) == [[0, 1], [2, 3]]


@says("list_files(pattern, shuffle=True): in random order by default",
      differs="sorted; use shuffle() for random order")
def test_list_files(tmp_path):
    for name in "bca":
        (tmp_path / name).touch()
    assert [path[-1] for path in ps.list_files(tmp_path / "*")] == ["a", "b", "c"]


@says("transformations return a new dataset and leave the old one")
def test_datasets_are_values():
    dataset = ps.range(3)
    dataset.map(lambda x: x * 100)
    assert elements(dataset) == [0, 1, 2]


SEQUENCES = [[0], [1, 2, 3, 4], [5, 6, 7], [7, 8, 9, 10, 11], [13, 14, 15, 16, 19, 20], [21, 22]]


@says("bucket_by_sequence_length: batches of elements of similar lengths, padded with 0",
      differs="on indexed data the buckets are planned: only the last step of each is short")
def test_bucket_by_sequence_length():
    rows = [np.array(each, np.int64) for each in SEQUENCES]
    stream = ps.from_generator(lambda: iter(rows), spec=ps.Field("int64", (None,)))
    buckets = stream.bucket_by_sequence_length(len, [3, 5], [2, 2, 2])
    assert [batch.numpy().tolist() for batch in ps.Loader(buckets)] == [
        [[1, 2, 3, 4], [5, 6, 7, 0]], [[7, 8, 9, 10, 11, 0], [13, 14, 15, 16, 19, 20]],
        [[0, 0], [21, 22]]]


@says("ragged_batch: elements of different sizes become a ragged batch")
def test_ragged_batch():
    rows = ps.range(6).map(lambda x: np.arange(x), spec=ps.Field("int64", (None,)))
    batches = [batch.numpy() for batch in ps.Loader(rows.ragged_batch(2))]
    assert [batch.tolist() for batch in batches] == [
        [[], [0]], [[0, 1], [0, 1, 2]], [[0, 1, 2, 3], [0, 1, 2, 3, 4]]]


@says("window(3): windows of elements, as nested datasets",
      differs="a window is one sample with a new first dimension; a last one that is not full is "
              "left out, unless drop_remainder=False")
def test_window():
    assert elements(ps.range(7).window(3)) == [[0, 1, 2], [3, 4, 5]]
    assert elements(ps.range(7).window(3, 1, 2)) == [[0, 2, 4], [1, 3, 5], [2, 4, 6]]
    assert [x.tolist() for x in ps.range(7).window(3, drop_remainder=False)] == [
        [0, 1, 2], [3, 4, 5], [6]]


# One row for each. The messages are in penstock.foreign.
MISSING_VERBS = {
    "sparse_batch": "`batch(n)`: fields whose rows differ in size are ragged",
    "group_by_window": "a generator",
    "unique": "`numpy.unique` on the array, or `filter`",
    "rejection_resample": "`filter(lambda x, rng: ...)`",
    "fingerprint": "nothing; C++ has `digests()`",
    "options": "`with_options(...)`, arguments of `ps.Loader`",
    "prefetch_to_device": "`batch.torch()` and `.to(device)`",
}
MISSING_NAMES = {
    "sample_from_datasets": "a generator that draws from several; `interleave`, `zip`",
    "choose_from_datasets": "a generator that draws from several; `interleave`, `zip`",
    "TFRecordDataset": "your own reader in `from_index` or `from_generator`",
    "TextLineDataset": "`from_text(paths)`",
    "CsvDataset": "`from_arrow(pyarrow.csv.read_csv(path))`",
    "FixedLengthRecordDataset": "`from_tensor_slices(numpy.memmap(...))` reads such files in place",
}


def test_verbs_that_are_not_there_say_what_to_write():
    for verb in MISSING_VERBS:
        assert not hasattr(ps.Dataset, verb) and not hasattr(ps.range(3), verb)
        with pytest.raises(AttributeError, match=f"'{verb}' -> ."):
            getattr(ps.range(3), verb)
    for name in MISSING_NAMES:
        with pytest.raises(AttributeError, match=f"'{name}' -> ."):
            getattr(ps, name)


for _verb, _instead in {**MISSING_VERBS, **MISSING_NAMES}.items():
    says(_verb, missing=_instead)(test_verbs_that_are_not_there_say_what_to_write)


@says("iterators can be checkpointed; with shuffle the buffer is saved and may be large",
      differs="for indexed data a state is under 1 KB and loads with any batch size; for a "
              "stream it is up to 64 KB, and a plain generator is read again from its start")
def test_state_is_small():
    import json
    loader = ps.Loader(ps.range(10**9).shuffle(seed=1).batch(64))
    loop = iter(loader)
    next(loop)
    assert len(json.dumps(loader.state_dict())) < 1024


@says("ignore_errors: drops elements that raise, in silence",
      differs='Loader(on_error="skip") lists them in a ledger, and has a limit')
def test_skipped_samples_are_listed():
    loader = ps.Loader(ps.from_tensor_slices([1, 2, 0, 4]).map(lambda x: 4 // int(x)).batch(4),
                       on_error="skip")
    assert [batch.numpy().tolist() for batch in loader] == [[4, 2, 1]]
    assert [entry["number"] for entry in loader.ledger] == [2]


@says("experimental_distribute_dataset: global batches are split evenly among replicas")
def test_distribute():
    strategy = ps.MirroredStrategy(["cpu:0", "cpu:1"])
    feed = strategy.distribute(ps.range(8).batch(4))
    assert [[share.rows for share in step.shares] for step in feed] == [[2, 2], [2, 2]]


@says("distribute_datasets_from_function: batch per replica, from the InputContext")
def test_distribute_from_function():
    strategy = ps.MirroredStrategy(["cpu:0", "cpu:1"])
    feed = strategy.distribute_from_function(
        lambda context: ps.range(8).batch(context.per_replica_batch(4)))
    assert [[share.rows for share in step.shares] for step in feed] == [[2, 2], [2, 2]]


@says("strategy.run; strategy.reduce(SUM or MEAN, per_replica, axis=None)",
      differs="the mean divides by the number of samples, not of replicas")
def test_reduce():
    strategy = ps.MirroredStrategy(["cpu:0", "cpu:1"])
    step = strategy.distribute(ps.range(3).batch(3)).next()
    means = strategy.run(lambda share: share.numpy().mean(), step)
    assert strategy.reduce("mean", means) == 1.0
