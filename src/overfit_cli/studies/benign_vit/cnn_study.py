"""The study `benign-cnn`: a CNN on the data of `benign-vit`, beside its Vision Transformer.

Section 4 of Jiang et al. 2024 compares its boundary, N · SNR² = C, with N · SNR^q = C, which Cao et
al. 2022 have for two-layer CNNs with the activation ReLU^q, q > 2. Both train on the same samples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, TypeGuard

from overfit_cli.core.cell import Batch, Cell, CellResult
from overfit_cli.core.figure import BOUNDARY, CURVES, HEATMAP
from overfit_cli.core.parameters import parameter
from overfit_cli.core.text import percent, plural
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.study import BenignVit
from overfit_cli.studies.benign_vit.theory import FIGURE_1_THRESHOLD, measured_regime

P = BenignVitParameters


class BenignCnnParameters(BenignVitParameters):
    """Definition 3.1's data, and either model; defaults suit section 6's strengths."""

    model: Literal["cnn", "vit"] = parameter(
        "cnn",
        "two-layer CNN, or the Vision Transformer of benign-vit",
        value_labels={"cnn": "CNN", "vit": "Vision Transformer"},
    )
    filters: int = parameter(
        20, "filters of each class in the CNN", "m", "filters of each class", "[1, 10_000]"
    )
    power: float = parameter(
        3.0, "power q of the CNN's activation ReLU^q", "q", "power of the activation", "[1, 10]"
    )
    sigma_0: float = parameter(
        0.001, "deviation of the CNN's filters", r"\sigma_0", within="(0, 1e6]"
    )
    filter_rate: float = parameter(
        0.001, "step size of the CNN", r"\eta_{\mathrm{CNN}}", within="(0, 1e6]"
    )


def is_cnn(parameters: P) -> TypeGuard[BenignCnnParameters]:
    """Return whether a cell of `benign-cnn` trains the CNN."""
    return isinstance(parameters, BenignCnnParameters) and parameters.model == "cnn"


_GRID: dict[str, Any] = {"x": "snr", "y": "n", "value": "test_loss", "by": "model"}
_SOURCE = "Jiang et al. 2024, section 4, and Cao et al. 2022"

_STEP_OVERHEAD = 2e6
"""The cost of a CNN's step beside its matrix product, in multiplications."""


class BenignCnn(BenignVit):
    """A two-layer CNN, or a Vision Transformer, on signal and noise tokens; see `Study`."""

    name, version = "benign-cnn", 1
    title = "Benign and harmful overfitting of a two-layer CNN beside a Vision Transformer"
    parameters = BenignCnnParameters
    progress_columns = ("train_loss", "test_loss", "train_margin_min")
    trained_in, claims_in = ".cnn", ".claims.cnn"
    drawn = (
        BOUNDARY.showing(
            title="The boundaries of both models on the same data, and the power laws fitted",
            source=_SOURCE,
            threshold=FIGURE_1_THRESHOLD,
            **_GRID,
        ),
        HEATMAP.showing(
            title="Test loss over samples and signal-to-noise ratio, of both models",
            source=_SOURCE,
            **_GRID,
        ),
        CURVES.showing(title="Training and test loss against gradient steps"),
    )

    def notes(self, cells: Batch[P]) -> Sequence[str]:
        return ()  # Condition 4.1 is not this study's subject

    def cost(self, cell: Cell[P]) -> float:
        if not is_cnn(p := cell.parameters):
            return super().cost(cell)
        step = 2 * (p.n * p.tokens) ** 2 * p.filters + _STEP_OVERHEAD
        return 2.0 * _expected_steps(p) * step

    def summary(self, result: CellResult[P]) -> str:
        if result.reason or not is_cnn(p := result.cell.parameters):
            return super().summary(result)
        measured = result.measurements
        return (
            f"{measured_regime(measured['test_loss']).capitalize()} overfitting of a CNN with "
            f"ReLU^{p.power:g}: fitted to a training loss of {measured['train_loss']:.4f} in "
            f"{plural(result.steps, 'step')}, with a test loss of {measured['test_loss']:.3f} and "
            f"a test error of {percent(measured['test_error'])} on {p.test_samples} samples. "
            f"N·SNR^{p.power:g} = {p.n * p.snr**p.power:.3g}."
        )


def _expected_steps(p: BenignCnnParameters) -> float:
    """About how many steps a CNN takes: the time until filters have left their start.

    What filters give on a token of length s starts at about z = σ_0 s and grows at the rate
    η q z^(q−1) s² / 2m of the signal, and an N-th of it of the noise.
    """
    signal, noise = p.signal_norm, max(p.noise_norm, p.strong_noise_norm)
    rates = (
        math.pow(p.sigma_0 * length, p.power - 2) * length**2 / samples
        for length, samples in ((signal, 1), (noise, p.n))
    )
    steps = 5 * p.filters / (p.filter_rate * p.power * max(rates))
    return min(max(steps, 10.0), float(p.max_steps))


study = BenignCnn()
