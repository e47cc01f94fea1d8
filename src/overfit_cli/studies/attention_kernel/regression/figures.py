"""Figures of losses, and of the sizes at which δ is above zero, with long legend handles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from overfit_cli.core.cells import Cells
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.text import plural, round_digits
from overfit_cli.figures.labels import brief, symbols_in_words
from overfit_cli.figures.lines import draw_best_curves
from overfit_cli.figures.lines import draw_lines as draw_plain_lines
from overfit_cli.figures.map import draw_map
from overfit_cli.figures.map_data import MapPanel
from overfit_cli.figures.picture import Picture, looking
from overfit_cli.figures.series import ROUND_OFF
from overfit_cli.figures.style import Legend, current_look
from overfit_cli.studies.attention_kernel.regression.parameters import LAYERS
from overfit_cli.studies.attention_kernel.regression.theory import least_width

LONG_HANDLES: Mapping[str, Any] = {"legend.handlelength": 3.2}


def _with_long_handles(
    draw: Callable[[Cells, FigureOptions], Picture],
    data: Cells,
    options: FigureOptions,
) -> Picture:
    look = current_look.get()
    with looking(replace(look, settings={**LONG_HANDLES, **look.settings})):
        return draw(data, options)


def draw_lines(data: Cells, options: FigureOptions) -> Picture:
    """Draw lines whose legend shows the whole pattern of a dash."""
    return _with_long_handles(draw_plain_lines, data, options)


def draw_losses(data: Cells, options: FigureOptions) -> Picture:
    """Draw losses at the best step sizes; the caption tells the theorem whose setting it is."""
    figure = draw_best_curves(data, options)
    figure.facts += _setting_in_words(data.trained)
    return figure


_SETTINGS = {
    "value": "Theorem 1's setting: $W_V$ alone is trained.",
    "all": "Theorem 2's setting: $W_Q$, $W_K$ and $W_V$ are trained.",
    "query": "Theorem 3's setting: $W_Q$ alone is trained.",
}


def _setting_in_words(cells: pd.DataFrame) -> list[str]:
    facts = []
    trained = [str(name) for name in cells["trained"].unique()]
    if (cells["instance"] == "example").all():
        facts.append("The example of section 4.2.2: $W_Q$ alone is trained.")
    elif set(trained) & set(LAYERS):
        facts.append("Theorem 2 has bounds without linear layers on top alone.")
    elif len(trained) == 1:
        facts.append(_SETTINGS[trained[0]])
    if (cells["weights"] == "identity").all():
        facts.append("Its weights and data are fixed: seeds do not differ.")
    [balance, *others] = cells["balance"].unique()
    if balance != 1 and not others:
        facts.append(
            f"Condition (8) is met by remark 3: W_O is {brief(balance)} times as large, and W_V as "
            "many times as small."
        )
    [distance, *others] = cells["distance"].unique()
    if (cells["target"] == "near").all() and not others:
        start = brief(round_digits(distance**2 / 2, 2))
        facts.append(
            f"Labels lie {brief(distance)} from the first outputs, so that losses begin at {start}."
        )
        facts += _round_off_in_words(cells)
    return facts


_RESOLVED = 2e-29
"""The largest loss that is round-off: half the square of some 100 outputs' of a few 2e-16 each."""


def _round_off_in_words(cells: pd.DataFrame) -> list[str]:
    ends = cells["train_loss"].astype(float)
    shaded = ends < ROUND_OFF * cells["start_loss"].astype(float)
    if not (ends < _RESOLVED).any() or shaded.any():  # the figure says so itself
        return []
    return [
        f"Below about {brief(_RESOLVED)} a loss is round-off of outputs, which are near their "
        "labels: lines and bands go flat there."
    ]


def draw_final_losses(data: Cells, options: FigureOptions) -> Picture:
    """Draw lines of a loss over its start, down to its round-off."""
    figure = draw_plain_lines(data, options, floor=ROUND_OFF)
    told = [name for name in data.varying() if name != options.x]
    figure.facts += symbols_in_words(data.schema, told)
    if options.x == "learning_rate":
        figure.facts.append(f"Step sizes tried: {data.trained['learning_rate'].nunique()}.")
    return figure


def draw_ranks(data: Cells, options: FigureOptions) -> Picture:
    """Draw where δ of softmax is above zero with its five sizes; other kernels are left out."""
    chosen, several = data, data.trained["kernel"].nunique() > 1
    if several:
        chosen = replace(data, frame=data.frame[data.frame["kernel"] == "softmax"])
    is_plain = (options.x, options.y) == ("d_h", "d") and not data.pairs

    def overlay(axes: Axes, part: MapPanel) -> Legend:
        return _draw_fifth_size(axes, part.data.trained) if is_plain else []

    figure = _with_long_handles(partial(draw_map, overlay=overlay, sides=True), chosen, options)
    if several:
        figure.facts.append("Softmax cells alone.")
    if is_plain:
        _tick_widths(figure, sorted(chosen.trained["d_h"].unique()))
        figure.facts.append(
            "Black line: (M − 1)·d = M·n, M being the fewest samples with M·n > D "
            "tokens, up to N. Dashed: what Remark 4 says is necessary for δ > 0; the other lines "
            "are ours. δ can be above zero only right of and above all of them; a cell through "
            "whose centre a line runs is on that side."
        )
        figure.facts += _agreement(chosen, options.threshold or 0.0)
    return figure


def _tick_widths(figure: Picture, widths: list[int]) -> None:
    for axes in figure.axes:
        axes.set_xticks(widths, [f"{width:g}" for width in widths])
        axes.minorticks_off()


def _agreement(data: Cells, threshold: float) -> list[str]:
    is_above = data.trained["delta"] > threshold
    sides = is_above.groupby([data.trained[name] for name in ("n", "tokens", "d", "d_h")]).nunique()
    seeds = plural(data.trained["seed"].nunique(), "seed")
    return [f"All {seeds} lie on one side in every cell."] if (sides == 1).all() else []


def _draw_fifth_size(axes: Axes, cells: pd.DataFrame) -> Legend:
    """Draw (M − 1) d = M n, steps in D: M is the fewest samples with more tokens than D."""
    if len(sizes := cells[["n", "tokens"]].drop_duplicates()) != 1:
        return []
    samples, tokens = (int(size) for size in sizes.iloc[0])
    (left, right), black = axes.get_xlim(), "0.1"
    corners = [(right, float(tokens))]  # below D = n no d is large enough
    for fewest in range(2, samples + 1):
        least = least_width(fewest, tokens)
        corners += [(least, (fewest - 1) * tokens), (least, fewest * tokens)]
    corners.append((left, float(samples * tokens)))  # from D = N n on every d is
    white = withStroke(linewidth=2.4, foreground="white")
    line = Line2D(*zip(*corners, strict=True), color=black, path_effects=[white])
    axes.add_line(line)
    text = r"$(M - 1) \cdot d = M \cdot n$, least $M$ with $M \cdot n > D$"
    return [(Line2D([], [], color=black), text)]
