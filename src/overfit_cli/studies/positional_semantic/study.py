"""The study `positional-semantic`: Cui et al. 2024."""

from __future__ import annotations

from overfit_cli.core.cell import Cell, Column
from overfit_cli.core.figure import CURVES, HEATMAP, LINES, drawn_in
from overfit_cli.core.study import Study
from overfit_cli.core.training import BYTES_OF_LIBRARIES, Together
from overfit_cli.studies.positional_semantic import PAPER
from overfit_cli.studies.positional_semantic.parameters import Parameters

_AT_STEPS = (
    Column(
        "theta", "overlap with the teacher, |⟨Q⋆, Q⟩| / d", r"\theta", "overlap with the teacher"
    ),
    Column("m", "overlap with the positions, |⟨1, Q⟩| / d", "m", "overlap with the positions"),
    Column("test_error", "error on fresh samples, ½ ‖f − y‖² / d", diverges=True),
    Column("train_loss", "training loss with the penalty", label="training loss", diverges=True),
    Column("linear_test_error", "test error of the best linear map"),
    Column(
        "slope",
        "length of the gradient over the penalty's, ‖∇‖ / λ‖Q‖",
        label="gradient over the penalty's",
    ),
    Column("q", "squared length of the weights, ‖Q‖² / d", "q", "squared length of weights"),
)
COLUMNS = (
    *_AT_STEPS,
    Column("replica_theta", "θ for many features", r"\theta_\infty"),
    Column("replica_m", "m for many features", r"m_\infty"),
    Column("replica_test_error", "test error for many features", label="limit of the test error"),
    Column(
        "replica_linear_error",
        "linear test error for many features and samples",
        label="limit of the linear error",
    ),
    Column("replica_loss", "training loss for many features", label="limit of the training loss"),
)


class PositionalSemantic(Study[Parameters]):
    """Tied dot-product attention that fits a teacher of positions and meaning."""

    name, version = "positional-semantic", 1
    title = "Positional and semantic learning in tied dot-product attention"
    paper, parameters = PAPER, Parameters
    headline = "test_error"
    columns = COLUMNS
    trajectory_columns = _AT_STEPS
    progress_columns = ("train_loss", "theta", "m", "test_error")
    claims_in = ".claims"
    together = Together[Parameters](
        {"omega", "start", "weight_decay", "learning_rate", "mixing"},
        size=lambda p: 2 * p.n * p.rank,  # scores
        cpu=2e6,
        cuda=2e8,
    )
    shows = (
        "After {steps} attention has learned meaning by θ {theta:.3g} and positions by m {m:.3g}. "
        "The test error is {test_error:.3g}, the best linear map's {linear_test_error:.3g}."
    )
    drawn = (
        *(
            drawn_in(f"{__package__}.figures", name, title, preset, source=f"{PAPER}")
            for name, title, preset in (
                ("phase", "Losses, overlaps and error over ω and α", "positional-phase"),
                ("overlaps", "θ, m and test error against α, by ω", "positional-published"),
                ("branches", "Training losses of both starts against α", "positional-published"),
            )
        ),
        LINES.showing(
            "sizes",
            "The product of both overlaps, of which one vanishes, against d",
            source=f"{PAPER}, Result 4.2",
            labels={
                "theta * m": r"product of overlaps $\theta m$",
                "d**-0.5": r"a fall as $1/\sqrt{d}$",
            },
            axes=0,
            x="d",
            value="theta * m",
            by="start",
            theory="d**-0.5",
            log=frozenset({"x", "value"}),
        ),
        HEATMAP.showing(x="alpha", y="omega", by="start"),
        LINES.showing(x="alpha", value="theta"),
        CURVES,
    )

    def cost(self, cell: Cell[Parameters]) -> float:
        p = cell.parameters
        return p.training_steps * (2.0 * p.n * p.rank * _features(p) + 1e5)

    def probe(self, cell: Cell[Parameters]) -> Cell[Parameters]:
        return cell.with_at_most(training_steps=200)

    def memory(self, cell: Cell[Parameters]) -> float:
        p = cell.parameters
        drawn = p.d if p.sampling == "direct" else _features(p)
        return BYTES_OF_LIBRARIES + 8.0 * (4 * 2 * p.n * drawn + 60 * p.test_samples)


def _features(p: Parameters) -> int:
    return min(p.d, 2 * p.n + 2 * p.rank + 1)


study = PositionalSemantic()
