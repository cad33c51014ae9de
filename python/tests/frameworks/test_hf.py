"""Rows of Hugging Face datasets and polars through Arrow, and tokenizers as functions."""

import os

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")

import numpy as np  # noqa: E402
import pytest  # noqa: E402

datasets = pytest.importorskip("datasets")
tokenizers = pytest.importorskip("tokenizers")

import polars  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.compute as pc  # noqa: E402

import penstock as ps  # noqa: E402
from tokenizers_for_tests import TEXTS, trained  # noqa: E402

IDS = ps.Field("int64", (None,))


# List columns


def arrow_column(dataset, name="tokens"):
    """A column as Arrow has it. `dataset.data` would ignore a select() or shuffle() before."""
    return dataset.with_format("arrow")[:][name]


def from_column(column):
    """The documented way, for a column without nulls: in place if it has one chunk."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return ps.from_ragged(column.values.to_numpy(), column.offsets.to_numpy())


def from_column_with_nulls(column):
    """For every column: a null becomes an empty row, whatever its offsets are."""
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
    return ps.from_ragged(pc.list_flatten(column).to_numpy(), np.cumsum([0, *lengths]))


def rows_of(dataset):
    return [row.tolist() for row in dataset]


def random_lists(seed, count=60):
    """Lists of distinct numbers, in order; some lists are empty."""
    lengths = np.random.default_rng(seed).integers(0, 9, count)
    cuts = np.cumsum(lengths)[:-1]
    return [part.tolist() for part in np.split(np.arange(lengths.sum()), cuts)]


def hugging_face(lists):
    features = datasets.Features({"tokens": datasets.List(datasets.Value("int32"))})
    return datasets.Dataset.from_dict({"tokens": lists}, features=features)


def whole(data, draw):
    return data


def in_chunks(data, draw):
    bounds = [0, *sorted(draw.integers(0, len(data), 3)), len(data)]
    parts = [data.select(range(*pair)) for pair in zip(bounds, bounds[1:], strict=False)]
    joined = datasets.concatenate_datasets(parts)
    assert joined.data.column("tokens").num_chunks > 1
    return joined


def sliced(data, draw):
    first = int(draw.integers(1, len(data) // 2))
    return data.select(range(first, len(data) - 3))


def sliced_chunks(data, draw):
    return sliced(in_chunks(data, draw), draw)


def shuffled(data, draw):
    return data.shuffle(seed=int(draw.integers(100)))


VIEWS = [whole, in_chunks, sliced, sliced_chunks, shuffled]


@pytest.mark.parametrize("convert", [from_column, from_column_with_nulls])
@pytest.mark.parametrize("view", VIEWS)
def test_a_list_column_has_the_rows_of_the_dataset(view, convert):
    for seed in range(8):
        data = view(hugging_face(random_lists(seed)), np.random.default_rng(seed))
        dataset = convert(arrow_column(data))
        assert rows_of(dataset) == data["tokens"][:]
        assert dataset.element_spec.dtype == "int32"


@pytest.mark.parametrize("convert", [from_column, from_column_with_nulls])
def test_a_chunk_that_begins_in_the_middle_of_its_memory(convert):
    data = sliced(hugging_face(random_lists(0)), np.random.default_rng(0))
    (chunk,) = data.data.column("tokens").chunks
    assert chunk.offset > 0
    assert rows_of(convert(chunk)) == data["tokens"][:]


@pytest.mark.parametrize("view", VIEWS)
def test_null_rows_are_empty(view):
    for seed in range(8):
        draw = np.random.default_rng(seed)
        lists = [None if draw.random() < 0.2 else each for each in random_lists(seed)]
        data = view(hugging_face(lists), draw)
        expected = [each or [] for each in data["tokens"][:]]
        assert rows_of(from_column_with_nulls(arrow_column(data))) == expected


def test_a_null_row_may_have_values_behind_it():
    column = pa.ListArray.from_arrays(pa.array([0, 2, 5, 6]), pa.array(range(6)),
                                      mask=pa.array([False, True, False]))
    assert column.offsets.to_pylist() == [0, 2, 5, 6]
    assert rows_of(from_column_with_nulls(column)) == [[0, 1], [], [5]]


def test_values_and_offsets_of_different_slices_raise():
    column = pa.array([[0, 1, 2], [3], [4, 5]]).slice(1)
    with pytest.raises(ps.ConfigError, match="offset 1 is 4, after 3; there are 3 values"):
        ps.from_ragged(column.flatten().to_numpy(), column.offsets.to_numpy())


@pytest.mark.parametrize("seed", range(4))
def test_list_columns_of_polars(seed):
    lists = random_lists(seed)
    series = polars.Series("tokens", lists, dtype=polars.List(polars.Int64))
    assert rows_of(from_column(series.to_arrow())) == lists
    assert rows_of(from_column(series.slice(7, 20).to_arrow())) == lists[7:27]
    joined = polars.concat([series.slice(30), series.slice(0, 30)], rechunk=False)
    assert joined.n_chunks() == 2
    assert rows_of(from_column(joined.to_arrow())) == lists[30:] + lists[:30]


@pytest.mark.parametrize("how", ["stream", "best_fit"])
def test_packing_a_column_has_every_token_once(how):
    lists = random_lists(0, count=2000)
    data = shuffled(hugging_face(lists), np.random.default_rng(0))
    packed = from_column(arrow_column(data)).shuffle(seed=1).pack(32, how=how).batch(10)
    seen = [token for rank in range(3) for batch in ps.Loader(packed, world=3, rank=rank)
            for token in batch["tokens"][batch["document"] >= 0].tolist()]
    assert sorted(seen) == list(range(sum(map(len, lists))))


# Tokenizers


@pytest.fixture(scope="module")
def tokenizer():
    return trained()


class Encode:
    """A tokenizer as a function; `change` replaces the result for one of the texts."""

    def __init__(self, tokenizer, change=None):
        self.tokenizer = tokenizer
        self.change = change

    def __call__(self, sample):
        ids = np.array(self.tokenizer.encode(sample["text"]).ids, np.int64)
        return self.change(ids) if self.change and sample["number"] == 42 else ids


def texts():
    return ps.from_index(len(TEXTS), lambda i: {"text": TEXTS[i], "number": i})


@pytest.fixture
def by_hand(tokenizer):
    ids = [tokenizer.encode(text).ids for text in TEXTS]
    assert [] in ids and len({len(each) for each in ids}) > 4
    return ids


@pytest.mark.parametrize("workers", [None, 2])
@pytest.mark.parametrize("spec", [None, IDS])
def test_a_tokenizer_as_a_function_gives_the_ids_of_calling_it(tokenizer, by_hand, workers, spec):
    dataset = texts().map(Encode(tokenizer), workers=workers, spec=spec)
    with ps.Loader(dataset.batch(9)) as loader:
        assert [row for batch in loader for row in batch.numpy().tolist()] == by_hand


@pytest.mark.parametrize("workers", [None, 2])
def test_ids_of_a_tokenizer_are_packed(tokenizer, by_hand, workers):
    dataset = texts().map(Encode(tokenizer), workers=workers, spec=IDS)
    with ps.Loader(dataset.pack(16).batch(4)) as loader:
        seen = [token for batch in loader
                for token in batch["tokens"][batch["document"] >= 0].tolist()]
    assert seen == sum(by_hand, [])


def test_tokens_that_datasets_computed_are_those_of_the_engine(tokenizer, by_hand):
    data = datasets.Dataset.from_dict({"text": TEXTS}).map(
        lambda rows: {"tokens": [each.ids for each in tokenizer.encode_batch(rows["text"])]},
        batched=True, batch_size=7, remove_columns="text",
        features=datasets.Features({"tokens": datasets.List(datasets.Value("int64"))}))
    assert rows_of(from_column(arrow_column(data))) == by_hand


def fails(ids):
    raise KeyError("no such merge")


def as_floats(ids):
    return ids.astype(np.float32)


def as_text(ids):
    return "text"


def as_pairs(ids):
    return np.stack([ids, ids])


def nothing(ids):
    return None


def as_object(ids):
    return object()


@pytest.mark.parametrize("workers", [None, 2])
@pytest.mark.parametrize("verb", ["batch", "pack"])
@pytest.mark.parametrize("change, error, words", [
    (fails, KeyError, "no such merge"), (as_floats, ps.SampleError, "f32.*expected i64"),
    (as_text, ps.SampleError, "expected i64"), (as_pairs, ps.SampleError, "expected i64"),
    (nothing, ps.SampleError, "None"), (as_object, ps.SampleError, "object")])
def test_a_bad_result_names_the_sample(tokenizer, change, error, words, verb, workers):
    dataset = texts().map(Encode(tokenizer, change), workers=workers, spec=IDS)
    with pytest.raises(error, match=words) as caught:
        batches = dataset.batch(9) if verb == "batch" else dataset.pack(16).batch(4)
        with ps.Loader(batches) as loader:
            list(loader)
    text = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert "sample 42 " in text and "Encode" in text


def test_an_encoding_itself_is_refused(tokenizer):
    dataset = texts().map(lambda sample: tokenizer.encode(sample["text"]))
    with pytest.raises(ps.SampleError, match=r"Encoding is not an array.*sample 0 "):
        list(ps.Loader(dataset.batch(9)))


def test_bad_samples_are_skipped_and_listed(tokenizer, by_hand):
    dataset = texts().map(Encode(tokenizer, fails), spec=IDS)
    loader = ps.Loader(dataset.batch(9), on_error="skip")
    rows = [row for batch in loader
            for row, valid in zip(batch.numpy().tolist(), batch.valid, strict=True) if valid]
    assert rows == by_hand[:42] + by_hand[43:]
    assert [entry["number"] for entry in loader.ledger] == [42]
