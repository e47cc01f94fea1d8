"""Figures after Table 1 of Cao et al. 2024.

- `heatmap`: over samples and width, with the contour of widths that suffice.
- `table1`: steps, sufficient widths and condition numbers, and the table itself as measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from overfit_cli.core.cells import Cells
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.text import plural
from overfit_cli.figures.axes import legend_below
from overfit_cli.figures.map import draw_map
from overfit_cli.figures.map_data import MapPanel
from overfit_cli.figures.picture import Picture
from overfit_cli.figures.style import BOUND, HIGHLIGHT, Legend
from overfit_cli.stats.intervals import mean_estimate
from overfit_cli.studies.softmax_network.convergence.claims.table1 import step_ranges, width_range
from overfit_cli.studies.softmax_network.convergence.widths import (
    LEAST_WIDTH,
    median_width,
    sufficient_widths,
    widest,
)
from overfit_cli.studies.softmax_network.figures import (
    NETWORKS,
    done_cells,
    draw_series,
    legend_of,
    letter_panels,
    misses_in_words,
    new_grid,
    quartiles_over_seeds,
    say_how_averaged,
)
from overfit_cli.studies.softmax_network.paper import Activation
from overfit_cli.studies.softmax_network.powers import Power, largest_residual

STATED = 2
"""The power of n in the width that Table 1 states for each of the three networks, but for λ."""

LOGARITHMS: Mapping[Activation, int] = {"softmax": 2, "exp": 2, "relu": 1}
"""The power of log(n) in Table 1's m."""

FEWEST_SAMPLES = 3
"""The least number of n of which powers of n are told."""


def has_grid(data: Cells) -> bool:
    """Return whether n and m vary, so that there is a diagram."""
    return bool((data.trained[["n", "m"]].nunique() > 1).all())


def draw_diagram(data: Cells, options: FigureOptions) -> Picture:
    """Draw the heatmap; of steps, with the fitted contour m ∝ n^p of the widths that suffice.

    Below it training takes more than twice the steps of infinitely many hidden units.
    """
    is_of_steps = options.value in (None, "steps_to_epsilon", "steps_over_limit")
    if (options.x, options.y) != ("n", "m") or data.pairs or not is_of_steps:
        return draw_map(data, options)
    picture = draw_map(data, options, _draw_contour)
    picture.facts.append(
        "The largest residual is that of the points, which are medians within the sweep; "
        f"{_censored_in_words(data.trained)}."
    )
    return picture


def _censored_in_words(cells: pd.DataFrame) -> str:
    first, last = cells["m"].min(), cells["m"].max()
    return (
        f"in the powers of n a width below the sweep counts as any from {LEAST_WIDTH:g} to "
        f"{first:g}, one above it as any over {last:g}, which widens their intervals"
    )


def _draw_contour(axes: Axes, part: MapPanel) -> Legend:
    cells = part.data.trained
    widths, power = sufficient_widths(cells), _power_of_logs(_logarithms(width_range(cells)))
    middle = quartiles_over_seeds(widths, "n", "width")["middle"]
    middle = middle[(middle > 0) & np.isfinite(middle)]
    note, figure = _outside_in_words(widths), axes.get_figure(root=True)
    if note and isinstance(figure, Picture):
        panel = f"{part.title.removeprefix('activation: ')}: " if part.title else ""
        figure.facts.append(f"Contour, {panel}{note}")
    title = axes.get_title(loc="left").replace("activation: ", "")
    axes.set_title("\n".join([title, *_fit_in_words(power)]))
    if not math.isfinite(power.estimate.value) or middle.empty:
        return []
    ns = middle.index.to_numpy(float)
    outline: dict[str, Any] = {"path_effects": [withStroke(linewidth=2.4, foreground="white")]}
    fitted: dict[str, Any] = {"color": HIGHLIGHT, **outline}
    axes.plot(ns, middle, "o", color=HIGHLIGHT, markersize=2.5, zorder=3)
    for exponent, look in ((power.estimate.value, fitted), (STATED, BOUND | outline)):
        logs = np.log(middle).mean() + exponent * (np.log(ns) - np.log(ns).mean())
        axes.plot(ns, np.exp(logs), **look)
    marked = Line2D([], [], marker="o", markersize=2.5, **fitted)
    return [
        (marked, "twice the steps of infinite width, and its fit"),
        (Line2D([], [], **BOUND), f"Table 1's power, $m \\propto n^{STATED}$"),
    ]


def _fit_in_words(power: Power) -> list[str]:
    if not math.isfinite(power.estimate.value):
        return []
    words = f"$m \\propto n^{{{power.estimate.value:.2f}}}$ {power.interval}"
    return [words, f"largest residual {power.fit}"] if power.fit else [words]


def _outside_in_words(widths: pd.DataFrame) -> str:
    count = plural(len(widths), "width")
    medians = quartiles_over_seeds(widths, "n", "width")["middle"]
    sentences = []
    for end, side in ((0.0, "below"), (np.inf, "above")):
        if outside := int((widths["width"] == end).sum()):
            ns = ", ".join(f"{n:g}" for n in medians.index[medians == end])
            median = f", the median at n = {ns}" if ns else ""
            sentences.append(f"{outside} of {count} lie {side} the sweep{median}")
    return f"{'; '.join(sentences)}." if sentences else ""


LABELS = {
    "steps_to_epsilon": "steps $T$ of the\nwidest networks",
    "width": "sufficient\nwidth $m$",
    "kappa": r"condition number $\kappa$" "\nof the widest",
}


RULES = {
    "stability": r"step size $1/(m\lambda_{\mathrm{max}})$",
    "paper": r"step size $\propto \lambda/(mn^2)$",
}


def draw_table1(data: Cells, options: FigureOptions) -> Picture:
    """Draw steps, sufficient width and κ against n, a column for each step rule, and Table 1.

    A width is sufficient from which on training takes at most twice the steps that infinitely many
    hidden units take. With three n or more a table has the powers of n.
    """
    cells = done_cells(data, ("activation", "m", "n", "step_rule"))
    rules = [rule for rule in RULES if (data.trained["step_rule"] == rule).any()]
    fits = cells["n"].nunique() >= FEWEST_SAMPLES
    names = [name for name in NETWORKS if (data.trained["activation"] == name).any()]
    heights = [1.45] * len(LABELS) + ([0.25 + 0.36 * len(names)] if fits else [])
    figure, grid = new_grid(len(heights), len(rules), one_x=False, heights=heights)
    for axes_of_rule, rule in zip(grid.T, rules, strict=True):
        chosen = data.trained[data.trained["step_rule"] == rule]
        _draw_columns(axes_of_rule[:3], chosen, joined=fits)
        axes_of_rule[0].set_title(RULES[rule])
        if fits:
            _write_table(axes_of_rule[3], measured_powers(chosen))
    letter_panels(grid[: len(LABELS)].flat)
    for axes, label in zip(grid[:, 0], LABELS.values(), strict=False):
        axes.set_ylabel(label)
    misses = misses_in_words(data)
    say_how_averaged(figure, data.trained, f"; {misses}" if misses else "", joined=fits)
    figure.facts.append(
        "(b): a case is a network, an n and a seed; open markers are medians outside the sweep, "
        f"and {'bands' if fits else 'bars'} that end at an end of the sweep go on beyond it."
    )
    if fits:
        figure.facts.append(
            "Table: powers of n with 95 % intervals, and the largest share by which a median is "
            "off the fitted line, of the medians within the sweep; "
            f"{_censored_in_words(data.trained)}. λ is that of the widest networks; λ²m is divided "
            "by Table 1's log²(n), of ReLU log(n), and λ²T by log(n/ε). Table 1 states powers of n "
            "at a fixed λ, as the dashed line has it; here λ changes with n. It states T at its "
            "own step size, ∝ λ/(m n²)."
        )
    legend = legend_of(data.trained)
    if fits:
        legend.append((Line2D([], [], **BOUND), "Table 1 at a fixed $\\lambda$: $n^2$"))
    legend_below(figure, legend, columns=4)
    return figure


def _draw_columns(column: np.ndarray, cells: pd.DataFrame, *, joined: bool) -> None:
    steps, sufficient, kappa = column
    wide, widths = widest(cells), sufficient_widths(cells)
    draw_series(steps, wide, "n", "steps_to_epsilon", joined=joined)
    sweep = (float(cells["m"].min()), float(cells["m"].max()))
    draw_series(sufficient, widths, "n", "width", within=sweep, joined=joined)
    if joined:
        _guide(sufficient, widths, sweep)
    _count_missing(sufficient, widths, sweep)
    draw_series(kappa, wide, "n", "kappa", joined=joined)
    kappa.set_xlabel("training samples $n$")
    for axes in (steps, sufficient):
        axes.tick_params(labelbottom=False)


def _guide(axes: Axes, widths: pd.DataFrame, sweep: tuple[float, float]) -> None:
    ns = np.sort(widths["n"].unique()).astype(float)
    first = widths[widths["n"] == ns[0]].groupby("activation")["width"].apply(median_width)
    start = np.exp(np.log(first.clip(*sweep)).mean())
    limits = axes.get_ylim()
    axes.plot(ns, start * (ns / ns[0]) ** STATED, **BOUND)
    axes.set_ylim(limits)


def _count_missing(axes: Axes, widths: pd.DataFrame, sweep: tuple[float, float]) -> None:
    above, below = (int((widths["width"] == end).sum()) for end in (np.inf, 0.0))
    cases = f"of {len(widths)} cases"
    words = [f"{above} {cases}: no width up to {sweep[1]:g} suffices"] if above else []
    words += [f"{below} {cases}: the smallest width ({sweep[0]:g}) suffices"] if below else []
    if words:
        low, high = axes.get_ylim()
        axes.set_ylim(low * (low / high) ** (0.13 * len(words)), high)
        note = "\n".join(words)
        axes.text(0.97, 0.04, note, transform=axes.transAxes, ha="right", va="bottom", size=6)


TABLE = {
    "m": "$m$",
    "width": "$\\lambda^2 m$",
    "T": "$T$",
    "steps": "$\\lambda^2 T$",
}
"""The quantities whose powers of n are told; Table 1 has the second and the fourth as n²."""


def measured_powers(cells: pd.DataFrame) -> Mapping[str, Mapping[str, Power]]:
    """Return the powers of n in each quantity of `TABLE`, by activation and quantity."""
    return {
        activation: _powers(cells[cells["activation"] == activation], activation)
        for activation in NETWORKS
        if (cells["activation"] == activation).any()
    }


def _powers(cells: pd.DataFrame, activation: Any) -> Mapping[str, Power]:
    widths, wide = width_range(cells), step_ranges(widest(cells))
    steps = wide[["n", "seed", "least", "most"]]
    shrinking = wide["lambda_start"].astype(float) ** 2
    shrinking /= np.log(wide["n"].astype(float) / wide["epsilon"].astype(float))
    logs = {
        "m": _logarithms(widths),
        "width": _width_logs(cells, activation),
        "T": _logarithms(steps),
        "steps": _logarithms(
            steps.assign(least=steps["least"] * shrinking, most=steps["most"] * shrinking)
        ),
    }
    return {name: _power_of_logs(table) for name, table in logs.items()}


def _width_logs(grid: pd.DataFrame, activation: Activation) -> pd.DataFrame:
    """The logarithm of λ² m / log(n)^k, of the smallest sufficient m of each n and seed.

    λ is that of the widest networks, k the power of the logarithm in Table 1.
    """
    widths = width_range(grid)
    smallest = widest(grid).set_index(["n", "seed"])["lambda_start"].astype(float)
    squares = widths.join(smallest, on=["n", "seed"])["lambda_start"] ** 2
    scale = np.log(squares / np.log(widths["n"]) ** LOGARITHMS[activation])
    least = (np.log(widths["least"]) + scale).fillna(-np.inf)
    most = (np.log(widths["most"]) + scale).fillna(np.inf)
    return widths[["n", "seed"]].assign(least=least, most=most)


def _slopes_between(logs: pd.DataFrame) -> pd.DataFrame:
    x = np.log(logs["n"].astype(float))
    centred = x - np.log(logs["n"].unique().astype(float)).mean()
    weights = centred / (centred**2).groupby(logs["seed"]).transform("sum")
    rising = weights > 0
    ends = {
        "least": weights * logs["least"].where(rising, logs["most"]),
        "most": weights * logs["most"].where(rising, logs["least"]),
    }
    return pd.DataFrame(ends).groupby(logs["seed"]).sum()


def _logarithms(ranges: pd.DataFrame) -> pd.DataFrame:
    with np.errstate(divide="ignore"):
        return ranges.assign(least=np.log(ranges["least"]), most=np.log(ranges["most"]))


def _power_of_logs(logs: pd.DataFrame) -> Power:
    slopes = _slopes_between(logs)
    estimate = mean_estimate(slopes["least"], up_to=slopes["most"])
    if not math.isfinite(estimate.value):
        return Power(estimate, math.nan)
    ends = logs.groupby("n")[["least", "most"]].median()
    known = ends.loc[np.isclose(ends["least"], ends["most"]), "least"]
    places, medians = known.index.to_numpy(float), np.exp(known.to_numpy())
    fewest = 3 if len(known) == len(ends) else 2  # of another power than theirs
    return Power(estimate, largest_residual(places, medians, estimate.value, fewest=fewest))


def _write_table(axes: Axes, powers: Mapping[str, Mapping[str, Power]]) -> None:
    axes.axis("off")
    columns = np.linspace(0.13, 0.87, len(TABLE))
    lines = [0.0, *(2 + 3 * row for row in range(len(powers))), 2 + 3 * len(powers)]
    axes.set(xlim=(0, 1), ylim=(lines[-1] + 0.2, -0.3))
    axes.text(-0.22, 0.5, "power of $n$", va="center", size=6.5)
    axes.text(-0.22, 1.35, "stated", va="center", size=6.5)
    for across, (name, symbol) in zip(columns, TABLE.items(), strict=True):
        stated = f"{STATED}" if name in ("width", "steps") else f"{STATED} at fixed $\\lambda$"
        axes.text(across, 0.5, symbol, ha="center", va="center", size=7)
        axes.text(across, 1.35, stated, ha="center", va="center", size=6.5)
    for first, (activation, row) in zip(lines[1:], powers.items(), strict=False):
        axes.plot((-0.22, 1), (first, first), color="0.7", linewidth=0.4, clip_on=False)
        look = NETWORKS[activation]
        axes.text(-0.22, first + 1.5, look.name, color=look.colour, va="center", size=7)
        for across, power in zip(columns, row.values(), strict=True):
            known = math.isfinite(power.estimate.value)
            words = [power.number, power.interval, power.fit] if known else ["outside the sweep"]
            text = "\n".join(filter(None, words))
            axes.text(across, first + 1.5, text, ha="center", va="center", size=6, linespacing=1.1)
