"""Loaders: epochs, states, shares, plans, and their batches."""

import gc
import json
import threading
import weakref

import numpy as np
import pytest
from conftest import rows_of, run_program, steps_of

import penstock as ps


def test_each_for_is_one_epoch_and_the_next_is_reshuffled():
    loader = ps.Loader(ps.range(30).shuffle(seed=7).batch(8))
    first, second = rows_of(loader), rows_of(loader)
    assert sorted(first) == sorted(second) == list(range(30))
    assert first != second
    again = ps.Loader(ps.range(30).shuffle(seed=7).batch(8))
    assert [rows_of(again), rows_of(again)] == [first, second]


def test_leaving_a_loop_early_ends_its_epoch():
    loader = ps.Loader(ps.range(10).batch(2))
    for batch in loader:
        if batch.step == 1:
            break
    batches = list(loader)
    assert [batch.epoch for batch in batches] == [1] * 5
    assert [batch.step for batch in batches] == [0, 1, 2, 3, 4]


def test_loops_inside_loops_do_not_disturb_each_other():
    loader = ps.Loader(ps.range(4).batch(2))
    seen = [(outer.epoch, inner.epoch) for outer in loader for inner in loader]
    assert seen == [(0, 1), (0, 1), (0, 2), (0, 2)]


def test_world_and_rank_cut_each_global_step():
    dataset = ps.range(103).shuffle(seed=1).batch(16)
    whole = steps_of(ps.Loader(dataset))
    for world in (2, 3, 4, 8):
        parts = [steps_of(ps.Loader(dataset, world=world, rank=rank)) for rank in range(world)]
        assert [sum(rows, []) for rows in zip(*parts)] == whole
        sizes = [len(part[0]) for part in parts]
        assert max(sizes) - min(sizes) <= 1


def test_weights_and_loss_scale_make_the_mean_exact():
    dataset = ps.from_tensor_slices(np.random.default_rng(0).normal(size=103)).batch(16)
    for tail in ("short", "even", "pad"):
        for world in (1, 3, 4):
            loaders = [ps.Loader(dataset, world=world, rank=rank, tail=tail)
                       for rank in range(world)]
            for shares in zip(*loaders):
                means = [(share.weight * share.numpy()).mean() * share.loss_scale
                         if share.rows else 0.0 for share in shares]
                values = np.concatenate([share.numpy()[share.valid] for share in shares])
                assert values.size == shares[0].global_valid
                assert np.isclose(np.mean(means), values.mean())


def test_pad_marks_empty_rows():
    loader = ps.Loader(ps.range(10).batch(4), world=3, rank=2, tail="pad")
    last = list(loader)[-1]
    assert last.rows == 2 and last.valid.tolist() == [False, False]
    assert last.valid_count == 0 and last.global_valid == 2
    assert last.sample_id.tolist() == [2**64 - 1] * 2
    assert last.weight.tolist() == [0, 0]


def test_the_plan_is_available_before_anything_runs():
    loader = ps.Loader(ps.range(103).batch(16), world=5, rank=1)
    assert loader.plan.steps == len(loader) == 7
    assert loader.plan.samples == 103 and loader.plan.batch_samples == 16
    assert loader.plan.cut(0) == [4, 3, 3, 3, 3] and sum(loader.plan.cut(6)) == 7
    assert "7 steps" in loader.plan.explain()
    assert loader.plan.check()["wrong"] is None
    assert json.loads(loader.plan.serialize())
    drop = ps.Loader(ps.range(103).batch(16), tail="drop")
    assert drop.plan.tail_cost["dropped"] == 7


def test_state_is_plain_json_and_resumes_anywhere():
    def dataset(size):
        return ps.range(200).shuffle(seed=5).map(lambda x: x * 2, name="double").batch(size)

    loader = ps.Loader(dataset(16))
    whole = rows_of(ps.Loader(dataset(16)))
    seen = []
    for batch in loader:
        seen += batch.numpy().tolist()
        state = json.loads(json.dumps(loader.state_dict()))
        if batch.step == 4:
            break
    for size, threads in ((16, 0), (16, 2), (25, 1)):
        other = ps.Loader(dataset(size), threads=threads)
        other.load_state_dict(state)
        assert seen + rows_of(other) == whole
    shares = []
    for rank in range(3):
        other = ps.Loader(dataset(16), world=3, rank=rank)
        other.load_state_dict(state)
        shares.append(steps_of(other))
    assert seen + [row for step in zip(*shares) for share in step for row in share] == whole


def test_state_after_the_last_batch_is_the_next_epoch():
    loader = ps.Loader(ps.range(6).batch(2))
    states = [loader.state_dict() for _ in loader]
    assert (states[-1]["epoch"], states[-1].get("step", 0)) == (1, 0)


def test_state_is_that_of_the_newest_iterator():
    loader = ps.Loader(ps.range(10).batch(1))
    older, newer = iter(loader), iter(loader)
    for _ in range(6):
        next(older)
    next(newer)
    assert loader.state_dict()["step"] == 1
    assert loader.state_dict()["epoch"] == 1


def test_a_state_of_other_data_is_rejected_with_the_difference():
    state = ps.Loader(ps.range(10).shuffle(seed=1).batch(2)).state_dict()
    with pytest.raises(ps.StateError, match="seed"):
        ps.Loader(ps.range(10).shuffle(seed=2).batch(2)).load_state_dict(state)
    for garbled in ({}, {"version": 1}, "{", 7, None):
        with pytest.raises(ps.StateError):
            ps.Loader(ps.range(10).batch(2)).load_state_dict(garbled)


def test_set_epoch_chooses_the_order():
    loader = ps.Loader(ps.range(20).shuffle(seed=1).batch(20))
    epochs = [rows_of(loader) for _ in range(4)]
    loader.set_epoch(2)
    assert [rows_of(loader), rows_of(loader)] == epochs[2:]
    with pytest.raises(ps.ConfigError):
        loader.set_epoch(-1)


def test_step_replays_one_step():
    loader = ps.Loader(ps.range(40).shuffle(seed=3).batch(8))
    steps = steps_of(loader)
    loader.set_epoch(0)
    assert [loader.step(s).numpy().tolist() for s in (3, 0, 4)] == [steps[3], steps[0], steps[4]]
    with pytest.raises(ps.ConfigError, match="5 steps"):
        loader.step(5)


def test_report_counts_and_ledger_lists():
    def fail(x):
        if x == 13:
            raise ValueError("unlucky")
        return x

    loader = ps.Loader(ps.range(50).map(fail).batch(10), on_error="skip")
    assert sum(len(batch) for batch in loader) == 49
    assert loader.ledger.count == len(loader.ledger) == 1
    entry = loader.ledger[0]
    assert entry["number"] == 13 and entry["step"] == 1 and "unlucky" in entry["reason"]
    assert "unlucky" in str(loader.ledger)
    report = loader.report()
    assert report["steps"] == 5 and report["rows"] >= 49 and report["wait_seconds"] >= 0
    assert report["skipped"] == 1
    assert report["epoch"] == 0 and report == dict(report)
    text = str(report)
    assert text.startswith(f"epoch 0: 5 steps, {report['rows']} samples in ")
    assert text.splitlines()[1] == report.verdict


def test_a_report_of_counted_epochs_has_the_epoch_of_the_loader():
    loader = ps.Loader(ps.range(40).batch(10), steps_per_epoch=2)
    for _ in range(3):
        list(loader)
    assert loader.report()["epoch"] == loader.epoch
    assert str(loader.report()).startswith(f"epoch {loader.epoch}: ")


def test_ledger_file_has_a_line_for_each(tmp_path):
    file = tmp_path / "ledger.jsonl"
    loader = ps.Loader(ps.range(20).map(lambda x: 1 // int(x % 10) or x).batch(10), on_error="skip",
                       ledger_file=file)
    list(loader)
    entries = [json.loads(line) for line in file.read_text().splitlines()]
    assert [entry["number"] for entry in entries] == [0, 10]
    assert entries == list(loader.ledger)


def test_skip_limit_ends_the_run():
    loader = ps.Loader(ps.range(100).map(lambda x: 1 // 0).batch(10), on_error="skip",
                       skip_limit=5)
    with pytest.raises(ps.SampleError, match="division"):
        list(loader)


def test_views_keep_their_slab():
    loader = ps.Loader(ps.range(1000).batch(10))
    kept = [batch.numpy() for batch in loader]
    gc.collect()
    list(loader)  # cycles through the slabs
    assert np.concatenate(kept).tolist() == list(range(1000))
    assert kept[0].flags.writeable and kept[0].base is not None


def test_keeping_every_batch_works(table):
    batches = list(ps.Loader(ps.from_tensor_slices(table).batch(3)))
    assert np.concatenate([batch["id"] for batch in batches]).tolist() == list(range(40))
    assert [batch.step for batch in batches] == list(range(14))


def test_batches_of_tuples_unpack_and_of_dicts_have_keys(table):
    x, y = next(iter(ps.Loader(ps.zip(ps.range(4), ps.range(4, 8)).batch(4))))
    assert x.tolist() == [0, 1, 2, 3] and y.tolist() == [4, 5, 6, 7]
    batch = next(iter(ps.Loader(ps.from_tensor_slices(table).batch(4))))
    assert list(batch) == batch.keys() == ["id", "x"]
    assert "x" in batch and "y" not in batch and len(batch) == batch.rows == 4
    assert batch.row(2)["id"] == 2
    with pytest.raises(KeyError, match="no field"):
        batch["y"]
    pair = next(iter(ps.Loader(ps.zip(ps.range(4), ps.range(4, 8)).batch(4))))
    assert pair[1].tolist() == pair[-1].tolist() == [4, 5, 6, 7]
    with pytest.raises(IndexError):
        pair[2]


def test_dlpack_shares_the_memory():
    batch = next(iter(ps.Loader(ps.from_tensor_slices(np.arange(6.0)).batch(6))))
    shared = np.from_dlpack(batch.dlpack())
    batch.numpy()[0] = 99
    assert shared[0] == 99
    shared = np.from_dlpack(batch.numpy())
    del batch
    gc.collect()
    assert shared.tolist() == [99, 1, 2, 3, 4, 5]


def test_bfloat16_is_refused_by_numpy_and_names_torch():
    dataset = ps.from_tensor_slices({"x": np.arange(4, dtype=np.float32)}).map(
        ps.cast("bfloat16", "x"))
    batch = next(iter(ps.Loader(dataset.batch(4))))
    with pytest.raises(ps.ConfigError, match=r"bfloat16.*\.torch\(\)"):
        batch["x"]
    assert batch.dlpack("x").__dlpack_device__() == (1, 0)


def test_torch_tensors_share_the_memory():
    torch = pytest.importorskip("torch")
    data = {"x": np.arange(8, dtype=np.float32), "n": (np.arange(8), np.arange(8) % 2 == 0)}
    batch = next(iter(ps.Loader(ps.from_tensor_slices(data).batch(8))))
    tensors = batch.torch()
    assert tensors["x"].dtype == torch.float32 and tensors["n"][1].dtype == torch.bool
    tensors["x"][0] = 7
    assert batch["x"][0] == 7
    low = ps.from_tensor_slices(np.arange(4, dtype=np.float32)).map(ps.cast("bfloat16"))
    assert next(iter(ps.Loader(low.batch(4)))).torch().dtype == torch.bfloat16


def test_without_torch_the_error_says_so():
    code, out, error = run_program("""
        import sys
        sys.modules["torch"] = None        # as if it were not installed
        import penstock as ps
        batch = next(iter(ps.Loader(ps.range(4).batch(4))))
        try:
            batch.torch()
        except ImportError as error:
            print(error)
    """)
    assert code == 0, error
    assert "torch, which is not installed: pip install torch" in out


def test_context_manager_stops_and_the_loader_stays_usable():
    with ps.Loader(ps.range(100).batch(10)) as loader:
        next(iter(loader))
    assert len(list(loader)) == 10


def test_dropping_a_loader_stops_it():
    class Held:
        pass

    held = Held()
    alive = weakref.ref(held)

    def work(x, held=held):
        return x

    loader = ps.Loader(ps.range(10**9).map(work).batch(64))
    next(iter(loader))
    del held, work, loader
    for _ in range(100):
        gc.collect()
        if alive() is None:
            break
    assert alive() is None


def test_debug_runs_in_the_calling_thread():
    threads = set()
    dataset = ps.range(10).map(lambda x: threads.add(threading.get_ident()) or x).batch(5)
    assert rows_of(ps.Loader(dataset, debug=True)) == list(range(10))
    assert threads == {threading.get_ident()}
    assert rows_of(ps.Loader(dataset, threads=0)) == list(range(10))


def test_threads_that_share_one_iterator_raise():
    gate = threading.Event()
    loader = ps.Loader(ps.range(4).map(lambda x: gate.wait(20) and x).batch(2))
    loop = iter(loader)
    first = threading.Thread(target=lambda: next(loop))
    first.start()
    try:
        with pytest.raises(ps.ConfigError, match="another thread"):
            while True:
                next(loop)
    finally:
        gate.set()
        first.join()


def test_threads_with_separate_iterators_get_whole_epochs():
    loader = ps.Loader(ps.range(500).shuffle(seed=1).batch(7))
    seen = [None] * 4

    def consume(number):
        seen[number] = rows_of(loader)

    threads = [threading.Thread(target=consume, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(sorted(rows) == list(range(500)) for rows in seen)


def test_the_third_loop_of_one_batch_is_warned_about(capfd):
    loader = ps.Loader(ps.range(100).batch(10))
    for _ in range(2):
        next(iter(loader))
    list(loader)
    assert "three iterators" not in capfd.readouterr().err
    for _ in range(5):
        next(iter(loader))
    assert capfd.readouterr().err.count("three iterators") == 1


def test_world_comes_from_the_environment(monkeypatch):
    for name, value in {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2",
                        "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    loader = ps.Loader(ps.range(8).batch(4))
    assert (loader.plan.world, loader.plan.rank) == (2, 1)
    assert rows_of(loader) == [2, 3, 6, 7]
    with pytest.raises(ps.ConfigError, match="shares have no sample.*tail=even"):
        ps.Loader(ps.range(9).batch(4))
    assert len(list(ps.Loader(ps.range(9).batch(4), empty="deliver"))[-1]) == 0
    assert rows_of(ps.Loader(ps.range(9).batch(4), world=1, rank=0)) == list(range(9))


def test_length_hint_is_the_number_of_remaining_steps():
    loop = iter(ps.Loader(ps.range(10).batch(2)))
    next(loop)
    assert loop.__length_hint__() == 4


def test_endless_data_runs_until_the_loop_breaks():
    loader = ps.Loader(ps.range(3).repeat().batch(2))
    assert loader.plan.steps is None
    seen = []
    for batch in loader:
        seen.append(batch.numpy().tolist())
        if len(seen) == 4:
            break
    assert seen == [[0, 1], [2, 0], [1, 2], [0, 1]]
