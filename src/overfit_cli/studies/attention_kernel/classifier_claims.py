"""Claims of section 5.3.1 of Song et al. 2024 on two kernels, for either classification study.

The paper compares the kernels on IMDb and on Pathfinder, with one optimiser and step size for both.
Generated data stands in for these, where each kernel is taken at its best step size too: what is
measured there is a question of this tool. A rule on ranks compares the worst runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from overfit_cli.claims.cells import (
    Values,
    describe_values,
    finite_numbers,
    is_unknown,
    one_setting,
    select_values,
)
from overfit_cli.claims.comparison import BestSetting, Comparison, Place, check_edge
from overfit_cli.claims.rules import Margin, judge_estimate, share_of_seeds
from overfit_cli.core.claim import Claim, Kind, Measurement, Verdict, inconclusive, not_run
from overfit_cli.core.parameters import StudyParameters
from overfit_cli.core.text import plural
from overfit_cli.stats.intervals import level_of_each, mean_estimate

SOURCE = "Song et al. 2024, section 5.3.1"

SPEED = "mean_test_loss"
"""The measure of the best step size, and of "faster": the test loss over all steps."""

BEST_KERNELS = Comparison("kernel", "learning_rate", "step size", best_in=SPEED)
LOWER = Margin(most=0.0, because="as fast as softmax", fewest_seeds=5)
HIGHER = Margin(least=0.0, because="as accurate as softmax", fewest_seeds=5)
ABOVE_SHORTCUT = Margin(least=0.0, because="as accurate as the rule", fewest_seeds=5)
STEADIER = Margin(least=0.0, because="as steady", fewest_seeds=6)
ALIVE = Margin(least=0.5, because="more draws than not", fewest_seeds=6)
_FASTER = LOWER.in_words("the difference to softmax, each at its best step size,")

FEWEST_RUNS = 4
"""Of each sample: with fewer, chance gives every order more often than that."""

Judge = Callable[[BestSetting, BestSetting, pd.DataFrame], Measurement]
"""From two kernels at their best step sizes, and all cells, to the measurement."""


@dataclass(frozen=True)
class Data:
    """The data and the training that claims are about.

    Attributes:
        name: of the claims' names, such as `imdb`; empty for data that stands in.
        optimiser: the optimiser of comparisons at one step size, in words.
        values: values of the cells' parameters, and those at one step size besides.
    """

    name: str
    kind: Kind
    words: str
    optimiser: str
    values: Values
    at_one_rate: Values


@dataclass(frozen=True)
class ClassifierClaims:
    """The claims of a study."""

    prefix: str
    parameters: type[StudyParameters]
    figure: str  # of the paper
    shortcut: str  # the rule that solves a part of the task, in words
    preset: str  # one that has cells of it
    paper_rate: float  # the step size of section 5.2, the same for both kernels
    real: Data  # the paper's data, model and training
    stand_in: Data  # those that are run on a CPU

    def study_claims(self, others: Sequence[Claim]) -> tuple[Claim, ...]:
        """Return the claims of both studies, with others of one of them in between."""
        return (
            *self._at_one_rate(self.real),
            *self._at_best(),
            *self._at_one_rate(self.stand_in),
            *others,
            self._above_shortcut(),
            self._alive(),
        )

    def _at_best(self) -> tuple[Claim, Claim]:
        words = f"{self.stand_in.words}, each kernel at its best step size"
        return (
            self._claim(
                "gaussian-faster",
                f"Gaussian attention converges faster than softmax attention on {words}.",
                _FASTER,
                _loss_difference,
                self.stand_in,
            ),
            self._claim(
                "gaussian-more-accurate",
                "Gaussian attention ends at a higher test accuracy than softmax attention on "
                f"{words}.",
                HIGHER.in_words("the difference, each at its best step size,"),
                _accuracy_difference,
                self.stand_in,
            ),
        )

    def _at_one_rate(self, data: Data) -> list[Claim]:
        condition = self._one_rate_in_words(data)
        number = "the difference to softmax at that step size"
        ending = "" if data.name else "-one-rate"
        return [
            self._claim(
                f"gaussian-faster{ending}",
                f"Gaussian attention converges faster than softmax attention {condition}.",
                LOWER.in_words(number),
                _loss_difference,
                data,
                one_rate=True,
            ),
            self._claim(
                f"gaussian-more-accurate{ending}",
                "Gaussian attention ends at a higher test accuracy than softmax attention "
                f"{condition}.",
                HIGHER.in_words(number),
                _accuracy_difference,
                data,
                one_rate=True,
            ),
        ]

    def _one_rate_in_words(self, data: Data) -> str:
        return f"on {data.words}, with {data.optimiser} at {self.paper_rate:g} for both kernels"

    def stability(self) -> list[Claim]:
        """Claim of both data that softmax's accuracies vary more, and that its worst is worse."""
        return [
            claim(data)
            for data in (self.real, self.stand_in)
            for claim in (self._steadier, self.steadier_at_epochs, self._worst)
        ]

    def steadier_at_epochs(self, data: Data) -> Claim:
        """Claim of curves, as figure 3's, what `_steadier` claims of their ends."""
        claim = self._claim(
            "gaussian-steadier-epochs",
            "At the same epoch, softmax attention's test accuracy varies more between repeats than "
            f"Gaussian attention's {self._one_rate_in_words(data)}.",
            STEADIER.in_words(
                "the mean difference of distances from the kernel's median at the same step"
            ),
            _steadier,
            data,
            one_rate=True,
        )
        values = {**data.values, **data.at_one_rate, "learning_rate": self.paper_rate}

        def measure(rows: pd.DataFrame) -> Measurement:
            kernels = {"kernel": ("softmax", "gaussian")}
            chosen = select_values(rows, {**values, **kernels})
            if set(chosen["kernel"]) != set(kernels["kernel"]):
                raise not_run(f"It needs logged steps of {describe_values({**values, **kernels})}.")
            names = [name for name in self.parameters.model_fields if name != "kernel"]
            return _steadier_at_steps(one_setting(chosen, names))

        return replace(claim, measure=measure, reads="trajectories")

    def _worst(self, data: Data) -> Claim:
        numbers = " (0.58, Gaussian attention's worst is 0.62)" if data.name else ""
        return self._claim(
            "worst-run",
            f"The lowest final test accuracies are those of softmax attention{numbers} "
            f"{self._one_rate_in_words(data)}.",
            "the lowest accuracies of both kernels' runs are all softmax's, so many of them that "
            "chance gives it 2.5 times of 100 at most; at least 4 seeds",
            _worst_run,
            data,
            one_rate=True,
        )

    def _steadier(self, data: Data) -> Claim:
        return self._claim(
            "gaussian-steadier",
            "Softmax attention's final test accuracy varies more between repeats than Gaussian "
            f"attention's {self._one_rate_in_words(data)}.",
            STEADIER.in_words("the mean difference of distances from the kernel's median"),
            _steadier,
            data,
            one_rate=True,
        )

    def _above_shortcut(self) -> Claim:
        """Claim that something is learned that the shortcut rule doesn't know."""
        return self._claim(
            "above-shortcut",
            f"A transformer learns what {self.shortcut} doesn't know, on {self.stand_in.words}.",
            ABOVE_SHORTCUT.in_words(
                "test accuracy less that rule's, for the better kernel at its best step size,"
            ),
            self._judge_shortcut,
            self.stand_in,
        )

    def _alive(self) -> Claim:
        """Claim that no head is dead; the sentence names the cells where one is."""
        return Claim(
            name=f"{self.prefix}-head-alive",
            kind="ours",
            source="Song et al. 2024, section 5.2, the training",
            statement="On most draws no cell ends with a dead head, whose accuracy would say "
            "nothing of its kernel.",
            holds_where=ALIVE.in_words("the share of seeds on which no cell has a dead head"),
            measure=_head_alive,
            preset=self.preset,
        )

    def _claim(
        self,
        name: str,
        statement: str,
        holds_where: str,
        judge: Judge,
        data: Data,
        *,
        kernel: str = "gaussian",
        one_rate: bool = False,
    ) -> Claim:
        place = Place(self.paper_rate, self.preset) if one_rate else None
        compare = BEST_KERNELS.judged_by(
            judge, self.parameters.model_fields, (kernel, "softmax"), place
        )
        values = {**data.values, **(data.at_one_rate if one_rate else {})}

        def measure(cells: pd.DataFrame) -> Measurement:
            chosen = select_values(cells, values)
            if chosen.empty:
                raise not_run(f"It needs cells of {describe_values(values)}.")
            return compare(chosen)

        names = [self.prefix, *([data.name] if data.name else []), name]
        return Claim(
            name="-".join(names),
            kind=data.kind,
            source=f"{SOURCE}, {self.figure}",
            statement=statement,
            hypotheses="both kernels have section 5.2's model, batch, optimiser and step size, and "
            "the same data"
            if data.name
            else "",
            holds_where=holds_where,
            measure=measure,
            figure="curves",
            preset=self.preset,
            profile="paper" if data.name else "quick",
        )

    def _judge_shortcut(
        self, first: BestSetting, second: BestSetting, cells: pd.DataFrame
    ) -> Measurement:
        if first.cells["shortcut_accuracy"].isna().all():
            raise not_run(f"Here {self.shortcut} has nothing to go by.")
        best = max((first, second), key=lambda setting: setting.column("test_accuracy").mean())
        return _difference(
            best.column("test_accuracy"),
            best.column("shortcut_accuracy"),
            ABOVE_SHORTCUT,
            f"Test accuracy minus that of {self.shortcut}, for the better kernel, "
            f"{best.in_words()}.",
            chosen=_count_tried(first, second),
        )


def _head_alive(cells: pd.DataFrame) -> Measurement:
    unknown = is_unknown(cells)
    ended = cells[cells["status"] == "done"]
    if ended.empty:
        raise not_run("None of the cells is done.")
    dead = finite_numbers(ended, "silent_head").reindex(cells.index) == 1
    places = cells["kernel"] + " at " + cells["learning_rate"].map("{:g}".format)
    return judge_estimate(
        share_of_seeds(~dead, cells["seed"], unknown),
        ALIVE,
        details={
            "cells": len(ended),
            "cells with a dead head": int(dead.sum()),
            **{
                f"of them {setting}": int(count)
                for setting, count in places[dead].value_counts().items()
            },
        },
        note="The share of seeds on which no cell has a head whose units are zero on every test "
        "sample.",
    )


def _loss_difference(first: BestSetting, second: BestSetting, cells: pd.DataFrame) -> Measurement:
    measured = _difference(
        first.column(SPEED),
        second.column(SPEED),
        LOWER,
        f"Test loss averaged over {first.column('steps').max():g} steps: {first.in_words()}, less "
        f"{second.in_words()}, seed by seed.",
        chosen=_count_tried(first, second),
        more=BEST_KERNELS.at_shared_values(cells, (first.name, second.name)),
    )
    return check_edge(measured, first, second)


def _accuracy_difference(
    first: BestSetting, second: BestSetting, cells: pd.DataFrame
) -> Measurement:
    measured = _difference(
        first.column("test_accuracy"),
        second.column("test_accuracy"),
        HIGHER,
        f"Final test accuracy: {first.in_words()}, less {second.in_words()}, seed by seed.",
        chosen=_count_tried(first, second),
    )
    return check_edge(measured, first, second)


def _difference(
    first: pd.Series[float],
    second: pd.Series[float],
    margin: Margin,
    note: str,
    *,
    chosen: int,
    more: Mapping[str, float] | None = None,
) -> Measurement:
    details = {
        f"{rank}, {name}": float(number)
        for rank, values in (("first", first), ("second", second))
        for name, number in (("mean", values.mean()), ("deviation", values.std()))
    }
    estimate = mean_estimate(first - second, level_of_each(chosen))
    return judge_estimate(estimate, margin, details=details | dict(more or {}), note=note)


def _count_tried(first: BestSetting, second: BestSetting) -> int:
    """Of how many step sizes the best was chosen, on the same seeds.

    The choice favours a kernel that is as good at many of them, so an interval takes the level of
    that many.
    """
    return max(len(first.tried), len(second.tried))


def _worst_run(gaussian: BestSetting, softmax: BestSetting, cells: pd.DataFrame) -> Measurement:
    return worst_is_lower(
        softmax.column("test_accuracy"),
        gaussian.column("test_accuracy"),
        note=f"The worst final test accuracy: {gaussian.in_words()}, less {softmax.in_words()}.",
    )


def _steadier(gaussian: BestSetting, softmax: BestSetting, cells: pd.DataFrame) -> Measurement:
    """Compare distances from the median: their mean's t interval stands accuracies of two modes."""
    accuracies = {setting.name: setting.column("test_accuracy") for setting in (gaussian, softmax)}
    away = {name: (values - values.median()).abs() for name, values in accuracies.items()}
    return _difference(
        away["softmax"],
        away["gaussian"],
        STEADIER,
        "How far the final test accuracy lies from its kernel's median: softmax's less the "
        "Gaussian's, seed by seed, both at the paper's step size.",
        chosen=_count_tried(gaussian, softmax),
        more={
            f"{name}, worst accuracy": float(values.min()) for name, values in accuracies.items()
        },
    )


def _steadier_at_steps(rows: pd.DataFrame) -> Measurement:
    if is_unknown(rows).any():
        raise inconclusive("Some cells failed for reasons that say nothing of their training.")
    rows = rows[rows["step"] > 0]
    accuracy = finite_numbers(rows, "test_accuracy")
    place = [rows["kernel"], rows["step"]]
    away = (accuracy - accuracy.groupby(place).transform("median")).abs()
    by_seed = away.groupby([rows["kernel"], rows["seed"]]).mean().unstack("kernel").dropna()
    steps = away.groupby(place).mean().unstack("kernel")
    return _difference(
        by_seed["softmax"],
        by_seed["gaussian"],
        STEADIER,
        "How far the test accuracy lies from its kernel's median at a step, averaged over "
        f"{len(steps)} steps: softmax's less the Gaussian's, seed by seed.",
        chosen=1,
        more={
            "steps at which softmax varies more": int((steps["softmax"] > steps["gaussian"]).sum())
        },
    )


def worst_is_lower(first: ArrayLike, second: ArrayLike, *, note: str = "") -> Measurement:
    """Measure whether the worst run of the first sample is below that of the second.

    A single worst run says little: it is lower than the other's every second time where both
    samples are alike. So the claim holds where the `lowest_needed` values are all of the first,
    fails where they are all of the second, and is open otherwise; a tie between the samples there
    is no order. Where runs of both share a seed and are alike for that, an error is rarer still.
    """
    lower, higher = np.sort(np.asarray(first, float)), np.sort(np.asarray(second, float))
    runs, needed = len(lower), 0
    verdict: Verdict = "inconclusive"
    if runs < FEWEST_RUNS:
        note = f"{note} It needs {FEWEST_RUNS} seeds; these cells have {plural(runs, 'seed')}."
        note = note.strip()
    else:
        needed = lowest_needed(runs)
        if needed > runs:
            note = f"{note} So few runs can't rule chance out.".strip()
        elif lower[needed - 1] < higher[0]:
            verdict = "holds"
        elif higher[needed - 1] < lower[0]:
            verdict = "fails"
    return Measurement(
        verdict=verdict,
        value=float(higher[0] - lower[0]),
        decided="ranks",
        details={
            "first, worst": float(lower[0]),
            "second, worst": float(higher[0]),
            "first, runs below the second's worst": int((lower < higher[0]).sum()),
            "second, runs below the first's worst": int((higher < lower[0]).sum()),
            "runs below it that decide": needed,
        },
        note=note,
        needed_seeds=FEWEST_RUNS if runs < FEWEST_RUNS else 0,
    )


def lowest_needed(runs: int) -> int:
    """Return how many of the lowest values must be of one sample so that chance is ruled out.

    Where 2n values come in random order, the k lowest are all of a given half of them with chance
    C(n, k) / C(2n, k), which may be as rare as an interval errs on one side.
    """
    by_chance = (1 - level_of_each(1)) / 2
    rare = (k for k in range(1, runs + 1) if comb(runs, k) <= by_chance * comb(2 * runs, k))
    return next(rare, runs + 1)
