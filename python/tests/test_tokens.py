"""Tokens: ragged rows, windows, buckets and packing."""

import struct

import numpy as np
import pytest

import penstock as ps


def documents(lengths):
    """Document i has tokens 1000 * i + 0, 1, 2, ..."""
    values = np.concatenate([1000 * i + np.arange(n) for i, n in enumerate(lengths)] or [[]])
    return ps.from_ragged(values.astype(np.int32), np.concatenate([[0], np.cumsum(lengths)]),
                          name="documents")


def lengths_of(count, seed=0):
    rng = np.random.default_rng(seed)
    return np.minimum(rng.lognormal(3, 1, count).astype(int), 200)


def packed_slowly(lengths, length):
    """Rows of stream packing, one token at a time, for up to 4096 documents in order."""
    stream = [(d, i, n) for d, n in enumerate(lengths) for i in range(n)]
    rows = []
    for start in range(0, len(stream), length):
        tokens, labels, positions, numbers = [], [], [], []
        for d, i, n in stream[start:start + length]:
            new = not numbers or numbers[-1][0] != d
            numbers.append((d, 0 if not numbers else numbers[-1][1] + new))
            positions.append(0 if new else positions[-1] + 1)
            tokens.append(1000 * d + i)
            labels.append(1000 * d + i + 1 if i + 1 < n else -100)
        missing = length - len(tokens)
        rows.append({"tokens": tokens + [0] * missing, "labels": labels + [-100] * missing,
                     "positions": positions + [0] * missing,
                     "document": [each for _, each in numbers] + [-1] * missing})
    return rows


def rows_of(loader):
    return [{name: batch[name][i].tolist() for name in batch.keys()}
            for batch in loader for i in range(len(batch))]


def test_packing_equals_a_slow_reference():
    for seed in range(20):
        lengths = lengths_of(50, seed)
        rows = rows_of(ps.Loader(documents(lengths).pack(32).batch(4)))
        assert rows == packed_slowly(lengths, 32)


@pytest.mark.parametrize("how", ["stream", "best_fit"])
def test_every_token_once_on_any_number_of_processes(how):
    lengths = lengths_of(3000)
    packed = documents(lengths).shuffle(seed=1).pack(64, how=how).batch(12)
    seen = np.concatenate([batch["tokens"][batch["document"] >= 0]
                           for rank in range(3)
                           for batch in ps.Loader(packed, world=3, rank=rank)])
    assert len(seen) == lengths.sum() and len(set(seen.tolist())) == len(seen)


def test_best_fit_wastes_less_than_one_percent():
    lengths = np.minimum(np.random.default_rng(1).lognormal(6, 1, 8000).astype(int) + 1, 2048)
    loader = ps.Loader(documents(lengths).pack(2048, how="best_fit").batch(8))
    padding = float(loader.plan.explain().split("% padding")[0].split()[-1])
    assert padding < 1.0


def test_a_resumed_packing_continues():
    dataset = documents(lengths_of(500)).shuffle(seed=3).pack(64).batch(4)
    whole = rows_of(ps.Loader(dataset))
    loader = ps.Loader(dataset)
    it = iter(loader)
    before = [next(it) for _ in range(5)]
    after = ps.Loader(dataset)
    after.load_state_dict(loader.state_dict())
    assert rows_of(before) + rows_of(after) == whole


def test_documents_of_a_function_and_a_mask():
    field = {"text": ps.Field("int64", (None,)), "answer": ps.Field("bool", (None,))}
    chats = ps.range(3).map(lambda i: {"text": np.arange(i + 2), "answer": np.arange(i + 2) > 0},
                            spec=field)
    (row,) = rows_of(ps.Loader(chats.pack(10, field="text", mask="answer").batch(1)))
    assert row["labels"] == [1, -100, 1, 2, -100, 1, 2, 3, -100, -100]
    assert row["document"] == [0, 0, 1, 1, 1, 2, 2, 2, 2, -1]
    with pytest.raises(ps.SampleError, match="one number per token"):
        wrong = chats.map(lambda x: {**x, "answer": x["answer"][1:]}, spec=field)
        list(ps.Loader(wrong.pack(10, field="text", mask="answer").batch(1)))


def test_buckets():
    lengths = lengths_of(400)
    dataset = documents(lengths).shuffle(seed=2).bucket_by_length([8, 16, 32], [32, 16, 8, 4],
                                                                  values=-1)
    seen = []
    for batch in ps.Loader(dataset):
        own = batch.lengths()
        bound = next((b for b in (8, 16, 32) if own.max() < b), 10**9)
        assert own.min() >= {8: 0, 16: 8, 32: 16}.get(bound, 32)
        assert batch.numpy().shape == (len(batch), own.max())
        seen += [int(row[0]) // 1000 for row, n in zip(batch.numpy(), own, strict=True) if n]
    assert sorted(seen) == [i for i, n in enumerate(lengths) if n]


def test_batches_by_tokens():
    dataset = documents(lengths_of(400) + 1).shuffle(seed=2).batch_by_tokens(512)
    sizes = [batch.numpy().size for batch in ps.Loader(dataset)]
    assert max(sizes) <= 512 and np.median(sizes) > 300


def test_windows_are_read_in_place():
    series = np.arange(20.0).reshape(10, 2)
    windows = ps.from_windows(series, 4, 3)
    assert [x.tolist() for x in windows] == [series[i:i + 4].tolist() for i in (0, 3, 6)]
    assert len(ps.from_windows(series, 4)) == 2


def test_token_files(tmp_path):
    tokens = np.arange(10, dtype=np.uint16)
    tokens.tofile(tmp_path / "a.bin")
    tokens.tofile(tmp_path / "b.bin")
    dataset = ps.tokens(tmp_path / "*.bin", "uint16", length=4)
    assert [x.tolist() for x in dataset] == [[0, 1, 2, 3], [4, 5, 6, 7]] * 2
    with pytest.raises(ps.ConfigError, match="not a whole number of i64"):
        ps.tokens(tmp_path / "*.bin", "int64", length=4)


def test_megatron_files(tmp_path):
    lengths, tokens = [3, 0, 2], np.arange(5, dtype=np.int32)
    tokens.tofile(tmp_path / "x.bin")
    (tmp_path / "x.idx").write_bytes(
        b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, 4, 3, 4) + np.int32(lengths).tobytes()
        + np.int64([0, 12, 12]).tobytes() + np.int64([0, 1, 2, 3]).tobytes())
    assert [x.tolist() for x in ps.from_megatron(tmp_path / "x")] == [[0, 1, 2], [], [3, 4]]
    (tmp_path / "x.bin").write_bytes(b"\0" * 8)
    with pytest.raises(ps.ConfigError, match=r"x\.idx does not fit.*x\.bin: document 0 has 3"):
        ps.from_megatron(tmp_path / "x")


def test_streams_are_bucketed_and_packed():
    lengths = lengths_of(500)
    indexed = documents(lengths)
    stream = indexed.filter(lambda x: True)
    packed = [batch.numpy() for batch in ps.Loader(stream.pack(128, separator=1).batch(4))]
    expected = [batch.numpy() for batch in ps.Loader(indexed.pack(128, separator=1).batch(4))]
    assert len(packed) == len(expected)
    for ours, theirs in zip(packed, expected, strict=True):
        assert all((ours[field] == theirs[field]).all() for field in theirs)

    buckets = stream.bucket_by_length([10, 30], [16, 8, 4], values=None, window=200)
    rows = [row for batch in ps.Loader(buckets) for row in batch.numpy()]
    assert sorted(int(row[0]) // 1000 for row in rows if row.size) == [
        i for i, n in enumerate(lengths) if n > 0]
    assert sum(row.size == 0 for row in rows) == np.count_nonzero(lengths == 0)


def test_a_bucket_stream_resumes_anywhere():
    stream = documents(lengths_of(200)).filter(lambda x: len(x) > 3).bucket_by_length([9], [5, 3])
    whole = [batch.numpy().tolist() for batch in ps.Loader(stream)]
    for done in range(0, len(whole), 7):
        loader = ps.Loader(stream)
        loop = iter(loader)
        for _ in range(done):
            next(loop)
        resumed = ps.Loader(stream)
        resumed.load_state_dict(loader.state_dict())
        assert [batch.numpy().tolist() for batch in resumed] == whole[done:]


def test_lengths_by_a_function():
    rows = ps.range(9).bucket_by_length([3], [2, 2], length=lambda x: int(x) % 5, values=None)
    assert sorted(map(tuple, (batch.numpy().tolist() for batch in ps.Loader(rows)))) == [
        (0, 1), (2, 5), (3, 4), (6, 7), (8,)]
    with pytest.raises(ps.SampleError, match="length -1"):
        list(ps.Loader(ps.range(9).bucket_by_length([3], [2, 2], length=lambda x: -1)))


def test_packed_rows_as_one_document():
    (batch,) = ps.Loader(documents([3, 2]).pack(6, separator=9, attention="row").batch(1).take(1))
    assert batch["positions"].tolist() == [[0, 1, 2, 3, 4, 5]]
    assert batch["labels"].tolist() == [[1, 2, 9, 1000, 1001, 9]]


def test_padding_packed_rows_warns(capfd):
    ps.Loader(documents([3, 2]).pack(2).batch(2, tail="pad"))
    assert "label 0 instead of -100" in capfd.readouterr().err


def test_lengths_are_counted_without_calling_a_cached_function_again():
    calls = []

    def document(i):
        calls.append(int(i))
        return np.full(int(i) % 4, i)

    cached = ps.range(50).map(document, spec=ps.Field("int64", (None,))).cache()
    for _ in range(2):
        for _ in ps.Loader(cached.pack(8).batch(2)):
            pass
    assert sorted(calls) == list(range(50))


def test_buckets_by_tokens_per_batch():
    by_tokens = documents([1, 2, 3, 4] * 5).bucket_by_length([3, 5], tokens_per_batch=8)
    assert [batch.numpy().shape for batch in ps.Loader(by_tokens)] == [
        (4, 2), (4, 2), (2, 2), (2, 4), (2, 4), (2, 4), (2, 4), (2, 4)]
    for wrong in ({}, {"batch_sizes": [1, 2, 3], "tokens_per_batch": 8}):
        with pytest.raises(ps.ConfigError, match="takes batch_sizes, or tokens_per_batch"):
            documents([1]).bucket_by_length([3, 5], **wrong)
