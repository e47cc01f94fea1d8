"""The look of a figure: its size, axes, and a style sheet of the user's."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from overfit_cli import UserError
from overfit_cli.core.figure import FigureOptions
from overfit_cli.figures.look import read_log, read_look
from overfit_cli.figures.picture import (
    Look,
    Picture,
    file_content,
    looking,
    new_panels,
    save,
    styled,
)
from tests.fake_study import (
    LAW,
    NS,
    OPTIONS,
    SIDES,
    SNRS,
    data_of,
    draw_boundary,
    draw_curves,
    draw_heatmap,
    draw_lines,
    fake_cells,
    fake_trajectories,
)

CELLS = fake_cells(NS, SNRS)
FEW = fake_cells([5, 10], [1.0, 2.0, 4.0])
KERNELS = pd.concat([fake_cells([5], [1.0, 2.0], kernel=k) for k in ("softmax", "gaussian")])
LINES = FigureOptions(x="snr", value="test_loss")
COLOURS = ["123456", "654321"]


def look(*, size: str | None = None, style: Path | None = None) -> Any:
    """Every picture that is made inside looks so."""
    return looking(read_look(size, style))


def sheet(folder: Path, text: str) -> Path:
    path = folder / "mine.mplstyle"
    path.write_text(text)
    return path


def lines() -> Picture:
    return draw_lines(data_of(FEW), LINES)


# Size


@pytest.mark.parametrize(
    ("text", "inches"),
    [
        ("column", (3.4, 2.6)),
        ("page", (7.0, 2.6)),
        ("3.4x2.6", (3.4, 2.6)),
        ("5 × 4", (5, 4)),
        ("4x3in", (4, 3)),
        ("127x76.2mm", (5, 3)),
        ("12.7x7.62cm", (5, 3)),
    ],
)
def test_a_size_is_a_papers_or_inches_or_millimetres(
    text: str, inches: tuple[float, float]
) -> None:
    with look(size=text):
        figure = draw_heatmap(data_of(CELLS), OPTIONS)
    assert figure.get_size_inches() == pytest.approx(inches)


@pytest.mark.parametrize("text", ["colum", "3.4", "3.4x", "-3x2", "3x2px", "0.4x3", "1e3x2", ""])
def test_another_size_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=f"^size={text!r}: (it takes column|both sides are at lea)"):
        read_look(text, None)


# Axes and equations


@pytest.mark.parametrize(
    ("text", "logarithmic"),
    [("none", ""), ("x", "x"), ("y", "y"), ("value", "v"), ("x, y,value", "xyv"), (None, "")],
)
def test_axes_are_logarithmic_as_asked(text: str | None, logarithmic: str) -> None:
    narrow = fake_cells([6, 8, 10], [6.0, 8.0, 10.0])
    figure = draw_heatmap(data_of(narrow), replace(OPTIONS, log=read_log(text)))
    axes, bar = figure.axes
    assert isinstance(axes.collections[0].norm, mpl.colors.LogNorm) == ("v" in logarithmic)
    scales = {"x": axes.get_xscale(), "y": axes.get_yscale(), "v": bar.get_yscale()}
    assert scales == {one: "log" if one in logarithmic else "linear" for one in "xyv"}


def test_what_has_no_logarithm_is_refused() -> None:
    with pytest.raises(UserError, match=r"^log='none,x': it takes some of x, y, value"):
        read_log("none,x")
    zero = FEW.assign(test_loss=FEW["test_loss"] - FEW["test_loss"].min())
    with pytest.raises(UserError, match=r"^log='value': the least number drawn is 0, which has"):
        draw_lines(data_of(zero), replace(LINES, log=frozenset({"value"})))
    with pytest.raises(UserError, match=r"^log='x': the values of kernel aren't numbers"):
        draw_lines(data_of(KERNELS), replace(LINES, x="kernel", log=frozenset({"x"})))


# A style sheet


@pytest.mark.parametrize(
    ("text", "pixels"),
    [("", (680, 520)), ("savefig.dpi: 100", (340, 260)), ("savefig.dpi: figure", (340, 260))],
)
def test_a_style_sheet_sets_the_dots_and_the_colour_map(
    text: str, pixels: tuple[int, int], tmp_path: Path
) -> None:
    style = sheet(tmp_path, f"image.cmap: magma\n{text}\n")
    with look(style=style):
        figure = draw_heatmap(data_of(CELLS), OPTIONS)
    assert figure.axes[0].collections[0].get_cmap().name == "magma"
    header = file_content(figure, "png")[16:24]
    assert tuple(int.from_bytes(side, "big") for side in (header[:4], header[4:])) == pixels


@pytest.mark.parametrize(
    ("cells", "cycle", "is_taken"),
    [(KERNELS, COLOURS, True), (FEW, COLOURS, True), (FEW, COLOURS[:1], False)],
)
def test_a_style_sheet_changes_sizes_and_colours_if_it_has_one_for_each_line(
    cells: pd.DataFrame, cycle: list[str], is_taken: bool, tmp_path: Path
) -> None:
    text = f"axes.prop_cycle: cycler('color', {cycle})\nfont.size: 12"
    with look(style=sheet(tmp_path, text)):
        figure = draw_lines(data_of(cells), LINES)
    content = file_content(figure, "svg").decode()
    assert [f"#{colour}" in content for colour in cycle] == [is_taken] * len(cycle)
    assert "#0072b2" not in content
    assert len({to_hex(line.get_color()) for line in figure.axes[0].lines[:2]}) == 2
    assert figure.axes[0].xaxis.label.get_fontsize() == 12
    assert figure.axes[0].get_xticklabels()[0].get_fontsize() == pytest.approx(7 * 12 / 8)


@pytest.mark.slow
def test_a_style_sheet_leaves_no_trace_and_always_makes_room_for_legends(tmp_path: Path) -> None:
    before, settings = file_content(lines(), "png"), dict(mpl.rcParams)
    style = sheet(tmp_path, "axes.prop_cycle: cycler('color', ['r'])\nfont.size: 12")
    with look(style=style, size="page"):
        styled, now = lines(), file_content(lines(), "png")
    assert file_content(lines(), "png") == before, "a later figure is as it was"
    assert file_content(styled, "png") == now != before, "and the styled one keeps its own style"
    with pytest.raises(UserError), look(style=style):
        draw_lines(data_of(FEW), replace(LINES, x="nothing"))
    assert file_content(lines(), "png") == before, "nor does a failure leave one"
    assert dict(mpl.rcParams) == settings
    layout = "figure.autolayout: True\nfigure.constrained_layout.use: False"
    with look(style=sheet(tmp_path, layout)):
        assert file_content(lines(), "png") == before


BAD_SHEETS = [
    ("nonsense", "Missing colon, line 1 ('nonsense')"),
    ("font.size: 8\nfont.size: 9", "Duplicate key, line 2"),
    ("savefig.dpi: 9999", "its dots per inch, savefig.dpi, are 9999; it takes 20 to 2400"),
    ("image.cmap: magmaa", "matplotlib has no colour map magmaa, its image.cmap"),
    ("axes.prop_cycle: cycler('color', [])", "axes.prop_cycle is empty"),
    ("font.family: No Such Font", "no font of font.family is installed: No Such Font"),
    ("\udcff\udc80", "can't decode"),
]


@pytest.mark.parametrize(("text", "why"), BAD_SHEETS)
def test_a_bad_style_sheet_is_refused_in_a_sentence(
    text: str, why: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.mplstyle"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(UserError) as refused:
        read_look(None, path)
    said = str(refused.value)
    assert said.startswith(f"style={str(path)!r}: ")
    assert why in said
    assert "\n" not in said
    assert capfd.readouterr() == ("", ""), "matplotlib says nothing of its own beside"


def test_latex_that_is_not_installed_is_said_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"text\.usetex needs LaTeX, which isn't installed here"):
        read_look(None, sheet(tmp_path, "text.usetex: True"))


def test_fonts_that_are_missing_beside_one_that_is_there_are_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    style = sheet(tmp_path, "font.family: No Such Font, monospace")
    with look(style=style), caplog.at_level(logging.WARNING):
        text = file_content(lines(), "svg").decode()
    assert "monospace" in text.lower() or "Mono" in text
    assert caplog.messages == []


SHIPPED = sorted((Path(mpl.get_data_path()) / "stylelib").glob("[!_]*.mplstyle"))


@pytest.mark.parametrize(
    "style",
    [SHIPPED[0], *(pytest.param(one, marks=pytest.mark.slow) for one in SHIPPED[5::5])],
    ids=lambda path: path.stem,
)
def test_every_figure_can_be_drawn_in_matplotlibs_own_styles(style: Path) -> None:
    logged = data_of(FEW, None, fake_trajectories(FEW))
    with look(style=style, size="4.5x3.5"):
        file_content(lines(), "png")
        file_content(draw_curves(logged, FigureOptions()), "png")
        file_content(draw_heatmap(data_of(CELLS), replace(SIDES, law=(LAW,))), "png")
        file_content(draw_boundary(data_of(CELLS), SIDES), "png")


@styled
def with_long_names(*names: str) -> tuple[Picture, list[Axes]]:
    """Three panels with a long label and these names along x."""
    figure, all_axes = new_panels(3)
    for axes in all_axes:
        axes.set_xlabel("number of training samples that are used in the fit")
        axes.set_xticks(range(len(names)), names)
        axes.plot(range(len(names)))
    all_axes[0].set_ylabel("short")
    file_content(figure, "png")
    return figure, all_axes


@pytest.mark.slow
def test_labels_that_do_not_fit_are_wrapped_and_names_of_ticks_too() -> None:
    _, all_axes = with_long_names("sgd", "adam", "a very long optimiser name")
    assert all_axes[1].get_xlabel() == "number of training samples\nthat are used in the fit"
    assert all_axes[0].get_xticklabels()[2].get_text() == "a very long\noptimiser\nname"
    assert all_axes[0].get_ylabel() == "short"
    _, all_axes = with_long_names("a_name_that_has_no_blanks", "another_one_that_has_none")
    assert [axes.get_xticklabels()[0].get_rotation() for axes in all_axes] == [90, 90, 90]
    _, all_axes = with_long_names("sgd", "adam")
    assert all_axes[0].get_xticklabels()[0].get_rotation() == 0


def test_panels_whose_titles_would_collide_are_refused_at_a_size_that_is_asked_for(
    tmp_path: Path,
) -> None:
    @styled
    def side_by_side() -> Picture:
        figure = Picture(7, 2)
        for axes in figure.subplots(1, 2):
            axes.set_title("a title as long as its panel here, not half as wide")
        return figure

    save(side_by_side(), tmp_path / "wide.png")
    with looking(Look(width=3.4)), pytest.raises(UserError, match="needs more room"):
        save(side_by_side(), tmp_path / "narrow.png")
