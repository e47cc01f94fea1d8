"""Labels of parameters and columns along axes and in legends, beside their symbols."""

from __future__ import annotations

import logging
import math
import re
from collections import Counter
from collections.abc import Iterator

import pytest
from matplotlib.figure import Figure

from overfit_cli import Column
from overfit_cli.core.parameters import ParameterInfo, describe, symbol_text
from overfit_cli.core.registry import installed_studies
from overfit_cli.core.study import AnyStudy
from overfit_cli.figures.labels import tick_number
from overfit_cli.figures.picture import file_content

LONGEST = 28
STUDIES = [one for one in installed_studies() if type(one).__module__.startswith("overfit_cli.")]

every_study = pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)


def _tables(study: AnyStudy) -> Iterator[list[ParameterInfo | Column]]:
    """Its parameters, the columns of its cells, and those of its trajectories."""
    yield list(describe(study.parameters).values())
    yield list(study.columns)
    yield list(study.trajectory_columns)


def _all(study: AnyStudy) -> list[ParameterInfo | Column]:
    return [one for table in _tables(study) for one in table]


def _label(one: ParameterInfo | Column) -> str:
    return one.label or one.meaning


def _text(one: ParameterInfo | Column) -> str:
    return f"{_label(one)} ${one.symbol}$" if one.symbol else _label(one)


def test_all_studies_are_here() -> None:
    assert len(STUDIES) >= 11


@every_study
def test_a_label_is_a_few_words_without_explanations(study: AnyStudy) -> None:
    for one in _all(study):
        label = _label(one)
        assert 0 < len(label) <= LONGEST, one
        assert label == " ".join(label.split()), one
        assert not re.search(r"[,:;$\\]|\bor\b", label), one


@every_study
def test_a_label_repeats_neither_the_symbol_nor_the_unit(study: AnyStudy) -> None:
    for one in _all(study):
        words = re.findall(r"[^\s()]+", _label(one))
        assert symbol_text(one.symbol) not in words, one
        assert one.unit not in words, one


@every_study
def test_a_label_and_its_symbol_tell_it_from_its_neighbours(study: AnyStudy) -> None:
    for table in _tables(study):
        times = Counter(map(_text, table))
        assert [text for text, count in times.items() if count > 1] == []


@pytest.mark.slow
@every_study
def test_a_label_and_its_symbol_can_be_drawn(
    study: AnyStudy, caplog: pytest.LogCaptureFixture
) -> None:
    """What a font lacks is a warning, or a line that matplotlib logs."""
    figure = Figure()
    for one in _all(study):
        figure.text(0, 0, _text(one))
    with caplog.at_level(logging.WARNING, "matplotlib"):
        file_content(figure, "png")
    assert caplog.messages == []


@every_study
def test_names_in_a_symbol_are_upright(study: AnyStudy) -> None:
    """Letters side by side are a product in italics: λ_min is `\\lambda_{\\mathrm{min}}`."""
    for one in _all(study):
        letters = re.sub(r"\\mathrm\{\w+\}|\\[A-Za-z]+", " ", one.symbol)
        assert not re.search(r"[A-Za-z]{2,}", letters), one


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.05, "0.05"),
        (-2.0, "−2"),
        (3e-7, r"$3 \cdot 10^{-7}$"),
        (math.inf, r"$\infty$"),
        (-math.inf, r"$-\infty$"),
        (math.nan, "nan"),
    ],
)
def test_every_number_can_stand_at_a_tick(value: float, text: str) -> None:
    """The interval of a fitted law may have no end."""
    assert tick_number(value) == text
