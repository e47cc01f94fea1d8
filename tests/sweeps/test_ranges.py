"""The language of ranges says what its users would expect."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from overfit_cli.core.parameters import Value, describe
from overfit_cli.studies.benign_vit.vit.study import study as benign_vit
from overfit_cli.sweeps.grid import Grid, parse_range, parse_seeds

KNOWN = describe(benign_vit.parameters)
WHOLE = st.integers(1, 1000)


@given(WHOLE, WHOLE, st.integers(1, 30))
def test_whole_numbers_are_those_of_pythons_range(start: int, more: int, step: int) -> None:
    assume(step <= more)
    ends = f"{start}:{start + more}"
    assert parse_range(KNOWN["n"], ends) == tuple(range(start, start + more + 1))
    assert parse_range(KNOWN["n"], f"{ends}:{step}") == tuple(range(start, start + more + 1, step))
    assert parse_seeds(ends) == tuple(range(start, start + more + 1))
    assert parse_seeds(str(more)) == tuple(range(more))


@given(st.floats(0.001, 1000), st.floats(1, 1000), st.integers(2, 200))
def test_real_numbers_are_spaced_by_difference_or_ratio(
    start: float, more: float, points: int
) -> None:
    stop = start + more
    for spelled, space in (
        (f":{points}", np.linspace(start, stop, points)),
        (f":{points}:linear", np.linspace(start, stop, points)),
        (f":{points}:log", np.geomspace(start, stop, points)),
        ("", np.linspace(start, stop, 40)),
    ):
        values = parse_range(KNOWN["snr"], f"{start!r}:{stop!r}{spelled}")
        np.testing.assert_allclose(np.array(values, float), space, rtol=1e-11)


@given(st.lists(WHOLE, min_size=2))
def test_a_list_names_each_value_once_in_its_order(values: list[int]) -> None:
    text, once = ", ".join(map(str, values)), tuple(dict.fromkeys(values))
    assert parse_range(KNOWN["n"], text) == tuple(values)
    assert Grid.read(benign_vit, {"n": text}, text).given["n"] == parse_seeds(text) == once


@pytest.mark.parametrize(
    ("name", "text", "values"),
    [
        ("n", "1e3", (1000,)),
        ("n", "5:5", (5,)),
        ("snr", "3,1", (3.0, 1.0)),
        ("noise", "orthogonal,isotropic", ("orthogonal", "isotropic")),
        ("n", "50:400:4:log", (50, 100, 200, 400)),
        ("n", f"1:{9_999_999_999_999}:2:log", (1, 9_999_999_999_999)),
    ],
)
def test_a_range_names_its_values(name: str, text: str, values: tuple[Value, ...]) -> None:
    found = parse_range(KNOWN[name], text)
    assert found == values
    assert [type(value) for value in found] == [type(value) for value in values]


def test_the_same_point_has_the_same_value_in_a_coarse_and_a_fine_range() -> None:
    """So that a grid that is refined reuses its cells."""
    coarse = parse_range(KNOWN["snr"], "0.1:16:12")
    fine = parse_range(KNOWN["snr"], "0.1:16:34")
    assert set(coarse) <= set(fine)


def test_log_spaced_whole_numbers_that_are_the_same_are_one() -> None:
    with pytest.warns(UserWarning, match="n 1:4:8:log: 8 log-spaced points round to 4 distinct"):
        assert parse_range(KNOWN["n"], "1:4:8:log") == (1, 2, 3, 4)
    first, last = 123456789012345, 123456789012347
    with pytest.warns(UserWarning, match="3 log-spaced points round to 2 distinct"):
        assert parse_range(KNOWN["n"], f"{first}:{last}:3:log") == (first, last)
