"""Claims of section 5.3.1 of Song et al. 2024 on two kernels, for either classification study."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from overfit_cli.claims.cells import (
    BestSetting,
    Comparison,
    Values,
    check_edge,
    describe_values,
    finite_numbers,
    is_unknown,
    one_setting,
    select_values,
)
from overfit_cli.claims.parts import Margin, Part
from overfit_cli.claims.rules import judge
from overfit_cli.core.claim import Claim, Kind, Measurement, inconclusive, not_run
from overfit_cli.core.parameters import StudyParameters

SOURCE = "Song et al. 2024, section 5.3.1"

SPEED = "mean_test_loss"
"""The measure of the best step size, and of "faster": the test loss over all steps."""

BEST_KERNELS = Comparison("kernel", "learning_rate", "step size", best_in=SPEED)
LOWER = Margin(most=0.0, because="as fast as softmax", fewest_seeds=5)
HIGHER = Margin(least=0.0, because="as accurate as softmax", fewest_seeds=5)
SHORTCUT = "the best rule that sees the discs' places alone"
ABOVE_SHORTCUT = Margin(least=0.0, because="as accurate as the rule", fewest_seeds=5)
STEADIER = Margin(least=0.0, because="as steady", fewest_seeds=6)
_FASTER = LOWER.in_words("the difference to softmax, each at its best step size,")

Judge = Callable[[BestSetting, BestSetting, pd.DataFrame], Measurement]
"""From two kernels at their best step sizes, and all cells, to the measurement."""


@dataclass(frozen=True)
class Data:
    """The data and the training that claims are about.

    Attributes:
        name: of the claims' names, such as `imdb`; empty for data that stands in.
    """

    name: str
    kind: Kind
    words: str
    values: Values
    optimiser: str = ""


@dataclass(frozen=True)
class ClassifierClaims:
    """The claims of a study."""

    prefix: str
    parameters: type[StudyParameters]
    figure: str  # of the paper
    preset: str  # one that has cells of it
    paper_rate: float  # the step size of section 5.2, the same for both kernels
    real: Data  # the paper's data, model and training
    stand_in: Data  # those that are run on a CPU

    def at_best(self) -> Claim:
        """Return the claim that the Gaussian is faster on the stand-in, each at its best."""
        return self._claim(
            "gaussian-faster",
            "Gaussian attention converges faster than softmax attention on "
            f"{self.stand_in.words}, each kernel at its best step size.",
            _FASTER,
            self._compared(_loss_difference, self.stand_in),
            self.stand_in,
        )

    def at_one_rate(self) -> tuple[Claim, Claim]:
        """Return the paper's claims that the Gaussian is faster, and more accurate."""
        condition = self._one_rate_in_words()
        number = "the difference to softmax at that step size"
        return (
            self._claim(
                "gaussian-faster",
                f"Gaussian attention converges faster than softmax attention {condition}.",
                LOWER.in_words(number),
                self._compared(_loss_difference, self.real),
                self.real,
            ),
            self._claim(
                "gaussian-more-accurate",
                "Gaussian attention ends at a higher test accuracy than softmax attention "
                f"{condition}.",
                HIGHER.in_words(number),
                self._compared(_accuracy_difference, self.real),
                self.real,
            ),
        )

    def _one_rate_in_words(self) -> str:
        data = self.real
        return f"on {data.words}, with {data.optimiser} at {self.paper_rate:g} for both kernels"

    def steadier(self) -> Claim:
        """Return the paper's claim that softmax's accuracies vary more."""
        return self._claim(
            "gaussian-steadier-epochs",
            "At the same epoch, softmax attention's test accuracy varies more between repeats than "
            f"Gaussian attention's {self._one_rate_in_words()}.",
            STEADIER.in_words(
                "the mean difference of distances from the kernel's median at the same step"
            ),
            self._judge_steadiness,
            self.real,
            "trajectories",
        )

    def _judge_steadiness(self, rows: pd.DataFrame) -> Measurement:
        kernels: Values = {"kernel": ("softmax", "gaussian")}
        values = {**self.real.values, "learning_rate": self.paper_rate, **kernels}
        chosen = select_values(rows, values)
        if chosen["kernel"].nunique() < 2:
            raise not_run(f"It needs logged steps of {describe_values(values)}.")
        names = [name for name in self.parameters.model_fields if name != "kernel"]
        return _steadier_at_steps(one_setting(chosen, names))

    def above_shortcut(self) -> Claim:
        """Return the claim that something is learned that the shortcut rule doesn't know."""
        return self._claim(
            "above-shortcut",
            f"A transformer learns what {SHORTCUT} doesn't know, on {self.stand_in.words}.",
            ABOVE_SHORTCUT.in_words(
                "test accuracy less that rule's, for the better kernel at its best step size,"
            ),
            self._compared(self._judge_shortcut, self.stand_in),
            self.stand_in,
        )

    def _compared(self, judge: Judge, data: Data) -> Callable[[pd.DataFrame], Measurement]:
        names, kernels = self.parameters.model_fields, ("gaussian", "softmax")
        at = {**data.values, **({"learning_rate": self.paper_rate} if data.name else {})}

        def measure(cells: pd.DataFrame) -> Measurement:
            chosen = select_values(cells, at)
            if chosen.empty:
                raise not_run(f"It needs cells of {describe_values(at)}.")
            fewest = 1 if data.name else 2
            gaussian, softmax = BEST_KERNELS.at_best(chosen, names, kernels, fewest)
            return judge(gaussian, softmax, chosen)

        return measure

    def _claim(
        self,
        name: str,
        statement: str,
        holds_where: str,
        measure: Callable[[pd.DataFrame], Measurement],
        data: Data,
        reads: Literal["cells", "trajectories"] = "cells",
    ) -> Claim:
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
            reads=reads,
        )

    def _judge_shortcut(
        self, first: BestSetting, second: BestSetting, cells: pd.DataFrame
    ) -> Measurement:
        if first.cells["shortcut_accuracy"].isna().all():
            raise not_run(f"Here {SHORTCUT} has nothing to go by.")
        best = max((first, second), key=lambda setting: setting.column("test_accuracy").mean())
        return _difference(
            best.column("test_accuracy"),
            best.column("shortcut_accuracy"),
            ABOVE_SHORTCUT,
            f"Test accuracy minus that of {SHORTCUT}, for the better kernel, {best.in_words()}.",
            chosen=_count_tried(first, second),
        )


def _loss_difference(first: BestSetting, second: BestSetting, cells: pd.DataFrame) -> Measurement:
    measured = _difference(
        first.column(SPEED),
        second.column(SPEED),
        LOWER,
        f"Test loss averaged over {first.column('steps').max():g} steps: {first.in_words()}, less "
        f"{second.in_words()}, seed by seed.",
        chosen=_count_tried(first, second),
        more=_at_shared_rates(cells, first.name, second.name),
    )
    return check_edge(measured, first, second)


def _at_shared_rates(cells: pd.DataFrame, first: str | int, second: str | int) -> dict[str, float]:
    """Count the step sizes that both kernels have, and those at which the first is lower."""
    completed = cells[(cells["status"] == "done") & cells["kernel"].isin([first, second])]
    places = completed.groupby(["learning_rate", "kernel"])
    table = places[SPEED].mean().unstack()[[first, second]].dropna()
    return {
        "step sizes of both": len(table),
        f"step sizes of both at which {first} is lower": int((table[first] < table[second]).sum()),
    }


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
    parts = [Part.of(first - second, margin)]
    return judge(parts, details=details | dict(more or {}), note=note, among=chosen)


def _count_tried(first: BestSetting, second: BestSetting) -> int:
    """Of how many step sizes the best was chosen, on the same seeds.

    The choice favours a kernel that is as good at many of them, so an interval takes the level of
    that many.
    """
    return max(len(first.tried), len(second.tried))


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
