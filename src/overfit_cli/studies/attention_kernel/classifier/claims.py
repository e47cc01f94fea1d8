"""The claims of section 5.3.1 of Song et al. 2024, for either classification study."""

from __future__ import annotations

from collections.abc import Callable

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

MeasurePair = Callable[[BestSetting, BestSetting, pd.DataFrame], Measurement]
"""From two kernels at their best step sizes, and all cells, to the measurement."""


def compared(
    parameters: type[StudyParameters],
    measure_pair: MeasurePair,
    kernels: tuple[str, str] = ("gaussian", "softmax"),
) -> Callable[[pd.DataFrame], Measurement]:
    """Return what measures two kernels, each at its best step size on the seeds of both."""

    def measure(cells: pd.DataFrame) -> Measurement:
        pair = BEST_KERNELS.pair(cells, parameters.model_fields, kernels)
        return pair if isinstance(pair, Measurement) else measure_pair(*pair, cells)

    return measure


def faster(prefix: str, parameters: type[StudyParameters], task: str, figure: str) -> Claim:
    """Claim that the Gaussian's test loss, averaged over all steps, is lower than softmax's."""
    return Claim(
        name=f"{prefix}-gaussian-faster",
        source=f"{SOURCE}, {figure}",
        statement=f"Gaussian attention converges faster than softmax attention on {task}.",
        accepted=_FASTER,
        measure=compared(parameters, _loss_difference),
    )


def control_claims(prefix: str, parameters: type[StudyParameters]) -> list[Claim]:
    """Claim of each control that it is faster than softmax: what of the Gaussian matters."""
    return [
        Claim(
            name=f"{prefix}-control-{kernel}",
            source=f"{SOURCE}; ours",
            statement=f"The control {kernel}, {meaning}, converges faster than softmax attention.",
            accepted=_FASTER,
            measure=compared(parameters, _loss_difference, (kernel, "softmax")),
        )
        for kernel, meaning in CONTROLS.items()
    ]


_FASTER = "the difference to softmax, each at its best step size, has its 95 % interval below 0"


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


def more_accurate(prefix: str, parameters: type[StudyParameters]) -> Claim:
    """Claim that the Gaussian's final test accuracy is higher than softmax's."""
    return Claim(
        name=f"{prefix}-gaussian-more-accurate",
        source=SOURCE,
        statement="Gaussian attention ends at a higher test accuracy than softmax attention.",
        accepted="the difference, each at its best step size, has its 95 % interval above 0",
        measure=compared(parameters, _accuracy_difference),
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


def steadier(prefix: str, parameters: type[StudyParameters]) -> Claim:
    """Claim that the Gaussian's final test accuracy varies less between seeds than softmax's."""
    return Claim(
        name=f"{prefix}-gaussian-steadier",
        source=SOURCE,
        statement="Softmax attention's test accuracy varies more between repeats than Gaussian "
        "attention's.",
        accepted="the ratio of variances has its 95 % interval above 1",
        measure=compared(parameters, _variance_ratio),
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


def above_shortcut(prefix: str, parameters: type[StudyParameters], shortcut: str) -> Claim:
    """Claim that something is learned that the shortcut rule doesn't know."""

    def difference(one: BestSetting, other: BestSetting, cells: pd.DataFrame) -> Measurement:
        if one.column("shortcut_accuracy").isna().any():
            return not_run(f"Here {shortcut} has nothing to go by.")
        best = max((one, other), key=lambda kernel: kernel.column("test_accuracy").mean())
        return compared_means(
            best.column("test_accuracy"),
            best.column("shortcut_accuracy"),
            "higher",
            f"The best kernel is {best.in_words()}: test accuracy "
            f"{best.mean_and_deviation('test_accuracy')}, {shortcut} "
            f"{best.mean_and_deviation('shortcut_accuracy')}, {len(best.cells)} seeds.",
        )

    return Claim(
        name=f"{prefix}-above-shortcut",
        source=f"{SOURCE}; ours",
        statement=f"A transformer learns what {shortcut} doesn't know.",
        accepted="test accuracy less that rule's, for the better kernel at its best step size, has "
        "its 95 % interval above 0",
        measure=compared(parameters, difference),
    )


def head_alive(prefix: str, parameters: type[StudyParameters]) -> Claim:
    """Claim that no head is dead; the sentence names the cells where one is."""

    def measure(cells: pd.DataFrame) -> Measurement:
        done = cells[cells["status"] == "done"]
        if done.empty:
            return not_run(f"It needs cells of {parameters.__name__}.")
        dead = done[done["silent_head"].astype(float) == 1]
        places = dead[["kernel", "learning_rate"]].drop_duplicates().to_numpy().tolist()
        where = "; ".join(f"{kernel} at {rate:g}" for kernel, rate in places)
        return Measurement(
            "holds" if dead.empty else "fails",
            f"In {len(dead)} of {len(done)} cells the head's units are all zero on every test "
            f"sample{': ' + where if where else ''}.",
            float(len(dead)),
        )

    return Claim(
        name=f"{prefix}-head-alive",
        source="ours",
        statement="No cell ends with a dead head, whose accuracy would say nothing of its kernel.",
        accepted="in every cell some unit of the head is above zero on some test sample",
        measure=measure,
    )
