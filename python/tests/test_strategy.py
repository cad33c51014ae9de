"""Replicas: feeds, run, reduce, gather, scopes."""

import threading

import numpy as np
import pytest

import penstock as ps


@pytest.fixture
def strategy():
    return ps.MirroredStrategy(["cpu:0", "cpu:1", "cpu:2"])


def test_every_sample_goes_to_one_replica_once(strategy):
    feed = strategy.distribute(ps.range(103).shuffle(seed=7).batch(16))
    assert len(feed) == 7 and strategy.num_replicas_in_sync == 3
    seen = []
    for step in feed:
        counts = [share.rows for share in step.shares]
        assert max(counts) - min(counts) <= 1 and sum(counts) == step.global_valid
        made = strategy.run(lambda share: share.numpy().copy(), step)
        seen += strategy.gather(made).tolist()
    assert sorted(seen) == list(range(103))


def test_the_mean_divides_by_the_true_number_of_samples(strategy):
    values = np.random.default_rng(1).normal(size=50)
    feed = strategy.distribute(ps.from_tensor_slices(values).batch(7))
    done = 0
    for step in feed:
        expected = values[done:done + step.global_valid].mean()
        done += step.global_valid
        means = strategy.run(lambda share: share.numpy().mean(), step)
        sums = strategy.run(lambda share: ps.Counted(share.numpy().sum(), len(share)), step)
        rows = strategy.run(lambda share: share.numpy() * 1.0, step)
        assert np.isclose(strategy.reduce("mean", means), expected)
        assert np.isclose(strategy.reduce("mean", sums), expected)
        assert np.isclose(strategy.reduce("mean", rows, axis=0), expected)
        assert np.isclose(strategy.reduce("sum", rows, axis=0), expected * step.global_valid)
    assert done == 50


def test_structures_are_reduced_leaf_by_leaf(strategy):
    step = strategy.distribute(ps.range(6).batch(6)).next()
    made = strategy.run(lambda share: {"n": len(share), "x": (share.numpy() * 1.0, 2.0)}, step)
    assert strategy.reduce("sum", made)["n"] == 6
    assert strategy.reduce("sum", made)["x"][0].tolist() == [6, 9]
    assert strategy.gather(made)["x"][0].tolist() == [0, 1, 2, 3, 4, 5]


def test_a_replica_without_rows_is_not_called(strategy):
    feed = strategy.distribute(ps.range(4).batch(3))
    last = list(feed)[-1]
    called = []
    made = strategy.run(lambda share: called.append(share.rows) or 5.0, last)
    assert called == [1] and made.values == [5.0, None, None] and made.counts == [1, 0, 0]
    assert strategy.reduce("mean", made) == 5.0


def test_each_replica_has_its_thread_and_collectives_synchronize_them(strategy):
    step = strategy.distribute(ps.range(6).batch(6)).next()
    threads = set()

    def body(replica, share):
        threads.add(threading.get_ident())
        assert replica.num_replicas_in_sync == 3 and replica.count == 2
        assert ps.replica_context().id == replica.id
        replica.barrier()
        mean = replica.all_reduce("mean", float(share.numpy().mean()))
        total = replica.all_reduce("sum", share.numpy().sum(), count=replica.count)
        return mean, total, replica.device

    made = strategy.run(body, step)
    assert len(threads) == 3 and threading.get_ident() in threads
    assert [value[0] for value in made] == [2.5] * 3 and [value[1] for value in made] == [15] * 3
    assert [value[2] for value in made] == ["cpu:0", "cpu:1", "cpu:2"]


def test_the_first_error_is_unchanged_and_the_strategy_stays_usable(strategy):
    step = strategy.distribute(ps.range(6).batch(6)).next()

    class Diverged(Exception):
        pass

    def body(replica, share):
        if replica.id == 1:
            raise Diverged("loss is nan")
        replica.barrier()

    with pytest.raises(Diverged, match="loss is nan"):
        strategy.run(body, step)
    assert strategy.reduce("sum", strategy.run(lambda share: 1, step)) == 3


def test_running_undistributed_data_is_a_type_error_that_names_distribute(strategy):
    batch = next(iter(ps.Loader(ps.range(4).batch(4))))
    for wrong in (batch, ps.range(4).batch(4), np.arange(3), None):
        with pytest.raises(TypeError, match=r"strategy\.distribute"):
            strategy.run(lambda share: None, wrong)
    feed = strategy.distribute(ps.range(4).batch(4))
    with pytest.raises(TypeError, match="distributed already"):
        strategy.distribute(feed)
    with pytest.raises(TypeError, match="what run"):
        strategy.reduce("mean", [1, 2, 3])


def test_replica_ids_exist_only_inside_run():
    with pytest.raises(ps.ConfigError, match="distribute"):
        ps.replica_context()


def test_a_replica_is_invalid_after_its_call(strategy):
    step = strategy.distribute(ps.range(6).batch(6)).next()
    kept = strategy.run(lambda replica, share: replica, step)
    with pytest.raises(ps.ConfigError, match="has done its step"):
        kept[0].id


def test_epochs_of_a_feed(strategy):
    def epochs(feed):
        return [[int(step.shares[0].numpy()[0]) for step in feed] for _ in range(3)]

    data = ps.range(7).batch(1)
    assert epochs(strategy.distribute(data)) == [list(range(7))] * 3
    on = strategy.distribute(data, steps_per_epoch=5)
    assert epochs(on) == [[0, 1, 2, 3, 4], [5, 6, 0, 1, 2], [3, 4, 5, 6, 0]]
    restarted = strategy.distribute(data, steps_per_epoch=5, restart=True)
    assert epochs(restarted) == [[0, 1, 2, 3, 4]] * 3
    with pytest.raises(ps.ConfigError, match="repeat"):
        strategy.distribute(data, steps_per_epoch=10)


def test_leaving_a_loop_early_ends_its_epoch(strategy):
    feed = strategy.distribute(ps.range(10).batch(2))
    for step in feed:
        break
    assert [step.epoch for step in feed] == [1] * 5


def test_state_of_a_feed_loads_at_another_number_of_replicas(strategy):
    data = ps.range(40).shuffle(seed=3).batch(6)
    feed = strategy.distribute(data)
    for _ in range(3):
        feed.next()
    other = ps.OneDeviceStrategy().distribute(data)
    other.load_state_dict(feed.state_dict())
    rest = [row for step in other for row in step.shares[0].numpy().tolist()]
    whole = [row for batch in ps.Loader(data) for row in batch.numpy().tolist()]
    assert rest == whole[18:]


def test_distribute_from_function_counts_per_replica(strategy):
    def make(context):
        assert context.num_replicas_in_sync == 3
        return ps.range(24).batch(context.per_replica_batch(12))

    feed = strategy.distribute_from_function(make)
    assert [[share.rows for share in step.shares] for step in feed] == [[4, 4, 4]] * 2


def test_scope_never_replaces_the_users_error(strategy):
    assert ps.get_strategy() is None
    with strategy.scope() as inside:
        assert inside is strategy and ps.get_strategy() is strategy
        with ps.OneDeviceStrategy().scope():
            assert ps.get_strategy() is not strategy
    assert ps.get_strategy() is None
    with pytest.raises(KeyError, match="mine"):
        with strategy.scope():
            raise KeyError("mine")
    assert ps.get_strategy() is None


def test_one_device_runs_in_the_calling_thread():
    one = ps.OneDeviceStrategy()
    step = one.distribute(ps.range(4).batch(4)).next()
    assert one.run(lambda share: threading.get_ident(), step)[0] == threading.get_ident()


def test_options_of_the_loader_are_options_of_the_feed(strategy):
    def fail(x):
        return 1 // 0 if x == 5 else x

    feed = strategy.distribute(ps.range(12).map(fail).batch(6), on_error="skip", tail="pad")
    assert sum(step.valid_count for step in feed) == 11
    assert len(feed.ledger) == 1
    with pytest.raises(TypeError):
        strategy.distribute(ps.range(12).batch(6), nonsense=3)


def test_missing_devices():
    for devices in ([], ["tpu:0"], ["cpu:0", "cpu:0"]):
        with pytest.raises(ps.ConfigError):
            ps.MirroredStrategy(devices)
    strategy = ps.MirroredStrategy(["cpu:0"])
    step = strategy.distribute(ps.range(2).batch(2)).next()
    with pytest.raises(ps.ConfigError, match="unknown operation"):
        strategy.reduce("max", strategy.run(lambda share: 1.0, step))
