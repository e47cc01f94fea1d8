"""The study `benign-cnn`: a CNN on the data of `benign-vit`, beside its Vision Transformer.

Section 4 of Jiang et al. 2024 compares its boundary, N · SNR² = C, with N · SNR^q = C, which Cao et
al. 2022 have for two-layer CNNs with the activation ReLU^q, q > 2. Both train on the same samples.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from overfit_cli.core.cell import Batch, Cell, CellResult, Results
from overfit_cli.core.claim import Claim
from overfit_cli.core.figure import (
    BOUNDARY,
    CURVES,
    HEATMAP,
    Figure,
    FigureOptions,
    collect_figures,
)
from overfit_cli.core.text import percent, plural
from overfit_cli.core.training import Training
from overfit_cli.studies.benign_vit.cnn.parameters import BenignCnnParameters, is_cnn
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.study import BenignVit
from overfit_cli.studies.benign_vit.theory import FIGURE_1_THRESHOLD, measured_regime

P = BenignVitParameters

_GRID = FigureOptions(x="snr", y="n", value="test_loss", by="model")

FIGURES = collect_figures(
    replace(
        BOUNDARY,
        title="The boundaries of both models on the same data, and the power laws fitted to them",
        source="Jiang et al. 2024, section 4, and Cao et al. 2022",
        options=replace(_GRID, threshold=FIGURE_1_THRESHOLD),
    ),
    replace(
        HEATMAP,
        title="Test loss over samples and signal-to-noise ratio, of both models",
        source="Jiang et al. 2024, section 4, and Cao et al. 2022",
        options=_GRID,
    ),
    replace(CURVES, title="Training and test loss against gradient steps"),
)

_STEP_OVERHEAD = 2e6
"""The cost of a CNN's step beside its matrix product, in multiplications."""


class BenignCnn(BenignVit):
    """A two-layer CNN, or a Vision Transformer, on signal and noise tokens; see `Study`."""

    name = "benign-cnn"
    version = 1
    title = "Benign and harmful overfitting of a two-layer CNN beside a Vision Transformer"
    parameters = BenignCnnParameters
    progress_columns = ("train_loss", "test_loss", "train_margin_min")

    def figures(self) -> Mapping[str, Figure]:
        return FIGURES

    def claims(self) -> Sequence[Claim]:
        from overfit_cli.studies.benign_vit.cnn.claims import CLAIMS

        return CLAIMS

    def notes(self, cells: Batch[P]) -> Sequence[str]:
        return ()  # Condition 4.1 is not this study's subject

    def cost(self, cell: Cell[P]) -> float:
        settings = cell.parameters
        if not is_cnn(settings):
            return super().cost(cell)
        rows = settings.n * settings.tokens
        step = 2 * rows * rows * settings.filters + _STEP_OVERHEAD
        return 2.0 * _expected_steps(settings) * step

    def train(self, batch: Batch[P], training: Training) -> Results[P]:
        from overfit_cli.studies.benign_vit.cnn.training import train_batch

        return train_batch(batch, training)

    def summary(self, result: CellResult[P]) -> str:
        settings, measured = result.cell.parameters, result.measurements
        after = plural(result.steps, "step")
        if not is_cnn(settings):
            return super().summary(result)
        if result.reason:
            return f"Not fitted ({result.reason}) after {after}."
        q, losses = settings.power, (measured["train_loss"], measured["test_loss"])
        return (
            f"{measured_regime(losses[1]).capitalize()} overfitting of a CNN with ReLU^{q:g}: "
            f"fitted to a training loss of {losses[0]:.4f} in {after}, with a test loss of "
            f"{losses[1]:.3f} and a test error of {percent(measured['test_error'])} on "
            f"{settings.test_samples} samples. N·SNR^{q:g} = {settings.n * settings.snr**q:.3g}."
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
