"""Figures of `positional-semantic`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize, TwoSlopeNorm
from matplotlib.lines import Line2D

from overfit_cli.core.arrays import finite_column
from overfit_cli.core.cells import Cells
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.parameters import describe
from overfit_cli.core.text import plural
from overfit_cli.figures import style
from overfit_cli.figures.axes import legend_below, parameter_axis
from overfit_cli.figures.labels import axis_label, setting
from overfit_cli.figures.picture import Picture, title_panels
from overfit_cli.figures.style import PAGE, Legend, value_colour
from overfit_cli.stats.intervals import mean_estimate, median_estimate
from overfit_cli.studies.positional_semantic.claims import (
    DISTINCT,
    Transition,
    loss_gaps,
    published,
    transitions,
)

_STARTS = {"semantic": "o", "positional": "s"}
"""The starts that are compared, with their markers."""

_LINEAR = "linear_test_error"
_FACTORS = (0.2, 0.5, 1, 2, 5)
_GREY: dict[str, Any] = {"color": "0.4", "linewidth": 1}
_DOTTED: dict[str, Any] = {"linestyle": ":"}


def has_phase(data: Cells) -> bool:
    """Return whether ω and α vary, of both starts, and nothing else."""
    return has_overlaps(data) and "omega" in data.varying()


def has_overlaps(data: Cells) -> bool:
    """Return whether α varies, of both starts, and of the others ω alone."""
    varying = set(data.varying())
    has_both = {*_STARTS} <= set(data.trained["start"])
    return {"alpha", "start"} <= varying <= {"omega", "alpha", "start"} and has_both


has_branches = has_overlaps


def _colour(data: Cells, start: str) -> Any:
    return value_colour(describe(data.study.parameters)["start"], start) or style.PALETTE[0]


# The plane of ω and α


def draw_phase(data: Cells, options: FigureOptions) -> Picture:
    """Draw the plane of ω and α: the losses' difference, and θ, m and error at the lesser."""
    x, y = (parameter_axis(data, side, name) for side, name in (("x", "alpha"), ("y", "omega")))
    figure = Picture(PAGE, 4.6, least=5.0)
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    gaps, tables = _phase_tables(data.trained)
    most, factor = _largest(gaps), max(_largest(np.log(tables["error"])), 0.01)
    factors = LogNorm(np.exp(-factor), np.exp(factor))
    shown: list[tuple[str, pd.DataFrame, Normalize]] = [
        ("(positional − semantic loss) / $d$", -gaps, TwoSlopeNorm(0, -most, most)),
        (r"overlap with the teacher $\theta$", tables["theta"], _from_zero(tables["theta"])),
        ("overlap with the positions $m$", tables["m"], _from_zero(tables["m"])),
        ("test error over linear map's", tables["error"], factors),
    ]
    for axes, (_, table, norm) in zip(panels.flat, shown, strict=True):
        # An α at which no cell has the number stays blank.
        numbers = table.reindex(index=list(y.values), columns=list(x.values)).to_numpy(float)
        cmap = style.DIVERGING if isinstance(norm, TwoSlopeNorm | LogNorm) else None
        mesh = axes.pcolormesh(x.edges, y.edges, numbers, norm=norm, cmap=cmap, rasterized=True)
        bar = figure.colorbar(mesh, ax=axes, pad=0.02)
        if isinstance(norm, LogNorm):
            bar.set_ticks(_FACTORS, labels=[f"{factor:g}" for factor in _FACTORS])
            bar.minorticks_off()
        x.dress(axes, "x")
        y.dress(axes, "y")
        axes.set_yticks(y.positions, [f"{omega:g}" for omega in y.positions])
        axes.label_outer()
    title_panels(list(panels.flat), [title for title, *_ in shown])
    *_, energy = (_draw_transition(axes, data.trained, "energy", "^") for axes in panels.flat[:3])
    linear = _draw_transition(panels[1, 1], data.trained, "linear", "D")
    legend = [
        (energy[1], r"measured $\alpha_c$, median and 95 % interval"),
        (linear[1], r"measured $\alpha_l$, median and 95 % interval"),
        (linear[0], r"$\alpha_c$ (a–c) and $\alpha_l$ (d) of many features"),
    ]
    legend_below(figure, legend, columns=3)
    figure.facts.append(
        "Attention on sentences of two tokens, trained from the teacher's weights and along the "
        "positions. (a) The positional start's training loss less the semantic start's, over d, of "
        f"the seeds on which these end in two solutions, with m of {DISTINCT:g} or more; (b, c) "
        "overlaps of the start with less loss, or of the positional one where both end in one "
        "solution on all seeds; (d) its test error over that of the best linear map. Means over "
        f"{plural(data.trained['seed'].nunique(), 'seed')}."
    )
    return figure


def _largest(table: Any) -> float:
    return float(np.nanmax(np.abs(table)))


def _from_zero(table: pd.DataFrame) -> Normalize:
    return Normalize(0, float(np.nanmax(table.to_numpy())))


def _phase_tables(cells: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
    """The losses' difference, and numbers of the start with less loss, each (omega, alpha)."""
    gaps = loss_gaps(cells).pivot_table(index="omega", columns="alpha", values="gap")
    numbers = {name: finite_column(cells, name) for name in ("theta", "m")}
    numbers["error"] = finite_column(cells, "test_error") / finite_column(cells, _LINEAR)
    known = cells[["omega", "alpha", "start"]].assign(**numbers)
    tables = {}
    for name in numbers:
        semantic, positional = (
            known[known["start"] == start].pivot_table(index="omega", columns="alpha", values=name)
            for start in _STARTS
        )
        tables[name] = semantic.where(gaps < 0, positional)
    return gaps, tables


def _draw_transition(
    axes: Axes, cells: pd.DataFrame, transition: Transition, marker: str
) -> list[Any]:
    """Draw where the limit's transition lies, and the medians of the seeds' with intervals."""
    table = transitions(cells, transition)
    limits = table.drop_duplicates("omega").dropna(subset="limit").sort_values("omega")
    (line,) = axes.plot(limits["limit"], limits["omega"], **style.BOUND)
    known = table.dropna(subset="alpha").groupby("omega")["alpha"]
    rows = [(omega, *median_estimate(alphas)[:3]) for omega, alphas in known]
    inside = np.array([row for row in rows if 0 < row[1] < np.inf]).reshape(-1, 4)
    omegas, middle, low, high = inside.T
    left, right = axes.get_xlim()
    ends = np.abs(np.stack([np.clip(low, left, None), np.clip(high, None, right)]) - middle)
    look: dict[str, Any] = {"color": "black", "markerfacecolor": "white", "elinewidth": 0.8}
    return [line, axes.errorbar(middle, omegas, xerr=ends, fmt=marker, **look)]


# Against α


_ROWS = {"theta": r"$\theta$", "m": "$m$", "test_error": "test error"}


def draw_overlaps(data: Cells, options: FigureOptions) -> Picture:
    """Draw θ, m and the test error against α, a column of panels for each ω."""
    omegas = sorted(data.trained["omega"].unique())[-4:]
    figure, panels = _lay_out(data, [*_ROWS.values()], 5.2, omegas)
    means, sided, theory = (
        _beside_cells(data, published(file)) for file in ("published", "sided", "published_theory")
    )
    for column, omega in zip(panels.T, omegas, strict=True):
        rows = data.trained[data.trained["omega"] == omega]
        for axes, name in zip(column, _ROWS, strict=True):
            _draw_starts(axes, data, rows, name, f"replica_{name}")
            others = (means, {"marker": "x"}), (sided, {"linestyle": "-."}), (theory, _DOTTED)
            for table, look in others:
                for start, points in table[np.isclose(table["omega"], omega)].groupby("start"):
                    shape = {"linestyle": "", "markersize": 3, "linewidth": 1, **look}
                    colour, pale = _colour(data, str(start)), 0.6 if "marker" in look else 1
                    axes.plot(points["alpha"], points[name], color=colour, alpha=pale, **shape)
        column[2].axhline(float(finite_column(rows, _LINEAR).mean()), **style.THRESHOLD)
    legend = [
        *_legend_of_starts(data),
        (Line2D([], [], **_GREY), "replica equations, our solution"),
        (Line2D([], [], **style.THRESHOLD), "best linear map, averaged over α"),
    ]
    facts = f"{_seeds(data)}; lines: the replica equations' solution of the same branch."
    if len(means):
        legend.append((Line2D([], [], color="0.4", marker="x", linestyle=""), "published means"))
        legend.append((Line2D([], [], linestyle="-.", **_GREY), "samples keep their sides"))
        facts += " Crosses: published means over 24 seeds, d = 1000."
        facts += " Dash-dotted: our solution in which each sample keeps the side of its start."
    if theory["omega"].isin(omegas).any():
        legend.append((Line2D([], [], **_DOTTED, **_GREY), "the authors' solution"))
        facts += " Dotted: the authors' solution of the equations, published at ω = 0.3."
    legend_below(figure, legend, columns=3)
    figure.facts.append(facts)
    return figure


def _beside_cells(data: Cells, numbers: pd.DataFrame) -> pd.DataFrame:
    names = ["d", "sigma", "weight_decay"]
    alike = data.trained[names].drop_duplicates()
    same = len(alike) == 1 and np.allclose(alike.iloc[0], numbers[names].iloc[0])
    return numbers if same else numbers.iloc[:0]


def draw_branches(data: Cells, options: FigureOptions) -> Picture:
    """Draw training losses of both starts over d against α, and their difference, for each ω."""
    table = transitions(data.trained, "energy")
    crossed = table[(table["alpha"] > 0) & np.isfinite(table["alpha"])]["omega"].unique()
    every = sorted(data.trained["omega"].unique())
    omegas = sorted(crossed)[-3:] or every[-3:]
    uncrossed = ", ".join(f"{omega:g}" for omega in every if omega not in crossed)
    left_out = f" No seed's losses cross at ω = {uncrossed}." * bool(uncrossed)
    left_out += f" The {len(omegas)} largest other ω are drawn." * (len(crossed) > len(omegas))
    labels = ["training loss / $d$", "semantic − positional"]
    figure, panels = _lay_out(data, labels, 3.6, omegas)
    gaps, cells = loss_gaps(data.trained), data.trained
    scaled = cells.assign(
        loss=cells["train_loss"] / cells["d"], limit=cells["replica_loss"] / cells["d"]
    )
    for (losses, differences), omega in zip(panels.T, omegas, strict=True):
        _draw_starts(losses, data, scaled[scaled["omega"] == omega], "loss", "limit")
        of_omega = gaps[gaps["omega"] == omega]
        _draw_means(differences, of_omega, "gap", "limit", color="black", fmt="o")
        differences.axhline(0, **style.THRESHOLD)
        _mark_crossing(differences, table[table["omega"] == omega])
    legend_below(figure, _legend_of_starts(data), columns=2)
    figure.facts.append(
        f"{_seeds(data)}; lines: energies of the replica equations. Shaded: the 95 % interval of "
        "the median α at which a seed's losses cross; vertical, dashed: where the energies cross. "
        f"No difference is drawn where both starts end in one solution, with m below {DISTINCT:g}."
        f"{left_out}"
    )
    return figure


def _mark_crossing(axes: Axes, table: pd.DataFrame) -> None:
    estimate = median_estimate(table["alpha"].dropna())
    if estimate.low > 0 and estimate.high < np.inf:
        axes.axvspan(estimate.low, estimate.high, color="0.8", zorder=0)
    if np.isfinite(limit := table["limit"].iloc[0]):
        axes.axvline(limit, **style.BOUND)


def _lay_out(
    data: Cells, labels: Sequence[str], height: float, omegas: Sequence[float]
) -> tuple[Picture, Any]:
    figure = Picture(PAGE, height, least=5.0)
    panels = figure.subplots(len(labels), len(omegas), sharex=True, sharey="row", squeeze=False)
    for axes in panels[-1]:
        axes.set_xlabel(axis_label(data.schema, "alpha"))
    for axes, label in zip(panels[:, 0], labels, strict=True):
        axes.set_ylabel(label)
    titles = [setting(data.schema, "omega", omega) for omega in omegas]
    title_panels(list(panels.flat), [*titles, *[""] * (panels.size - len(titles))])
    return figure, panels


def _draw_starts(axes: Axes, data: Cells, rows: pd.DataFrame, column: str, limit: str) -> None:
    for start, marker in _STARTS.items():
        of_start = rows[rows["start"] == start]
        _draw_means(axes, of_start, column, limit, color=_colour(data, start), fmt=marker)


def _draw_means(axes: Axes, rows: pd.DataFrame, column: str, limit: str, **look: Any) -> None:
    """Draw means over seeds against α with intervals, and the limit as a line."""
    numbers = rows.assign(number=finite_column(rows, column)).dropna(subset="number")
    estimates = {at: mean_estimate(group["number"])[:3] for at, group in numbers.groupby("alpha")}
    middle, low, high = np.array(list(estimates.values())).reshape(-1, 3).T
    bars = np.where(np.isfinite([low, high]), np.abs(np.stack([low, high]) - middle), 0.0)
    shape = {"linestyle": "", "elinewidth": 0.8, "markersize": 3, **look}
    axes.errorbar(np.array(list(estimates), float), middle, yerr=bars, **shape)
    line = rows.groupby("alpha")[limit].first().dropna()
    axes.plot(line.index, line, color=look["color"], linewidth=1)


def _legend_of_starts(data: Cells) -> Legend:
    labels = describe(data.study.parameters)["start"].value_labels
    return [
        (Line2D([], [], color=_colour(data, start), marker=marker), labels[start])
        for start, marker in _STARTS.items()
    ]


def _seeds(data: Cells) -> str:
    return f"Means over {plural(data.trained['seed'].nunique(), 'seed')} with 95 % t intervals"
