"""Files in the format of Megatron's IndexedDataset, written here as its documentation says."""

import struct

import numpy as np
import pytest

import penstock as ps

HEADER = b"MMIDIDX\x00\x00"
# Code 6 is float64 and 7 is float32: not tokens.
CODES = {1: np.uint8, 2: np.int8, 3: np.int16, 4: np.int32, 5: np.int64, 8: np.uint16}


def write_files(prefix, sequences, documents, code, modes=b""):
    """`documents` are the numbers of sequences in each document."""
    lengths = np.array([len(each) for each in sequences], np.int32)
    item_bytes = np.dtype(CODES[code]).itemsize
    pointers = np.cumsum([0, *lengths], dtype=np.int64)[:-1] * item_bytes
    bounds = np.cumsum([0, *documents], dtype=np.int64)
    prefix.with_suffix(".bin").write_bytes(b"".join(each.tobytes() for each in sequences))
    prefix.with_suffix(".idx").write_bytes(
        HEADER + struct.pack("<QBQQ", 1, code, len(lengths), len(bounds)) + lengths.tobytes()
        + pointers.tobytes() + bounds.tobytes() + modes)


def read_slowly(prefix):
    """As Megatron's reader finds sequence i: its pointer and its length, in the tokens' bytes."""
    index = prefix.with_suffix(".idx").read_bytes()
    code, count, _ = struct.unpack_from("<BQQ", index, 17)
    lengths = np.frombuffer(index, np.int32, count, 34)
    pointers = np.frombuffer(index, np.int64, count, 34 + 4 * count)
    data = prefix.with_suffix(".bin").read_bytes()
    return [np.frombuffer(data, CODES[code], length, pointer)
            for length, pointer in zip(lengths, pointers, strict=True)]


def random_sequences(code, seed, count=40):
    """Sequences of tokens over the whole range of the dtype; some are empty."""
    draw = np.random.default_rng([code, seed])
    limits = np.iinfo(CODES[code])
    return [draw.integers(limits.min, limits.max, length, CODES[code], endpoint=True)
            for length in draw.integers(0, 30, count)]


@pytest.mark.parametrize("code", CODES)
def test_every_dtype_is_read_as_megatron_reads_it(code, tmp_path):
    for seed in range(5):
        documents = np.random.default_rng(seed).integers(0, 5, 20)  # several sequences each
        write_files(tmp_path / "x", random_sequences(code, seed, documents.sum()), documents, code)
        expected = read_slowly(tmp_path / "x")
        dataset = ps.from_megatron(tmp_path / "x")
        assert len(dataset) == len(expected) == documents.sum()
        for sample, sequence in zip(dataset, expected, strict=True):
            assert sample.dtype == CODES[code] and sample.tolist() == sequence.tolist()
        rows = [row for batch in ps.Loader(dataset.batch(7)) for row in batch.numpy().tolist()]
        assert rows == [sequence.tolist() for sequence in expected]


def test_modes_after_the_documents_are_ignored(tmp_path):
    sequences = random_sequences(8, 0)
    write_files(tmp_path / "x", sequences, [40], 8, modes=bytes(40))
    assert [x.tolist() for x in ps.from_megatron(tmp_path / "x")] == [
        each.tolist() for each in sequences]


def test_packing_has_every_token_once_on_three_processes(tmp_path):
    tokens = np.random.default_rng(0).permutation(5000).astype(np.int32)
    cuts = np.sort(np.random.default_rng(1).integers(0, 5000, 99))
    write_files(tmp_path / "x", np.split(tokens, cuts), [10] * 10, 4)
    packed = ps.from_megatron(tmp_path / "x").shuffle(seed=1).pack(64, how="best_fit").batch(9)
    seen = [token for rank in range(3) for batch in ps.Loader(packed, world=3, rank=rank)
            for token in batch["tokens"][batch["document"] >= 0].tolist()]
    assert sorted(seen) == list(range(5000))


@pytest.mark.parametrize("code, named", [(6, "dtype code 6"), (7, "dtype code 7"),
                                         (0, "dtype code 0"), (9, "dtype code 9")])
def test_a_dtype_that_has_no_tokens_raises(code, named, tmp_path):
    write_files(tmp_path / "x", random_sequences(4, 0), [40], 4)
    index = bytearray((tmp_path / "x.idx").read_bytes())
    index[17] = code
    (tmp_path / "x.idx").write_bytes(index)
    with pytest.raises(ps.ConfigError, match=rf"x\.idx has {named}"):
        ps.from_megatron(tmp_path / "x")


@pytest.mark.parametrize("missing", [".bin", ".idx"])
def test_a_missing_file_is_named(missing, tmp_path):
    write_files(tmp_path / "x", random_sequences(4, 0), [40], 4)
    (tmp_path / "x").with_suffix(missing).unlink()
    with pytest.raises((ps.ConfigError, OSError), match=rf"x\{missing}"):
        ps.from_megatron(tmp_path / "x")


def test_an_index_that_is_cut_before_the_pointers_end_raises(tmp_path):
    write_files(tmp_path / "x", random_sequences(4, 0), [40], 4)
    index = (tmp_path / "x.idx").read_bytes()
    for size in (0, 8, 9, 17, 18, 33, 34, 34 + 4 * 40, 34 + 12 * 40 - 1):
        (tmp_path / "x.idx").write_bytes(index[:size])
        with pytest.raises(ps.ConfigError, match=r"x\.idx"):
            ps.from_megatron(tmp_path / "x")
