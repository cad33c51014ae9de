"""Rows that differ in size: ragged batches and padded ones."""

import numpy as np
import pytest

import penstock as ps


def documents(count=10, **options):
    return ps.range(count).map(
        lambda i: {"id": i, "tokens": np.full(i % 5 + 1, i, np.int32)}, **options)


def first(dataset, **options):
    return next(iter(ps.Loader(dataset, **options)))


def test_a_field_of_different_sizes_is_ragged():
    rows = []
    for batch in ps.Loader(documents().batch(4)):
        tokens = batch["tokens"]
        assert isinstance(tokens, ps.Ragged) and len(tokens) == len(batch)
        assert tokens.lengths.tolist() == [i % 5 + 1 for i in batch["id"]]
        assert tokens.lengths.tolist() == batch.lengths("tokens").tolist()
        assert tokens.offsets.tolist() == [0, *np.cumsum(tokens.lengths)]
        assert tokens.cu_seqlens.dtype == np.int32
        assert tokens.values.base is not None, "a view"
        rows += tokens.tolist()
    assert rows == [[i] * (i % 5 + 1) for i in range(10)]


def test_rows_by_number():
    tokens = first(documents().batch(4))["tokens"]
    assert tokens[2].tolist() == [2, 2, 2] and tokens[-1].tolist() == [3] * 4
    with pytest.raises(IndexError):
        tokens[4]
    with pytest.raises(ps.ConfigError, match="to_padded"):
        np.asarray(tokens)
    assert repr(tokens) == "Ragged(4 rows, lengths 1 to 4, int32)"


@pytest.mark.parametrize("side", ["left", "right"])
def test_to_padded(side):
    tokens = first(documents().batch(3))["tokens"]
    padded = tokens.to_padded(-1, to_multiple_of=4, side=side)
    assert padded.dtype == np.int32
    right = [[0, -1, -1, -1], [1, 1, -1, -1], [2, 2, 2, -1]]
    left = [[-1, -1, -1, 0], [-1, -1, 1, 1], [-1, 2, 2, 2]]
    assert padded.tolist() == (left if side == "left" else right)
    assert tokens.to_padded(length=6).shape == (3, 6)
    with pytest.raises(ps.ConfigError, match="longest row, 3"):
        tokens.to_padded(length=2)


def test_several_sizes_may_vary():
    images = ps.range(4).map(lambda i: np.full((1 + i, 2 + i % 2, 3), i, np.uint8))
    batch = first(images.batch(4)).numpy()
    assert batch.shapes.tolist() == [[1, 2, 3], [2, 3, 3], [3, 2, 3], [4, 3, 3]]
    assert [row.shape for row in batch] == [(1, 2, 3), (2, 3, 3), (3, 2, 3), (4, 3, 3)]
    padded = batch.to_padded(9)
    assert padded.shape == (4, 4, 3, 3) and (padded[0, 1:] == 9).all()


def test_detection_samples_need_no_collate_fn():
    samples = ps.range(6).map(lambda i: {
        "image": np.zeros((3, 4, 4), np.float32), "boxes": np.full((i % 3, 4), i, np.float32),
        "labels": np.full(i % 3, i)})
    for batch in ps.Loader(samples.batch(3)):
        assert batch["image"].shape == (3, 3, 4, 4)
        assert [boxes.shape for boxes in batch["boxes"]] == [(0, 4), (1, 4), (2, 4)]
        assert batch["labels"].lengths.tolist() == [0, 1, 2]


def test_in_workers_caches_and_streams():
    plain = [batch["tokens"].tolist() for batch in ps.Loader(documents().batch(4))]
    for dataset in (documents(workers=2).batch(4), documents().cache().batch(4),
                    documents().filter(lambda x: True).batch(4),
                    documents().batch(4).unbatch().batch(4)):
        loader = ps.Loader(dataset)
        for _ in range(2):
            assert [batch["tokens"].tolist() for batch in loader] == plain


def test_a_padded_batch():
    batch = first(documents().padded_batch(4, values=-1, multiple_of=8))
    assert batch["tokens"].shape == (4, 8) and batch["tokens"].dtype == np.int32
    assert batch["tokens"][1].tolist() == [1, 1, *[-1] * 6]
    assert batch.lengths("tokens").tolist() == [1, 2, 3, 4]
    assert batch["id"].tolist() == [0, 1, 2, 3]


def test_each_process_pads_its_own_share():
    widths = [[batch["tokens"].shape for batch in
               ps.Loader(documents(4).padded_batch(4), world=2, rank=rank)] for rank in range(2)]
    assert widths == [[(2, 2)], [(2, 4)]]


def test_a_padded_batch_of_named_fields():
    pairs = ps.range(4).map(lambda i: {"a": np.arange(i + 1), "b": np.arange(i + 1.0)})
    batch = first(pairs.padded_batch(4, values={"b": 0.5}, side="left", length=5))
    assert batch["b"][0].tolist() == [0.5] * 4 + [0.0]
    assert isinstance(batch["a"], ps.Ragged)


def test_wrong_padding_is_refused():
    declared = documents(spec={"id": ps.Field("int64"), "tokens": ps.Field("int32", (None,))})
    for wrong, words in (({"values": 0.5}, "cannot be a value"), ({"values": {"x": 0}}, "no field"),
                         ({"values": "0"}, "values"), ({"side": "top"}, "side"),
                         ({"multiple_of": 0}, "multiple_of")):
        with pytest.raises(ps.ConfigError, match=words):
            declared.padded_batch(2, **wrong)
    with pytest.raises(ps.SampleError, match=r"length 4, more than the 3.*step 1"):
        list(ps.Loader(documents().padded_batch(2, length=3)))


def test_a_function_of_whole_batches_may_return_an_open_size():
    pairs = ps.range(4).batch(2).map(lambda x: np.stack([x, x], 1), spec=ps.Field("int64", (None,)))
    assert [batch.numpy().tolist() for batch in ps.Loader(pairs)] == [[[0, 0], [1, 1]],
                                                                     [[2, 2], [3, 3]]]


def test_a_fixed_field_need_not_hold_the_padding_value():
    mixed = ps.range(1, 4).map(lambda i: {"x": np.arange(i), "y": np.zeros(3, np.uint8)})
    batch = first(mixed.padded_batch(3, values=-100))
    assert batch["x"].shape == (3, 3) and batch["y"].shape == (3, 3)
    with pytest.raises(ps.ConfigError, match="not a value of int64"):
        first(mixed.batch(3))["x"].to_padded(0.5)


def test_torch_shares_the_memory():
    torch = pytest.importorskip("torch")
    batch = first(documents().batch(4))
    tokens = batch.torch()["tokens"]
    assert tokens.values.data_ptr() == batch["tokens"].values.ctypes.data
    assert tokens.cu_seqlens.tolist() == [0, 1, 3, 6, 10] and tokens.cu_seqlens.dtype == torch.int32
    nested = tokens.torch_nested()
    assert [row.tolist() for row in nested.unbind()] == batch["tokens"].tolist()
    assert tokens.to_padded(7).tolist() == batch["tokens"].to_padded(7).tolist()


def declared(count):
    return ps.range(count).map(lambda i: {"id": i, "tokens": np.full(int(i) + 1, i)},
                               spec={"id": ps.Field("int64"),
                                     "tokens": ps.Field("int64", (None,))})


def test_a_function_of_whole_batches_receives_padded_arrays():
    def mask(batch):
        return {"id": batch["id"], "tokens": batch["tokens"],
                "mask": np.arange(batch["tokens"].shape[1]) <= batch["id"][:, None]}

    spec = {"id": ps.Field("int64"), "tokens": ps.Field("int64", (None,)),
            "mask": ps.Field("bool", (None,))}
    batches = list(ps.Loader(declared(4).padded_batch(2, values=-1).map(mask, spec=spec)))
    assert [batch["tokens"].tolist() for batch in batches] == [
        [[0, -1], [1, 1]], [[2, 2, 2, -1], [3, 3, 3, 3]]]
    assert all(((batch["tokens"] >= 0) == batch["mask"]).all() for batch in batches)
    with pytest.raises(ps.ConfigError, match="padded_batch"):
        declared(4).batch(2).map(mask)


def test_an_empty_list_has_the_declared_dtype():
    rows = ps.range(3).map(lambda i: [int(i)] * int(i), spec=ps.Field("int64", (None,)))
    assert [row.tolist() for row in rows] == [[], [1], [2, 2]]
    assert rows.sample(0).dtype == np.int64


def test_windows_of_a_time_series_with_their_target():
    series = np.arange(10.0)
    windows = ps.from_tensor_slices(series).window(4, shift=1).map(lambda w: (w[:-1], w[-1]))
    assert len(windows) == 7
    past, target = next(iter(ps.Loader(windows.batch(7)))).numpy()
    assert past[2].tolist() == [2, 3, 4] and target.tolist() == list(range(3, 10))


def test_truncate():
    assert [row.tolist() for row in declared(4).map(lambda x: x["tokens"]).truncate(2)] == [
        [0], [1, 1], [2, 2], [3, 3]]
    rows = ps.from_tensor_slices(np.arange(6).reshape(2, 3)).truncate(2, keep="last")
    assert rows.element_spec == ps.Field("int64", (2,))
    assert [row.tolist() for row in rows] == [[1, 2], [4, 5]]
    with pytest.raises(ps.ConfigError, match="before batch"):
        rows.batch(2).truncate(1)
