"""Loader(steps_per_epoch=): epochs of a fixed number of steps that continue one another."""

import itertools
import json

import pytest
from conftest import steps_of

import penstock as ps


def numbers(count=7):
    return ps.range(count).shuffle(seed=3).batch(1)


def stream(count=7):
    return ps.from_generator(lambda: iter(range(count))).batch(1)


def passes(dataset, count):
    """The steps of `count` passes in sequence, by a plain loader."""
    plain = ps.Loader(dataset)
    return [step for _ in range(count) for step in steps_of(plain)]


@pytest.mark.parametrize("make", [numbers, stream])
def test_each_loop_has_that_many_steps_and_the_next_continues(make):
    loader = ps.Loader(make(), steps_per_epoch=3)
    epochs = [steps_of(loader) for _ in range(7)]
    assert [len(each) for each in epochs] == [3] * 7 and len(loader) == 3
    assert sum(epochs, []) == passes(make(), 3)  # 21 steps are three passes of 7
    assert loader.epoch == 7


def test_endless_data_in_epochs():
    loader = ps.Loader(ps.range(5).repeat().batch(2), steps_per_epoch=4)
    epochs = [steps_of(loader) for _ in range(2)]
    assert epochs == [[[0, 1], [2, 3], [4, 0], [1, 2]], [[3, 4], [0, 1], [2, 3], [4, 0]]]


def test_processes_take_the_same_steps():
    loaders = [ps.Loader(ps.range(14).batch(2), world=2, rank=rank, steps_per_epoch=5)
               for rank in range(2)]
    shares = [[steps_of(loader) for _ in range(2)] for loader in loaders]
    assert [[len(epoch) for epoch in rank] for rank in shares] == [[5, 5]] * 2
    rows = [row for rank in shares for epoch in rank for step in epoch for row in step]
    assert sorted(rows) == sorted([*range(14), *range(6)])


@pytest.mark.parametrize("make", [numbers, stream,
                                  lambda: ps.range(5).repeat().batch(2)])
def test_a_state_resumes_at_every_step(make):
    whole = ps.Loader(make(), steps_per_epoch=3)
    expected = [step for _ in range(5) for step in steps_of(whole)]
    for stop in range(1, 12):
        first = ps.Loader(make(), steps_per_epoch=3)
        loops = itertools.chain.from_iterable(first for _ in range(5))
        for _ in range(stop):
            next(loops)
        state = json.loads(json.dumps(first.state_dict()))
        other = ps.Loader(make(), steps_per_epoch=3, threads=0)
        other.load_state_dict(state)
        assert other.epoch == stop // 3
        epochs = [steps_of(other) for _ in range(stop // 3, 5)]
        assert sum(epochs, []) == expected[stop:]
        assert [len(each) for each in epochs] == [3 - stop % 3, *[3] * (4 - stop // 3)]


def test_a_state_of_a_plain_loader_is_counted_in_epochs():
    plain = ps.Loader(numbers())
    loop = iter(plain)
    for _ in range(5):
        next(loop)
    loader = ps.Loader(numbers(), steps_per_epoch=3)
    loader.load_state_dict(plain.state_dict())
    assert loader.epoch == 1
    expected = passes(numbers(), 2)
    assert steps_of(loader) == expected[5:6] and steps_of(loader) == expected[6:9]


def test_a_state_is_shared_between_a_loader_and_a_feed():
    feed = ps.OneDeviceStrategy().distribute(numbers(), steps_per_epoch=3)
    for _ in range(4):
        if feed.next() is None:
            feed.next()
    loader = ps.Loader(numbers(), steps_per_epoch=3)
    loader.load_state_dict(feed.state_dict())
    assert loader.epoch == feed.epoch == 1
    loop = iter(loader)
    next(loop)
    feed.load_state_dict(loader.state_dict())
    assert [step.shares[0].numpy().tolist() for step in feed] == [
        batch.numpy().tolist() for batch in loop]


@pytest.mark.parametrize("options, epochs", [({}, [[5], [6, 0, 1]]),
                                             ({"restart": True}, [[0, 1, 2], [0, 1, 2]])])
@pytest.mark.parametrize("make", [lambda: ps.range(7).batch(1), stream])
def test_a_feed_loads_a_state_beyond_the_steps_of_its_epochs(make, options, epochs):
    plain = ps.Loader(make())
    loop = iter(plain)
    for _ in range(5):
        next(loop)
    feed = ps.OneDeviceStrategy().distribute(make(), steps_per_epoch=3, **options)
    feed.load_state_dict(plain.state_dict())
    assert [[int(step.shares[0].numpy()[0]) for step in itertools.islice(feed, 9)]
            for _ in range(2)] == epochs


def test_a_state_of_other_epochs_is_rejected():
    loader = ps.Loader(numbers(), steps_per_epoch=5)
    loop = iter(loader)
    for _ in range(4):
        next(loop)
    with pytest.raises(ps.StateError, match="after 4 steps of an epoch.*3 steps here"):
        ps.Loader(numbers(), steps_per_epoch=3).load_state_dict(loader.state_dict())


def test_leaving_a_loop_ends_its_epoch_and_the_data_continues():
    loader = ps.Loader(ps.range(7).batch(1), steps_per_epoch=3)
    for batch in loader:
        break
    assert steps_of(loader) == [[1], [2], [3]] and loader.epoch == 2


def test_an_unused_iterator_ends_no_epoch():
    loader = ps.Loader(ps.range(7).batch(1), steps_per_epoch=3)
    iter(loader)
    assert steps_of(loader) == [[0], [1], [2]] and loader.epoch == 1


def test_two_concurrent_loops_raise():
    loader = ps.Loader(ps.range(7).batch(1), steps_per_epoch=3)
    first = iter(loader)
    next(first)
    second = iter(loader)
    assert next(second).numpy().tolist() == [1]
    with pytest.raises(ps.ConfigError, match="a newer `for` has started.*a second Loader"):
        next(first)


def test_a_pass_that_is_too_short_raises():
    with pytest.raises(ps.ConfigError, match="has 7 steps, and steps_per_epoch is 8 -> repeat"):
        ps.Loader(numbers(), steps_per_epoch=8)
    loader = ps.Loader(stream(), steps_per_epoch=8)  # a stream raises when it ends
    with pytest.raises(ps.ConfigError, match="has 7 steps, and steps_per_epoch is 8 -> repeat"):
        steps_of(loader)


def test_set_epoch_keeps_the_position_in_the_current_epoch():
    loader = ps.Loader(ps.range(7).batch(1), steps_per_epoch=3)
    for epoch in range(2):
        loader.set_epoch(epoch)  # like training loops of torch
        assert len(steps_of(loader)) == 3
    loader.set_epoch(2)
    assert steps_of(loader) == [[6], [0], [1]]
    with pytest.raises(ps.ConfigError, match="at epoch 3.*load a state"):
        loader.set_epoch(1)


def test_a_failed_step_is_computed_again():
    calls = []

    def once(x):
        calls.append(int(x))
        if calls.count(4) == 1 and x == 4:
            raise OSError("busy")
        return x

    loader = ps.Loader(ps.range(7).map(once).batch(1), steps_per_epoch=5, threads=0)
    loop = iter(loader)
    assert [next(loop).numpy().tolist() for _ in range(4)] == [[0], [1], [2], [3]]
    with pytest.raises(OSError, match="busy"):
        next(loop)
    assert [batch.numpy().tolist() for batch in loop] == [[4]]
