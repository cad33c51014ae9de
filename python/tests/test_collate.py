"""collate_fn: a batch computed from a list of samples, in threads and in worker processes."""

import os

import numpy as np
import pytest
from conftest import rows_of

import penstock as ps


def padded(samples):
    """The usual one: sequences of different lengths, padded to the longest of the batch."""
    longest = max(len(sample["tokens"]) for sample in samples)
    tokens = np.zeros((len(samples), longest), np.int64)
    for row, sample in zip(tokens, samples):
        row[:len(sample["tokens"])] = sample["tokens"]
    return {"tokens": tokens, "length": np.array([len(s["tokens"]) for s in samples], np.int32)}


def sentences(count=40):
    return ps.from_index(count, lambda i: {"tokens": np.arange(i % 7 + 1), "id": i})


OPEN = {"tokens": ps.Field("int64", (None,)), "length": ps.Field("int32")}
PLACES = [{}, {"workers": 2}]


@pytest.mark.parametrize("place", PLACES)
def test_it_receives_the_samples_and_returns_the_batch(place):
    def collate(samples):
        assert isinstance(samples, list) and isinstance(samples[0], dict)
        return np.stack([sample["x"] for sample in samples]), np.array([s["y"] for s in samples])

    data = ps.from_tensor_slices({"x": np.arange(60.0).reshape(20, 3), "y": np.arange(20)})
    loader = ps.Loader(data.shuffle(seed=1).batch(6, collate_fn=collate, **place))
    assert [len(batch) for batch in loader] == [6, 6, 6, 2]
    for batch in loader:
        x, y = batch
        assert x.shape == (len(batch), 3) and (x[:, 0] == 3.0 * y).all()
        assert (y == batch.sample_id).all()


@pytest.mark.parametrize("place", PLACES)
def test_sizes_may_differ_from_sample_to_sample_and_from_batch_to_batch(place):
    loader = ps.Loader(sentences().batch(3, collate_fn=padded, spec=OPEN, **place))
    widths = set()
    for batch in loader:
        tokens, lengths = batch["tokens"], batch["length"]
        assert tokens.shape == (len(batch), lengths.max())
        assert lengths.tolist() == [int(i) % 7 + 1 for i in batch.sample_id]
        assert [row[:n].tolist() for row, n in zip(tokens, lengths)] == [
            list(range(n)) for n in lengths]
        widths.add(tokens.shape[1])
    assert len(widths) > 1


def test_bytes_are_the_same_in_threads_and_workers_and_over_replicas():
    def run(world=1, **place):
        data = sentences().shuffle(seed=2).batch(8, collate_fn=padded, spec=OPEN, **place)
        steps = zip(*[ps.Loader(data, world=world, rank=rank) for rank in range(world)])
        return [[row.tolist() for share in shares for row in share["tokens"]] for shares in steps]

    assert run() == run(workers=1) == run(workers=3) == run(world=3) == run(world=3, workers=1)


@pytest.mark.parametrize("place", PLACES)
def test_a_size_may_differ_from_that_of_the_first_batch(place):
    with_spec = ps.Loader(sentences().batch(3, collate_fn=padded, spec=OPEN, **place))
    without = ps.Loader(sentences().batch(3, collate_fn=padded, **place))
    for one, other in zip(with_spec, without, strict=True):
        for a, b in zip(one.numpy().values(), other.numpy().values(), strict=True):
            np.testing.assert_array_equal(a, b)


def test_no_batch_is_collated_twice_to_learn_its_shape():
    calls = []

    def collate(samples):
        calls.append(samples[0])
        return np.array(samples)

    loader = ps.Loader(ps.from_index(12, lambda i: i).batch(4, collate_fn=collate))
    assert rows_of(loader) == list(range(12)) and sorted(calls) == [0, 4, 8]
    assert rows_of(loader) == list(range(12)) and len(calls) == 6


def test_of_a_stream_and_after_filters():
    def words():
        for i in range(11):
            yield "a" * i

    loader = ps.Loader(ps.from_generator(words).filter(lambda word: len(word) % 2 == 0).batch(
        4, collate_fn=lambda samples: np.array([len(word) for word in samples])))
    assert [batch.numpy().tolist() for batch in loader] == [[0, 2, 4, 6], [8, 10]]


def test_torch_tensors_and_lists_are_accepted_as_arrays():
    loader = ps.Loader(ps.range(4).batch(2, collate_fn=lambda samples: [x * 2 for x in samples]))
    assert rows_of(loader) == [0, 2, 4, 6]


@pytest.mark.parametrize("place", PLACES)
def test_exceptions_and_wrong_results_are_reported(place):
    def fail(samples):
        return np.array(samples) if samples[0] < 4 else {}["no such word"]

    with pytest.raises(KeyError, match="no such word") as raised:
        list(ps.Loader(ps.range(8).batch(4, collate_fn=fail, **place)))
    assert "fail" in raised.value.__notes__[0] and "step 1" in raised.value.__notes__[0]
    for collate, words in ((lambda samples: np.array(samples)[1:], "one row per sample"),
                           (lambda samples: np.float32(1), "one row per sample"),
                           (lambda samples: "text", "one row per sample"),
                           (lambda samples: None, "return missing")):
        with pytest.raises(ps.SampleError, match=words):
            list(ps.Loader(ps.range(8).batch(4, collate_fn=collate, **place)))


def test_failed_samples_are_not_in_its_list():
    def fail(x):
        if x in (0, 5):
            raise ValueError(x)
        return x

    loader = ps.Loader(ps.range(8).map(fail).batch(4, collate_fn=np.array), on_error="skip")
    assert [batch.numpy().tolist() for batch in loader] == [[1, 2, 3], [4, 6, 7]]
    assert [entry["number"] for entry in loader.ledger] == [0, 5]


def test_a_step_can_be_replayed_and_a_run_resumed():
    def loader():
        return ps.Loader(ps.from_index(20, lambda i: i).shuffle(seed=1).batch(
            3, collate_fn=np.array))

    first = loader()
    batches = [batch.numpy().tolist() for batch in first]
    other = loader()
    assert other.step(2).numpy().tolist() == batches[2]
    loop = iter(other)
    next(loop), next(loop)
    later = loader()
    later.load_state_dict(other.state_dict())
    assert [batch.numpy().tolist() for batch in later] == batches[2:]


def test_workers_are_other_processes_and_debug_is_here():
    data = ps.range(8).batch(4, collate_fn=lambda samples: np.full(len(samples), os.getpid()),
                             workers=1)
    assert os.getpid() not in rows_of(ps.Loader(data))
    assert set(rows_of(ps.Loader(data, debug=True))) == {os.getpid()}


def test_wrong_arguments_raise_before_it_runs():
    with pytest.raises(ps.ConfigError, match="takes a function"):
        ps.range(4).batch(2, collate_fn=3)
    with pytest.raises(ps.ConfigError, match="workers= is for a collate_fn"):
        ps.range(4).batch(2, workers=2)
    with pytest.raises(ps.ConfigError, match="unknown before running.*declare spec="):
        ps.range(4).batch(2, collate_fn=np.array).map_batch(lambda x: x, spec=ps.Field("int64"))
    known = ps.range(4).batch(2, collate_fn=np.array, spec=ps.Field("int64"))
    assert rows_of(ps.Loader(known.map_batch(lambda x: x + 1))) == [1, 2, 3, 4]
