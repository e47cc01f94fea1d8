"""The claims of section 5.3.1 of Song et al. 2024, for either classification study."""

from __future__ import annotations

import pandas as pd

from overfit_cli.analysis.intervals import variance_ratio_interval
from overfit_cli.claim import Claim, Measurement, above_zero
from overfit_cli.parameters import StudyParameters
from overfit_cli.studies.attention_kernel.classifier.comparison import (
    SPEED,
    difference,
    pair,
    same_rate_in_words,
    spread,
)

SOURCE = "Song et al. 2024, section 5.3.1"
CONTROLS = {
    "gaussian-normalised": "a Gaussian whose rows sum to one",
    "softmax-times-n": "a softmax as large as a sum over tokens",
    "gaussian-over-n": "a Gaussian as small as a mean over tokens",
}


def faster(
    name: str,
    model: type[StudyParameters],
    kernel: str,
    statement: str,
    source: str,
) -> Claim:
    """The kernel's test loss, averaged over all steps, is lower than softmax's."""
    kernels = (kernel, "softmax")

    def measure(cells: pd.DataFrame) -> Measurement:
        found = pair(cells, list(model.model_fields), kernels)
        if isinstance(found, Measurement):
            return found
        one, other = found
        value, low, high = difference(one.column(SPEED), other.column(SPEED))
        return Measurement(
            above_zero(-high, -low),
            value,
            low,
            high,
            f"Test loss averaged over the steps: {spread(one, SPEED)} with {one.in_words()}; "
            f"{spread(other, SPEED)} with {other.in_words()}; {len(one.cells)} seeds, "
            f"{int(one.cells['steps'].max())} steps; "
            f"{same_rate_in_words(cells[cells['kernel'].isin(kernels)], kernels)}.",
            "95 % t over seeds",
        )

    return Claim(
        name,
        source,
        statement,
        "the difference to softmax, each at its best step size, has its 95 % interval below 0",
        measure,
    )


def more_accurate(name: str, model: type[StudyParameters]) -> Claim:
    """The Gaussian's final test accuracy is higher than softmax's."""

    def measure(cells: pd.DataFrame) -> Measurement:
        found = pair(cells, list(model.model_fields), ("gaussian", "softmax"))
        if isinstance(found, Measurement):
            return found
        one, other = found
        value, low, high = difference(one.column("test_accuracy"), other.column("test_accuracy"))
        return Measurement(
            above_zero(low, high),
            value,
            low,
            high,
            f"Final test accuracy: {spread(one, 'test_accuracy')} with {one.in_words()}; "
            f"{spread(other, 'test_accuracy')} with {other.in_words()}; {len(one.cells)} seeds.",
            "95 % t over seeds",
        )

    return Claim(
        name,
        SOURCE,
        "Gaussian attention ends at a higher test accuracy than softmax attention.",
        "the difference, each at its best step size, has its 95 % interval above 0",
        measure,
    )


def steadier(name: str, model: type[StudyParameters]) -> Claim:
    """The Gaussian's final test accuracy varies less between seeds than softmax's."""

    def measure(cells: pd.DataFrame) -> Measurement:
        found = pair(cells, list(model.model_fields), ("gaussian", "softmax"))
        if isinstance(found, Measurement):
            return found
        one, other = (kernel.column("test_accuracy") for kernel in found)
        if min(one.var(), other.var()) == 0:
            return Measurement.without_value("inconclusive", "A kernel's accuracy doesn't vary.")
        ratio, (low, high) = float(other.var() / one.var()), variance_ratio_interval(other, one)
        return Measurement(
            above_zero(low - 1, high - 1),
            ratio,
            low,
            high,
            f"The variance of softmax's final accuracy is {ratio:.2f} times the Gaussian's: "
            f"{spread(found[1], 'test_accuracy')} against {spread(found[0], 'test_accuracy')}, at "
            f"worst {other.min():.3f} against {one.min():.3f}; {len(one)} seeds, each kernel at "
            f"its best step size.",
            "95 % Pitman–Morgan",
        )

    return Claim(
        name,
        SOURCE,
        "Softmax attention's test accuracy varies more between repeats than Gaussian attention's.",
        "the ratio of variances has its 95 % interval above 1",
        measure,
    )


def above_shortcut(name: str, model: type[StudyParameters], shortcut: str) -> Claim:
    """Something is learned that the shortcut rule doesn't know."""

    def measure(cells: pd.DataFrame) -> Measurement:
        found = pair(cells, list(model.model_fields), ("gaussian", "softmax"))
        if isinstance(found, Measurement):
            return found
        if found[0].column("shortcut_accuracy").isna().any():
            return Measurement.without_value("not run", f"Here {shortcut} has nothing to go by.")
        best = max(found, key=lambda one: one.column("test_accuracy").mean())
        value, low, high = difference(
            best.column("test_accuracy"), best.column("shortcut_accuracy")
        )
        return Measurement(
            above_zero(low, high),
            value,
            low,
            high,
            f"The best kernel is {best.in_words()}: test accuracy {spread(best, 'test_accuracy')}, "
            f"{shortcut} {spread(best, 'shortcut_accuracy')}, {len(best.cells)} seeds.",
            "95 % t over seeds",
        )

    return Claim(
        name,
        f"{SOURCE}; ours",
        f"A transformer learns what {shortcut} doesn't know.",
        "test accuracy less that rule's, for the better kernel at its best step size, has its "
        "95 % interval above 0",
        measure,
    )


def head_alive(name: str, model: type[StudyParameters]) -> Claim:
    """No head has fallen silent; names the cells where one has."""

    def measure(cells: pd.DataFrame) -> Measurement:
        done = cells[cells["status"] == "done"]
        if done.empty:
            return Measurement.without_value("not run", f"It needs cells of {model.__name__}.")
        dead = done[done["silent_head"].astype(float) == 1]
        places = dead[["kernel", "learning_rate"]].drop_duplicates().to_numpy().tolist()
        where = "; ".join(f"{kernel} at {rate:g}" for kernel, rate in places)
        return Measurement(
            "holds" if dead.empty else "fails",
            float(len(dead)),
            None,
            None,
            f"In {len(dead)} of {len(done)} cells the head's units are all zero on every test "
            f"sample{': ' + where if where else ''}.",
        )

    return Claim(
        name,
        "ours",
        "No cell ends with a dead head, whose accuracy would say nothing of its kernel.",
        "in every cell some unit of the head is above zero on some test sample",
        measure,
    )


def control_claims(prefix: str, model: type[StudyParameters]) -> list[Claim]:
    """For each control, whether it is faster than softmax: what of the Gaussian matters."""
    return [
        faster(
            f"{prefix}-control-{kernel}",
            model,
            kernel,
            f"The control {kernel}, {meaning}, converges faster than softmax attention.",
            f"{SOURCE}; ours",
        )
        for kernel, meaning in CONTROLS.items()
    ]
