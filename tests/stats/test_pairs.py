"""What is one setting, and how values are spaced."""

from __future__ import annotations

import pytest

from overfit_cli.stats.pairs import is_log_spaced, setting_key


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_values_are_spaced_evenly_on_a_log_scale_in_any_unit(unit: float) -> None:
    for values, is_log in (
        ([1, 2, 4, 8], True),
        ([1, 2, 3, 5], True),
        ([1, 2, 3, 4], False),
        ([1, 4, 6, 9], False),
        ([1, 10], False),
        ([0, 1, 10], False),
    ):
        assert is_log_spaced([unit * value for value in values]) == is_log, values


def test_numbers_that_agree_to_twelve_digits_are_one_setting() -> None:
    first, *others = map(setting_key, (0.3, 0.1 + 0.2, 0.3 + 2e-13, 0.3 + 2e-12))
    assert [first == other for other in others] == [True, True, False]
