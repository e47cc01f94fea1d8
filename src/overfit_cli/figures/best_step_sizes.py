"""The best step size of each setting: how it is chosen, and how a caption tells it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from overfit_cli.core.parameters import Value
from overfit_cli.core.study import FigureData
from overfit_cli.core.text import plural
from overfit_cli.figures.curve_scale import ROUND_OFF
from overfit_cli.figures.labels import (
    axis_label,
    brief,
    parameter_values,
    short_setting,
    short_settings,
    split_settings,
    varying_parameters,
)
from overfit_cli.stats.pairs import best_of_sweep

RATE = "learning_rate"

MILLIONTH = 1e-6
"""Among step sizes that are equal, the best has the fewest steps to this share of the start."""

_MOST_TOLD = 4
"""The most settings whose diverged cells a caption names."""

Choice = tuple[Mapping[str, Value], str]
"""A setting, and its best step size in words."""


def at_best_step_sizes(data: FigureData, column: str) -> tuple[FigureData, list[str]]:
    """Return the cells of each setting at its best step size, and sentences that tell it.

    The best one has the fewest failed seeds, and then the lowest mean of the study's headline over
    seeds. Losses in round-off are equal: the step size with the fewest steps to a millionth is the
    best of them. The step size of all cells returned is the first one, so that it does not vary.

    Args:
        data: the cells with their logged steps; of a single step size they are returned as is.
    """
    tried = parameter_values(data)[RATE]
    if len(tried) < 2:
        return data, []
    grouping = [name for name in varying_parameters(data) if name != RATE]
    headline = data.study.headline
    shares, steps = _falls(data.trajectories, column)
    settled = data.cells["key"].map(shares) < ROUND_OFF
    ranked = data.cells.assign(
        headline_=data.cells[headline].mask(settled, 0.0),
        steps_=data.cells["key"].map(steps),
    )
    cells = best_of_sweep(ranked, RATE, grouping, "headline_", "steps_")
    best = replace(data, cells=cells.drop(columns=["headline_", "steps_"]))
    words = _in_words(replace(data, cells=ranked), best, grouping)
    drawn = best.cells.assign(**{RATE: best.cells[RATE].iloc[0]})
    return replace(best, cells=drawn, planned=data.planned.iloc[:0]), words


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
    crossed = (gaps <= 0) & (before > 0)
    reached = (last + part * (logged["step"] - last))[crossed]
    arrivals = reached.groupby(logged["key"]).first()
    return share.groupby(logged["key"]).last(), arrivals


def _in_words(data: FigureData, best: FigureData, grouping: list[str]) -> list[str]:
    tried = parameter_values(data)[RATE]
    choices: list[Choice] = []
    ends: dict[str, str] = {}
    pairs = zip(split_settings(data, grouping), split_settings(best, grouping), strict=True)
    for (values, every), (_, cells) in pairs:
        rates = np.sort(every[RATE].unique())
        rate, text = cells[RATE].iloc[0], brief(cells[RATE].iloc[0])
        means = every.groupby(RATE)["headline_"].mean()
        alike = means.notna().all() and np.ptp(means) <= 1e-9 * means.max() and means.max() > 0
        choices.append((values, "any" if alike else text))
        if not alike and len(rates) > 1 and rate in (rates[0], rates[-1]):
            ends[text] = "largest" if rate == rates[-1] else "smallest"
    ends = {} if len(tried) == len(ends) else ends
    edges = "".join(f"; {text} is the {end} tried" for text, end in sorted(ends.items()))
    least, most = brief(tried[0]), brief(tried[-1])
    span = (
        f"of {least} and {most}" if len(tried) == 2 else f"of {len(tried)} from {least} to {most}"
    )
    sentence = f"Best step size, {span}: {_choices_in_words(data, choices, grouping)}{edges}."
    return [sentence, _rule_in_words(data, grouping), *_diverged_in_words(data, grouping)]


def _choices_in_words(data: FigureData, choices: Sequence[Choice], names: Sequence[str]) -> str:
    """Step sizes by their settings: `0.1 for softmax; 1 (H = 1), 2 (H = 2) for Gaussian`."""
    if len({text for _, text in choices}) == 1:
        return choices[0][1] + (" throughout" if len(choices) > 1 else "")

    def groups(name: str) -> dict[Value, list[Choice]]:
        grouped: dict[Value, list[Choice]] = {}
        for values, text in choices:
            grouped.setdefault(values[name], []).append((values, text))
        return grouped

    def mixed(name: str) -> int:
        return sum(len({text for _, text in group}) > 1 for group in groups(name).values())

    outer = min(names, key=mixed)
    others = [name for name in names if name != outer]
    parts = []
    for value, group in groups(outer).items():
        text = group[0][1]
        if len({text for _, text in group}) > 1:
            text = ", ".join(
                f"{text} ({short_settings(data.study, {name: values[name] for name in others})})"
                for values, text in group
            )
        parts.append(f"{text} for {short_setting(data.study, outer, value)}")
    return ("; " if mixed(outer) else ", ").join(parts)


def _rule_in_words(data: FigureData, grouping: list[str]) -> str:
    headline = axis_label(data.study, data.study.headline)
    failed = bool((data.cells["status"] == "failed").any())
    first = "the fewest failed seeds, then " if failed else ""
    means = data.cells.groupby([*grouping, RATE])["headline_"].mean()
    settled = means[means == 0].reset_index()
    ties = settled.duplicated(grouping).any() if grouping else len(settled) > 1
    equal = (
        "; where several end in round-off, below $10^{-12}$ of the start, the fewest steps to a "
        "millionth of it"
        if ties
        else ""
    )
    mean = "mean over seeds of " if data.cells["seed"].nunique() > 1 else ""
    return f"Best means {first}the lowest {mean}{headline}{equal}."


def _diverged_in_words(data: FigureData, grouping: list[str]) -> list[str]:
    if "reason" not in data.cells:
        return []
    places = []
    for values, cells in split_settings(data, [*grouping, RATE]):
        count = int((cells["reason"] == "diverged").sum())
        if count:
            setting = short_settings(data.study, {name: values[name] for name in grouping})
            words = filter(None, [setting, f"at {brief(values[RATE])}"])
            places.append(f"{count} of {plural(len(cells), 'seed')} ({', '.join(words)})")
    if not places or len(places) > _MOST_TOLD:
        return []
    return [f"Diverged: {', '.join(places)}."]
