"""Colours, markers and dashes of lines: a name has one look in every figure."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import Literal

import matplotlib as mpl
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import overfit_cli
from overfit_cli.core.parameters import StudyParameters, parameter
from overfit_cli.figures.palette import line_looks
from overfit_cli.figures.style import RC
from tests.fake_study import FakeStudy

RESULTS = Path(__file__).parents[2] / "results"


class LooksParameters(StudyParameters):
    kernel: Literal["softmax", "gaussian", "uniform"] = parameter("softmax", "kernel")
    heads: int = parameter(1, "heads", symbol="H", shades=(1, 512))
    width: int = parameter(1, "width", symbol="m")


class LooksStudy(FakeStudy):
    parameters = LooksParameters  # type: ignore[assignment]


STUDY = LooksStudy()


def test_a_word_looks_the_same_whichever_others_are_drawn() -> None:
    [alone] = line_looks(STUDY, [{"kernel": "gaussian"}])
    among = line_looks(STUDY, [{"kernel": kernel} for kernel in ("softmax", "gaussian")])
    last = line_looks(STUDY, [{"kernel": kernel} for kernel in ("uniform", "gaussian")])
    assert alone == among[1] == last[1]
    assert alone.colour == "C1"
    assert len({look.marker for look in [*among, *last]}) == 3


def test_a_number_with_declared_shades_has_its_shade_in_every_figure() -> None:
    """And a dash beside it where shades are nearly alike."""
    few = line_looks(STUDY, [{"heads": heads} for heads in (1, 50)])
    many = line_looks(STUDY, [{"heads": heads} for heads in (2, 5, 20, 50)])
    assert few[1].colour == many[-1].colour
    assert few[0].colour != few[1].colour
    assert {look.dash for look in few} == {"-"}
    alike = line_looks(STUDY, [{"heads": heads} for heads in (1, 2, 4, 8)])
    assert len({look.dash for look in alike}) == 4


def test_of_two_parameters_the_word_has_colours_and_the_number_dashes_and_markers() -> None:
    settings = [{"kernel": k, "width": m} for k in ("softmax", "gaussian") for m in (16, 64)]
    looks = line_looks(STUDY, settings)
    assert [look.colour for look in looks] == ["C0", "C0", "C1", "C1"]
    assert [look.dash for look in looks] == ["-", "--", "-", "--"]
    assert [look.marker for look in looks] == ["o", "s", "o", "s"]
    looks = line_looks(STUDY, [settings[0], settings[-1]])
    together = [(look.colour, look.dash) for look in looks]
    assert together == [("C0", "-"), ("C1", "-")], "one that goes with another changes no dash"
    numbers = [{"n": n, "snr": snr} for n in (5, 10) for snr in (1.0, 2.0)]
    assert len({look.colour for look in line_looks(FakeStudy(), numbers)}) == 4


def test_a_number_takes_no_colour_of_a_word() -> None:
    """m = 16 in softmax's blue would be read as softmax."""
    looks = line_looks(STUDY, [{"width": width} for width in (16, 512)])
    with mpl.style.context(RC):
        colours = {to_hex(look.colour) for look in looks}
        words = {to_hex(f"C{index}") for index in range(8)}
    assert len(colours) == 2
    assert not colours & words


NEUTRAL = {"#4c4c4c", "#4d4d4d", "#666666", "#333333", "#262626", "#000000"}
"""Greys and black: what a dash or a marker means, thresholds and bounds."""


def named_colours(figure: Figure) -> list[tuple[str, str]]:
    """The names in the legends of a figure, and the colours of their handles."""
    legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes)]
    pairs = []
    for legend in filter(None, legends):
        for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True):
            if isinstance(handle, Line2D):
                pairs.append((text.get_text(), to_hex(handle.get_color())))
    return pairs


def is_registered(name: str) -> bool:
    """Whether a name has one colour: numbers have, if they are of heads."""
    return not re.search(r"= [\d$]", name) or bool(re.fullmatch(r"\$H\$ = \d+", name))


FEW_SEEDS = ["seed=0:2"]
"""Fewer seeds than the kept figures have: more of them change no colour, and take three times."""


@pytest.mark.slow
def test_a_name_has_one_colour_in_all_kept_figures() -> None:
    colours: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for picture in sorted(RESULTS.glob("*/figures/*.png")):
        run = picture.parents[1]
        if picture.stem == "images":  # they have no legend, and some need data
            continue
        figure = overfit_cli.draw(picture.stem, run, where=FEW_SEEDS)
        with mpl.style.context(RC):
            for name, colour in named_colours(figure):
                if is_registered(name) and colour not in NEUTRAL:
                    colours[name].setdefault(colour, f"{run.name}/{picture.stem}")
    assert {"softmax", "Gaussian", "$H$ = 5"} <= set(colours)
    conflicts = {name: of_name for name, of_name in colours.items() if len(of_name) > 1}
    assert not conflicts
