"""scan: a function with a state that passes from element to element."""

import numpy as np
import pytest
from conftest import rows_of

import penstock as ps


def running_sums():
    return ps.range(20).scan({"sum": 0, "seen": np.zeros(2, np.float32)}, add)


def add(state, x):
    total = state["sum"] + x
    return {"sum": total, "seen": state["seen"] + 1}, {"x": x, "sum": total,
                                                       "seen": state["seen"]}


def sums_of(loader):
    return [int(value) for batch in loader for value in batch["sum"]]


def test_the_state_passes_from_element_to_element_and_each_epoch_starts_again():
    loader = ps.Loader(running_sums().batch(6))
    wanted = [int(value) for value in np.cumsum(range(20))]
    assert sums_of(loader) == wanted
    assert sums_of(loader) == wanted


def test_a_resumed_loader_continues_with_the_state_of_the_scan():
    loader = ps.Loader(running_sums().batch(6))
    taken = next(iter(loader))
    assert taken["seen"].tolist() == [[float(i), float(i)] for i in range(6)]
    other = ps.Loader(running_sums().batch(6))
    other.load_state_dict(loader.state_dict())
    assert sums_of(other) == [int(value) for value in np.cumsum(range(20))][6:]


def test_a_tuple_element_is_one_argument():
    pairs = ps.range(3).map(lambda x: (x, x * 10)).scan(
        0, lambda state, pair: (state + pair[1], state))
    assert [int(x) for x in pairs] == [0, 0, 10]


def test_a_result_that_is_no_pair_is_an_error_that_says_so():
    with pytest.raises(ps.SampleError, match=r"tuple \(next state, output\)"):
        list(ps.Loader(ps.range(3).scan(0, lambda state, x: state).batch(1)))


def test_a_state_that_changes_its_dtype_is_an_error_that_names_both():
    with pytest.raises(ps.SampleError, match=r"state f64\[\]; the initial state is i64\[\]"):
        list(ps.Loader(ps.range(3).scan(0, lambda state, x: (state / 2, x)).batch(1)))


def test_an_exception_keeps_its_type_and_a_skipped_element_leaves_the_state():
    def fail(state, x):
        if x == 2:
            raise KeyError("bad")
        return state + x, state + x

    with pytest.raises(KeyError):
        list(ps.Loader(ps.range(5).scan(0, fail).batch(1)))
    loader = ps.Loader(ps.range(5).scan(0, fail).batch(1), on_error="skip")
    assert rows_of(loader) == [0, 1, 4, 8]
    assert len(loader.ledger) == 1


def test_a_function_may_change_the_arrays_of_its_state_in_place():
    def count(state, x):
        state["calls"][0] += 1
        return state, state["calls"].copy()

    loader = ps.Loader(ps.range(3).scan({"calls": np.zeros(1, np.int64)}, count).batch(2))
    assert rows_of(loader) == [[1], [2], [3]]
    assert rows_of(loader) == [[1], [2], [3]], "the initial state is unchanged"
