"""Where the next `for` starts: load_state_dict, set_epoch, and loops that are still referenced."""

import json

import numpy as np
import pytest
from conftest import rows_of, run_program, steps_of

import penstock as ps


def shuffled():
    return ps.range(40).shuffle(seed=3).batch(4)


def epoch_steps(epoch):
    loader = ps.Loader(shuffled())
    loader.set_epoch(epoch)
    return steps_of(loader)


def stream():
    return ps.from_generator(lambda: iter(range(40)), spec=ps.Field("int64")).batch(4)


def test_set_epoch_applies_while_the_previous_loop_is_referenced():
    loader = ps.Loader(shuffled())
    for epoch in range(4):
        loader.set_epoch(epoch)
        loop = iter(loader)
        assert [next(loop).numpy().tolist() for _ in range(3)] == epoch_steps(epoch)[:3]
        assert loader.epoch == epoch


@pytest.mark.parametrize("dataset", [shuffled, stream])
def test_a_loaded_state_applies_while_the_previous_loop_is_referenced(dataset):
    loader = ps.Loader(dataset())
    loop = iter(loader)
    whole = steps_of(ps.Loader(dataset()))
    assert [next(loop).numpy().tolist() for _ in range(3)] == whole[:3]
    state = loader.state_dict()
    next(loop)
    loader.load_state_dict(state)
    assert loader.state_dict() == state, "between load and iter the loaded place is reported"
    again = iter(loader)
    assert [batch.numpy().tolist() for batch in again] == whole[3:]
    assert loader.epoch == 1


def test_a_running_loop_is_not_moved_when_a_state_is_loaded():
    loader = ps.Loader(shuffled())
    start = loader.state_dict()
    loop = iter(loader)
    next(loop)
    loader.load_state_dict(start)
    assert [batch.numpy().tolist() for batch in loop] == epoch_steps(0)[1:]
    assert steps_of(loader) == epoch_steps(0)
    assert steps_of(loader) == epoch_steps(1)


def test_loading_twice_takes_the_last_state():
    loader = ps.Loader(shuffled())
    loop = iter(loader)
    states = []
    for _ in range(4):
        next(loop)
        states.append(loader.state_dict())
    loader.load_state_dict(states[3])
    loader.load_state_dict(states[1])
    assert steps_of(loader) == epoch_steps(0)[2:]


def test_a_state_of_another_dataset_is_rejected_and_the_position_stays():
    loader = ps.Loader(shuffled())
    loop = iter(loader)
    next(loop)
    other = ps.Loader(ps.range(41).shuffle(seed=3).batch(4)).state_dict()
    with pytest.raises(ps.StateError, match="another dataset"):
        loader.load_state_dict(other)
    assert loader.state_dict()["step"] == 1
    assert [batch.numpy().tolist() for batch in loop] == epoch_steps(0)[1:]


def test_set_epoch_with_the_epoch_of_a_loaded_state_keeps_the_position():
    saved = ps.Loader(shuffled())
    saved.set_epoch(2)
    loop = iter(saved)
    for _ in range(6):
        next(loop)
    state = saved.state_dict()
    loader = ps.Loader(shuffled())
    loader.load_state_dict(state)
    loader.set_epoch(2)
    loader.set_epoch(2)
    assert steps_of(loader) == epoch_steps(2)[6:]
    loader.set_epoch(2)
    assert steps_of(loader) == epoch_steps(2), "nothing was loaded since: from its start"


def test_set_epoch_with_another_epoch_resets_the_position():
    saved = ps.Loader(shuffled())
    loop = iter(saved)
    next(loop)
    loader = ps.Loader(shuffled())
    loader.load_state_dict(saved.state_dict())
    loader.set_epoch(1)
    assert steps_of(loader) == epoch_steps(1)
    loader.load_state_dict(saved.state_dict())
    loader.set_epoch(1)
    loader.set_epoch(0)
    assert steps_of(loader) == epoch_steps(0)


def test_set_epoch_after_a_started_loop_moves_to_the_start_of_the_epoch():
    saved = ps.Loader(shuffled())
    loop = iter(saved)
    next(loop)
    loader = ps.Loader(shuffled())
    loader.load_state_dict(saved.state_dict())
    begun = iter(loader)
    loader.set_epoch(0)
    assert steps_of(loader) == epoch_steps(0)
    assert [batch.numpy().tolist() for batch in begun] == epoch_steps(0)[1:]


@pytest.mark.parametrize("options", [{}, {"steps_per_epoch": 5, "restart": True},
                                     {"steps_per_epoch": 5}])
def test_a_feed_keeps_the_position_like_a_loader(options):
    def feed():
        return ps.MirroredStrategy(["cpu:0", "cpu:1"]).distribute(shuffled(), **options)

    def rows(steps):
        return [[share.numpy().tolist() for share in step.shares] for step in steps]

    saved = feed()
    loop = iter(saved)
    for _ in range(3):
        next(loop)
    state = saved.state_dict()
    expected = feed()
    expected.load_state_dict(state)
    rest = rows(expected)
    assert len(rest) == len(feed()) - 3
    later = feed()
    later.load_state_dict(state)
    later.set_epoch(0)
    assert rows(later) == rest
    with pytest.raises(ps.ConfigError, match="epochs count from 0"):
        later.set_epoch(-1)


def test_the_loader_closes_for_good():
    loader = ps.Loader(ps.range(40).batch(4))
    loop = iter(loader)
    next(loop)
    loader.close()
    loader.close()
    with pytest.raises(ps.CancelledError, match="closed"):
        next(loop)
    with pytest.raises(ps.CancelledError, match="closed"):
        iter(loader)


# Several processes

TORCHRUN = """
import os
os.environ.update(RANK="{rank}", WORLD_SIZE="{world}", LOCAL_RANK="{rank}",
                  LOCAL_WORLD_SIZE="{world}")
import penstock as ps
loader = ps.Loader(ps.range(100).batch(10){options})
rows = [row for _ in range(2) for batch in loader for row in batch.numpy().tolist()]
print(len(rows))
"""


def under_torchrun(rank, world, options=""):
    code, out, err = run_program(TORCHRUN.format(rank=rank, world=world, options=options))
    assert code == 0, err
    return int(out), err


def test_rank_0_reports_once_that_it_serves_only_its_share():
    served, err = under_torchrun(0, 2)
    assert served == 2 * 50
    assert err.count("this process is rank 0 of 2 (torchrun)") == 1
    assert "about 50 of the 100 samples of each epoch" in err
    assert "pass world=1" in err


def test_other_ranks_report_nothing():
    served, err = under_torchrun(1, 2)
    assert served == 2 * 50
    assert "this process is rank" not in err


def test_world_1_reads_all_samples_under_a_launcher():
    served, err = under_torchrun(0, 2, ", world=1")
    assert served == 2 * 100
    assert "this process is rank" not in err


def test_explicit_shares_report_nothing():
    served, err = under_torchrun(0, 2, ", world=2, rank=0")
    assert served == 2 * 50
    assert "this process is rank" not in err


def test_a_world_without_a_rank_raises():
    with pytest.raises(ps.ConfigError, match="world= without rank="):
        ps.Loader(ps.range(4).batch(2), world=2)


def test_a_strategy_reports_nothing_about_its_shares():
    code, out, err = run_program("""
        import os
        os.environ.update(RANK="0", WORLD_SIZE="2", LOCAL_RANK="0", LOCAL_WORLD_SIZE="2")
        import penstock as ps
        feed = ps.MirroredStrategy(["cpu:0"]).distribute(ps.range(8).batch(4))
        print([len(step.shares[0]) for step in feed])
        """)
    assert (code, out, err) == (0, "[2, 2]\n", "")


def test_nothing_is_reported_with_world_1_or_before_an_epoch_starts():
    code, out, err = run_program("""
        import os
        os.environ.update(RANK="0", WORLD_SIZE="2", LOCAL_RANK="0", LOCAL_WORLD_SIZE="2")
        import penstock as ps
        loader = ps.Loader(ps.range(8).batch(4), world=1)
        assert len(list(loader)) == 2
        plan = ps.Loader(ps.range(8).batch(4)).plan
        print(plan.world)
        """)
    assert (code, out, err) == (0, "2\n", ""), "a plan is looked at without an epoch"


def test_states_are_json_between_load_and_iter():
    loader = ps.Loader(shuffled())
    loop = iter(loader)
    next(loop)
    state = json.loads(json.dumps(loader.state_dict()))
    loader.load_state_dict(state)
    assert loader.step(0).numpy().tolist() == epoch_steps(0)[0]
    assert np.array_equal(rows_of(loader), sum(epoch_steps(0)[1:], []))
