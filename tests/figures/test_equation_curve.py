from __future__ import annotations

import numpy as np
import pytest

from overfit_cli.figures.laws import equation_curve
from overfit_cli.stats.equations import parse_equation
from tests.fake_study import LAW


@pytest.mark.parametrize("log", [True, False])
@pytest.mark.parametrize("text", [LAW, "snr = 1000 / n", "log(n) + 3 = snr", "n - snr = 0"])
def test_the_points_of_a_curve_satisfy_the_law(text: str, log: bool) -> None:
    law = parse_equation(text, ("n", "snr"))
    curve = equation_curve(law, "snr", "n", (0.1, 200), (2, 100), log_x=log, log_y=log)
    snr, n = curve[np.isfinite(curve[:, 0])].T
    assert snr.size > 50
    scale = np.abs(law.difference({"snr": 1.01 * snr, "n": n}))
    assert (np.abs(law.difference({"snr": snr, "n": n})) <= scale).all()


def test_a_pole_is_no_part_of_a_law() -> None:
    law = parse_equation("n = 10 / (snr - 3.02)", ("n", "snr"))
    curve = equation_curve(law, "snr", "n", (0.1, 16), (2, 20), log_x=False, log_y=False)
    snr, n = curve[np.isfinite(curve[:, 0])].T
    np.testing.assert_allclose(n * (snr - 3.02), 10, rtol=0.02)


@pytest.mark.parametrize("text", ["n = n", "9**9**9**9 = n", "log(-n) = 1", "n = -5"])
def test_a_law_without_a_curve_has_no_points(text: str) -> None:
    law = parse_equation(text, ("n", "snr"))
    curve = equation_curve(law, "snr", "n", (0.1, 16), (2, 20), log_x=False, log_y=False)
    assert not np.isfinite(curve).any()
