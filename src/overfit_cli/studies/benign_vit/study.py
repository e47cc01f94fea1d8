"""The study `benign-vit` of Jiang et al. 2024: figures, batches, cost and summary."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from overfit_cli.core.cell import Batch, Batches, Cell, CellResult, Column, Results
from overfit_cli.core.claim import Claim
from overfit_cli.core.figure import (
    BOUNDARY,
    CURVES,
    CUTOFF,
    HEATMAP,
    LINES,
    Figure,
    FigureOptions,
    collect_figures,
    defaults_but,
    lazily,
)
from overfit_cli.core.study import Study
from overfit_cli.core.text import percent, plural
from overfit_cli.core.training import Training, group_cells
from overfit_cli.studies.benign_vit import PAPER, theory
from overfit_cli.studies.benign_vit.columns import MEASUREMENTS, TRAJECTORY
from overfit_cli.studies.benign_vit.parameters import REALISATIONS_KEPT, BenignVitParameters
from overfit_cli.studies.benign_vit.theory import (
    FIGURE_1_THRESHOLD,
    condition_in_words,
    condition_items,
    predicted_boundary,
)

if TYPE_CHECKING:
    from overfit_cli.core.cells import Cells

P = BenignVitParameters


def predicted_curve(data: Cells) -> tuple[str, str]:
    """Return the curve on either side of which a regime is predicted: see `predicted_boundary`.

    The sentence says where its constant comes from, unless it is the paper's.
    """
    if _is_as_figure_1(data):
        return f"n * snr**2 = {theory.FIGURE_1_CONSTANT:.4g}", ""
    return f"n * snr**2 = {theory.BALANCE}", (
        "On that line a first step learns signal and noise equally fast; Theorems 4.1 and 4.2 "
        "leave a constant factor open."
    )


def _is_as_figure_1(data: Cells) -> bool:
    strong_noise = data.trained["sigma_p_tilde"] / data.trained["sigma_p"]
    constants = np.unique(predicted_boundary(strong_noise, data.trained["tokens"]))
    return bool((constants == theory.FIGURE_1_CONSTANT).all())


_FREE = ("n", "snr", "labels", "test_samples")
_SIZES = ("tokens", "d", "d_h", "d_v", "sigma_p", "sigma_p_tilde")
"""The parameters that differ between figures 1, 3 and 4 of the paper."""

_PANELS = "label_flip,epsilon,sigma_p_tilde,d"
_GRID = FigureOptions(x="snr", y="n", value="test_loss")
_CUT = replace(_GRID, threshold=FIGURE_1_THRESHOLD)

_ALL_LOGS = frozenset({"x", "value"})

WIDE_HEADS_LOSS = "log(1 + (exp(epsilon) - 1)**((2 * tokens - 1) / tokens**2))"

FIGURES = collect_figures(
    replace(
        HEATMAP,
        title="Test loss over samples and signal-to-noise ratio",
        source="Jiang et al. 2024, figure 1a",
        reproduces=defaults_but(*_FREE),
        options=replace(_GRID, by=_PANELS),
        equation_of=predicted_curve,
    ),
    replace(
        CUTOFF,
        title="Test loss above and below the threshold",
        source="Jiang et al. 2024, figure 1b",
        reproduces=defaults_but(*_FREE),
        options=replace(_CUT, by=_PANELS),
        equation_of=predicted_curve,
    ),
    replace(
        BOUNDARY,
        title="Where the test loss crosses the threshold, and the power law fitted to it",
        options=_CUT,
        equation_of=predicted_curve,
    ),
    Figure(
        name="dynamics",
        title="Attention, inner products and values against gradient steps",
        source="Jiang et al. 2024, figures 3 and 4",
        reproduces=defaults_but(*_FREE, *_SIZES),
        reads="trajectories",
        draw=lazily("overfit_cli.studies.benign_vit.figures:draw_dynamics"),
        fits=lazily("overfit_cli.studies.benign_vit.figures:has_dynamics"),
    ),
    Figure(
        name="dimension",
        title="The boundary's constant and exponent against the dimension",
        source="Jiang et al. 2024, Theorems 4.1 and 4.2, and figure 1b",
        reads="cells",
        options=FigureOptions(threshold=FIGURE_1_THRESHOLD),
        accepts=frozenset({"threshold"}),
        draw=lazily("overfit_cli.studies.benign_vit.figures_dimension:draw_dimension"),
        fits=lazily("overfit_cli.studies.benign_vit.figures_dimension:has_dimensions"),
    ),
    replace(LINES, options=FigureOptions(value="test_loss")),
    replace(
        LINES,
        name="wide-heads",
        title="Test loss against the training loss, and its limit as heads grow wide",
        options=FigureOptions(
            x="epsilon",
            value="test_loss",
            by="d_h",
            theory=WIDE_HEADS_LOSS,
            log=_ALL_LOGS,
            mean="median",
            band="quartiles",
        ),
        axes=0,
        draw=lazily("overfit_cli.studies.benign_vit.figures:draw_wide_heads"),
        fits=lazily("overfit_cli.studies.benign_vit.figures:has_wide_heads"),
        labels={WIDE_HEADS_LOSS: r"limit, $\log(1 + (e^\epsilon - 1)^{(2M - 1) / M^2})$"},
    ),
    Figure(
        name="deficit",
        title="What training attention on the signal misses of 1, with a formula and the paper's",
        reads="cells",
        draw=lazily("overfit_cli.studies.benign_vit.figures:draw_deficit"),
        fits=lazily("overfit_cli.studies.benign_vit.figures:has_wide_heads"),
    ),
    replace(CURVES, title="Training and test loss against gradient steps"),
)

_STEP_OVERHEAD = 5e6
_CELL_OVERHEAD = 2e7
"""The cost of a step beside its matrix products, in multiplications: measured at N 2 to 20."""

_LEAPS = 30.0
"""About how far scores go in all of a cell's training."""

_PROBED_UPDATES = 2000
_GPU_BYTES = 16e9  # of a batch, where the GPU is another machine's
_SHARE_OF_GPU = 0.7  # of free memory; a batch that needs more is split in halves
_CPU_CELLS = 8  # of a batch
_CACHE_LINE = 64  # bytes
_CPU_NUMBERS = 150_000  # of all queries of a batch, which stay in a core's cache from step to step


class BenignVit(Study[P]):
    """A two-layer Vision Transformer on signal and noise tokens; see `Study` for the members."""

    name = "benign-vit"
    version = 4
    title = "Benign and harmful overfitting of a two-layer Vision Transformer"
    paper = PAPER
    parameters = BenignVitParameters
    columns: tuple[Column, ...] = MEASUREMENTS
    trajectory_columns: tuple[Column, ...] = TRAJECTORY
    headline = "test_loss"
    threshold = theory.FIGURE_1_THRESHOLD
    sides = ("benign", "harmful")
    progress_columns: tuple[str, ...] = (
        "train_loss",
        "test_loss",
        "train_margin_min",
        "attention_signal",
        "attention_noise",
    )

    def figures(self) -> Mapping[str, Figure]:
        return FIGURES

    def claims(self) -> Sequence[Claim]:
        from overfit_cli.studies.benign_vit.claims import CLAIMS

        return CLAIMS

    def notes(self, cells: Batch[P]) -> Sequence[str]:
        """Go through Condition 4.1 where the weights are drawn as it requires."""
        settings = [cell.parameters for cell in cells]
        bound = [each for each in settings if each.initialisation == "condition"]
        return condition_in_words(bound) if bound else ()

    def batches(self, cells: Batch[P], device: str) -> Batches[P]:
        """Split cells into batches.

        A worker keeps the projections it used last, so seeds come one after another. Within a seed
        the costly cells come first, so that the last batches to finish are short.

        A batch is trained as one tensor, so it has one shape. On a CPU it fits the processor's
        cache, and its cells share one seed's projections; on a GPU it fits the memory.
        """
        if device == "cpu":
            groups = itertools.groupby(sorted(cells, key=_alike), key=_alike)
            return [batch for _, group in groups for batch in _spread(list(group))]

        def shape(cell: Cell[P]) -> tuple[object, ...]:
            return (cell.seed // REALISATIONS_KEPT, *_shape(cell))

        return group_cells(cells, shape, self.memory, _batch_bytes())

    def cost(self, cell: Cell[P]) -> float:
        settings = cell.parameters
        rows, width = _matrix(settings)
        step = rows * rows * width + _STEP_OVERHEAD
        test = settings.test_samples * settings.tokens * rows * width + _CELL_OVERHEAD
        return 2.0 * (_expected_updates(settings) * step + test)

    def probe(self, cell: Cell[P]) -> Cell[P]:
        settings = cell.parameters
        if _expected_updates(settings) <= _PROBED_UPDATES:
            return cell
        shortened = settings.model_copy(update={"max_steps": _PROBED_UPDATES, "leap": 0.0})
        return replace(cell, parameters=shortened)

    def memory(self, cell: Cell[P]) -> float:
        settings = cell.parameters
        rows = settings.capacity * settings.tokens
        test_rows = settings.test_samples * settings.tokens
        features, width, values = settings.d, settings.d_h, settings.d_v
        if settings.sampling == "law":
            samples = settings.capacity + settings.test_samples
            features = samples * (settings.tokens - 1) + 2
            width, values = min(2 * features, settings.d_h), 1
        weights = features * (2 * width + values)
        projections = (rows + test_rows) * (2 * features + 3 * width + 2 * rows)
        state = settings.n * settings.tokens * 6 * width
        return 8.0 * (weights + projections + state)

    def train(self, batch: Batch[P], training: Training) -> Results[P]:
        from overfit_cli.studies.benign_vit.training import train_batch

        return train_batch(batch, training)

    def summary(self, result: CellResult[P]) -> str:
        settings = result.cell.parameters
        measured = result.measurements
        if result.status == "failed":
            loss = measured.get("train_loss", math.nan)
            return (
                f"Not fitted ({result.reason}): training loss {loss:.3g} "
                f"after {plural(result.steps, 'step')}."
            )
        regime = theory.measured_regime(measured["test_loss"])
        product = theory.boundary_product(settings.n, settings.snr)
        predicted = theory.predicted_regime(settings)
        cut = f"test loss {'up to' if regime == 'benign' else 'above'} {FIGURE_1_THRESHOLD}"
        return (
            f"{regime.capitalize()} overfitting by figure 1b's cut ({cut}): fitted to a training "
            f"loss of {measured['train_loss']:.4f} in {plural(result.steps, 'step')}, with a test "
            f"loss of {measured['test_loss']:.3f} and a test error of "
            f"{percent(measured['test_error'])} on {settings.test_samples} samples. "
            f"N·SNR² = {product:.4g}; "
            f"{_boundary_in_words(settings)}, which predicts {predicted} overfitting. "
            f"{_theory_in_words(settings, measured['output_norm'])}"
        )


def _alike(cell: Cell[P]) -> tuple[object, ...]:
    return (cell.seed, *_shape(cell), cell.parameters.leap > 0)


def _spread(group: Batch[P]) -> Batches[P]:
    """Batches of cells that are alike, each of which spans them all, as a diagram fills in.

    Cells that leap are trained alone: the end of a stride may round differently in a batch.
    """
    settings = group[0].parameters
    size = max(1, min(_CPU_CELLS, _CPU_NUMBERS // math.prod(_matrix(settings))))
    alone = settings.leap > 0 or not _rounds_alike(settings)
    batches = len(group) if alone else -(-len(group) // size)
    return [list(group[first::batches]) for first in range(batches)]


def _rounds_alike(settings: P) -> bool:
    """Whether cells give the same bits together as alone.

    A product is rounded otherwise where there is one sample in all, or where a cell's samples
    begin off a cache line.
    """
    size = 4 if settings.dtype == "float32" else 8
    samples = (settings.n, settings.test_samples)
    return all(n > 1 and n * settings.tokens * size % _CACHE_LINE == 0 for n in samples)


def _matrix(settings: P) -> tuple[int, int]:
    distinct = 2 + settings.n * (settings.tokens - 1)
    return settings.n * settings.tokens, min(2 * distinct, settings.d_h)


def _shape(cell: Cell[P]) -> tuple[object, ...]:
    settings = cell.parameters
    weights = (settings.init_divisor, settings.sigma_h, settings.sigma_v, settings.output_scale)
    sizes = (settings.tokens, settings.d, settings.d_h, settings.d_v, settings.test_samples)
    kinds = (settings.initialisation, settings.sampling, settings.noise, settings.labels)
    return (*sizes, *weights, *kinds, settings.dtype, -settings.n)


def _expected_updates(parameters: P) -> float:
    """About how many updates a cell takes: 5 to 30 times what the theorems' T depends on.

    Samples are fitted by what is learned first, the signal or the strong noise (token 2). The
    paper's cells take 5 times T where that is the noise, 11 where both are equally strong, and up
    to 30 where it is the signal. Their ‖w_O‖² is 1/3.
    """
    signal = parameters.signal_norm**2
    noise = parameters.strong_noise_norm**2 / parameters.n
    common = parameters.learning_rate * parameters.epsilon / 3
    times = min(max(11 * (signal / noise) ** 0.25, 5.0), 30.0) if noise else 30.0
    steps = min(times / (common * max(signal, noise)), float(parameters.max_steps))
    return min(steps, _LEAPS / parameters.leap) if parameters.leap else steps


def _boundary_in_words(parameters: P) -> str:
    boundary = float(theory.predicted_boundary(parameters.strong_noise, parameters.tokens))
    if boundary == theory.FIGURE_1_CONSTANT:
        return f"figure 1's curve is N·SNR² = {boundary:.4g}"
    return f"signal and noise are learned equally fast where it is {boundary:.4g}"


def _theory_in_words(parameters: P, output_norm: float) -> str:
    items = condition_items(parameters, output_norm)
    missed = [item for item in items if item.decades]
    met = f"{len(items) - len(missed)} of {len(items)} items are met"
    theorem = theory.THEOREMS[theory.predicted_regime(parameters)]
    lines = [
        f"Theorem {theorem}'s T, with a constant of 1, is "
        f"{theory.predicted_steps(parameters, output_norm):.3g} steps.",
        f"Condition 4.1, with all constants 1: {met}{'; missed:' if missed else '.'}",
        *(f"  {item}" for item in missed),
    ]
    return "\n".join(lines)


def _batch_bytes() -> float:
    torch = sys.modules.get("torch")  # a device is resolved with it where there may be a GPU
    if torch is None or not torch.cuda.is_available():
        return _GPU_BYTES
    free, _ = torch.cuda.mem_get_info()
    return _SHARE_OF_GPU * float(free)


study = BenignVit()
