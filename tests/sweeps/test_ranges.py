"""The language of ranges says what its users would expect."""

from __future__ import annotations

import numpy as np
import pytest

from overfit_cli import UserError
from overfit_cli.core.parameters import Value, describe
from overfit_cli.studies.benign_vit.vit.parameters import BenignVitParameters
from overfit_cli.sweeps.ranges import parse_range, parse_seeds

KNOWN = describe(BenignVitParameters)


@pytest.mark.parametrize(
    ("name", "text", "values"),
    [
        ("n", "2:20", tuple(range(2, 21))),
        ("n", "2:20:3", (2, 5, 8, 11, 14, 17, 20)),
        ("n", "2:6:3", (2, 5)),
        ("n", "7", (7,)),
        ("n", "1e3", (1000,)),
        ("n", "5:5", (5,)),
        ("n", "9,2,9, 4", (9, 2, 4)),
        ("snr", "0.5", (0.5,)),
        ("snr", "1:2:3", (1.0, 1.5, 2.0)),
        ("snr", "1:2:3:linear", (1.0, 1.5, 2.0)),
        ("snr", "0.01:100:5:log", (0.01, 0.1, 1.0, 10.0, 100.0)),
        ("snr", "3,1", (3.0, 1.0)),
        ("noise", "orthogonal,isotropic", ("orthogonal", "isotropic")),
    ],
)
def test_a_range_names_its_values(name: str, text: str, values: tuple[Value, ...]) -> None:
    found = parse_range(KNOWN[name], text)
    assert found == values
    assert [type(value) for value in found] == [type(value) for value in values]


def test_a_range_of_reals_has_forty_evenly_spaced_points_unless_told() -> None:
    values = parse_range(KNOWN["snr"], "0.1:16")
    np.testing.assert_allclose(np.array(values, float), np.linspace(0.1, 16, 40), rtol=1e-11)


def test_the_same_point_has_the_same_value_in_a_coarse_and_a_fine_range() -> None:
    """So that a grid that is refined reuses its cells."""
    coarse = parse_range(KNOWN["snr"], "0.1:16:12")
    fine = parse_range(KNOWN["snr"], "0.1:16:34")
    assert set(coarse) <= set(fine)


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("3", (0, 1, 2)), ("1", (0,)), ("3:5", (3, 4, 5)), ("7,2", (7, 2)), ("0:0", (0,))],
)
def test_seeds_are_counted_or_named(text: str, seeds: tuple[int, ...]) -> None:
    assert parse_seeds(text) == seeds


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(UserError, match=r"seeds='-1:3': a seed is a whole number of at least 0"):
        parse_seeds("-1:3")


@pytest.mark.parametrize("text", ["0.1-3", "0.1:x", "1,b", "0.2:3:0.2"])
def test_what_is_no_number_is_refused_with_every_form(text: str) -> None:
    with pytest.raises(UserError, match=r"0\.1:16:100 \(100 points\)"):
        parse_range(KNOWN["snr"], text)
