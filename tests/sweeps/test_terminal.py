from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Literal

import numpy as np
import pytest
from rich.console import Console

from overfit_cli.core.parameters import Value
from overfit_cli.stats.equations import parse_equation
from overfit_cli.sweeps.terminal import Landmarks, Table, phase_diagram
from tests.fake_study import fake_loss

NS = list(range(2, 21))
SNRS = np.linspace(0.1, 16, 40).tolist()
FULL: Table = {(snr, n): fake_loss(n, snr) for n in NS for snr in SNRS}


def printed(
    xs: Sequence[Value],
    ys: Sequence[Value],
    table: Table,
    *,
    colour: Literal["256", "truecolor"] | None = None,
    log: bool = False,
    encoding: str = "utf-8",
    width: int = 80,
    landmarks: Landmarks | None = None,
) -> list[str]:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = Console(width=width, file=file, force_terminal=bool(colour), color_system=colour)
    diagram = phase_diagram(
        xs, ys, table, title="test loss", width=width, log=log, landmarks=landmarks
    )
    console.print(diagram)
    file.seek(0)
    return file.read().splitlines()


def test_large_values_are_dark_and_small_ones_light_with_y_upward() -> None:
    lines = printed(SNRS, NS, FULL)
    assert lines[0] == "test loss"
    top, bottom = lines[1], lines[19]
    assert bottom.startswith(" 2 █████")
    assert top.count("█") < bottom.count("█")
    assert top.endswith("···"), "the lowest shade is no blank"


def test_the_ends_of_x_some_of_y_and_the_scale_are_labelled() -> None:
    lines = printed(SNRS, NS, FULL)
    assert lines[20].split() == ["0.1", "16"]
    assert [line[:2].strip() for line in lines[1:20]].count("") < 16
    assert lines[21].split()[0] == f"{min(FULL.values()):.3g}"  # type: ignore[type-var]
    assert lines[21].split()[-1] == "0.7"
    assert len(lines) == 22


def test_failed_points_are_crosses_and_those_to_come_are_blank_and_both_are_counted() -> None:
    table: dict[tuple[Value, Value], float | None] = {(1, 1): 0.1, (2, 1): None, (1, 2): 0.9}
    table[2, 2] = float("nan")
    lines = printed([1, 2, 3], [1, 2], table)
    assert lines[1] == "2 " + "█" * 16 + "×" * 16 + " " * 16
    assert lines[2] == "1 " + "·" * 16 + "×" * 16 + " " * 16
    assert "× 2 points failed" in lines[-1]
    assert "blank: 2 points to come" in lines[-1]


def test_it_draws_before_the_first_cell_has_arrived() -> None:
    lines = printed(SNRS, NS, {})
    assert lines[3] == "18" + " " * 41
    assert lines[-1] == "blank: 760 points to come"


def test_a_single_value_is_drawn() -> None:
    assert "▒" in printed([1], [1], {(1, 1): 0.3})[1]


@pytest.mark.slow
def test_more_values_than_room_are_averaged_into_80_columns_and_24_rows() -> None:
    xs, ys = list(range(1000)), list(range(300))
    table: Table = {(x, y): float(x >= 500) for x in xs for y in ys}
    lines = printed(xs, ys, table)
    assert max(map(len, lines)) <= 80
    assert len(lines) == 24 + 3
    assert lines[1].count("█") in (37, 38, 39)


def test_a_bin_is_failed_only_if_nothing_in_it_has_a_value() -> None:
    xs = list(range(160))
    table: dict[tuple[Value, Value], float | None] = {(0, 2): None}
    table |= {(x, 1): (None if x % 2 else 0.5) for x in xs}
    lines = printed(xs, [1, 2], table)
    assert "×" not in lines[2]
    assert lines[1].count("×") == 1


def test_shading_by_ratio_spreads_decades() -> None:
    table: Table = {(x, 1): 10.0**x for x in range(5)}
    assert set(printed(list(range(5)), [1], table, log=True)[1][2:]) == set("·░▒▓█")
    assert set(printed(list(range(5)), [1], table)[1][2:]) == set("·█")


def test_shading_by_ratio_is_left_where_a_value_is_zero() -> None:
    assert "█" in printed([0, 1], [1], {(0, 1): 0.0, (1, 1): 1.0}, log=True)[1]


def test_colours_are_used_where_there_are_enough() -> None:
    line = printed([0, 1], [1], {(0, 1): 0.0, (1, 1): 1.0}, colour="truecolor")[1]
    assert "48;2;68;1;84" in line
    assert "48;2;253;231;37" in line


def test_a_terminal_without_unicode_gets_ascii() -> None:
    lines = printed(SNRS, NS, {**FULL, (SNRS[0], 2): None}, encoding="ascii")
    assert all(line.isascii() for line in lines)
    assert "#" in lines[5]


def test_words_can_be_axes() -> None:
    lines = printed(["softmax", "gaussian"], [True, False], {("softmax", True): 1.0})
    assert lines[-2].split() == ["softmax", "gaussian"]
    assert "False" in lines[1]


def test_in_colour_a_point_to_come_is_half_as_strong_as_the_nearest() -> None:
    table: Table = {(0, 1): 0.0, (9, 1): 1.0, (9, 2): None}
    low, high = "38;2;68;1;84m", "38;2;253;231;37m"
    upper, lower = printed(range(10), [1, 2], table, colour="truecolor")[1:3]
    assert f"{low}{'▒' * 16}" in lower
    assert f"{high}{'▒' * 16}" in lower
    assert "2;31m×" in upper, "what is nearest to a failed point may fail"
    key = printed(range(10), [1, 2], table, colour="truecolor")[-1]
    assert "▒ 17 points to come, as the nearest" in key
    ascii_key = printed(range(10), [1, 2], table, colour="truecolor", encoding="ascii")[-1]
    assert ": 17 points to come, as the nearest" in ascii_key
    assert "▒" not in printed(range(10), [1, 2], table)[2], "without colour it would mislead"


@pytest.mark.parametrize(("width", "characters"), [(60, 2), (80, 3), (120, 4), (200, 4)])
def test_a_wide_terminal_has_wide_points(width: int, characters: int) -> None:
    snrs = SNRS[:24]
    table: Table = {(snr, n): float(snr == snrs[-1]) for n in NS for snr in snrs}
    line = printed(snrs, NS, table, width=width)[1]
    assert line[3:] == "·" * 23 * characters + "█" * characters


def test_the_threshold_stands_on_the_scale_with_the_names_of_its_sides() -> None:
    sides = Landmarks(0.2, ("benign", "harmful"))
    table: Table = {(0, 1): 0.0, (1, 1): 1.0}
    assert printed([0, 1], [1], table, landmarks=sides)[-2:] == [
        "0 ··|░░▒▒▓▓██ 1   ",
        "benign up to 0.2, harmful above it",
    ]
    above = printed([0, 1], [1], {(0, 1): 0.3, (1, 1): 1.0}, landmarks=sides)
    assert "|" not in above[-2], "it is beyond the scale"
    assert above[-1] == "benign up to 0.2, harmful above it"
    assert printed([0, 1], [1], table, landmarks=Landmarks(0.2))[-1] == "| is 0.2"
    assert len(printed([0, 1], [1], table)) == 4


def test_the_law_is_a_line_of_characters_where_its_sides_meet() -> None:
    xs, ys = list(range(1, 13)), [1, 2, 3, 4]
    table: Table = {(x, y): 0.0 if y * x > 12 else 1.0 for x in xs for y in ys}
    law = Landmarks(law=parse_equation("y * x = 12", ("x", "y")))
    plain = printed(xs, ys, table)
    lines = printed(xs, ys, table, landmarks=law)
    assert lines[-1] == "o is y * x = 12"
    for y, line, without in zip((4, 3, 2), lines[1:4], plain[1:4], strict=True):
        ends = line.rindex("o") + 1
        assert ends == pytest.approx(without.index("·"), abs=2), y
        assert all(mine in (theirs, "o") for mine, theirs in zip(line, without, strict=True))
    assert lines[1].count("o") == 1
    one_each = printed(SNRS * 2, NS, FULL, landmarks=law)
    assert not any("o" in line for line in one_each[1:20]), "it would hide points of a character"


def test_in_colour_the_law_lies_over_the_points() -> None:
    law = Landmarks(law=parse_equation("x = 2.5", ("x", "y")))
    table: Table = {(x, 1): float(x > 2) for x in (1, 2, 3, 4)}
    line = printed([1, 2, 3, 4], [1], table, colour="truecolor", landmarks=law)[1]
    assert "\x1b[1;37;48;2;68;1;84mo" in line, "white on dark"
