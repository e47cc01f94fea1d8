"""Figures of `positional-semantic`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize, TwoSlopeNorm
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from overfit_cli.core.arrays import finite_column
from overfit_cli.core.cells import Cells
from overfit_cli.core.errors import UserError
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.parameters import describe
from overfit_cli.core.text import plural
from overfit_cli.figures.axes import legend_below, log_ticks, parameter_axis
from overfit_cli.figures.labels import axis_label, setting
from overfit_cli.figures.picture import Picture, title_panels
from overfit_cli.figures.style import (
    BOUND,
    DIVERGING,
    PAGE,
    PALETTE,
    THRESHOLD,
    Legend,
    value_colour,
)
from overfit_cli.stats.intervals import mean_estimate, median_estimate
from overfit_cli.studies.positional_semantic.claims import published_means, published_theory
from overfit_cli.studies.positional_semantic.transition import (
    DISTINCT,
    Transition,
    loss_gaps,
    transitions,
)

_STARTS = ("semantic", "positional")
_MARKERS = {"semantic": "o", "positional": "s"}
_LINEAR = "linear_test_error"
_FACTORS = (0.2, 0.5, 1, 2, 5)


def has_phase(data: Cells) -> bool:
    """Return whether ω and α vary, of both starts, and nothing else."""
    return set(data.varying()) == {"omega", "alpha", "start"} and _has_both(data)


def has_overlaps(data: Cells) -> bool:
    """Return whether α varies, of both starts, and of the others ω alone."""
    varying = set(data.varying())
    return {"alpha", "start"} <= varying <= {"omega", "alpha", "start"} and _has_both(data)


has_branches = has_overlaps


def has_sizes(data: Cells) -> bool:
    """Return whether d and α vary, of both starts, and nothing else."""
    return set(data.varying()) == {"d", "alpha", "start"} and _has_both(data)


def _has_both(data: Cells) -> bool:
    return set(_STARTS) <= set(data.trained["start"])


def _check(fits: bool, figure: str, needed: str, preset: str) -> None:
    if not fits:
        raise UserError(f"The figure `{figure}` needs {needed}, as in `overfit sweep {preset}`.")


def _colour(data: Cells, start: str) -> Any:
    return value_colour(describe(data.study.parameters)["start"], start) or PALETTE[0]


def draw_phase(data: Cells, options: FigureOptions) -> Picture:
    """Draw the plane of ω and α: the losses' difference, and θ, m and error at the lesser."""
    _check(has_phase(data), "phase", "both starts over ω and α", "positional-phase")
    x, y = (parameter_axis(data, side, name) for side, name in (("x", "alpha"), ("y", "omega")))
    figure = Picture(PAGE, 4.6, least=5.0)
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    gaps, tables = _phase_tables(data.trained)
    most = float(np.nanmax(np.abs(gaps.to_numpy())))
    shown: list[tuple[str, pd.DataFrame, Normalize, str | None]] = [
        ("(positional − semantic loss) / $d$", -gaps, TwoSlopeNorm(0, -most, most), DIVERGING),
        (r"overlap with the teacher $\theta$", tables["theta"], _from_zero(tables["theta"]), None),
        ("overlap with the positions $m$", tables["m"], _from_zero(tables["m"]), None),
        ("test error over linear map's", tables["error"], _about_one(tables["error"]), DIVERGING),
    ]
    for axes, (_, table, norm, cmap) in zip(panels.flat, shown, strict=True):
        look: dict[str, Any] = {"norm": norm, "cmap": cmap, "rasterized": True}
        # An α at which no cell has the number stays blank.
        numbers = table.reindex(index=list(y.values), columns=list(x.values)).to_numpy(float)
        mesh = axes.pcolormesh(x.edges, y.edges, numbers, **look)
        bar = figure.colorbar(mesh, ax=axes, pad=0.02)
        if isinstance(norm, LogNorm):
            bar.set_ticks(_FACTORS, labels=[f"{factor:g}" for factor in _FACTORS])
            bar.minorticks_off()
        x.dress(axes, "x")
        y.dress(axes, "y")
        axes.set_yticks(y.positions, [f"{omega:g}" for omega in y.positions])
        axes.label_outer()
    title_panels(list(panels.flat), [title for title, *_ in shown])
    legend: Legend = []
    lines: tuple[tuple[Transition, Sequence[Axes], str, str], ...] = (
        ("energy", panels.flat[:3], r"\alpha_c", "^"),
        ("linear", panels.flat[3:], r"\alpha_l", "D"),
    )
    for transition, chosen, symbol, marker in lines:
        table = transitions(data.trained, transition, "omega")
        for axes in chosen:
            artists = _draw_transition(axes, table, marker)
        legend.append((artists[1], f"measured ${symbol}$, median and 95 % interval"))
    legend.append((artists[0], r"$\alpha_c$ (a–c) and $\alpha_l$ (d) of many features"))
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


def _from_zero(table: pd.DataFrame) -> Normalize:
    return Normalize(0, float(np.nanmax(table.to_numpy())))


def _about_one(table: pd.DataFrame) -> LogNorm:
    most = max(float(np.nanmax(np.abs(np.log(table.to_numpy())))), 0.01)
    return LogNorm(np.exp(-most), np.exp(most))


def _phase_tables(cells: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
    gaps = loss_gaps(cells).pivot_table(index="omega", columns="alpha", values="gap")
    sides = {}
    for start in _STARTS:
        rows = cells[cells["start"] == start]
        numbers = {name: finite_column(rows, name) for name in ("theta", "m")}
        numbers["error"] = finite_column(rows, "test_error") / finite_column(rows, _LINEAR)
        sides[start] = rows[["omega", "alpha"]].assign(**numbers)
    tables = {}
    for name in ("theta", "m", "error"):
        semantic, positional = (
            sides[start].pivot_table(index="omega", columns="alpha", values=name)
            for start in _STARTS
        )
        tables[name] = semantic.where(gaps < 0, positional)
    return gaps, tables


def _draw_transition(axes: Axes, table: pd.DataFrame, marker: str) -> list[Any]:
    limits = table.drop_duplicates("omega").dropna(subset="limit").sort_values("omega")
    (line,) = axes.plot(limits["limit"], limits["omega"], **BOUND)
    known = table.dropna(subset="alpha").groupby("omega")["alpha"]
    rows = [(omega, *median_estimate(alphas)[:3]) for omega, alphas in known]
    inside = np.array([row for row in rows if 0 < row[1] < np.inf]).reshape(-1, 4)
    omegas, middle, low, high = inside.T
    left, right = axes.get_xlim()
    ends = np.abs(np.stack([np.clip(low, left, None), np.clip(high, None, right)]) - middle)
    look: dict[str, Any] = {"color": "black", "markerfacecolor": "white", "elinewidth": 0.8}
    return [line, axes.errorbar(middle, omegas, xerr=ends, fmt=marker, **look)]


def _draw_means(
    axes: Axes, rows: pd.DataFrame, x: str, column: str, limit: str = "", **look: Any
) -> None:
    numbers = rows.assign(number=finite_column(rows, column)).dropna(subset="number")
    estimates = {at: mean_estimate(group["number"])[:3] for at, group in numbers.groupby(x)}
    middle, low, high = np.array(list(estimates.values())).reshape(-1, 3).T
    bars = np.where(np.isfinite([low, high]), np.abs(np.stack([low, high]) - middle), 0.0)
    shape = {"linestyle": "", "elinewidth": 0.8, "markersize": 3, **look}
    axes.errorbar(np.array(list(estimates), float), middle, yerr=bars, **shape)
    if limit:
        line = rows.groupby(x)[limit].first().dropna()
        axes.plot(line.index, line, color=look["color"], linewidth=1)


def _draw_starts(axes: Axes, data: Cells, rows: pd.DataFrame, column: str, limit: str) -> None:
    for start in _STARTS:
        look = {"color": _colour(data, start), "fmt": _MARKERS[start]}
        _draw_means(axes, rows[rows["start"] == start], "alpha", column, limit, **look)


def _lay_out(data: Cells, rows: int, height: float, omegas: Sequence[float]) -> tuple[Picture, Any]:
    figure = Picture(PAGE, height, least=5.0)
    panels = figure.subplots(rows, len(omegas), sharex=True, sharey="row", squeeze=False)
    for axes in panels[-1]:
        axes.set_xlabel(axis_label(data.schema, "alpha"))
    titles = [setting(data.schema, "omega", omega) for omega in omegas]
    title_panels(list(panels.flat), [*titles, *[""] * (rows - 1) * len(omegas)])
    return figure, panels


def _seeds(data: Cells) -> str:
    return f"Means over {plural(data.trained['seed'].nunique(), 'seed')} with 95 % t intervals"


_ROWS = (("theta", r"$\theta$"), ("m", "$m$"), ("test_error", "test error"))


def draw_overlaps(data: Cells, options: FigureOptions) -> Picture:
    """Draw θ, m and the test error against α, a column of panels for each ω."""
    _check(has_overlaps(data), "overlaps", "both starts along α", "positional-published")
    omegas = sorted(data.trained["omega"].unique())[-4:]
    figure, panels = _lay_out(data, 3, 5.2, omegas)
    published, theory = (
        _beside_cells(data, numbers) for numbers in (published_means(), published_theory())
    )
    for column, omega in zip(panels.T, omegas, strict=True):
        rows = data.trained[data.trained["omega"] == omega]
        of_omega = published[np.isclose(published["omega"], omega)]
        for axes, (name, label) in zip(column, _ROWS, strict=True):
            _draw_starts(axes, data, rows, name, f"replica_{name}")
            for start, points in of_omega.groupby("start"):
                look: dict[str, Any] = {"color": _colour(data, str(start)), "alpha": 0.6}
                axes.plot(points["alpha"], points[name], "x", markersize=3, **look)
            for start, curve in theory[np.isclose(theory["omega"], omega)].groupby("start"):
                look = {"color": _colour(data, str(start)), "linewidth": 1}
                axes.plot(curve["alpha"], curve[name], ":", **look)
            axes.set_ylabel(label if omega == omegas[0] else "")
        column[2].axhline(float(finite_column(rows, _LINEAR).mean()), **THRESHOLD)
    grey: dict[str, Any] = {"color": "0.4", "linewidth": 1}
    legend = [
        *_legend_of_starts(data),
        (Line2D([], [], **grey), "replica equations, our solution"),
        (Line2D([], [], **THRESHOLD), "best linear map, averaged over α"),
    ]
    facts = f"{_seeds(data)}; lines: the replica equations' solution of the same branch."
    if len(published):
        legend.append((Line2D([], [], color="0.4", marker="x", linestyle=""), "published means"))
        facts += " Crosses: published means over 24 seeds, d = 1000."
    if theory["omega"].isin(omegas).any():
        legend.append((Line2D([], [], linestyle=":", **grey), "the authors' solution"))
        facts += " Dotted: the authors' solution of the equations, published at ω = 0.3."
    legend_below(figure, legend, columns=3)
    figure.facts.append(facts)
    return figure


def _beside_cells(data: Cells, numbers: pd.DataFrame) -> pd.DataFrame:
    names = ["d", "sigma", "weight_decay"]
    alike = data.trained[names].drop_duplicates()
    same = len(alike) == 1 and np.allclose(alike.iloc[0], numbers[names].iloc[0])
    return numbers if same else numbers.iloc[:0]


def _legend_of_starts(data: Cells) -> Legend:
    labels = describe(data.study.parameters)["start"].value_labels
    return [
        (Line2D([], [], color=_colour(data, start), marker=_MARKERS[start]), labels[start])
        for start in _STARTS
    ]


def draw_branches(data: Cells, options: FigureOptions) -> Picture:
    """Draw training losses of both starts over d against α, and their difference, for each ω."""
    _check(has_branches(data), "branches", "both starts along α", "positional-phase")
    table = transitions(data.trained, "energy", "omega")
    crossed = table[(table["alpha"] > 0) & np.isfinite(table["alpha"])]["omega"].unique()
    every = sorted(data.trained["omega"].unique())
    omegas = sorted(crossed)[-3:] or every[-3:]
    uncrossed = ", ".join(f"{omega:g}" for omega in every if omega not in crossed)
    left_out = f" No seed's losses cross at ω = {uncrossed}." * bool(uncrossed)
    left_out += f" The {len(omegas)} largest other ω are drawn." * (len(crossed) > len(omegas))
    figure, panels = _lay_out(data, 2, 3.6, omegas)
    gaps = loss_gaps(data.trained)
    scaled = data.trained.assign(
        loss=data.trained["train_loss"] / data.trained["d"],
        limit=data.trained["replica_loss"] / data.trained["d"],
    )
    for (losses, differences), omega in zip(panels.T, omegas, strict=True):
        _draw_starts(losses, data, scaled[scaled["omega"] == omega], "loss", "limit")
        of_omega = gaps[gaps["omega"] == omega]
        _draw_means(differences, of_omega, "alpha", "gap", "limit", color="black", fmt="o")
        differences.axhline(0, **THRESHOLD)
        _mark_crossing(differences, table[table["omega"] == omega])
    panels[0, 0].set_ylabel("training loss / $d$")
    panels[1, 0].set_ylabel("semantic − positional")
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
        axes.axvline(limit, **BOUND)


def draw_sizes(data: Cells, options: FigureOptions) -> Picture:
    """Draw the overlaps that vanish, and the transition over its limit, against d."""
    _check(has_sizes(data), "sizes", "both starts along d and α", "positional-sizes")
    figure = Picture(PAGE, 2.6, least=5.0)
    panels = figure.subplots(1, 3)
    vanishing = (("semantic", "m", "$m$"), ("positional", "theta", r"$\theta$"))
    for axes, (start, column, symbol) in zip(panels, vanishing, strict=False):
        rows = data.trained[data.trained["start"] == start]
        means = rows.groupby(["d", "seed"])[column].mean().reset_index()  # over α
        means["status"] = "done"
        _draw_means(axes, means, "d", column, color=_colour(data, start), fmt=_MARKERS[start])
        middle = means.groupby("d")[column].mean()
        sizes = middle.index.to_numpy(float)
        scale = float(np.exp(np.log(middle * sizes**0.5).mean()))
        axes.plot(sizes, scale * sizes**-0.5, label="$d^{-1/2}$", **BOUND)
        axes.set(yscale="log", ylabel=f"{symbol} of the {start} start")
        axes.legend()
    table = transitions(data.trained, "energy", "d").dropna(subset="ratio").assign(status="done")
    known = table[(table["ratio"] > 0) & np.isfinite(table["ratio"])]
    _draw_means(panels[2], known, "d", "ratio", color="black", fmt="o")
    panels[2].axhline(1, **THRESHOLD)
    panels[2].set_ylabel(r"measured $\alpha_c$ over the limit's")
    for axes in panels:
        axes.set(xscale="log", xlabel=axis_label(data.schema, "d"))
        axes.set_xticks(sizes, [f"{size:g}" for size in sizes])
        axes.xaxis.set_minor_locator(NullLocator())
    for axes in panels[:2]:
        log_ticks(axes.yaxis, *axes.get_ylim())
    title_panels(list(panels), [""] * 3)
    lost = len(table) - len(known)
    left_out = f" Left out: {plural(lost, 'crossing')} outside the sampled α." if lost else ""
    figure.facts.append(
        f"{_seeds(data)}: (a, b) of a seed's mean over the sampled α, beside the power of a "
        f"fluctuation; (c) of the α at which a seed's losses cross, over that of the energies."
        f"{left_out}"
    )
    return figure
