"""Labels of parameters and columns along axes and in legends, beside their symbols."""

from __future__ import annotations

import itertools
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


def _tables(study: AnyStudy) -> Iterator[list[ParameterInfo | Column]]:
    """Its parameters, the columns of its cells, and those of its trajectories."""
    yield list(describe(study.parameters).values())
    yield list(study.columns)
    yield list(study.trajectory_columns)


def _text(one: ParameterInfo | Column) -> str:
    label = one.label or one.meaning
    return f"{label} ${one.symbol}$" if one.symbol else label


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_labels_are_a_few_words_that_tell_a_thing_from_its_neighbours(study: AnyStudy) -> None:
    """They explain nothing, and repeat neither the symbol nor the unit.

    Letters side by side in a symbol are a product in italics: λ_min is `\\lambda_{\\mathrm{min}}`.
    """
    for table in _tables(study):
        assert [text for text, count in Counter(map(_text, table)).items() if count > 1] == []
        for one in table:
            label = one.label or one.meaning
            assert 0 < len(label) <= LONGEST, one
            assert label == " ".join(label.split()), one
            assert not re.search(r"[,:;$\\]|\bor\b", label), one
            said = re.findall(r"[^\s()]+", label)
            assert not {symbol_text(one.symbol), one.unit} & set(said), one
            letters = re.sub(r"\\mathrm\{\w+\}|\\[A-Za-z]+", " ", one.symbol)
            assert not re.search(r"[A-Za-z]{2,}", letters), one


@pytest.mark.slow
def test_labels_and_their_symbols_can_be_drawn(caplog: pytest.LogCaptureFixture) -> None:
    """What a font lacks is a warning, or a line that matplotlib logs."""
    figure = Figure()
    for study in STUDIES:
        for one in itertools.chain(*_tables(study)):
            figure.text(0, 0, _text(one))
    with caplog.at_level(logging.WARNING, "matplotlib"):
        file_content(figure, "png")
    assert caplog.messages == []


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
