"""Section 5: which kernel is faster and more accurate (5.3.1), and whose landscape is rougher."""

from __future__ import annotations

import pandas as pd

from overfit_cli.claims.cells import require_done
from overfit_cli.claims.papers import Claims, on
from overfit_cli.core.classification import COLUMNS
from overfit_cli.stats.pairs import best_of_sweep
from overfit_cli.studies.attention_kernel.claims.cells import THE_GAUSSIAN
from overfit_cli.studies.attention_kernel.classifier_parameters import (
    KernelLandscapeParameters,
    KernelPathfinderParameters,
    KernelTextParameters,
)
from overfit_cli.studies.attention_kernel.classifiers import KernelLandscape

SOURCE = "Song et al. 2024"
text = Claims("text", SOURCE, KernelTextParameters, COLUMNS, "curves")
pathfinder = Claims("pathfinder", SOURCE, KernelPathfinderParameters, COLUMNS, "curves")
landscape = Claims(
    "landscape", SOURCE, KernelLandscapeParameters, KernelLandscape.columns, "landscape"
)
CLAIMS = {each.prefix: each.claims for each in (text, pathfinder, landscape)}

IMDB = on("kernel-fig2", profile="paper", learning_rate=1e-4)
LRA = on("kernel-fig3", profile="paper", learning_rate=2e-4)
ALIKE = (
    "both kernels have section 5.2's model, batch, optimiser and step size, and the same data; the "
    f"paper's 20,000 epochs are read as steps; {THE_GAUSSIAN}"
)


def _less(column: str, first: str, second: str, at: str = "") -> str:
    return f"{column}[kernel={first}{at}] - {column}[kernel={second}{at}]"


# Figures 2 and 3

for claims, name, where, cells in (
    (text, "imdb", "on IMDb, with SGD at 1e-4 for both kernels", IMDB),
    (pathfinder, "lra", "on LRA's Pathfinder images, with Adam at 2e-4 for both kernels", LRA),
):
    place = f"section 5.3.1, figure {2 if claims is text else 3}"
    claims.paper(
        f"{name}-gaussian-faster",
        place,
        f"Gaussian attention converges faster than softmax attention {where}: its test loss is "
        "lower, averaged over the steps.",
        f"mean of {_less('mean_test_loss', 'gaussian', 'softmax')} < 0 with at least 5 seeds",
        on=cells,
        hypotheses=ALIKE,
    )
    claims.paper(
        f"{name}-gaussian-more-accurate",
        place,
        f"Gaussian attention ends at a higher test accuracy than softmax attention {where}.",
        f"mean of {_less('test_accuracy', 'gaussian', 'softmax')} > 0 with at least 5 seeds",
        on=cells,
        hypotheses=ALIKE,
    )
text.ours(
    "gaussian-faster",
    "section 5.3.1, figure 2",
    "Gaussian attention converges faster than softmax attention on generated reviews, which stand "
    "in for IMDb: its test loss is lower, averaged over 300 steps, each kernel at the best of "
    "three step sizes.",
    f"mean of {_less('mean_test_loss', 'gaussian', 'softmax', ', best learning_rate')} < 0 "
    "with at least 5 seeds",
    on=on("kernel-fig2", training_steps=300, learning_rate=(1e-4, 3e-4, 1e-3)),
    among=3,
)


def _distances_from_median(rows: pd.DataFrame) -> pd.DataFrame:
    """Return how far the accuracy lies from its kernel's median at the same step, on average."""
    rows = rows[rows["step"] > 0]
    accuracy = rows["test_accuracy"].astype(float)
    middle = accuracy.groupby([rows["kernel"], rows["step"]]).transform("median")
    apart = (accuracy - middle).abs().groupby([rows["kernel"], rows["seed"]])
    ends = rows.drop_duplicates(["kernel", "seed"]).set_index(["kernel", "seed"])
    return ends.assign(distance=apart.mean(), step=0).reset_index()


pathfinder.paper(
    "lra-gaussian-steadier-epochs",
    "section 5.3.1, figure 3",
    "At the same epoch, on average over epochs, softmax attention's test accuracy lies farther "
    "from its median over repeats than Gaussian attention's does, on LRA's Pathfinder images, with "
    "Adam at 2e-4 for both kernels.",
    f"mean of {_less('distance', 'softmax', 'gaussian')} > 0 with at least 6 seeds",
    on=LRA,
    cells=_distances_from_median,
    reads="trajectories",
    hypotheses=ALIKE,
)


def _better_kernel(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of the more accurate kernel, each at its best step size."""
    best = best_of_sweep(require_done(cells), "learning_rate", ["kernel"], "mean_test_loss")
    accuracy = best["test_accuracy"].astype(float).groupby(best["kernel"]).mean()
    return best[best["kernel"] == accuracy.idxmax()]


pathfinder.ours(
    "above-shortcut",
    "section 5.3.1, figure 3",
    "On generated Pathfinder images, which stand in for LRA's, the better kernel at the best of "
    "three step sizes learns what the best rule doesn't know that sees the discs' places alone.",
    "mean of test_accuracy - shortcut_accuracy > 0 with at least 5 seeds",
    on=on("kernel-fig3", learning_rate=(2e-4, 1e-3, 3e-3)),
    cells=_better_kernel,
    among=3,
)

# Figure 4


def _with_least_curvature(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells, in which a flat surface has a curvature that a ratio can be taken of."""
    return cells.assign(rms_laplacian=cells["rms_laplacian"].astype(float).clip(lower=1e-30))


def _log_ratio(number: str) -> str:
    softmax, gaussian = (number.format(kernel) for kernel in ("softmax", "gaussian"))
    return f"log({softmax} / {gaussian}) / log(2) > 0 on average with at least 6 seeds"


for name, networks, places in (
    (
        "real-",
        "trained as in section 5.2 on IMDb and on LRA's Pathfinder images",
        tuple(on(f"kernel-fig4{task}", profile="paper") for task in ("", "-pathfinder")),
    ),
    ("", "trained on generated reviews, which stand in for IMDb", on("kernel-fig4")),
):
    for measure, statement, number in (
        (
            "minima",
            "Softmax attention's landscape has more local minima than Gaussian attention's",
            "(interior_minima[kernel={}] + 1)",
        ),
        ("curvature", "Gaussian attention's landscape is flatter", "rms_laplacian[kernel={}]"),
    ):
        (landscape.paper if name else landscape.ours)(
            f"{name}{measure}",
            "section 5.3.2, figure 4",
            f"{statement}, around networks {networks}, on average over pairs of directions.",
            _log_ratio(number),
            on=places,
            cells=_with_least_curvature,
            hypotheses="both kernels go on from the same network, with one step size and batch",
        )
