"""The articles' programs, in their original form; docs/scenarios.md lists them by name."""

import itertools
import json
import os
import signal
import threading

import numpy as np
import pytest
from article import (
    REPLICAS,
    Adam,
    AdamW,
    Batches,
    Fit,
    InnerIterator,
    LightOrDark,
    Meeting,
    Sgd,
    by_hand,
    devices,
    gradients,
    ids_of_step,
    in_steps,
    influences,
    png,
    refusal_of,
    write_dark_and_light,
)
from conftest import rows_of, steps_of

import penstock as ps

# Parallel is the default; a machine with one core uses two threads here.
TWO = None if len(os.sched_getaffinity(0)) > 1 else 2

# The articles' own programs


def test_a000_sequence_uneven():
    for replicas in REPLICAS:
        fit = Fit(ps.from_sequence(Batches([3] * 7)), replicas)
        assert fit.steps == [7] and fit.ids == [list(range(21))]
        assert np.allclose(fit.weights, by_hand(in_steps(21, 3)), atol=1e-12)


def test_a000_sequence_even():
    batches = Batches([4] * 7)
    fit = Fit(ps.from_sequence(batches), 2)
    assert fit.ids == [list(range(28))]
    assert set(batches.calls) == set(range(7))
    assert len(batches.calls) == 8  # each once, and one again at the very end


def test_a000_sequence_odd_batch():
    """One batch of 3 among batches of 4, wherever the shuffle puts it."""
    sizes = [3 if i == 5 else 4 for i in range(7)]
    orders = set()
    for seed in range(5):
        dataset = ps.from_sequence(Batches(sizes)).shuffle(seed=seed)
        steps = steps_of(ps.Loader(dataset))
        assert sorted(sum(steps, [])) == list(range(27))
        orders.add(next(i for i, step in enumerate(steps) if len(step) == 3))
        for replicas in REPLICAS:
            fit = Fit(dataset, replicas)
            assert fit.ids == [sum(steps, [])]
            assert np.allclose(fit.weights, by_hand(steps), atol=1e-12)
    assert len(orders) > 1  # the odd one is at different places


def test_a000_zero_padding():
    for replicas in REPLICAS:
        loaders = [ps.Loader(ps.range(21).batch(4), world=replicas, rank=rank, tail="pad")
                   for rank in range(replicas)]
        for shares in zip(*loaders):
            means = [share.weight.mean() * share.loss_scale for share in shares]
            assert np.isclose(np.mean(means), 1.0)  # every sample's loss is 1
            assert sum(share.valid_count for share in shares) == shares[0].global_valid
    assert ps.Loader(ps.range(21).batch(4), tail="pad").plan.tail_cost["padded"] == 3


def test_a000_double_batch(capfd):
    def batches():
        for i in range(7):
            yield {"id": np.arange(i * 3, i * 3 + 3), "x": np.zeros((3, 2))}

    loader = ps.Loader(ps.from_generator(batches).batch(1))
    weights = np.zeros(3)
    for batch in loader:
        assert batch["id"].shape == (1, 3)  # a batch of one batch
        weights = weights - 0.1 * gradients(weights, batch["id"][0]).mean(axis=0)
    assert np.allclose(weights, by_hand(in_steps(21, 3)), atol=1e-12)
    del loader
    assert ("looks like a batch of 3 rows already; if it is one, unbatch() before batch()"
            in capfd.readouterr().err)
    known = ps.Loader(ps.from_generator(batches, spec={
        "id": ps.Field("int64", (3,)), "x": ps.Field("float64", (3, 2))}).batch(1))
    assert "unbatch() before batch()" in known.plan.explain()  # before anything runs
    with pytest.raises(ps.ConfigError, match="already batches"):
        ps.from_sequence(Batches([3] * 7)).batch(1)


def test_a000_scope():
    strategy, other = ps.MirroredStrategy(devices(2)), ps.OneDeviceStrategy()
    with pytest.raises(LookupError, match="my own"):
        with strategy.scope():
            raise LookupError("my own")
    outer, inner = strategy.scope(), other.scope()
    outer.__enter__()
    inner.__enter__()
    with pytest.raises(ps.ConfigError, match="scope"):
        outer.__exit__(None, None, None)
    inner.__exit__(None, None, None)


def test_a000_popping_sequence(capfd):
    class Popping(Batches):
        def __init__(self, sizes):
            super().__init__(sizes)
            self.left = list(range(len(sizes)))

        def __getitem__(self, index):
            return np.array([self.left.pop(0)])

    loader = ps.Loader(ps.from_sequence(Popping([1] * 7)), threads=0)
    assert rows_of(loader) == list(range(7))
    del loader
    assert "depend on the index alone" in capfd.readouterr().err


def test_a001_batch_100_by_16():
    for replicas in REPLICAS:
        fit = Fit(ps.range(100).batch(16), replicas)
        assert fit.steps == [7] and fit.ids == [list(range(100))]
        assert np.allclose(fit.weights, by_hand(in_steps(100, 16)), atol=1e-12)


def test_a001_finite_generator():
    for replicas in (1, 2, 3):
        fit = Fit(ps.from_generator(lambda: iter(range(28))).batch(4), replicas, epochs=3)
        assert fit.steps == [7, 7, 7] and fit.losses == [1.0, 1.0, 1.0]


def test_a001_repeat_steps():
    fit = Fit(ps.range(27).batch(4).repeat(), 3, epochs=3, steps_per_epoch=10)
    assert fit.steps == [10] * 3
    assert sum(fit.ids, []) == [i % 27 for i in range(4 * 27 + 2 * 4)]


def test_a001_take():
    assert Fit(ps.range(100).batch(16).take(5), 2).ids == [list(range(80))]


def test_a002_shard_by_replica():
    def shard():
        ps.range(20).shard(2, ps.replica_context().id)

    assert "distribute" in refusal_of(shard)
    with ps.MirroredStrategy(devices(2)).scope():
        assert "distribute" in refusal_of(shard)


def test_a002_map_batch_cache_prefetch():
    decoded = []
    dataset = ps.range(20).map(lambda x: decoded.append(int(x)) or x, name="decode")
    loader = ps.Loader(dataset.batch(4).cache().prefetch(2))
    assert [rows_of(loader) for _ in range(3)] == [list(range(20))] * 3
    assert sorted(decoded) == list(range(20))


def test_a002_run_undistributed():
    strategy = ps.MirroredStrategy(devices(3))
    dataset = ps.range(20).batch(10)
    for wrong in (dataset, next(iter(ps.Loader(dataset)))):
        with pytest.raises(TypeError, match=r"strategy\.distribute"):
            strategy.run(lambda share: 1.0, wrong)
    for step in strategy.distribute(dataset):
        means = strategy.run(lambda share: share.numpy().mean(), step)
        assert strategy.reduce("mean", means) == np.mean(ids_of_step(step))


def test_a003_slow_sequence():
    meeting = Meeting()

    class Slow(Batches):
        def __getitem__(self, index):
            if index > 1:  # the first one shows the fields of the rows
                with meeting:
                    pass
            return super().__getitem__(index)

    assert rows_of(ps.Loader(ps.from_sequence(Slow([2] * 20)), threads=TWO)) == list(range(40))
    assert meeting.met.is_set()


def test_a003_inner_iterator(capfd):
    loader = ps.Loader(ps.from_sequence(InnerIterator([1] * 14)), threads=0)
    assert rows_of(loader) == list(range(14))
    del loader
    assert "from_generator" in capfd.readouterr().err


def test_a003_brightness_range(tmp_path):
    for i in range(8):
        draw = np.random.default_rng(i)
        png(tmp_path / f"{i}.png", draw.integers(0, 256, (100, 100, 3), np.uint8))
    files = ps.from_paths(sorted(tmp_path.glob("*.png")))

    def most_change(chain, white):
        plain, brighter = files.map(chain), files.map(chain.random_brightness(0.2))
        return max(np.abs(brighter.sample(i)["image"] - plain.sample(i)["image"].astype(float))
                   .max() / white for i in range(8))

    chain = ps.image.decode().resize(64, 64)
    in_bytes, in_floats = most_change(chain, 255), most_change(chain.to_float(), 1)
    assert 0.05 < in_bytes <= 0.202  # a fifth of white, and not of a level
    assert abs(in_bytes - in_floats) < 0.005  # 0.2 means the same on both, but for rounding
    with pytest.raises(ps.ConfigError, match="brightness"):
        files.map(chain.random_brightness(0.001))  # without effect
    with pytest.raises(ps.ConfigError, match="0.2 is 51 of 255"):
        chain.random_brightness(51)


def test_d_corrupt_png(tmp_path):
    (tmp_path / "a").mkdir()
    for i in range(20):
        png(tmp_path / "a" / f"{i:02}.png", np.full((32, 32, 3), i, np.uint8))
    (tmp_path / "a" / "07.png").write_bytes((tmp_path / "a" / "06.png").read_bytes()[:60])
    ds = ps.image_folder(tmp_path).map(ps.image.decode().resize(16, 16)).batch(4)
    with pytest.raises(ps.SampleError, match=r"PNG.*sample 7.*a/07\.png.*op image decode"):
        list(ps.Loader(ds))
    for world in (1, 2, 3):
        loaders = [ps.Loader(ds, world=world, rank=r, on_error="skip") for r in range(world)]
        shares = [list(loader) for loader in loaders]
        assert [len(steps) for steps in shares] == [5] * world
        ids = sorted(int(i) for steps in shares for share in steps for i in share.sample_id)
        assert ids == [i for i in range(20) if i != 7]
        assert "07.png" in "".join(str(loader.ledger) for loader in loaders)


def test_a003_full_pipeline(tmp_path):
    """PNGs of 100 x 100 to floats of 64 x 64, flipped, brighter or darker, to a trained model."""
    write_dark_and_light(tmp_path, 23)
    chain = ps.image.decode().resize(64, 64)
    train = (ps.image_folder(tmp_path).shuffle(seed=7)
             .map(chain.random_flip().random_brightness(0.1).to_float()).batch(8))
    strategy = ps.MirroredStrategy(devices(3))
    feed = strategy.distribute(train)
    model = LightOrDark()
    for _ in range(60):
        seen = []
        for step in feed:
            model.step(strategy.reduce("mean", strategy.run(model.gradient, step)))
            seen.append(step.valid_count)
        assert seen == [8, 8, 7]
    changing = ps.Loader(ps.image_folder(tmp_path)
                         .map(chain.random_brightness(0.1).to_float()).batch(23))
    first, second = (next(iter(changing))["image"].mean(axis=(1, 2, 3)) for _ in range(2))
    assert 0.02 < abs(first - second).max() < 0.21  # brighter or darker in each epoch
    plain = ps.Loader(ps.image_folder(tmp_path).map(chain.to_float()).batch(23))
    _, guessed = model.guess(next(iter(plain))["image"])
    assert (guessed > 0.5).tolist() == [False] * 12 + [True] * 11


def test_a004_iterator_per_step(capfd):
    loader = ps.Loader(ps.range(20).batch(2))
    for _ in range(15):
        next(iter(loader))
    assert "keep one iterator" in capfd.readouterr().err


def test_a004_map_arity():
    def only(x):
        return x

    with pytest.raises(ps.ConfigError, match=r"map: only\(x\).*\(i64\[\], i64\[\]\)"):
        ps.zip(ps.range(3), ps.range(3)).map(only)


def test_a004_slow_map():
    seen, meeting = [], Meeting()

    def slow(x):
        seen.append(int(x))
        with meeting:
            return x

    dataset = ps.range(100).map(slow, spec=ps.Field("int64")).batch(2)
    assert rows_of(ps.Loader(dataset, threads=TWO)) == list(range(100))
    assert sorted(seen) == list(range(100)) and meeting.met.is_set()


def test_a004_prefetch():
    ahead = threading.Event()

    def watch(x):
        if x == 9:
            ahead.set()
        return x

    dataset = ps.range(100).map(watch, spec=ps.Field("int64")).batch(2)
    for asked, steps in ((dataset, "2 steps ahead"), (dataset.prefetch(8), "8 steps ahead")):
        ahead.clear()
        loader = ps.Loader(asked, threads=1)
        loop = iter(loader)
        next(loop)
        decisions = loader.report()["decisions"]
        assert decisions and decisions[0].startswith(steps)
        assert steps[0] == "2" or ahead.wait(20)  # step 4 is computed before it is requested


def test_a004_threads():
    loaders = [ps.Loader(ps.range(10**6).map_batch(lambda x: x + 1).batch(4)) for _ in range(16)]
    loops = [iter(loader) for loader in loaders]
    for loop in loops:
        next(loop)
    with open("/proc/self/status", encoding="utf-8") as file:
        threads = next(int(line.split()[1]) for line in file if line.startswith("Threads"))
    import os
    assert threads < 16 + 3 * len(os.sched_getaffinity(0))


# Uneven data, weights, the end


def test_b_103_by_16():
    for replicas in REPLICAS:
        fit = Fit(ps.range(103).batch(16), replicas)
        assert fit.steps == [7] and fit.ids == [list(range(103))]
        assert np.allclose(fit.weights, by_hand(in_steps(103, 16)), atol=1e-12)
        for loop in ("mean", "global", "averaged"):
            assert np.allclose(influences(103, 16, replicas, loop), 1.0, atol=1e-5)


def test_b_tail_of_one():
    for loop in ("mean", "averaged"):
        assert np.allclose(influences(97, 16, 4, loop), 1.0, atol=1e-5)


def test_b_custom_mean():
    for replicas in REPLICAS:
        strategy = ps.MirroredStrategy(devices(replicas))
        for step in strategy.distribute(ps.range(97).batch(16)):
            assert strategy.reduce("mean", strategy.run(lambda share: 1.0, step)) == 1.0
        assert np.allclose(influences(97, 16, replicas, "mean"), 1.0)


def test_b_custom_global():
    for samples in (103, 97):
        for replicas in REPLICAS:
            assert np.allclose(influences(samples, 16, replicas, "global"), 1.0)


def test_b_10_batches_4_replicas():
    strategy = ps.MirroredStrategy(devices(4))
    for source in (ps.range(40), ps.from_generator(lambda: iter(range(40)))):
        feed = strategy.distribute_from_function(lambda context, source=source: source.batch(4))
        steps = list(feed)
        assert [sum(share.rows for share in step.shares) for step in steps] == [16, 16, 8]
        assert [share.rows for share in steps[-1].shares] == [2, 2, 2, 2]
        assert sum(map(ids_of_step, steps), []) == list(range(40))


def test_b_cut_rule():
    strategy = ps.MirroredStrategy(devices(4))
    sources = (ps.range(20), ps.from_tensor_slices(np.arange(20)),
               ps.from_generator(lambda: iter(range(20))), ps.from_index(20, lambda i: i))
    for source in sources:
        for batch, cut in ((9, [3, 2, 2, 2]), (10, [3, 3, 2, 2])):
            step = strategy.distribute(source.batch(batch)).next()
            assert [share.rows for share in step.shares] == cut


def test_b_drop_remainder():
    loader = ps.Loader(ps.range(103).shuffle(seed=1).batch(16, drop_remainder=True))
    assert loader.plan.tail_cost["dropped"] == 7 and "7" in loader.plan.explain()
    lost = [set(range(103)) - set(rows_of(loader)) for _ in range(3)]
    assert [len(each) for each in lost] == [7, 7, 7] and lost[0] != lost[1] != lost[2]


def test_b_ghost_step():
    """A step without samples would change weights with momentum or decay."""
    stream = ps.from_generator(lambda: iter(range(28)))
    for optimizer, replicas in itertools.product((Sgd, Adam, AdamW), (1, 2)):
        by_one_device = optimizer(np.zeros(3))
        for ids in in_steps(28, 4) * 3:
            by_one_device.step(gradients(by_one_device.weights, ids).mean(axis=0))
        unknown = Fit(stream.batch(4), replicas, epochs=3, optimizer=optimizer)
        known = Fit(ps.range(28).batch(4), replicas, epochs=3, optimizer=optimizer)
        assert unknown.iterations == 21 and unknown.losses == [1.0] * 3
        assert unknown.weights.tobytes() == known.weights.tobytes()
        assert np.allclose(unknown.weights, by_one_device.weights, atol=1e-12)


def test_b_short_generator():
    def dataset():
        return ps.from_generator(lambda: iter(range(28))).batch(4)

    with pytest.raises(ps.ConfigError, match="7 steps.*10"):
        Fit(dataset(), 2, epochs=3, steps_per_epoch=10)
    assert Fit(dataset(), 2, epochs=3, steps_per_epoch=10, short_epoch=True).steps == [7, 7, 7]
    assert Fit(dataset().repeat(), 2, epochs=3, steps_per_epoch=10).steps == [10, 10, 10]


def test_b_steps_below_pass():
    try:
        fit = Fit(ps.range(7).batch(1), 2, epochs=3, steps_per_epoch=5)
    except ps.ConfigError as error:
        pytest.fail(f"an epoch does not continue in the next pass: {error}")
    assert fit.ids == [[0, 1, 2, 3, 4], [5, 6, 0, 1, 2], [3, 4, 5, 6, 0]]
    again = Fit(ps.range(7).batch(1), 2, epochs=3, steps_per_epoch=5, restart=True)
    assert again.ids == [[0, 1, 2, 3, 4]] * 3


def test_b_peek():
    fit = Fit(ps.from_generator(lambda: iter(range(24))).batch(2), 2, epochs=3, steps_per_epoch=4)
    assert sum(fit.ids, []) == list(range(24))


def test_b_validation():
    strategy = ps.MirroredStrategy(devices(3))
    feed = strategy.distribute(ps.range(97).batch(16))
    for _ in range(3):
        seen, total = 0, 0.0
        for step in feed:
            sums = strategy.run(lambda share: ps.Counted(float(share.numpy().sum()), len(share)),
                                step)
            total += strategy.reduce("sum", sums)
            seen += step.valid_count
        assert seen == 97
        assert total / seen == 48.0


# Order, cache, shards


def test_c_shuffle_then_shard():
    for shards in (2, 4):
        rows = [rows_of(ps.Loader(ps.range(100).shuffle().shard(shards, i).batch(10)))
                for i in range(shards)]
        assert sorted(sum(rows, [])) == list(range(100))


def test_c_cache_partial(tmp_path):
    calls = []
    data = ps.range(100).map(lambda x: calls.append(int(x)) or x, name="x")
    for cached, last in ((data.cache(), 8), (data.cache(tmp_path), 8), (data.cache(tmp_path), 90)):
        loader = ps.Loader(cached.take(last).batch(4))
        assert all(rows_of(loader) == list(range(last)) for _ in range(3))
    assert sorted(calls) == sorted([*range(8), *range(90)])


def test_c_cache_two_readers(tmp_path):  # two processes: test_stored.py
    calls = []
    data = ps.range(20).map(lambda x: calls.append(int(x)) or x, name="x")
    for dataset in (data.cache().batch(4), data.cache(tmp_path).batch(4)):
        first, second = iter(ps.Loader(dataset)), iter(ps.Loader(dataset))
        assert all((a.numpy() == b.numpy()).all() for a, b in zip(first, second))
        calls.clear()
        assert rows_of(ps.Loader(dataset)) == list(range(20)) and calls == []


def test_c_random_cache(capfd):
    noisy = ps.range(8).map(lambda x, rng: x + rng.normal(), name="noisy")
    wrong, right = ps.Loader(noisy.cache().batch(4)), ps.Loader(noisy.cache(place="auto").batch(4))
    assert rows_of(wrong) == rows_of(wrong) and rows_of(right) != rows_of(right)
    told = [line for line in capfd.readouterr().err.splitlines() if "cache" in line]
    assert len(told) == 1 and '"noisy"' in told[0] and "every epoch" in told[0]
    assert '"noisy"' in wrong.plan.explain().split("warning:")[1]
    assert "warning:" not in right.plan.explain() and "was moved" in right.plan.explain()


def test_c_workers_epochs():
    dataset = ps.from_sequence(Batches([10] * 20), spec=ps.Field("int64")).shuffle(seed=3)
    fit = Fit(dataset.map(lambda x: (x, os.getpid()), row_wise=True, workers=2)
              .map(lambda x, process: x, row_wise=True), 2, epochs=3)
    assert all(sorted(ids) == list(range(200)) for ids in fit.ids)
    assert fit.ids[0] != fit.ids[1] != fit.ids[2]
    assert fit.ids == Fit(dataset, 2, epochs=3).ids  # workers change nothing


# Bad input, stalls, stopping


def test_d_getitem_raises():
    class Broken(Batches):
        def __getitem__(self, index):
            if index == 3:
                raise OSError("disk on fire")
            return super().__getitem__(index)

    loop = iter(ps.Loader(ps.from_sequence(Broken([2] * 7))))
    assert [next(loop).step for _ in range(3)] == [0, 1, 2]
    with pytest.raises(OSError, match="disk on fire") as raised:
        next(loop)
    assert "step 3" in raised.value.__notes__[0]


def test_d_ragged_last():
    fit = Fit(ps.from_sequence(Batches([4, 4, 3])), 2)
    steps = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10]]
    assert np.allclose(fit.weights, by_hand(steps), atol=1e-12)


def test_d_other_width():
    class Wide(Batches):
        def __getitem__(self, index):
            return np.zeros((2, 4 if index == 6 else 3))

    with pytest.raises(ps.SampleError, match=r"get\(6\).*\[4\].*\[3\]"):
        list(ps.Loader(ps.from_sequence(Wide([2] * 7))))


def test_d_blocked():
    never = threading.Event()

    class Blocked(Batches):
        def __getitem__(self, index):
            if index == 2:
                never.wait(5)
            return super().__getitem__(index)

    loader = ps.Loader(ps.from_sequence(Blocked([2] * 7)), stall_after=0.2, stall_is_error=True)
    with pytest.raises(ps.Error, match=r"step 2.*Blocked|Blocked.*step 2"):
        list(loader)
    never.set()


def test_d_worker_killed(tmp_path):
    def load(x):
        if x in (7, 31) and not (tmp_path / str(x)).exists():
            (tmp_path / str(x)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return x * 2

    loader = ps.Loader(ps.range(40).map(load, workers=2).batch(8))
    assert [row for batch in loader for row in batch.numpy().tolist()] == list(range(0, 80, 2))
    assert len(os.listdir(tmp_path)) == 2


def test_d_resume_replicas():
    data = ps.range(80).shuffle(seed=1).batch(16)
    feed = ps.MirroredStrategy(devices(2)).distribute(data)
    seen = [ids_of_step(feed.next()) for _ in range(2)]
    state = json.loads(json.dumps(feed.state_dict()))
    for replicas in (1, 3, 4):
        other = ps.MirroredStrategy(devices(replicas)).distribute(data)
        other.load_state_dict(state)
        rest = [ids_of_step(step) for step in other]
        assert sum(seen + rest, []) == rows_of(ps.Loader(data))


def test_d_resume_random():
    def loader():
        return ps.Loader(ps.range(20).map(lambda x, rng: x + rng.normal()).shuffle(seed=1).batch(3))

    whole = steps_of(loader())
    for stop in range(1, 7):
        first = loader()
        loop = iter(first)
        for _ in range(stop):
            next(loop)
        other = loader()
        other.load_state_dict(first.state_dict())
        assert steps_of(other) == whole[stop:]


def test_d_resume_size():
    data = np.zeros((10_000, 64, 64, 3), np.uint8)
    loader = ps.Loader(ps.from_tensor_slices(data).shuffle(seed=1).batch(64))
    next(iter(loader))
    assert len(json.dumps(loader.state_dict())) < 1024


def test_d_resume_fit():
    data = ps.range(20).shuffle(seed=1).batch(4)
    visits, loader = [], ps.Loader(data)
    visits += rows_of(loader) + rows_of(loader)
    for batch in loader:
        visits += batch.numpy().tolist()
        if batch.step == 2:
            break
    other = ps.Loader(data)
    other.load_state_dict(loader.state_dict())
    visits += rows_of(other) + rows_of(other)
    assert len(visits) == 80 and sorted(visits) == sorted(list(range(20)) * 4)


def test_d_ctrl_c():
    from test_processes import interrupted, quickest
    for kind in ("sleeps", "sequence"):  # one sample takes 3 s, one batch 12 s
        def once(kind=kind):
            took, code, error = interrupted(kind, 0.3)
            assert code == -2 and "KeyboardInterrupt" in error
            return took

        assert quickest(once, 1.0) < 1.0
