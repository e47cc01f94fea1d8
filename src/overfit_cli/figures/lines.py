"""The figures `lines`, a column against a parameter, and `curves`, columns against the step.

Those of a classifier's training have curves of each setting at its best step size, and differences
by seed.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from overfit_cli.core.cells import Cells
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.figure import MOST_PANELS, FigureOptions
from overfit_cli.core.text import suggestion
from overfit_cli.figures import inputs, labels, picture, style
from overfit_cli.figures.axes import Axis, Place, draw_equations, legend_below, parameter_axis
from overfit_cli.figures.picture import Picture
from overfit_cli.figures.seed_statistics import Lines, lines_of_cells, lines_of_steps
from overfit_cli.figures.series import LEAST_SHARE, ROUND_OFF, THEORY, WIDE_SPAN, Series
from overfit_cli.stats.intervals import MEAN
from overfit_cli.stats.pairs import best_of_sweep, is_log_spaced

RATE = "learning_rate"

_BESIDE, _LETTERS = 1.5, 24
"""The room of a row's legend, right of its panels: inches, and letters in a line."""

_USUAL, _LINE = 3, 0.14
"""The lines of a legend below that panels have room for, and the height of one, in inches."""

MILLIONTH = 1e-6
"""Among step sizes that are equal, the best has the fewest steps to this share of the start."""

_LOSSES = ("train_loss", "test_loss", "mean_test_loss", "mean_train_loss")
GUESS = dict.fromkeys(_LOSSES, float(np.log(2))) | {"train_accuracy": 0.5, "test_accuracy": 0.5}
"""What guessing one of two classes gives, of the columns of a classifier."""


def draw_lines(data: Cells, options: FigureOptions, *, floor: float = 0.0) -> Picture:
    """Draw `options.value` against x, with panels by `by` and a line for each other setting.

    Points are medians over seeds with their quartiles, or with a line for each seed where there
    are fewer than three seeds, unless the user wants another mean or band. A seed that misses, at
    its target or by diverging, counts as beyond the others: where half of the seeds miss, a cross
    at the top stands for the median. Where x is no number, points stand side by side, with bars.
    More settings than colours have panels, if those of one parameter suffice; many values of one
    number have shades, and no bands. A theory's column is dashed, and so are equations in x, the
    column and constants; of those that differ between lines, each line has its curve.

    Args:
        floor: the round-off of a column that is a share of its start; 0 for the digits of the
            largest number.
    """
    x = parameter_axis(data, "x", options.x, log=options.is_log("x"))
    series = _along(x, data, options, floor)
    if options.law and x.scale == "category":
        accepts = f"it takes a figure along a number, and {x.name} is none."
        raise BadValue("law", options.law[0], accepts)
    figure, all_axes, legend = series.draw(options)
    for axes in all_axes:
        axes.set(xlim=axes.get_xlim(), ylim=axes.get_ylim())
    places = [
        Place(axes, line.cells, series.looks[line.text].colour, outlined=False)
        for axes, lines in zip(all_axes, series.lines.panels, strict=True)
        for line in lines
    ]
    look: dict[str, Any] = {"colour": "0.15", "first_dash": 2 if series.theory else 1}
    legend += draw_equations(figure, places, data, options, [x], series.value, **look)
    heading = labels.heading(data.schema, series.lines.names)
    high = legend_below(figure, legend, 2 * len(all_axes), heading)
    if figure.look.height is None and high > _USUAL:  # panels keep their height
        figure.set_figheight(figure.get_figheight() + _LINE * (high - _USUAL))
    return figure


def _along(x: Axis, data: Cells, options: FigureOptions, round_off: float) -> Series:
    value, label = inputs.measured_column(data, options.value)
    numbers = inputs.require_numbers(data, value)[value]
    if options.by == x.name:
        raise BadValue("by", options.by, "it is an axis already; panels take another parameter.")
    if data.refined and data.trained["seed"].nunique() > 1:
        accepts = "points of a refined sweep have different seeds; choose one, such as seed=0."
        raise BadValue("where", None, accepts)
    theory = dict(filter(None, [inputs.theory_column(data, options, value)]))
    free = labels.free_parameters(data, [x.name])
    by = options.by or inputs.panels_for_lines(data, free)
    parts, names = inputs.panels(data, by), [name for name in free if name != by]
    if labels.subtracted_means(data):  # by the means that are subtracted
        options = replace(options, mean=None, band="interval")
    over_seeds = inputs.averaging(options, data.trained["seed"].nunique())
    lines = lines_of_cells([part.data for part in parts], names, x, [value, *theory], over_seeds)
    series = Series(parts, lines, {value: label}, theory, x=x)
    if (count := len(series.looks)) > len(style.PALETTE) and not inputs.is_one_number(data, names):
        accepts = f"the other parameters have {count} settings here, and a figure shows up to "
        accepts += f"{len(style.PALETTE)} lines; make panels of one (option by), or draw a heatmap."
        raise BadValue("x", x.name, accepts)
    points = [(line[value]["arrived"] > 0).sum() for line in lines.every]
    if x.scale != "category" and max(points) < 2:
        raise BadValue("x", x.name, f"no line of {value} has two points here.")
    start = (1.0, round_off, "start") if round_off else (numbers.max(), LEAST_SHARE, "largest")
    return series.scaled(options.is_log("y", "value"), *start)


# Against the step


def draw_curves(data: Cells, options: FigureOptions) -> Picture:
    """Draw logged columns against the step, a panel for each value of the parameter `by`.

    The columns are `options.value`, separated by commas; by default those that diverge, as losses
    do, of the columns that are shown while a cell trains, the study's headline, or the first logged
    column. Up to eight cells, with fewer than three seeds of a setting, are a curve each. More
    cells are medians over seeds, with their quartiles, up to the last step that all seeds of a
    curve have reached, unless the user wants another mean or band, or a curve of each seed. More
    settings than colours have panels, if those of one parameter suffice, or otherwise shades of the
    colour map. Columns of a theory are black.

    Steps are logarithmic where they are logged so. Rows of panels, of other columns each, are
    separated by semicolons: colours then tell one parameter apart, and columns of panels the rest.
    """
    rows = [logged_columns(data, row) for row in _rows(options.value)]
    columns = list(dict.fromkeys(itertools.chain(*rows)))
    logged = data.steps[["key", *columns]].set_index("key").notna().any(axis=1)
    others = set(logged.index) - set(logged.index[logged])  # their steps have other columns
    kept = data.trained[~data.trained["key"].isin(others)]
    data = data.with_trained(kept) if len(kept) else data
    by = options.by or (None if rows[1:] else inputs.panels_for_lines(data, data.varying()))
    parts = inputs.panels(data, by)
    return _draw_rows(parts, rows, options) if rows[1:] else draw_panels(parts, options)


def _rows(value: str | None) -> list[str | None]:
    return [None] if value is None else list(value.split(";"))


def _draw_rows(
    parts: Sequence[inputs.Panel], rows: Sequence[Sequence[str]], options: FigureOptions
) -> Picture:
    """Draw a row of panels for each list of columns, and a column for each part."""
    data = parts[0].data
    if options.theory is not None:
        raise BadValue("theory", options.theory, "it takes a figure of one row.")
    parts = told_apart(parts, list(dict.fromkeys(itertools.chain(*rows))), [])
    least = picture.NARROWEST_PANEL * len(parts)
    if least > style.PAGE:
        most = int(style.PAGE / picture.NARROWEST_PANEL)
        accepts = f"it makes {len(parts)} panels here; at most {most} with rows of others fit "
        raise BadValue("by", options.by, f"{accepts}side by side.")
    beside = _BESIDE if any(row[1:] for row in rows) else 0.0
    width = min(style.PAGE, style.COLUMN * max(1.0, 0.85 * len(parts)) + beside)
    figure = Picture(width, 1.3 * len(rows) + 0.8, least=least)
    grid = figure.subplots(len(rows), len(parts), sharex="col", sharey="row", squeeze=False)
    legend, named = dict[str, Any](), list[str]()
    for row_axes, columns in zip(grid, rows, strict=True):
        over_seeds = inputs.averaging(options, inputs.BAND)
        lines = lines_of_steps([part.data for part in parts], columns, over_seeds)
        series = replace(series_of_steps(parts, lines, columns, options), solid=True)
        if options.log is None and (series.numbers("low") < 0).any():
            series = replace(series, log=False, floor=0.0)
        legend |= {text: handle for handle, text in series.draw_on(row_axes, options)}
        row_axes[0].set_ylabel(labels.wrap_text(series.label(), style.HIGH // 2))
        if of_columns := series.columns_legend():
            texts = [labels.wrap_text(text, _LETTERS) for _, text in of_columns]
            handles = [handle for handle, _ in of_columns]
            row_axes[-1].legend(handles, texts, loc="center left", bbox_to_anchor=(1, 0.5))
        named += series.columns.values()
    picture.label_outer(list(grid.flat))
    picture.lay_out(figure)  # titles are as wide as what legends leave of the panels
    most = int(0.7 * style.letters_across(grid.flat[0], "axes.titlesize"))  # less its letter
    titles = [labels.wrap_text(part.title, most) for part in parts]
    picture.title_panels(list(grid.flat), titles + [""] * (grid.size - len(parts)))
    shown = labels.opening(", ".join(named))
    figure.facts.append(f"{shown} against {data.study.step}: {lines.kind(columns[0])}.")
    below = [(handle, text) for text, handle in legend.items()]
    legend_below(figure, below, 3 * len(parts), labels.heading(data.schema, lines.names))
    return figure


def draw_panels(
    parts: Sequence[inputs.Panel], options: FigureOptions, *, least_share: float = LEAST_SHARE
) -> Picture:
    """Draw curves as `draw_curves` does, in given panels.

    Args:
        least_share: the share of the start below which a logarithmic axis ends.
    """
    data = parts[0].data
    columns = logged_columns(data, options.value)
    theory = [] if options.theory is None else logged_columns(data, options.theory, "theory")
    if theory and (len(columns) > 1 or columns[0] in theory or len(theory) > len(THEORY)):
        accepts = f"it takes up to {len(THEORY)} columns, beside another one as value."
        raise BadValue("theory", options.theory, accepts)
    parts = told_apart(parts, columns, theory)
    over_seeds = inputs.averaging(options, inputs.BAND)
    lines = lines_of_steps([part.data for part in parts], [*columns, *theory], over_seeds)
    series = series_of_steps(parts, lines, columns, options, theory, least_share)
    figure, _, legend = series.draw(options)
    figure.facts += series.seeds_above()
    if data.study.stop and any(line.ends_early for line in lines.every):
        figure.facts.append(f"{data.study.stop}.")
    legend_below(figure, legend, 2 * len(parts), labels.heading(data.schema, lines.names))
    return figure


def series_of_steps(
    parts: Sequence[inputs.Panel],
    lines: Lines,
    columns: Sequence[str],
    options: FigureOptions,
    theory: Sequence[str] = (),
    least_share: float = LEAST_SHARE,
) -> Series:
    """Return curves with their looks and scales, without columns that have no number to draw."""
    data, every = parts[0].data, lines.every

    def drawn(names: Sequence[str], least: float = -np.inf) -> dict[str, str]:
        shown = [n for n in names if any((line[n]["middle"] > least).any() for line in every)]
        return {name: labels.axis_label(data.logged, name) for name in shown}

    series = Series(parts, lines, drawn(columns), drawn(theory))
    steps, log = series.steps(), options.is_log("x")
    starts = [line[series.value]["middle"] for line in every]
    start = max((float(middle.iloc[0]) for middle in starts if len(middle)), default=0.0)
    series = series.scaled(options.is_log("y", "value"), start, least_share, "start")
    far = steps[steps > 0]
    log_steps = is_log_spaced(far) or far.max(initial=0.0) > WIDE_SPAN if log is None else log
    shown = drawn(theory, 0.0 if series.log else -np.inf)
    return replace(series, log_steps=log_steps, theory=shown)


def logged_columns(data: Cells, value: str | None, option: str = "value") -> list[str]:
    """Return the columns that `value` names with commas between, for the option of that name."""
    if data.steps.empty:
        raise UserError("No steps were logged here; `overfit train` logs a cell's steps.")
    study = data.study
    logged = [name for name in data.logged.named("measured") if name in data.steps]
    shown = [name for name in study.progress_columns if name in logged]
    losses = [name for name in shown if data.logged[name].diverges]
    selected = losses or [study.headline] * (study.headline in logged) or logged[:1]
    if value is not None:
        selected = list(dict.fromkeys(name.strip() for name in value.split(",")))
    for name in (name for name in selected if name not in logged):
        raise BadValue(option, name, f"{study.name} logs no {name!r}; {suggestion(name, logged)}")
    if len(selected) > len(style.DASHES):
        accepts = f"a figure of curves takes up to {len(style.DASHES)} columns."
        raise BadValue("value", value, accepts)
    return selected


def told_apart(
    parts: Sequence[inputs.Panel], columns: Sequence[str], theory: Sequence[str]
) -> Sequence[inputs.Panel]:
    """Return panels in which colours tell settings apart, dashes columns, and black a theory.

    Of several columns and parameters, one parameter has colours and the others have panels. Where
    several settings have a theory, each has a panel in its colour. Too many panels are left as they
    are.
    """
    data = parts[0].data
    names = list(dict.fromkeys(name for part in parts for name in part.data.varying()))
    split = list[str]()
    if theory and any(_settings_with(part.data, names, theory) > 1 for part in parts):
        split = names
    elif len(columns) > 1 and len(names) > 1:
        settings = [values for values, _ in data.without_plan().settings(names)]
        coloured = style.colour_parameter(data.study, settings)
        split = [name for name in names if name != coloured] if coloured else []
    rows = dict[str, list[tuple[dict[str, Any], inputs.Panel]]]()  # one for each setting
    for part in parts if split else ():
        for values, cells in part.data.without_plan().settings(split):
            text = labels.short_settings(data.schema, values)
            panel = inputs.Panel(", ".join(filter(None, [text, part.title])), cells)
            rows.setdefault(text, []).append((values, panel))
    pieces = [piece for row in rows.values() for piece in row]
    if not 0 < len(pieces) <= MOST_PANELS:
        return parts
    pairs = zip(pieces, style.line_looks(data.study, [values for values, _ in pieces]), strict=True)
    return [replace(panel, colour=look.colour) for (_, panel), look in pairs]


def _settings_with(data: Cells, names: Sequence[str], theory: Sequence[str]) -> int:
    """How many settings have a number of a theory that is not 0."""
    logged = data.steps[list(theory)].fillna(0).ne(0).any(axis=1)
    cells = data.trained[data.trained["key"].isin(data.steps.loc[logged, "key"])]
    return len(cells[list(names)].drop_duplicates()) if names else min(1, len(cells))


# At the best step sizes


def draw_best_curves(data: Cells, options: FigureOptions) -> Picture:
    """Draw logged columns against the step, each setting at its best step size.

    The caption tells it, and how it is chosen: see `at_best_step_sizes`. Panels of the step size
    show all of them.
    """
    if options.by == RATE:
        return draw_panels(inputs.panels(data, options.by), options)
    best, words = at_best_step_sizes(data, logged_columns(data, options.value)[0])
    figure = draw_panels(inputs.panels(best, options.by), options, least_share=ROUND_OFF)
    figure.facts += [*labels.symbols_in_words(data.schema, data.varying([RATE])), *words]
    return figure


def draw_learning(data: Cells, options: FigureOptions) -> Picture:
    """Draw a classifier's logged columns side by side, each setting at its best step size.

    Below them stand the differences to the first setting, seed by seed. With panels or several
    runs, or another statistic, it draws as `draw_best_curves`.
    """
    if any((options.theory, options.by, options.mean, options.band, data.run_names)):
        return draw_best_curves(data, options)
    columns = logged_columns(data, options.value)
    best, words = at_best_step_sizes(data, columns[0])
    rows = [(lines_of_steps([best], columns, inputs.averaging(options, inputs.BAND)), "")]
    less, first = _less_first(best, columns)
    if less is not None:
        of_first = f" minus {first}'s" if first.isalpha() else f"\nminus that of {first}"
        rows.append((lines_of_steps([less], columns, MEAN), of_first))
    figure = _draw_columns(best, rows, columns, options)
    figure.facts += words
    return figure


def _less_first(data: Cells, columns: Sequence[str]) -> tuple[Cells | None, str]:
    """Each setting's columns less those of the first one, seed by seed, and the first's name.

    There is none without a second setting, or with fewer than three seeds that all have.
    """
    names = data.varying()
    [(values, first), *others] = data.without_plan().settings(names)
    seeds = set(first.frame["seed"]).intersection(*(cells.frame["seed"] for _, cells in others))
    if not others or len(seeds) < inputs.BAND or first.frame["seed"].duplicated().any():
        return None, ""
    cells = data.trained[data.trained["seed"].isin(seeds)]
    steps = data.steps.merge(cells[["key", "seed"]], on="key")
    subtrahend = steps.loc[steps["key"].isin(first.frame["key"]), ["seed", "step", *columns]]
    pairs = steps.merge(subtrahend, on=["seed", "step"], suffixes=("", "_of_first"))
    lessened = {name: pairs[name] - pairs[f"{name}_of_first"] for name in columns}
    less = data.with_trained(cells).with_steps(pairs[["key", "step"]].assign(**lessened))
    return less, labels.short_settings(data.schema, values)


def _draw_columns(
    data: Cells, rows: Sequence[tuple[Lines, str]], columns: Sequence[str], options: FigureOptions
) -> Picture:
    """Draw a panel for each column, and for each row of lines, with what its label ends with."""
    study, parts = data.study, [inputs.Panel("", data)]
    linear = replace(options, log=frozenset[str]())
    figure, all_axes = picture.new_panels(len(rows) * len(columns), height=2.6, sharey=False)
    for axes, ((lines, less), name) in zip(all_axes, itertools.product(rows, columns), strict=True):
        series = series_of_steps(parts, lines, [name], linear if less else options)
        label, note = f"{labels.axis_label(data.logged, name)}{less}", lines.label(name)
        is_last = lines is rows[-1][0]
        if not less:
            series.dress(axes)
        for line in lines.every:
            series.draw_line(axes, line, banded=is_last)
        if not less and name in GUESS:
            axes.axhline(GUESS[name], **style.THRESHOLD)
        note = note if is_last else note.partition(",")[0]  # its bands are not drawn
        axes.set_ylabel(labels.label_with_note(label, note, style.HIGH))
    for axes in all_axes:
        place = axes.get_subplotspec()
        axes.set_xlabel(study.step if place is None or place.is_last_row() else "")
    picture.title_panels(all_axes, [""] * len(all_axes))
    named = ", ".join(labels.axis_label(data.logged, name) for name in columns)
    first, *below = [(lines.kind(columns[0]), less.strip()) for lines, less in rows]
    kind = first[0].partition(",")[0] if below else first[0]
    figure.facts.append(f"{labels.opening(named)} against {study.step}: {kind}.")
    figure.facts += [f"Below, {less} seed by seed: {kind}." for kind, less in below]
    legend = series_of_steps(parts, rows[0][0], columns[:1], options).legend()
    legend.append((Line2D([], [], **style.THRESHOLD), "guessing"))
    names = [name for name in rows[0][0].names if name != "seed"]
    legend_below(figure, legend, 2 * len(columns), labels.heading(data.schema, names))
    return figure


def draw_learning_rates(data: Cells, options: FigureOptions) -> Picture:
    """Draw lines as `draw_lines`, with what guessing one of two classes gives where it is near."""
    figure = draw_lines(data, options)
    guess = GUESS.get(options.value or data.study.headline, np.nan)  # which is near nothing
    look: dict[str, Any] = {"size": "small", "va": "bottom"}
    look |= {"xytext": (0, 2), "textcoords": "offset points"}  # clear of descenders
    for axes in () if data.pairs else figure.axes:
        low, high = axes.get_ylim()
        if 1.4 * low - 0.4 * high < guess < 1.4 * high - 0.4 * low:
            margin = 0.08 * (high - low)
            axes.set_ylim(min(low, guess - margin), max(high, guess + margin))
            axes.axhline(guess, **style.THRESHOLD)
            axes.annotate("guessing", (0.01, guess), xycoords=axes.get_yaxis_transform(), **look)
    return figure


def at_best_step_sizes(data: Cells, column: str) -> tuple[Cells, list[str]]:
    """Return the cells of each setting at its best step size, and sentences that tell it.

    The best one has the fewest failed seeds, and then the lowest mean of the study's headline over
    seeds. Losses in round-off are equal: the step size with the fewest steps to a millionth is the
    best of them. The step size of all cells returned is the first one, so that it does not vary.

    Args:
        data: the cells with their logged steps; of a single step size they are returned as is.
    """
    if len(data.values[RATE]) < 2:
        return data, []
    grouping = data.varying([RATE])
    shares, steps = _falls(data.steps, column)
    settled = data.trained["key"].map(shares) < ROUND_OFF
    headline = data.trained[data.study.headline].mask(settled, 0.0)
    ranked = data.trained.assign(headline_=headline, steps_=data.trained["key"].map(steps))
    cells = best_of_sweep(ranked, RATE, grouping, "headline_", "steps_")
    best = data.without_plan(cells.drop(columns=["headline_", "steps_"]))
    words = _in_words(data.without_plan(ranked), best, grouping)
    return best.without_plan(best.frame.assign(**{RATE: best.frame[RATE].iloc[0]})), words


def _falls(steps: pd.DataFrame, column: str) -> tuple[pd.Series[float], pd.Series[float]]:
    """Return each column's end as a share of its start, and the steps to `MILLIONTH`, by cell key.

    Steps are interpolated between logged ones, in the logarithm of the loss.
    """
    logged = steps[["key", "step", column]].dropna().sort_values(["key", "step"], kind="stable")
    by_key = logged.groupby("key")[column]
    share = logged[column] / by_key.transform("first")
    gaps = np.log(share.clip(lower=1e-300) / MILLIONTH)
    before, last = gaps.groupby(logged["key"]).shift(), logged.groupby("key")["step"].shift()
    part = before / (before - gaps)  # of the way from the logged step before
    reached = (last + part * (logged["step"] - last))[(gaps <= 0) & (before > 0)]
    return share.groupby(logged["key"]).last(), reached.groupby(logged["key"]).first()


def _in_words(ranked: Cells, best: Cells, grouping: list[str]) -> list[str]:
    """Sentences on the best step size of each setting, and on what makes it the best."""
    settings = dict[str, list[str]]()
    pairs = zip(ranked.settings(grouping), best.settings(grouping), strict=True)
    for (values, tries), (_, cells) in pairs:
        means, rate = tries.frame.groupby(RATE)["headline_"].mean(), cells.frame[RATE].iloc[0]
        ends = {means.index[0]: " (the least tried)", means.index[-1]: " (the largest tried)"}
        end = ends.get(rate, "") if len(means) > 2 else ""
        is_any = means.notna().all() and 0 < means.max() <= (1 + 1e-9) * means.min()
        text = "any" if is_any else f"{labels.brief(rate)}{end}"
        settings.setdefault(text, []).append(labels.short_settings(ranked.schema, values))
    told = [f"{text} for {' / '.join(names)}" for text, names in settings.items()]
    told = told if told[1:] else list(settings)
    headline = labels.axis_label(ranked.schema, ranked.study.headline)
    return [
        f"Best of {len(ranked.values[RATE])} step sizes: {'; '.join(told)}.",
        f"The best has the fewest failed seeds, then the lowest mean of {headline}; of several in "
        "round-off, below $10^{-12}$ of the start, the fewest steps to a millionth of it.",
    ]
