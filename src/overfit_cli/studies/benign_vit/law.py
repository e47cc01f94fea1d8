"""What is drawn for any d and d_h: the law of the direct draws, in as few coordinates as it takes.

Turn the feature space so that the two signals and then each noise token in turn bring in at most
one new axis. A token then has as many coordinates as there are tokens before it, plus one: its
standard normal parts along their axes and, along its own, the length that is left, which is chi
distributed. That is Bartlett's factor of a Wishart matrix. The axes depend on the tokens alone, and
Gaussian weights have the same law along any axes: **here the weights must be Gaussian**. Their rows
[W_Q; W_K] along those axes are normal vectors of d_h coordinates, turned in the same way.

Training sees inner products only, and turning leaves those as they are. So what is returned has the
shape of a direct draw in few dimensions, and is trained like one. Test tokens come first, so that
more training samples extend fewer.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from overfit_cli.rng import named_rng
from overfit_cli.studies.benign_vit.data import Draws, Floats, Samples, Weights, labelled
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters


def bartlett_rows(
    normals: np.random.Generator,
    lengths: np.random.Generator,
    rows: int,
    dimension: int,
    before: int = 0,
) -> Floats:
    """Draw standard normal vectors in `dimension` dimensions, up to a rotation.

    The result L is lower triangular: row i has standard normal parts along the axes of the
    `before` + i rows before it, and along its own the square root of a chi-square number with
    `dimension` − `before` − i degrees of freedom. Then L Lᵀ has the law of Z Zᵀ with Z of shape
    (rows, dimension), entries standard normal.

    Args:
        normals, lengths: where to draw from; more rows extend fewer.
        rows: how many vectors.
        dimension: theirs.
        before: how many vectors have brought in an axis before them.

    Returns:
        Shape (rows, min(before + rows, dimension)).
    """
    width = min(before + rows, dimension)
    factor = np.zeros((rows, width))
    for row in range(rows):
        own = before + row
        factor[row, :own] = normals.standard_normal(min(own, width))
        if own < width:
            factor[row, own] = np.sqrt(lengths.chisquare(dimension - own))
    return factor


def draw_in_law(parameters: BenignVitParameters, seed: int) -> Draws:
    """Draw samples and weights in `noise_tokens` + 2 coordinates, whatever d and d_h are."""
    test_tokens = parameters.test_samples * (parameters.tokens - 1)
    return Draws(
        weights_in_law(parameters, seed),
        samples_in_law(parameters, seed, "train", parameters.n, test_tokens),
        samples_in_law(parameters, seed, "test", parameters.test_samples, 0),
    )


def samples_in_law(
    parameters: BenignVitParameters,
    seed: int,
    which: Literal["train", "test"],
    samples: int,
    before: int,
) -> Samples:
    """Return samples whose tokens' own axes come after the first `before` noise axes."""
    rows = samples * (parameters.tokens - 1)
    noise = np.zeros((rows, parameters.noise_tokens + 2))
    if parameters.noise == "isotropic":
        noise[:, :2] = named_rng(seed, which, "noise along signals").standard_normal((rows, 2))
    across = bartlett_rows(
        named_rng(seed, which, "noise"),
        named_rng(seed, which, "noise lengths"),
        rows,
        parameters.d - 2,
        before,
    )
    noise[:, 2 : 2 + across.shape[1]] = across
    return labelled(noise.reshape(samples, parameters.tokens - 1, -1), seed, which)


def weights_in_law(parameters: BenignVitParameters, seed: int) -> Weights:
    """Return Gaussian weights along the tokens' axes.

    Queries' and keys' rows take turns, axis by axis, so that further axes extend them. Of W_V and
    w_O only W_V w_O is seen, a normal vector.
    """
    axes = parameters.noise_tokens + 2
    stacked = bartlett_rows(
        named_rng(seed, "init", "query and key"),
        named_rng(seed, "init", "query and key lengths"),
        2 * axes,
        parameters.d_h,
    )
    return Weights(
        query=stacked[0::2],
        key=stacked[1::2],
        value=named_rng(seed, "init", "value").standard_normal((axes, 1)),
        output=np.ones(1),
    )
