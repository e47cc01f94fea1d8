"""The study `benign-vit` of Jiang et al. 2024: columns, figures, batches, cost and summary.

Token classes in columns: the signal (token 1), the noise (token 2, the strong one) and the rest
(tokens 3 to M).
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from overfit_cli.core.cell import Batch, Batches, Cell, CellResult, Column
from overfit_cli.core.figure import (
    BOUNDARY,
    CURVES,
    CUTOFF,
    HEATMAP,
    LINES,
    Figure,
    defaults_but,
)
from overfit_cli.core.study import Study
from overfit_cli.core.text import percent, plural
from overfit_cli.core.training import group_cells, shared_values
from overfit_cli.studies.benign_vit import PAPER, theory
from overfit_cli.studies.benign_vit.parameters import (
    NOT_PROJECTED,
    REALISATIONS_KEPT,
    TOKEN_CLASSES,
    BenignVitParameters,
)
from overfit_cli.studies.benign_vit.theory import (
    DEFICIT,
    FIGURE_1_THRESHOLD,
    WIDE_HEADS_LOSS,
    condition_in_words,
    predicted_boundary,
)

if TYPE_CHECKING:
    from overfit_cli.core.cells import Cells

P = BenignVitParameters

_OUTCOME = (
    Column("train_loss", "training loss", "L_S", diverges=True),
    Column("test_loss", "test loss", "L_D", diverges=True),
    Column("test_error", "test error", diverges=True),
    Column("train_margin", "mean training margin", "y f(X)"),
    Column("train_margin_min", "smallest training margin"),
)
_VALUES = (
    Column("value_plus", "value of the + signal", r"\mu_+^\top W_V w_O"),
    Column("value_minus", "value of the − signal", r"\mu_-^\top W_V w_O"),
    Column("value_noise", "mean size of noise's value", r"|\xi_2^\top W_V w_O|"),
)
MEASUREMENTS = (
    *_OUTCOME,
    Column("label_imbalance", "how lopsided the training labels are: 0 is balanced, 1 one class"),
    Column("updates", "gradients computed: one a step, or one for many where `leap` allows"),
    Column("test_margin", "mean test margin"),
    Column("train_attention_signal", "training attention on signal", r"\bar{a}_{\mathrm{train}}"),
    Column("train_attention_noise", "training attention on token 2"),
    Column("test_attention_signal", "test attention on the signal"),
    Column("test_attention_noise", "test attention on token 2"),
    Column(
        "test_signal_attention_min", "attention of the signal on itself, at the worst test sample"
    ),
    Column("test_noise_value_max", "largest size of the value of a test sample's noise token"),
    *_VALUES,
    Column("output_norm", "norm of the fixed output layer", r"\Vert w_O\Vert"),
)
_SYMBOLS = {"signal": "+", "noise": "n,2"}
TRAJECTORY = (
    *_OUTCOME,
    Column("attention_signal", "attention on the signal, of all tokens"),
    Column("attention_noise", "attention on token 2, of all tokens"),
    *_VALUES,
    *(
        Column(
            f"product_{of}_{by}",
            f"score of the {of} query with the {by} key",
            rf"\langle q_{{{_SYMBOLS[of]}}}, k_{{{_SYMBOLS[by]}}}\rangle",
            f"score of {of} with {by}",
        )
        for of, by in itertools.product(_SYMBOLS, repeat=2)
    ),
    Column("loss_slope", "mean slope of the loss", r"-\ell'(y f)"),
    Column("signal_lead", "signal value over the greatest noise value, at the worst sample"),
    Column("noise_lead", "value of token 2 over the greatest other value, at the worst sample"),
    *(
        Column(
            f"attention_{of}_{by}",
            f"attention of {of} on {by}",
            label=f"{of}'s attention to {by}",
        )
        for of, by in itertools.product(TOKEN_CLASSES, repeat=2)
    ),
    *(
        Column(
            f"{wins}_gap_{of}",
            f"score of {of} with {wins} less any other, at the worst token",
        )
        for wins, of in itertools.product(_SYMBOLS, TOKEN_CLASSES)
    ),
    Column("signal_score_rise", "least rise in a step of scores with the signal, fall of others"),
    Column("noise_score_rise", "least rise in a step of scores with token 2 less twice another's"),
    Column("head_norm_least", "square of a query or key over its first, the least token"),
    Column("head_norm_most", "square of a query or key over its first, the most"),
    Column("stray_product_move", "move of products of two queries, two keys, or different samples"),
    Column("score_most", "largest size of a score"),
    Column("score_range_most", "largest range of a token's scores"),
    Column("noise_value_most", "size of a noise token's value, the largest"),
    Column("rest_value_most", "size of a value other than token 2's, the largest"),
    Column("strong_value_least", "value of token 2 times the label, the least sample"),
)


def predicted_curve(data: Cells) -> tuple[str, str]:
    """Return the curve on either side of which a regime is predicted: see `predicted_boundary`.

    The sentence says where its constant comes from, unless it is the paper's.
    """
    strong_noise = data.trained["sigma_p_tilde"] / data.trained["sigma_p"]
    constants = predicted_boundary(strong_noise, data.trained["tokens"])
    if (constants == theory.FIGURE_1_CONSTANT).all():
        return f"n * snr**2 = {theory.FIGURE_1_CONSTANT:.4g}", ""
    return f"n * snr**2 = {theory.BALANCE}", (
        "On that line a first step learns signal and noise equally fast; Theorems 4.1 and 4.2 "
        "leave a constant factor open."
    )


def _has_wide_heads(data: Cells) -> bool:
    """Whether d_h is an axis, with the weights of Condition 4.1."""
    cells = data.trained
    return cells["d_h"].nunique() > 1 and bool((cells["initialisation"] == "condition").all())


_FREE = ("n", "snr", "labels", "test_samples")
_SIZES = ("tokens", "d", "d_h", "d_v", "sigma_p", "sigma_p_tilde")
"""The parameters that differ between figures 1, 3 and 4 of the paper."""

_GRID: dict[str, Any] = {"x": "snr", "y": "n", "value": "test_loss", "equation_of": predicted_curve}
_FIGURE_1: dict[str, Any] = {
    "by": "label_flip,epsilon,sigma_p_tilde,d",
    "reproduces": defaults_but(*_FREE),
}
_MAP: dict[str, Any] = {**_GRID, **_FIGURE_1, "mean": "arithmetic"}
_OF_TWO = [f"{of}_{by}" for of, by in itertools.product(_SYMBOLS, repeat=2)]
_DYNAMICS = ";".join(
    (
        ",".join(f"attention_{pair}" for pair in _OF_TWO),
        ",".join(f"product_{pair}" for pair in _OF_TWO),
        "value_plus,value_minus,value_noise",
    )
)
_IN_LOGS: dict[str, Any] = {"log": frozenset({"x", "value"}), "axes": 0, "fits": _has_wide_heads}

FIGURES = (
    HEATMAP.showing(
        title="Test loss over samples and signal-to-noise ratio",
        source=f"{PAPER}, figure 1a",
        **_MAP,
    ),
    CUTOFF.showing(
        title="Test loss above and below the threshold",
        source=f"{PAPER}, figure 1b",
        threshold=FIGURE_1_THRESHOLD,
        **_MAP,
    ),
    BOUNDARY.showing(
        title="Where the test loss crosses the threshold, and the power law fitted to it",
        threshold=FIGURE_1_THRESHOLD,
        **_GRID,
    ),
    CURVES.showing(
        "dynamics",
        "Attention, inner products and values against gradient steps",
        source=f"{PAPER}, figures 3 and 4",
        reproduces=defaults_but(*_FREE, *_SIZES),
        value=_DYNAMICS,
        by="snr,n",
    ),
    BOUNDARY.showing(
        "dimension",
        "The boundary at each dimension",
        source=f"{PAPER}, Theorems 4.1 and 4.2, and figure 1b",
        threshold=FIGURE_1_THRESHOLD,
        by="d",
        fits=lambda data: data.trained["d"].nunique() > 1,
        **_GRID,
    ),
    LINES.showing(value="test_loss"),
    LINES.showing(
        "wide-heads",
        "Test loss against the training loss, and its limit as heads grow wide",
        x="epsilon",
        value="test_loss",
        by="d_h",
        theory=WIDE_HEADS_LOSS,
        labels={WIDE_HEADS_LOSS: r"limit, $\log(1 + (e^\epsilon - 1)^{(2M - 1) / M^2})$"},
        **_IN_LOGS,
    ),
    LINES.showing(
        "deficit",
        "What training attention on the signal misses of 1, with a formula",
        x="d_h",
        value="1 - train_attention_signal",
        by="tokens",
        theory=DEFICIT,
        labels={
            DEFICIT: r"mean of $N M \Vert w_O\Vert^2 / (2 s^2 \sigma_h^2 d_h V^2)$, "
            r"$V = -\log(e^\epsilon - 1)$"
        },
        **_IN_LOGS,
    ),
    LINES.showing(
        "small-values",
        "Test error against the deviation of W_V, at a test loss of log 2",
        x="sigma_v",
        value="test_error",
        by="d",
        log=frozenset({"x"}),
        fits=lambda data: data.trained["sigma_v"].nunique() > 1,
    ),
    CURVES.showing(title="Training and test loss against gradient steps"),
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
    """A two-layer Vision Transformer on signal and noise tokens."""

    name, version = "benign-vit", 4
    title = "Benign and harmful overfitting of a two-layer Vision Transformer"
    paper, parameters = PAPER, BenignVitParameters
    columns: tuple[Column, ...] = MEASUREMENTS
    trajectory_columns: tuple[Column, ...] = TRAJECTORY
    headline, threshold = "test_loss", FIGURE_1_THRESHOLD
    sides = ("benign", "harmful")
    progress_columns: tuple[str, ...] = (
        "train_loss",
        "test_loss",
        "train_margin_min",
        "attention_signal",
        "attention_noise",
    )
    claims_in = ".claims"
    drawn: Sequence[Figure] = FIGURES

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

        def shape(cell: Cell[P]) -> tuple[object, ...]:
            p = cell.parameters
            weights = (p.sigma_h, p.sigma_v, p.output_scale)
            return (*shared_values(cell, {*NOT_PROJECTED, "n"}), *weights, -p.n)

        if device != "cpu":
            return group_cells(
                cells,
                lambda cell: (cell.seed // REALISATIONS_KEPT, *shape(cell)),
                self.memory,
                _batch_bytes(),
            )

        def alike(cell: Cell[P]) -> tuple[object, ...]:
            return (cell.seed, *shape(cell), cell.parameters.leap > 0)

        groups = itertools.groupby(sorted(cells, key=alike), key=alike)
        return [batch for _, group in groups for batch in _spread(list(group))]

    def cost(self, cell: Cell[P]) -> float:
        p = cell.parameters
        rows, width = _matrix(p)
        step = rows * rows * width + _STEP_OVERHEAD
        test = p.test_samples * p.tokens * rows * width + _CELL_OVERHEAD
        return 2.0 * (_expected_updates(p) * step + test)

    def probe(self, cell: Cell[P]) -> Cell[P]:
        if _expected_updates(cell.parameters) <= _PROBED_UPDATES:
            return cell
        return cell.with_at_most(max_steps=_PROBED_UPDATES, leap=0.0)

    def memory(self, cell: Cell[P]) -> float:
        p = cell.parameters
        rows, test_rows = p.capacity * p.tokens, p.test_samples * p.tokens
        features, width, values = p.d, p.d_h, p.d_v
        if p.sampling == "law":
            features = (p.capacity + p.test_samples) * (p.tokens - 1) + 2
            width, values = min(2 * features, p.d_h), 1
        weights = features * (2 * width + values)
        projections = (rows + test_rows) * (2 * features + 3 * width + 2 * rows)
        return 8.0 * (weights + projections + p.n * p.tokens * 6 * width)

    def summary(self, result: CellResult[P]) -> str:
        p, measured = result.cell.parameters, result.measurements
        steps = plural(result.steps, "step")
        if result.status == "failed":
            loss = measured.get("train_loss", math.nan)
            return f"Not fitted ({result.reason}): training loss {loss:.3g} after {steps}."
        regime, at = theory.measured_regime(measured["test_loss"]), FIGURE_1_THRESHOLD
        boundary = float(predicted_boundary(p.strong_noise, p.tokens))
        curve = "signal and noise are learned equally fast where it is"
        if boundary == theory.FIGURE_1_CONSTANT:
            curve = "figure 1's curve is N·SNR² ="
        return (
            f"{regime.capitalize()} overfitting by figure 1b's cut (test loss "
            f"{'up to' if regime == 'benign' else 'above'} {at}): fitted to a training "
            f"loss of {measured['train_loss']:.4f} in {steps}, with a test loss of "
            f"{measured['test_loss']:.3f} and a test error of {percent(measured['test_error'])} "
            f"on {p.test_samples} samples. N·SNR² = {theory.boundary_product(p.n, p.snr):.4g}; "
            f"{curve} {boundary:.4g}, which predicts {theory.predicted_regime(p)} overfitting. "
            f"{theory.in_words(p, measured['output_norm'])}"
        )


def _spread(group: Batch[P]) -> Batches[P]:
    """Batches of cells that are alike, each of which spans them all, as a diagram fills in.

    Cells that leap are trained alone: the end of a stride may round differently in a batch.
    """
    p = group[0].parameters
    size = max(1, min(_CPU_CELLS, _CPU_NUMBERS // math.prod(_matrix(p))))
    alone = p.leap > 0 or not _rounds_alike(p)
    batches = len(group) if alone else -(-len(group) // size)
    return [list(group[first::batches]) for first in range(batches)]


def _rounds_alike(p: P) -> bool:
    """Whether cells give the same bits together as alone.

    A product is rounded otherwise where there is one sample in all, or where a cell's samples
    begin off a cache line.
    """
    size = 4 if p.dtype == "float32" else 8
    return all(n > 1 and n * p.tokens * size % _CACHE_LINE == 0 for n in (p.n, p.test_samples))


def _matrix(p: P) -> tuple[int, int]:
    distinct = 2 + p.n * (p.tokens - 1)
    return p.n * p.tokens, min(2 * distinct, p.d_h)


def _expected_updates(p: P) -> float:
    """About how many updates a cell takes: 5 to 30 times what the theorems' T depends on.

    Samples are fitted by what is learned first, the signal or the strong noise (token 2). The
    paper's cells take 5 times T where that is the noise, 11 where both are equally strong, and up
    to 30 where it is the signal. Their ‖w_O‖² is 1/3.
    """
    signal, noise = p.signal_norm**2, p.strong_noise_norm**2 / p.n
    times = min(max(11 * (signal / noise) ** 0.25, 5.0), 30.0) if noise else 30.0
    rate = p.learning_rate * p.epsilon / 3 * max(signal, noise)
    steps = min(times / rate, float(p.max_steps))
    return min(steps, _LEAPS / p.leap) if p.leap else steps


def _batch_bytes() -> float:
    torch = sys.modules.get("torch")  # a device is resolved with it where there may be a GPU
    if torch is None or not torch.cuda.is_available():
        return _GPU_BYTES
    free, _ = torch.cuda.mem_get_info()
    return _SHARE_OF_GPU * float(free)


study = BenignVit()
