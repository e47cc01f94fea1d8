"""Cells: chosen, extended by expressions, taken seed by seed, averaged and subtracted."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from overfit_cli.core.cells import Cells, NoCellsError, UndefinedError
from overfit_cli.core.errors import BadValue
from overfit_cli.core.study import Field
from overfit_cli.figures.labels import typeset
from tests.fake_study import FakeStudy, fail, fake_cells

NS, SNRS, KERNELS, SEEDS = (2, 4, 8), (0.5, 2.0), ("softmax", "gaussian"), (0, 1, 3)


def table(seed: int) -> pd.DataFrame:
    """Made-up cells: every fifth has failed, of which half diverged."""
    draws = np.random.default_rng(seed)
    parts = [fake_cells(NS, SNRS, kernel=kernel) for kernel in KERNELS]
    cells = pd.concat(parts, ignore_index=True).replace({"seed": {2: 3}})
    losses, chance = draws.lognormal(size=(2, len(cells))), draws.random(len(cells))
    cells = cells.assign(key=cells.index.astype(str), train_loss=losses[0], test_loss=losses[1])
    cells = fail(cells, pd.Series(chance < 0.2))
    cells["reason"] = cells["reason"].mask(chance < 0.1, "worker killed")
    return cells.sample(frac=1, random_state=seed)


@pytest.fixture(params=range(3))
def cells(request: pytest.FixtureRequest) -> Cells:
    return Cells.of(FakeStudy(), table(request.param))


def softmax_is_lower(frame: pd.DataFrame) -> pd.Series[bool]:
    """In each row, by the two numbers of its n, snr and seed."""
    at = ["n", "snr", "seed"]
    loss = frame.pivot(index=at, columns="kernel", values="test_loss")
    return frame[at].join((loss["softmax"] < loss["gaussian"]).rename("lower"), on=at)["lower"]


CONDITIONS: dict[str, Callable[[pd.DataFrame], pd.Series[bool]]] = {
    "N >= 4": lambda f: f["n"] >= 4,
    "n >= 2*width/32": lambda f: f["n"] >= f["width"] / 16,
    "kernel = softmax and seed < 3": lambda f: (f["kernel"] == "softmax") & (f["seed"] < 3),
    "n is largest": lambda f: f["n"] == 8,
    "test_loss < 1": lambda f: f["test_loss"] < 1,
    "status = failed": lambda f: f["status"] == "failed",
    "reason = worker killed": lambda f: f["reason"] == "worker killed",
    "test_loss[kernel=softmax] < test_loss[kernel=gaussian]": softmax_is_lower,
}


def test_where_keeps_the_rows_that_meet_a_condition(cells: Cells) -> None:
    for text, meets in CONDITIONS.items():
        expected = cells.frame["key"][meets(cells.frame)]
        assert cells.where(text).frame["key"].tolist() == expected.tolist(), text
    with pytest.raises(NoCellsError, match=r"no cell has that; test_loss is .* here\."):
        cells.where("test_loss > 1e9")


def test_a_name_is_never_a_pattern() -> None:
    renamed = table(0).rename(columns={"train_loss": "a#", "test_loss": "loss(%"})
    odd = Cells.of(FakeStudy(), renamed)
    low = odd.where("`loss(%` < 1").frame
    assert set(low["key"]) == set(odd.frame["key"][odd.frame["loss(%"] < 1])
    signs = odd.with_column("2*`a#` / `loss(%`")
    assert signs.numbers("2*`a#` / `loss(%`").notna().any()
    assert r"\mathrm{a\#}" in signs.schema["2*`a#` / `loss(%`"].label


EXPRESSIONS: dict[str, Callable[..., Any]] = {
    "log(test_loss) / n": lambda at, loss: np.log(loss[at]) / at[0],
    "test_loss[kernel=softmax] / test_loss[kernel=gaussian]": lambda at, loss: (
        loss[(*at[:2], "softmax", at[3])] / loss[(*at[:2], "gaussian", at[3])]
    ),
    "test_loss[n is largest] - test_loss[n=2]": lambda at, loss: (
        loss[(8, *at[1:])] - loss[(2, *at[1:])]
    ),
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_expression_has_a_number_at_each_setting_and_for_each_seed(
    cells: Cells, text: str
) -> None:
    loss: Any = cells.frame.set_index(["n", "snr", "kernel", "seed"])["test_loss"]
    settings, seeds, numbers, low, high = cells.by_seed(text)
    known = np.isfinite(numbers)
    assert (low[known] == numbers[known]).all() and (high[known] == numbers[known]).all()
    assert (np.isneginf(low) & np.isposinf(high))[~known].all()
    assert seeds.tolist() == list(SEEDS)
    fixed = {"n": 2, "snr": 0.5, "kernel": "softmax"}
    for place, row in zip(settings, numbers, strict=True):
        values: dict[Any, Any] = {**fixed, **place}
        at = [(values["n"], values["snr"], values["kernel"], seed) for seed in SEEDS]
        np.testing.assert_allclose(row, [EXPRESSIONS[text](each, loss) for each in at])


def test_what_is_no_number_though_all_in_it_is_known_is_said(cells: Cells) -> None:
    with pytest.raises(UndefinedError, match="it is not a number at"):
        cells.by_seed("log(0 - test_loss)")
    with pytest.raises(BadValue, match="say where test_loss is taken"):
        cells.by_seed("test_loss - train_loss[n=2]")


def test_a_missing_cell_is_a_row() -> None:
    whole = table(0)
    planned = whole[["seed", "n", "snr", "width", "kernel"]]
    cells = Cells.of(FakeStudy(), whole[whole["n"] != 4], planned)
    assert cells.counts()["missing"] == len(SNRS) * len(KERNELS) * len(SEEDS)
    missing = cells.frame[cells.frame["status"] == "missing"]
    assert set(missing["n"]) == {4} and missing["test_loss"].isna().all()
    assert set(cells.trained["n"]) == {2, 8}


@pytest.mark.parametrize("name", ["risk", "test_loss", "steps_to_target"])
def test_what_a_missing_number_means_is_declared_and_not_in_its_name(name: str) -> None:
    """Two done, of which the second lacks the number, two that diverged, and one killed."""
    numbers = pd.Series([1.0, *[np.nan] * 4])
    reasons = ["", "", "diverged", "diverged: risk isn't finite", "worker killed"]
    rows = pd.DataFrame({"reason": reasons, name: numbers})
    rows["status"] = np.where(rows["reason"] == "", "done", "failed")
    for reached, diverges in itertools.product([True, False], repeat=2):
        field = Field(name, role="measured", reached=reached, diverges=diverges)
        beyond = np.array([False, not reached, *[diverges or not reached] * 2, False])
        np.testing.assert_array_equal(field.numbers(rows), numbers.mask(beyond, np.inf))
        np.testing.assert_array_equal(field.numbers(rows, missed=False), numbers)


def test_a_derived_column_is_called_by_its_text_and_an_axis_takes_the_place_of_a_parameter(
    cells: Cells,
) -> None:
    derived = cells.with_column("test_loss / n")
    expected = cells.frame["test_loss"] / cells.frame["n"]
    np.testing.assert_allclose(derived.frame["test_loss / n"], expected)
    assert typeset(f"${derived.symbol('test_loss / n')}$") == "(test_loss / N)"
    axis = cells.with_parameter("n / width")
    assert axis.schema["n / width"].role == "parameter" and axis.replaced == {"n"}
    assert axis.varying() == ["snr", "kernel", "n / width"]
