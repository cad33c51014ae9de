"""Chunks of LitData, written by its published format without the library."""

import json
import struct

import numpy as np
import pytest
from record_writers import litdata_folder, litdata_item, litdata_spec

import penstock as ps


def item(i):
    array = struct.pack("<4I", 9, 2, 2, 1 + i % 3) + np.full((2, 1 + i % 3), i, "<f4").tobytes()
    return litdata_item(array, struct.pack("<q", i), f"text {i}".encode(), bytes([i]) * (i % 4))


SPEC = litdata_spec({"x": None, "meta": {"id": None, "parts": (None, None)}})
SERIALIZERS = ["numpy", "int", "str", "jpeg"]


@pytest.fixture
def folder(tmp_path):
    litdata_folder(tmp_path, SPEC, SERIALIZERS, [[item(i) for i in range(first, first + 10)]
                                                 for first in range(0, 50, 10)])
    return tmp_path


def ids_of(loader):
    return [i for batch in loader for i in batch["meta"]["id"].tolist()]


def test_items_have_the_structure_that_was_stored(folder):
    data = ps.from_litdata(folder)
    assert len(data) == 50
    row = data.sample(7)
    assert np.array_equal(row["x"], np.full((2, 2), 7, np.float32))
    assert row["meta"]["id"] == 7
    assert row["meta"]["parts"] == ("text 7", b"\7\7\7")
    only = ps.from_litdata(folder, fields=["meta/id"], shapes={})
    assert only.sample(3) == {"meta": {"id": 3}}


def test_all_chunks_are_shuffled_as_a_whole_and_resumed(folder):
    data = ps.from_litdata(str(folder)).shuffle(seed=1).batch(8)
    whole = ids_of(ps.Loader(data))
    assert sorted(whole) == list(range(50)) and len({i // 10 for i in whole[:8]}) > 1
    loader = ps.Loader(data)
    iterator = iter(loader)
    next(iterator), next(iterator)
    state = json.loads(json.dumps(loader.state_dict()))
    resumed = ps.Loader(data)
    resumed.load_state_dict(state)
    assert ids_of(resumed) == whole[16:]


def test_arrays_of_one_shape_are_dense_and_others_fail(folder):
    data = ps.from_litdata(folder, shapes={"x": (2, 3)})
    assert data.element_spec["x"].shape == (2, 3)
    loader = ps.Loader(data.take(12).batch(4), on_error="skip")
    assert ids_of(loader) == [2, 5, 8, 11]
    assert "not f32[2, 3]" in loader.ledger[0]["reason"]
    assert "record 0 (byte" in loader.ledger[0]["reason"]


def test_tokens_are_documents_or_windows(tmp_path):
    documents = [np.arange(n, dtype="<u2").tobytes() for n in (5, 4)]
    litdata_folder(tmp_path, litdata_spec(None), ["no_header_tensor:20"],
                   [documents, documents[:1]], [9, 5])
    assert [len(row) for row in ps.from_litdata(tmp_path)] == [5, 4, 5]
    windows = ps.from_litdata(tmp_path, length=3)
    assert np.stack(list(windows)).tolist() == [[0, 1, 2], [3, 4, 0], [1, 2, 3], [0, 1, 2]]
    with pytest.raises(ps.ConfigError, match="length"):
        ps.from_litdata(tmp_path, length=0)


def test_what_cannot_be_read_says_what_to_do(folder):
    litdata_folder(folder, SPEC, ["pickle", *SERIALIZERS[1:]], [[item(1)]])
    with pytest.raises(ps.ConfigError, match=r'field "x" was stored by "pickle".*fields'):
        ps.from_litdata(folder)
    assert ps.from_litdata(folder, fields=["meta/id"]).sample(0)["meta"]["id"] == 1
    (folder / "chunk-0-0.bin").write_bytes(b"x")
    with pytest.raises(ps.ConfigError, match=r"chunk-0-0.bin has 1 bytes, and index.json says"):
        ps.from_litdata(folder, fields=["meta/id"])
    (folder / "index.json").write_text("{")
    with pytest.raises(ps.ConfigError, match="not JSON"):
        ps.from_litdata(folder)
