"""The look of figures: size, axes, style sheets, labels, and the colours and dashes of lines."""

from __future__ import annotations

import itertools
import logging
import math
import os
import re
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal
from unittest import mock

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from overfit_cli import Column, UserError
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.parameters import ParameterInfo, StudyParameters, describe, parameter
from overfit_cli.core.parameters import symbol_text as unicode_of
from overfit_cli.core.registry import installed_studies
from overfit_cli.core.study import AnyStudy
from overfit_cli.figures.labels import tick_number
from overfit_cli.figures.picture import (
    Picture,
    file_content,
    looking,
    new_panels,
    title_panels,
)
from overfit_cli.figures.style import RC, LineLook, line_looks, read_look
from tests.fake_study import (
    LAW,
    NS,
    SNRS,
    FakeStudy,
    draw,
    fake_cells,
    logged,
)

CELLS = fake_cells(NS, SNRS)
FEW = fake_cells([5, 10], [1.0, 2.0, 4.0])
KERNELS = pd.concat([fake_cells([5], [1.0, 2.0], kernel=k) for k in ("softmax", "gaussian")])
COLOURS = ["123456", "654321"]


def look(*, size: str | None = None, style: Path | None = None) -> Any:
    """Every picture that is made inside looks so."""
    return looking(read_look(size, style))


def sheet(folder: Path, text: str) -> Path:
    path = folder / "mine.mplstyle"
    path.write_text(text, errors="surrogateescape")
    return path


def lines() -> Picture:
    return draw("lines", FEW)


SIZES = {
    "column": (3.4, 2.6),
    "page": (7.0, 2.6),
    "3.4x2.6": (3.4, 2.6),
    "5 × 4": (5, 4),
    "4x3in": (4, 3),
    "127x76.2mm": (5, 3),
    "12.7x7.62cm": (5, 3),
}


@pytest.mark.parametrize("text", SIZES)
def test_a_size_is_a_papers_or_inches_or_millimetres(text: str) -> None:
    with look(size=text):
        assert draw("heatmap", CELLS).get_size_inches() == pytest.approx(SIZES[text])


@pytest.mark.parametrize(
    ("text", "logarithmic"),
    [("none", ""), ("x", "x"), ("y", "y"), ("value", "v"), ("x, y,value", "xyv"), (None, "")],
)
def test_axes_are_logarithmic_as_asked(text: str | None, logarithmic: str) -> None:
    narrow = fake_cells([6, 8, 10], [6.0, 8.0, 10.0])
    figure = draw("heatmap", narrow, log=FigureOptions.read(log=text).log)
    axes, bar = figure.axes
    assert isinstance(axes.collections[0].norm, mpl.colors.LogNorm) == ("v" in logarithmic)
    scales = {"x": axes.get_xscale(), "y": axes.get_yscale(), "v": bar.get_yscale()}
    assert "".join(one for one, scale in scales.items() if scale == "log") == logarithmic


def test_what_has_no_logarithm_is_refused() -> None:
    with pytest.raises(UserError, match=r"^log='x': the values of kernel aren't all positive"):
        draw("lines", KERNELS, x="kernel", log=frozenset({"x"}))


@pytest.mark.parametrize(
    ("text", "pixels"),
    [("", (680, 520)), ("savefig.dpi: 100", (340, 260)), ("savefig.dpi: figure", (340, 260))],
)
def test_a_style_sheet_sets_the_dots_and_the_colour_map(
    text: str, pixels: tuple[int, int], tmp_path: Path
) -> None:
    with look(style=sheet(tmp_path, f"image.cmap: magma\n{text}\n")):
        figure = draw("heatmap", CELLS)
    assert figure.axes[0].collections[0].get_cmap().name == "magma"
    assert struct.unpack(">II", file_content(figure, "png")[16:24]) == pixels


@pytest.mark.parametrize(
    ("cells", "cycle", "is_taken"),
    [(KERNELS, COLOURS, True), (FEW, COLOURS, True), (FEW, COLOURS[:1], False)],
)
def test_a_style_sheet_changes_sizes_and_colours_if_it_has_one_for_each_line(
    cells: pd.DataFrame, cycle: list[str], is_taken: bool, tmp_path: Path
) -> None:
    text = f"axes.prop_cycle: cycler('color', {cycle})\nfont.size: 12"
    with look(style=sheet(tmp_path, text)):
        figure = draw("lines", cells)
    content = file_content(figure, "svg").decode()
    assert [f"#{colour}" in content for colour in cycle] == [is_taken] * len(cycle)
    assert "#0072b2" not in content
    assert len({to_hex(line.get_color()) for line in figure.axes[0].lines[:2]}) == 2
    assert figure.axes[0].xaxis.label.get_fontsize() == 12
    assert figure.axes[0].get_xticklabels()[0].get_fontsize() == pytest.approx(7 * 12 / 8)


@pytest.mark.slow
def test_a_style_sheet_leaves_no_trace_and_always_makes_room_for_legends(tmp_path: Path) -> None:
    """Nor is matplotlib's own style, as a notebook has set it, used or changed."""
    before, settings = file_content(lines(), "png"), dict(mpl.rcParams)
    style = sheet(tmp_path, "axes.prop_cycle: cycler('color', ['r'])\nfont.size: 12")
    with look(style=style, size="page"):
        styled, now = lines(), file_content(lines(), "png")
    assert file_content(lines(), "png") == before, "a later figure is as it was"
    assert file_content(styled, "png") == now != before, "and the styled one keeps its own style"
    with pytest.raises(UserError), look(style=style):
        draw("lines", FEW, x="nothing")
    assert file_content(lines(), "png") == before, "nor does a failure leave one"
    assert dict(mpl.rcParams) == settings
    layout = "figure.autolayout: True\nfigure.constrained_layout.use: False"
    with look(style=sheet(tmp_path, layout)):
        assert file_content(lines(), "png") == before
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "black"}):
        own = dict(mpl.rcParams)
        assert file_content(lines(), "png") == before
        assert dict(mpl.rcParams) == own


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nonsense", "Missing colon, line 1 ('nonsense')"),
        ("savefig.dpi: 9999", "its savefig.dpi is 9999; it takes 20 to 2400 dots per inch"),
        ("image.cmap: magmaa", "matplotlib has no colour map magmaa, its image.cmap"),
        ("axes.prop_cycle: cycler('color', [])", "axes.prop_cycle is empty"),
        ("\udcff\udc80", "can't decode"),
        ("text.usetex: True", "text.usetex needs LaTeX, which isn't installed here"),
    ],
)
def test_a_style_sheet_is_refused_in_a_sentence(
    text: str, why: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """And matplotlib says nothing of its own beside."""
    style = sheet(tmp_path, text)
    nowhere = mock.patch.dict(os.environ, PATH=str(tmp_path))  # where no LaTeX is
    with nowhere, pytest.raises(UserError) as refused:
        read_look(None, style)
    said = str(refused.value)
    assert said.startswith(f"style={str(style)!r}: ") and why in said and "\n" not in said
    assert capfd.readouterr() == ("", "")


SHIPPED = sorted((Path(mpl.get_data_path()) / "stylelib").glob("[!_]*.mplstyle"))


@pytest.mark.parametrize(
    "style",
    [SHIPPED[0], *(pytest.param(one, marks=pytest.mark.slow) for one in SHIPPED[5::5])],
    ids=lambda path: path.stem,
)
def test_every_figure_can_be_drawn_in_matplotlibs_own_styles(style: Path) -> None:
    with look(style=style, size="4.5x3.5"):
        file_content(lines(), "png")
        file_content(draw("curves", logged(FEW), value=None), "png")
        file_content(draw("heatmap", CELLS, threshold=0.2, law=(LAW,)), "png")
        file_content(draw("boundary", CELLS), "png")


def titles_of_panels(title: str, count: int) -> list[str]:
    with look():
        _, all_axes = new_panels(count)
        title_panels(all_axes, [title] * count)
    return [axes.get_title(loc="left") for axes in all_axes]


def test_titles_of_several_panels_have_letters_and_are_wrapped_between_settings() -> None:
    assert titles_of_panels("$H$ = 5", 1) == ["$H$ = 5"]
    second = titles_of_panels("optimiser: normed descent, $H$ = 5", 3)[1]
    assert second == "(b) optimiser: normed descent,\n$H$ = 5"


class LooksParameters(StudyParameters):
    kernel: Literal["softmax", "gaussian", "uniform"] = parameter("softmax", "kernel")
    heads: int = parameter(1, "heads", symbol="H", shades=(1, 512))
    width: int = parameter(1, "width", symbol="m")


class LooksStudy(FakeStudy):
    parameters = LooksParameters  # type: ignore[assignment]


def looks_of(**values: list[object]) -> list[LineLook]:
    """The looks of lines, of which each has one of the values of each parameter."""
    settings = [dict(zip(values, each, strict=True)) for each in zip(*values.values(), strict=True)]
    return line_looks(LooksStudy(), settings)


def test_a_word_looks_the_same_whichever_others_are_drawn() -> None:
    [alone] = looks_of(kernel=["gaussian"])
    among, last = looks_of(kernel=["softmax", "gaussian"]), looks_of(kernel=["uniform", "gaussian"])
    assert alone == among[1] == last[1] and alone.colour == "C1"
    assert len({look.marker for look in [*among, *last]}) == 3


def test_a_number_with_declared_shades_has_its_shade_in_every_figure() -> None:
    """And a dash beside it where shades are nearly alike."""
    few, many = looks_of(heads=[1, 50]), looks_of(heads=[2, 5, 20, 50])
    assert few[1].colour == many[-1].colour != few[0].colour
    assert {look.dash for look in few} == {"-"}
    assert len({look.dash for look in looks_of(heads=[1, 2, 4, 8])}) == 4


def test_of_two_parameters_the_word_has_colours_and_the_number_dashes_and_markers() -> None:
    both = looks_of(kernel=["softmax", "softmax", "gaussian", "gaussian"], width=[16, 64, 16, 64])
    found = [(look.colour, look.dash, look.marker) for look in both]
    assert found == [("C0", "-", "o"), ("C0", "--", "s"), ("C1", "-", "o"), ("C1", "--", "s")]
    together = looks_of(kernel=["softmax", "gaussian"], width=[16, 64])
    assert [look.dash for look in together] == ["-", "-"], "one that goes with another has no dash"
    numbers = [{"n": n, "snr": snr} for n in (5, 10) for snr in (1.0, 2.0)]
    assert len({look.colour for look in line_looks(FakeStudy(), numbers)}) == 4


def test_a_number_takes_no_colour_of_a_word() -> None:
    """m = 16 in softmax's blue would be read as softmax."""
    with mpl.style.context(RC):
        colours = {to_hex(look.colour) for look in looks_of(width=[16, 512])}
        words = {to_hex(f"C{index}") for index in range(8)}
    assert len(colours) == 2
    assert not colours & words


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
            assert not {unicode_of(one.symbol), one.unit} & set(said), one
            letters = re.sub(r"\\mathrm\{\w+\}|\\[A-Za-z]+", " ", one.symbol)
            assert not re.search(r"[A-Za-z]{2,}", letters), one


@pytest.mark.slow
def test_labels_and_their_symbols_can_be_drawn(caplog: pytest.LogCaptureFixture) -> None:
    """What a font lacks is a warning, or a line that matplotlib logs."""
    figure = Picture(3, 3)
    for study in STUDIES:
        for one in itertools.chain(*_tables(study)):
            figure.text(0, 0, _text(one))
    with caplog.at_level(logging.WARNING, "matplotlib"):
        file_content(figure, "png")
    assert caplog.messages == []


def test_every_number_can_stand_at_a_tick() -> None:
    """The interval of a fitted law may have no end."""
    numbers = (0.05, -2.0, 3e-7, math.inf, -math.inf, math.nan)
    texts = ["0.05", "−2", r"$3 \cdot 10^{-7}$", r"$\infty$", r"$-\infty$", "nan"]
    assert list(map(tick_number, numbers)) == texts
