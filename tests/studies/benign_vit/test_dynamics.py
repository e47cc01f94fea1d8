"""The coefficients of the paper's proof, its stages, and the figure of both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import overfit_cli
from overfit_cli.core.training import Execution, Training
from overfit_cli.studies.benign_vit.data import draw_samples, draw_weights
from overfit_cli.studies.benign_vit.engine import ForwardPass
from overfit_cli.studies.benign_vit.parameters import (
    BenignVitParameters,
    hidden_logarithm,
    token_scales,
)
from overfit_cli.studies.benign_vit.reference import VisionTransformer, logistic_loss
from overfit_cli.studies.benign_vit.study import study
from overfit_cli.studies.benign_vit.training import VitsTogether
from tests.training import cell_of, train

SMALL: dict[str, object] = {
    "n": 6,
    "snr": 1.5,
    "tokens": 4,
    "d": 40,
    "d_h": 24,
    "d_v": 8,
    "sigma_p": 1.0,
    "sigma_p_tilde": 2.0,
    "init_divisor": 4.0,
    "learning_rate": 0.3,
    "epsilon": 0.1,
    "dtype": "float64",
    "test_samples": 3,
}
SEED = 3


def small(**settings: object) -> BenignVitParameters:
    return BenignVitParameters.model_validate({**SMALL, **settings})


def engine(settings: BenignVitParameters) -> Iterator[tuple[VitsTogether, ForwardPass]]:
    """The engine and its forward passes, step by step; each is changed by the next."""
    cell = cell_of(study, settings, SEED)
    trained, count = VitsTogether([cell], Training(Execution())), 0
    while True:
        now = trained.forward(count)
        yield trained, now
        if trained.ends(now)[0]:
            break
        trained.take_step(now)
        count += 1
    assert count > 5, "too few steps to tell"


class Autograd:
    """The same training by autograd, one step at a time."""

    def __init__(self, settings: BenignVitParameters) -> None:
        self.samples = draw_samples(settings, SEED, "train", settings.n)
        self.x = torch.from_numpy(self.samples.tokens * token_scales(settings)[:, None])
        self.labels = torch.from_numpy(self.samples.labels)
        self.model = VisionTransformer(draw_weights(settings, SEED), torch.float64)
        self.optimiser = torch.optim.SGD(self.model.parameters(), lr=settings.learning_rate)
        self.signals = settings.signal_norm * torch.eye(2, settings.d, dtype=torch.float64)

    def step(self) -> None:
        self.optimiser.zero_grad()
        torch.autograd.backward(logistic_loss(self.labels * self.model(self.x)))
        self.optimiser.step()

    def values(self, tokens: torch.Tensor) -> torch.Tensor:
        return (tokens @ self.model.value @ self.model.output_weight).detach()

    def projected(self, matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The signals' and all tokens' queries (or keys)."""
        return (self.signals @ matrix).detach(), (self.x @ matrix).detach()


NOISES = pytest.mark.parametrize("noise", ["isotropic", "orthogonal"])


@NOISES
def test_gamma_and_rho_are_what_training_added_to_the_values(noise: str) -> None:
    """Definition 5.2, against the weights that autograd trains."""
    settings = small(noise=noise)
    oracle, first = Autograd(settings), None
    start = oracle.values(oracle.signals), oracle.values(oracle.x)
    for trained, _ in engine(settings):
        first = first or values_of(trained)
        now = oracle.values(oracle.signals), oracle.values(oracle.x)
        for value, before, expected, drawn in zip(
            values_of(trained), first, now, start, strict=True
        ):
            torch.testing.assert_close(value - before, expected - drawn)
        oracle.step()


def values_of(trained: VitsTogether) -> tuple[torch.Tensor, torch.Tensor]:
    """The values of both signals, (2,), and of all tokens, (samples, tokens)."""
    return trained.tokens.signal_values()[0], trained.tokens.values()[0]


@NOISES
def test_alpha_and_beta_are_what_a_step_adds_to_queries_and_keys(noise: str) -> None:
    """Definition B.3: Δq = Σ α k and Δk = Σ β q, for both signals and the strong noise."""
    settings = small(noise=noise)
    oracle = Autograd(settings)
    chosen = torch.cat([oracle.signals, oracle.x[:, 1]])  # (2 + samples, features)
    gram = torch.einsum("af,nbf->anb", chosen, oracle.x)
    for trained, now in engine(settings):
        state, weights = trained.state, (oracle.model.query, oracle.model.key)
        by_score = state.update(now, state.eta).by_score[0] / state.s_pair[0]
        alpha, beta = (torch.einsum("anb,nbj->anj", gram, part) for part in (by_score, by_score.mT))
        q, k = (oracle.projected(matrix)[1] for matrix in weights)
        before = [(chosen @ matrix).detach() for matrix in weights]
        oracle.step()
        for matrix, first, coefficients, rows in zip(
            weights, before, (alpha, beta), (k, q), strict=True
        ):
            added = torch.einsum("anj,njw->aw", coefficients, rows)
            torch.testing.assert_close(added, chosen @ matrix.detach() - first)


def test_lemma_5_1_gives_the_step_actually_taken() -> None:
    """γ moves by the lemma's sum, exactly; ρ by no more than its bound, which wants d large."""
    settings = small(noise="orthogonal", d=4000, n=5, sigma_p=0.05, sigma_p_tilde=0.5, epsilon=0.02)
    expected = None
    for trained, now in engine(settings):
        tokens, norm_squared = trained.tokens, float(trained.tokens.output_norm()[0]) ** 2
        gamma, rho = (value / norm_squared for value in values_of(trained))  # and a constant
        rho = rho[:, 1:]
        if expected is not None:
            torch.testing.assert_close(gamma, expected[0])
            assert bool(((rho - expected[1]).abs() <= expected[2]).all())
        slope = torch.sigmoid(-now.margins[0])
        onto = now.attention[0].sum(1)
        rate = settings.learning_rate / (settings.n * settings.tokens)
        positive = tokens.labels[0] > 0
        by_sample = rate * settings.signal_norm**2 * slope * onto[:, 0]
        step = torch.stack([by_sample[positive].sum(), -by_sample[~positive].sum()])
        limit = 2 * rate * settings.sigma_p_tilde**2 * settings.d * slope[:, None] * onto[:, 1:]
        expected = gamma + step, rho.clone(), limit


@pytest.mark.parametrize("snr", [0.2, 5.0])
def test_up_to_t2_no_step_can_move_the_slope_of_the_loss_far_from_a_half(snr: float) -> None:
    """Lemmas D.1, D.6 and E.4: T₂ has a constant of 1, and a step adds η s² ‖w_O‖²/2 at most."""
    shape = {"noise": "orthogonal", "labels": "balanced", "d": 4000, "init_divisor": 1e4}
    drawn = small(**shape, snr=snr)
    learned = max(drawn.signal_norm**2, drawn.strong_noise_norm**2 / drawn.n)
    settings = small(**shape, snr=snr, learning_rate=0.01 / learned)
    logarithm = hidden_logarithm(settings)
    for step, (trained, now) in enumerate(engine(settings)):
        rate = settings.learning_rate * learned * float(trained.tokens.output_norm()[0]) ** 2
        if step > 1 / (rate * logarithm):
            break
        slope = torch.sigmoid(-now.margins[0]).mean()
        assert logarithm * abs(float(slope) - 0.5) < 1 / 8
    assert step > 10


def test_leads_are_those_of_the_lemmas_at_the_worst_sample() -> None:
    """Lemmas 5.2's and E.3's comparisons, from the weights that autograd trains."""
    settings = small()
    [result] = train(study, cell_of(study, settings, SEED), trajectories=True)
    oracle = Autograd(settings)
    for step in range(result.steps + 1):
        values = oracle.values(oracle.x)
        signal_leads, noise_leads = [], []
        for sample, label in zip(values, oracle.labels, strict=True):
            noise = sample[1:].abs().max()
            others = max(sample[0].abs(), sample[2:].abs().max())
            signal_leads.append(float(label * sample[0] / noise))
            noise_leads.append(float(label * sample[1] / others))
        got = result.trajectory
        assert got["signal_lead"][step] == pytest.approx(min(signal_leads))
        assert got["noise_lead"][step] == pytest.approx(min(noise_leads))
        margins = oracle.labels * oracle.model(oracle.x).detach()
        assert got["loss_slope"][step] == pytest.approx(float(torch.sigmoid(-margins).mean()))
        oracle.step()


@pytest.mark.parametrize(
    ("given", "source"),
    [({}, "After Jiang et al. 2024, figure 1a."), ({"label_flip": 0.2}, ""), ({"d": 500}, "")],
)
@pytest.mark.one_in(3)
def test_only_cells_of_the_paper_are_called_its_figure(
    given: dict[str, float], source: str, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    overfit_cli.sweep(
        "benign-vit", n=[4, 6], snr=[5, 20], seeds=1, parameters=given, out=out, jobs=1
    )
    caption = " ".join(overfit_cli.draw("heatmap", out).caption.split())
    assert source in caption
    assert ("After" in caption) == bool(source)


# Section 5.2: W_Q, W_K and W_V promote each other


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
