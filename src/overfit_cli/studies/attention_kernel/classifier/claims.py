"""The claims of section 5.3.1 of Song et al. 2024, for either classification study."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from overfit_cli.analysis.intervals import variance_ratio_interval
from overfit_cli.claim import Claim, Measurement, above_zero, inconclusive, not_run
from overfit_cli.claims.comparison import BestSetting, Comparison, compared_means
from overfit_cli.parameters import StudyParameters

SOURCE = "Song et al. 2024, section 5.3.1"
SPEED = "mean_test_loss"
"""What the best step size is best in, and what "faster" means: the test loss over all steps."""

BEST_KERNELS = Comparison("kernel", "learning_rate", "step size", best_in=SPEED)
CONTROLS = {
    "gaussian-normalised": "a Gaussian whose rows sum to one",
    "softmax-times-n": "a softmax as large as a sum over tokens",
    "gaussian-over-n": "a Gaussian as small as a mean over tokens",
}
_FASTER = "the difference to softmax, each at its best step size, has its 95 % interval below 0"

Judge = Callable[[BestSetting, BestSetting, pd.DataFrame], Measurement]
"""From two kernels at their best step sizes, and all cells, to the measurement."""


@dataclass(frozen=True)
class ClassifierClaims:
    """The claims of a study.

    Attributes:
        prefix: how their names begin.
        parameters: the study's.
        shortcut: the rule that solves a part of the task, in words.
    """

    prefix: str
    parameters: type[StudyParameters]
    shortcut: str

    def faster(self, task: str, figure: str) -> Claim:
        """Claim that the Gaussian's test loss, averaged over all steps, is lower than softmax's."""
        statement = f"Gaussian attention converges faster than softmax attention on {task}."
        source = f"{SOURCE}, {figure}"
        return self._claim("gaussian-faster", statement, _FASTER, _loss_difference, source)

    def controls(self) -> list[Claim]:
        """Claim of each control that it is faster than softmax: what of the Gaussian matters."""
        return [
            self._claim(
                f"control-{kernel}",
                f"The control {kernel}, {meaning}, converges faster than softmax attention.",
                _FASTER,
                _loss_difference,
                f"{SOURCE}; ours",
                kernel,
            )
            for kernel, meaning in CONTROLS.items()
        ]

    def more_accurate(self) -> Claim:
        """Claim that the Gaussian's final test accuracy is higher than softmax's."""
        return self._claim(
            "gaussian-more-accurate",
            "Gaussian attention ends at a higher test accuracy than softmax attention.",
            "the difference, each at its best step size, has its 95 % interval above 0",
            _accuracy_difference,
        )

    def steadier(self) -> Claim:
        """Claim that the Gaussian's final test accuracy varies less between seeds."""
        return self._claim(
            "gaussian-steadier",
            "Softmax attention's test accuracy varies more between repeats than Gaussian "
            "attention's.",
            "the ratio of variances has its 95 % interval above 1",
            _variance_ratio,
        )

    def above_shortcut(self) -> Claim:
        """Claim that something is learned that the shortcut rule doesn't know."""
        return self._claim(
            "above-shortcut",
            f"A transformer learns what {self.shortcut} doesn't know.",
            "test accuracy less that rule's, for the better kernel at its best step size, has "
            "its 95 % interval above 0",
            self._above_shortcut,
            f"{SOURCE}; ours",
        )

    def head_alive(self) -> Claim:
        """Claim that no head is dead; the sentence names the cells where one is."""
        return Claim(
            name=f"{self.prefix}-head-alive",
            source="ours",
            statement="No cell ends with a dead head, whose accuracy would say nothing of its "
            "kernel.",
            accepted="in every cell some unit of the head is above zero on some test sample",
            measure=self._head_alive,
        )

    def _claim(
        self,
        name: str,
        statement: str,
        accepted: str,
        judge: Judge,
        source: str = SOURCE,
        kernel: str = "gaussian",
    ) -> Claim:
        """A claim on a kernel and softmax, each at its best step size on the seeds of both."""
        names = self.parameters.model_fields
        measure = BEST_KERNELS.judged_by(judge, names, (kernel, "softmax"))
        return Claim(f"{self.prefix}-{name}", source, statement, accepted, measure)

    def _above_shortcut(
        self, one: BestSetting, other: BestSetting, cells: pd.DataFrame
    ) -> Measurement:
        if one.column("shortcut_accuracy").isna().any():
            return not_run(f"Here {self.shortcut} has nothing to go by.")
        best = max((one, other), key=lambda kernel: kernel.column("test_accuracy").mean())
        return compared_means(
            best.column("test_accuracy"),
            best.column("shortcut_accuracy"),
            "higher",
            f"The best kernel is {best.in_words()}: test accuracy "
            f"{best.mean_and_deviation('test_accuracy')}, {self.shortcut} "
            f"{best.mean_and_deviation('shortcut_accuracy')}, {len(best.cells)} seeds.",
        )

    def _head_alive(self, cells: pd.DataFrame) -> Measurement:
        done = cells[cells["status"] == "done"]
        if done.empty:
            return not_run(f"It needs cells of {self.parameters.__name__}.")
        dead = done[done["silent_head"].astype(float) == 1]
        places = dead[["kernel", "learning_rate"]].drop_duplicates().to_numpy().tolist()
        where = "; ".join(f"{kernel} at {rate:g}" for kernel, rate in places)
        return Measurement(
            "holds" if dead.empty else "fails",
            f"In {len(dead)} of {len(done)} cells the head's units are all zero on every test "
            f"sample{': ' + where if where else ''}.",
            float(len(dead)),
        )


def _loss_difference(one: BestSetting, other: BestSetting, cells: pd.DataFrame) -> Measurement:
    return compared_means(
        one.column(SPEED),
        other.column(SPEED),
        "lower",
        f"Test loss averaged over the steps: {one.mean_and_deviation(SPEED)} with "
        f"{one.in_words()}; {other.mean_and_deviation(SPEED)} with {other.in_words()}; "
        f"{len(one.cells)} seeds, {int(one.cells['steps'].max())} steps; "
        f"{BEST_KERNELS.at_shared_values(cells, (one.name, other.name))}.",
    )


def _accuracy_difference(one: BestSetting, other: BestSetting, cells: pd.DataFrame) -> Measurement:
    return compared_means(
        one.column("test_accuracy"),
        other.column("test_accuracy"),
        "higher",
        f"Final test accuracy: {one.mean_and_deviation('test_accuracy')} with {one.in_words()}; "
        f"{other.mean_and_deviation('test_accuracy')} with {other.in_words()}; "
        f"{len(one.cells)} seeds.",
    )


def _variance_ratio(
    gaussian: BestSetting, softmax: BestSetting, cells: pd.DataFrame
) -> Measurement:
    one, other = gaussian.column("test_accuracy"), softmax.column("test_accuracy")
    if min(one.var(), other.var()) == 0:
        return inconclusive("A kernel's accuracy doesn't vary.")
    ratio, (low, high) = float(other.var() / one.var()), variance_ratio_interval(other, one)
    return Measurement(
        above_zero(low - 1, high - 1),
        f"The variance of softmax's final accuracy is {ratio:.2f} times the Gaussian's: "
        f"{softmax.mean_and_deviation('test_accuracy')} against "
        f"{gaussian.mean_and_deviation('test_accuracy')}, at worst {other.min():.3f} against "
        f"{one.min():.3f}; {len(one)} seeds, each kernel at its best step size.",
        ratio,
        low,
        high,
        "95 % Pitman–Morgan",
    )
