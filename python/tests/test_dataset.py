"""Datasets through the public API: sources, verbs, and what is known before anything runs."""

import gc
import weakref

import numpy as np
import pytest
from conftest import rows_of, steps_of

import penstock as ps


def values(dataset):
    return [np.asarray(element).tolist() for element in dataset]


def test_range_equals_pythons_range():
    assert values(ps.range(4)) == [0, 1, 2, 3]
    assert values(ps.range(2, 9, 3)) == [2, 5, 8]
    assert values(ps.range(3, 0, -1)) == [3, 2, 1]
    assert len(ps.range(7)) == 7


def test_slices_keep_structure_dtype_and_shape(table):
    dataset = ps.from_tensor_slices(table)
    assert dataset.element_spec == {"x": ps.Field("float32", (3,)), "id": ps.Field("int64", ())}
    sample = dataset.sample(5)
    assert sample["id"] == 5 and sample["x"].tolist() == [15, 16, 17]
    assert sample["x"].dtype == np.float32


def test_nested_structures_flatten_to_paths():
    data = {"meta": {"id": np.arange(4), "name": (np.arange(4) * 2, np.arange(4) * 3)},
            "x": np.zeros((4, 2), np.float32)}
    batch = next(iter(ps.Loader(ps.from_tensor_slices(data).batch(4))))
    assert batch["meta/id"].tolist() == [0, 1, 2, 3]
    assert batch["meta/name/1"].tolist() == [0, 3, 6, 9]
    assert batch["meta"]["name"][0].tolist() == [0, 2, 4, 6]
    assert set(batch.numpy()) == {"meta", "x"}


def test_arrays_are_read_in_place_and_kept_alive():
    class Array(np.ndarray):
        pass

    array = np.arange(100_000, dtype=np.float64).view(Array)
    alive = weakref.ref(array)
    dataset = ps.from_tensor_slices(array)
    array[7] = -1  # before anything runs: the dataset has no copy
    del array
    gc.collect()
    assert alive() is not None
    assert dataset.sample(7) == -1
    del dataset
    gc.collect()
    assert alive() is None


def test_a_batch_never_aliases_the_array():
    array = np.arange(4096, dtype=np.float32)
    for batch in ps.Loader(ps.from_tensor_slices(array).batch(1024)):
        batch.numpy()[:] = -1
    assert array.tolist() == list(range(4096))


def test_from_tensors_is_one_element():
    dataset = ps.from_tensors({"x": np.arange(3)})
    assert len(dataset) == 1
    assert dataset.sample(0)["x"].tolist() == [0, 1, 2]


def test_from_index_is_a_map_style_dataset():
    dataset = ps.from_index(10, lambda i: {"i": i, "square": float(i * i)})
    rows = [(row["i"], row["square"]) for row in dataset.shuffle(seed=3)]
    assert sorted(rows) == [(i, i * i) for i in range(10)]


def test_verbs_of_order_and_number():
    numbers = ps.range(10)
    assert values(numbers.take(3)) == [0, 1, 2]
    assert values(numbers.skip(7)) == [7, 8, 9]
    assert values(numbers.shard(3, 1)) == [1, 4, 7]
    assert values(numbers.take(2).repeat(3)) == [0, 1] * 3
    assert values(numbers.take(2).concatenate(ps.range(5, 7))) == [0, 1, 5, 6]
    assert [tuple(map(int, row)) for row in ps.zip(ps.range(3), ps.range(10, 13))] == [
        (0, 10), (1, 11), (2, 12)]
    assert [tuple(map(int, row)) for row in ps.range(5, 7).enumerate()] == [(0, 5), (1, 6)]
    assert sorted(values(numbers.shuffle(seed=1))) == list(range(10))
    assert values(numbers.shuffle(seed=1)) != list(range(10))


def test_blocks_are_shuffled_and_mixed_by_windows():
    data = ps.range(100).shuffle(seed=1, blocks=10, window=20)
    order = values(data)
    assert sorted(order) == list(range(100))
    windows = [{number // 10 for number in order[i : i + 20]} for i in range(0, 100, 20)]
    assert all(len(blocks) == 2 for blocks in windows) and set.union(*windows) == set(range(10))
    assert order != values(data), "each epoch has its own order"
    assert "blocks=10, window=20" in data.describe()
    for wrong in (ps.range(9).batch(2), ps.range(9).filter(lambda x: x > 2), ps.range(9).repeat()):
        with pytest.raises(ps.ConfigError, match="before|window"):
            wrong.shuffle(blocks=3)
    with pytest.raises(ps.ConfigError, match="blocks=0"):
        ps.range(9).shuffle(blocks=0)


def test_functions_get_a_tuple_as_arguments_and_a_dict_as_one(table):
    pairs = ps.zip(ps.range(3), ps.range(3)).map(lambda a, b: a + b)
    assert values(pairs) == [0, 2, 4]
    named = ps.from_tensor_slices(table).map(lambda sample: sample["id"] + 1)
    assert values(named.take(3)) == [1, 2, 3]


def test_filter_take_while_select_and_split():
    numbers = ps.range(20)
    assert values(numbers.filter(lambda x: x % 3 == 0)) == [0, 3, 6, 9, 12, 15, 18]
    assert values(numbers.take_while(lambda x: x < 4)) == [0, 1, 2, 3]
    chosen = numbers.select(lambda x: x % 7 == 0).shuffle(seed=1).batch(2)
    assert len(ps.Loader(chosen)) == 2
    assert sorted(rows_of(ps.Loader(chosen))) == [0, 7, 14]
    train, rest = ps.range(1000).split(0.8, seed=4)
    first, second = (rows_of(ps.Loader(part.batch(100))) for part in (train, rest))
    assert sorted(first + second) == list(range(1000))
    assert len(first) == len(train) == 800 and len(second) == len(rest) == 200


def test_split_is_exact_and_raises_if_a_part_would_be_empty():
    for size in (2, 10, 33):
        first, second = ps.range(size).split(0.5)
        assert (len(first), len(second)) == (round(size / 2 + 0.01), size - round(size / 2 + 0.01))
        assert sorted(values(first) + values(second)) == list(range(size))
    with pytest.raises(ps.ConfigError, match="the first part would be empty: 0.01 of 10 samples"):
        ps.range(10).split(0.01)


def test_the_length_after_select_is_known_once_it_is_resolved():
    chosen = ps.range(20).select(lambda x: x % 7 == 0)
    with pytest.raises(TypeError, match=r"before select\(\) has run.*call resolve\(\)"):
        len(chosen)
    assert len(chosen.resolve()) == 3
    first, second = chosen.split(0.34)
    assert (len(first.resolve()), len(second.resolve())) == (1, 2)


def test_repeat_none_is_endless():
    assert ps.range(3).repeat(None).cardinality() == ps.INFINITE
    assert values(ps.range(3).repeat(None).take(5)) == [0, 1, 2, 0, 1]


def test_filter_with_mask_keeps_rows_and_marks_them():
    loader = ps.Loader(ps.range(8).filter(lambda x: x % 2 == 0, mask=True).batch(4))
    batches = list(loader)
    assert [batch.valid.tolist() for batch in batches] == [[True, False, True, False]] * 2
    assert [batch.valid_count for batch in batches] == [2, 2]


def test_flat_map_and_interleave():
    flat = ps.range(3).flat_map(lambda x: ps.range(x + 1))
    assert values(flat) == [0, 0, 1, 0, 1, 2]
    turns = ps.range(2).interleave(lambda x: ps.range(x * 10, x * 10 + 3), cycle=2)
    assert values(turns) == [0, 10, 1, 11, 2, 12]


def test_batch_and_unbatch():
    assert steps_of(ps.Loader(ps.range(7).batch(3))) == [[0, 1, 2], [3, 4, 5], [6]]
    assert steps_of(ps.Loader(ps.range(7).batch(3, drop_remainder=True))) == [[0, 1, 2], [3, 4, 5]]
    assert values(ps.range(7).batch(3).unbatch()) == list(range(7))
    assert [len(step) for step in steps_of(ps.Loader(ps.range(103).batch(16, tail="even")))] == [
        15, 15, 15, 15, 15, 14, 14]


def test_cache_calls_the_function_once_for_each_sample():
    calls = []
    dataset = ps.range(5).map(lambda x: calls.append(int(x)) or x).cache().batch(5)
    loader = ps.Loader(dataset)
    for _ in range(3):
        assert rows_of(loader) == [0, 1, 2, 3, 4]
    assert sorted(calls) == [0, 1, 2, 3, 4]


def test_apply_and_with_options():
    dataset = ps.range(4).apply(lambda each: each.map(lambda x: x + 1)).with_options(name="train")
    assert values(dataset.take(2)) == [1, 2]


def test_cast_is_an_op_for_map(table):
    dataset = ps.from_tensor_slices(table).map(ps.cast("float64", "x"))
    assert dataset.element_spec["x"] == ps.Field("float64", (3,))
    assert dataset.sample(1)["x"].tolist() == [3, 4, 5]


def test_cardinality_and_len():
    assert ps.range(10).cardinality() == 10
    assert ps.range(10).repeat().cardinality() == ps.INFINITE
    assert ps.range(10).filter(lambda x: True).cardinality() == ps.UNKNOWN
    assert len(ps.range(10).batch(3)) == 4
    for dataset in (ps.range(10).repeat(), ps.range(10).filter(lambda x: True)):
        with pytest.raises(TypeError, match="no len"):
            len(dataset)
        assert bool(dataset)


def test_describe_names_the_nodes():
    text = ps.range(10).shuffle(seed=7).batch(4).describe()
    assert "range" in text and "shuffle" in text and "batch" in text
    assert "shuffle" in repr(ps.range(10).shuffle())


def test_spec_declares_what_a_function_returns():
    dataset = ps.range(4).map(lambda x: np.full(2, x, np.float32), spec=ps.Field("float32", (2,)))
    assert dataset.element_spec == ps.Field("float32", (2,))
    assert dataset.sample(3).tolist() == [3, 3]
    assert ps.range(4).map(lambda x: x).element_spec is None


def test_text_and_bytes_are_preserved():
    words = ps.from_index(3, lambda i: {"name": f"number {i}é", "raw": bytes([i] * (i + 1))})
    assert words.sample(2) == {"name": "number 2é", "raw": b"\x02\x02\x02"}
    batch = next(iter(ps.Loader(words.batch(3))))
    assert batch["name"] == ["number 0é", "number 1é", "number 2é"]
    assert [len(raw) for raw in batch["raw"]] == [1, 2, 3]


def test_lists_of_text_have_slices():
    names = ["a.png", "bé.png", "c.png"]
    dataset = ps.from_tensor_slices({"file": names, "label": np.arange(3),
                                     "raw": [b"1", b"22", b""]})
    assert dataset.element_spec["file"] == ps.Field("str")
    assert dataset.sample(1) == {"file": "bé.png", "label": 1, "raw": b"22"}
    batch = next(iter(ps.Loader(dataset.batch(3))))
    assert batch["file"] == names and batch["raw"] == [b"1", b"22", b""]
    assert [str(x) for x in ps.from_tensor_slices(np.array(names))] == names
    assert list(ps.from_tensor_slices(names).map(len)) == [5, 6, 5]
    with pytest.raises(ps.ConfigError, match="rows"):
        ps.from_tensor_slices((names, np.arange(4)))
    with pytest.raises(ps.ConfigError, match="only str"):
        ps.from_tensor_slices(["a", b"b"])


def test_other_text_is_other_data():
    state = ps.Loader(ps.from_tensor_slices(["a", "b"]).batch(1)).state_dict()
    ps.Loader(ps.from_tensor_slices(["a", "b"]).batch(1)).load_state_dict(state)
    with pytest.raises(ps.StateError):
        ps.Loader(ps.from_tensor_slices(["a", "c"]).batch(1)).load_state_dict(state)


def test_iterating_a_dataset_yields_samples_and_reshuffles():
    dataset = ps.range(50).shuffle(seed=2)
    first, second = values(dataset), values(dataset)
    assert sorted(first) == sorted(second) == list(range(50))
    assert first != second
