"""Section 5.2 of Jiang et al. 2024: W_Q, W_K and W_V promote each other."""

from __future__ import annotations

import pytest
import torch

from overfit_cli.studies.benign_vit.reference import VisionTransformer, logistic_loss
from overfit_cli.studies.benign_vit.vit.data import draw_samples, draw_weights
from overfit_cli.studies.benign_vit.vit.parameters import BenignVitParameters, token_scales

SETTINGS = BenignVitParameters(
    n=10,
    snr=3.0,
    tokens=4,
    d=100,
    d_h=60,
    d_v=8,
    sigma_p=1.0,
    sigma_p_tilde=2.0,
    noise="orthogonal",
    labels="balanced",
    init_divisor=4.0,
    learning_rate=0.002,
    dtype="float64",
)
STEPS = 200


def trained(seed: int, still: tuple[str, ...] = ()) -> dict[str, float]:
    """Train the plain model with some matrices held still.

    Returns:
        `attention`, that of all tokens on their sample's signal, and `ratio`, what the signals'
        values gained over what token 2's did, in the mean over samples.
    """
    samples = draw_samples(SETTINGS, seed, "train", SETTINGS.n)
    x = torch.from_numpy(samples.tokens * token_scales(SETTINGS)[:, None])
    y = torch.from_numpy(samples.labels)
    model = VisionTransformer(draw_weights(SETTINGS, seed), torch.float64)
    for name in still:
        getattr(model, name).requires_grad_(False)

    def values() -> torch.Tensor:
        return (y[:, None] * (x @ model.value @ model.output_weight)).detach()  # (n, tokens)

    first = values()
    moving = [weights for weights in model.parameters() if weights.requires_grad]
    optimiser = torch.optim.SGD(moving, lr=SETTINGS.learning_rate)
    for _ in range(STEPS):
        optimiser.zero_grad()
        torch.autograd.backward(logistic_loss(y * model(x)))
        optimiser.step()
    gained = (values() - first).mean(0)
    return {
        "attention": float(model.attention(x)[:, :, 0].detach().mean()),
        "ratio": float(gained[0] / gained[1]),
    }


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.one_in(3)
def test_each_learns_less_where_the_other_is_held_still(seed: int) -> None:
    together = trained(seed)
    even = trained(seed, still=("query", "key"))
    pointless = trained(seed, still=("value",))
    assert together["ratio"] > 2 * even["ratio"] > 0, "values follow attention"
    assert together["attention"] > 1.3 * pointless["attention"], "attention follows values"
    assert together["attention"] > 0.7
