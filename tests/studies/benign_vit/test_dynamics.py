"""The coefficients of the proof, its stages, and the worst of every token, sample and key."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from overfit_cli.core.arrays import Floats
from overfit_cli.core.training import Execution, Training
from overfit_cli.studies.benign_vit.claims.stages import ROUNDING
from overfit_cli.studies.benign_vit.data import draw_samples, draw_weights
from overfit_cli.studies.benign_vit.engine import ForwardPass
from overfit_cli.studies.benign_vit.parameters import TOKEN_CLASSES, hidden_logarithm, token_scales
from overfit_cli.studies.benign_vit.reference import VisionTransformer, logistic_loss
from overfit_cli.studies.benign_vit.stages import Stages, numbers, outgrown, until_stage_2_ends
from overfit_cli.studies.benign_vit.study import study
from overfit_cli.studies.benign_vit.theory import Regime
from overfit_cli.studies.benign_vit.training import VitsTogether
from overfit_cli.studies.benign_vit.true_scale import logged_row
from tests.judged import check_undecided
from tests.studies.benign_vit.cells import P, frame, in_law, settings, small
from tests.training import cell_of, train

SEED = 3


def engine(settings: P) -> Iterator[tuple[VitsTogether, ForwardPass]]:
    """The engine and its forward passes, step by step; each is changed by the next."""
    trained = VitsTogether([cell_of(study, settings, SEED)], Training(Execution()))
    for count in itertools.count():
        now = trained.forward(count)
        yield trained, now
        if trained.ends(now)[0]:
            break
        trained.take_step(now)
    assert count > 5, "too few steps to tell"


class Autograd:
    """The same training by autograd, one step at a time."""

    def __init__(self, settings: P, seed: int = SEED) -> None:
        samples = draw_samples(settings, seed, "train", settings.n)
        self.x = torch.from_numpy(samples.tokens * token_scales(settings)[:, None])
        self.labels = torch.from_numpy(samples.observed(settings.label_flip))
        self.model = VisionTransformer(draw_weights(settings, seed), torch.float64)
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


@pytest.mark.parametrize("noise", ["isotropic", "orthogonal"])
def test_gamma_and_rho_are_what_training_added_to_the_values(noise: str) -> None:
    """Definition 5.2, against the weights that autograd trains."""
    settings = small(noise=noise)
    oracle, starts = Autograd(settings), None
    for trained, _ in engine(settings):
        values = (*values_of(trained), oracle.values(oracle.signals), oracle.values(oracle.x))
        starts = starts or values
        gamma, rho, *expected = (now - start for now, start in zip(values, starts, strict=True))
        torch.testing.assert_close([gamma, rho], expected)
        oracle.step()


def values_of(trained: VitsTogether) -> tuple[torch.Tensor, torch.Tensor]:
    """The values of both signals, (2,), and of all tokens, (samples, tokens)."""
    return trained.tokens.signal_values()[0], trained.tokens.values()[0]


@pytest.mark.parametrize("noise", ["isotropic", "orthogonal"])
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


# The worst of every token, sample and key, by loops over the weights that autograd trains


def scores_of(oracle: Autograd) -> Floats:
    """⟨q_i, k_j⟩ of every sample, (samples, tokens, tokens)."""
    weights = oracle.model.query, oracle.model.key
    q, k = (oracle.projected(matrix)[1] for matrix in weights)
    return np.array([[[float(a @ b) for b in ks] for a in qs] for qs, ks in zip(q, k, strict=True)])


def heads(oracle: Autograd) -> tuple[Floats, Floats]:
    """Squares of queries and keys of distinct tokens; and products of which none is a score.

    These are of two queries, of two keys, and of a query and a key that meet in no sample.
    """
    projected = []
    for matrix in (oracle.model.query, oracle.model.key):
        signals, tokens = oracle.projected(matrix)
        noise = [(str(n), row) for n, sample in enumerate(tokens) for row in sample[1:]]
        projected.append([("+", signals[0]), ("-", signals[1]), *noise])
    pairs = [pair for kind in projected for pair in itertools.combinations(kind, 2)]
    pairs += [
        (a, b)
        for a, b in itertools.product(*projected)
        if a[0] != b[0] and (a[0] in "+-") == (b[0] in "+-")
    ]
    squares = [float(row @ row) for kind in projected for _, row in kind]
    return np.array(squares), np.array([float(a @ b) for (_, a), (_, b) in pairs])


def values_row(oracle: Autograd) -> dict[str, float]:
    """Values of the worst token, and Lemmas 5.2's and E.3's comparisons."""
    signals, values = (oracle.values(part).tolist() for part in (oracle.signals, oracle.x))
    rest = [abs(v) for sample in values for v in sample[2:]] + [abs(v) for v in signals]
    labels = oracle.labels.tolist()
    strong = [y * sample[1] for y, sample in zip(labels, values, strict=True)]
    leads = list[tuple[float, float]]()
    for y, (_, *noise) in zip(labels, values, strict=True):
        signal, (first, *others) = y * signals[y < 0], noise
        rivals = max([abs(signal), *map(abs, others)])
        leads.append((signal / max(map(abs, noise)), y * first / rivals))
    margins = oracle.labels * oracle.model(oracle.x).detach()
    return {
        "value_plus": signals[0],
        "value_minus": signals[1],
        "value_noise": float(np.mean([abs(sample[1]) for sample in values])),
        "noise_value_most": max(abs(v) for sample in values for v in sample[1:]),
        "rest_value_most": max(rest),
        "strong_value_least": min(strong),
        "signal_lead": min(lead for lead, _ in leads),
        "noise_lead": min(lead for _, lead in leads),
        "loss_slope": float(torch.sigmoid(-margins).mean()),
    }


def products_row(oracle: Autograd) -> dict[str, float]:
    """Definition 5.1's inner products of the + signal and of token 2, means over its samples."""
    (q, queries), (k, keys) = map(oracle.projected, (oracle.model.query, oracle.model.key))
    plus = oracle.x[:, 0].argmax(1) == 0  # e₁ or e₂
    return {
        "product_signal_signal": float(q[0] @ k[0]),
        "product_signal_noise": float((keys[plus, 1] @ q[0]).mean()),
        "product_noise_signal": float((queries[plus, 1] @ k[0]).mean()),
        "product_noise_noise": float((queries[:, 1] * keys[:, 1]).sum(-1).mean()),
    }


def scores_row(scores: Floats, before: Floats | None) -> dict[str, float]:
    """Gaps, rises and sizes of the worst score."""
    m, row = scores.shape[1], dict[str, float]()
    classes = {"signal": [0], "noise": [1], "rest": [*range(2, m)]}
    for (name, wins), (source, of) in itertools.product(
        (("signal", 0), ("noise", 1)), classes.items()
    ):
        gaps = [s[i, wins] - s[i, j] for s in scores for i in of for j in range(m) if j != wins]
        row |= {f"{name}_gap_{source}": min(gaps)} if gaps else {}
    row["score_most"] = max(abs(each) for each in scores.ravel())
    row["score_range_most"] = max(max(line) - min(line) for sample in scores for line in sample)
    if before is not None:
        moved = [line for sample in scores - before for line in sample]
        signal = [each for line in moved for each in (line[0], *-line[1:])]
        noise = [line[1] - 2 * line[j] for line in moved for j in range(m) if j != 1]
        row |= {"signal_score_rise": min(signal), "noise_score_rise": min(noise)}
    return row


@pytest.mark.parametrize(
    "settings", [small(), small(noise="orthogonal", label_flip=0.3), small(tokens=2, epsilon=0.02)]
)
def test_the_worst_token_is_that_of_loops_over_trained_weights(settings: P) -> None:
    oracle, last, before = Autograd(settings), None, None
    squares, drawn = heads(oracle)
    for trained, now in engine(settings):
        row, scores = logged_row(trained.tokens, now, last), scores_of(oracle)
        growth, products = heads(oracle)[0] / squares, heads(oracle)[1]
        expected = values_row(oracle) | products_row(oracle) | scores_row(scores, before)
        expected |= {"head_norm_least": growth.min(), "head_norm_most": growth.max()}
        expected["stray_product_move"] = np.abs(products - drawn).max()
        assert {name: row[name] for name in expected} == pytest.approx(expected, abs=1e-9)
        last, before = now, scores
        oracle.step()


@pytest.mark.parametrize("side", ["benign", "harmful"])
def test_scores_round_by_less_than_a_claim_allows(side: Regime) -> None:
    [parameters, *_] = settings(f"theorem-dynamics-{side}")
    for trained, now in itertools.islice(engine(parameters), 0, 100, 33):
        heads = trained.tokens.queries_and_keys()
        q, k = (part[0].numpy().astype(np.longdouble) for part in heads)
        exact = np.einsum("nia,nja->nij", q, k)
        wrong = np.abs(now.scores[0].numpy() - exact).max() / np.abs(exact).max()
        assert 0 < wrong < float(ROUNDING) / 6


def test_lengths_of_tokens_and_step_sizes_are_one_scale() -> None:
    shape: dict[str, Any] = {"n": 6, "tokens": 3, "d": 10**6, "d_h": 10**6, "snr": 2.0}
    shape |= {"noise": "orthogonal", "noise_per": "token", "dtype": "float64", "epsilon": 0.1}
    shape |= {"max_steps": 10**9, "leap": 0.05, "output_scale": 2.0}
    first = in_law(**shape, sigma_p=1.0, sigma_p_tilde=4.0, learning_rate=9e-4)
    longer = in_law(**shape, sigma_p=3.0, sigma_p_tilde=12.0, learning_rate=1e-4)
    short, long = train(study, cell_of(study, first), cell_of(study, longer))
    assert short.steps == long.steps
    assert short.measurements["test_loss"] == pytest.approx(long.measurements["test_loss"])
    assert short.steps > 50


# The numbers of the proofs' stages, on logged steps that are written by hand

PART = np.arange(0.0, 401.0, 8.0)
"""Logged steps, in units of T₁/40."""

STAGE_2, STAGE_3 = 40.0, 200.0
SINCE_2, SINCE_3 = ((PART - start).clip(0) / STAGE_3 for start in (STAGE_2, STAGE_3))
BEFORE = PART <= STAGE_2


@functools.cache
def cell(side: Regime) -> pd.DataFrame:
    """A cell of a preset, with a key."""
    return frame(f"theorem-dynamics-{side}")[:1].assign(key="k")


def steps_of(side: Regime, **columns: Any) -> pd.DataFrame:
    """Logged steps with three stages, even attention over M tokens, and what is given.

    The lead passes 3M at T₁, where stage 2 begins, and the loss's slope falls where stage 3 does.
    """
    first = cell(side)
    m = float(first["tokens"].iloc[0])
    even = {"signal": 1 / m, "noise": 1 / m, "rest": (m - 2) / m}
    unknown = pd.DataFrame({"step": [0], "loss_slope": [0.5], "signal_lead": 0, "noise_lead": 0})
    t1 = Stages.of(first.drop(columns="steps").merge(unknown, how="cross")).t1()
    logs = pd.DataFrame({"part": PART, "step": t1 * (PART / STAGE_2)}).assign(
        signal_lead=3 * m * PART / STAGE_2,
        noise_lead=3 * m * PART / STAGE_2,
        loss_slope=np.where(PART < STAGE_3, 0.5, 0.1),
        **{f"attention_{a}_{b}": even[b] for a in TOKEN_CLASSES for b in TOKEN_CLASSES},
    )
    last = logs["step"].iloc[-1]
    return first.assign(steps=last).merge(logs, how="cross").assign(**columns)


def gaps(wins: str, *powers: float) -> Mapping[str, Any]:
    return {
        f"{wins}_gap_{name}": np.log1p(SINCE_2**power)
        for name, power in zip(TOKEN_CLASSES, powers, strict=True)
    }


def late(power: float) -> np.ndarray:
    """What grows as the logarithm of a power of the steps of stage 3."""
    return np.log1p(SINCE_3**power)


SIGNAL, NOISE, PRODUCT = "product_signal", "product_noise", np.log1p(SINCE_2**3)
VALUES = {"value_plus": SINCE_2**2, "value_minus": -(SINCE_2**1.5)}
NORMS = {"head_norm_most": 1.3, "head_norm_least": np.where(PART > 300, 0.5, 1)}
MORE = np.where(BEFORE, 0.4, 0.9)
FALLS, RISES = np.where(PART > 300, 0.2, 1), np.where(PART < 200, 0, 1)


@pytest.mark.parametrize(
    ("side", "name", "columns", "expected"),
    [
        ("benign", "lead", {}, 1),
        ("harmful", "lead", {}, 1),
        ("benign", "stage_3_lead", {}, STAGE_3 / STAGE_2),
        ("benign", "stage_3_lead", {"signal_lead": np.where(PART < 300, 99, -1)}, 1e-12 / 9),
        ("benign", "slower_value", VALUES, 1.5),
        ("benign", "faster_value", VALUES, 2),
        ("benign", "slower_value", {**VALUES, "value_minus": -1.0}, 0),
        ("harmful", "slower_value", {"value_noise": SINCE_2**3}, 3),
        ("benign", "stage_3_value", {"value_plus": late(2), "value_minus": -late(1.5)}, 1.5),
        ("harmful", "stage_3_value", {"strong_value_least": late(2)}, 2),
        ("benign", "signal_query", {f"{SIGNAL}_signal": PRODUCT, f"{SIGNAL}_noise": 0}, 3),
        ("harmful", "noise_query", {f"{NOISE}_signal": 0, f"{NOISE}_noise": PRODUCT}, 3),
        ("benign", "every_query", gaps("signal", 4, 2, 3), 2),
        ("harmful", "every_query", gaps("noise", 4, 3, 2), 2),
        ("benign", "attention_off", {"attention_noise_signal": MORE}, 3 * 0.4 - 1),
        ("harmful", "attention_off", {"attention_rest_rest": 0.9}, 4 * 0.45 - 1),
        ("benign", "stage_3_attention", {"attention_rest_signal": FALLS}, 0.2),
        ("harmful", "stage_3_attention", {"attention_rest_noise": RISES}, 0.25),
        ("benign", "rise", {"signal_score_rise": np.where(BEFORE, 1, 2), "score_most": 4}, 0.25),
        ("harmful", "rise", {"noise_score_rise": np.where(PART < 40, -1, 2), "score_most": 4}, 0.5),
        ("benign", "norm_change", NORMS, 1),
        ("benign", "move", {"stray_product_move": PART / 400}, 1),
        ("benign", "score_over_bound", {"score_most": math.log(9e18) * PART / 400}, 1.708),
        ("harmful", "score_over_bound", {"score_range_most": 2 * math.log(1e18) / 4}, 1),
        ("harmful", "value_over_bound", {"noise_value_most": -math.log(0.024) * PART / 400}, 0.5),
    ],
)
def test_a_number_is_that_which_made_the_steps(
    side: Regime, name: str, columns: dict[str, Any], expected: float
) -> None:
    [found] = numbers(name)(steps_of(side, **columns))[name]
    assert found == pytest.approx(expected, rel=2e-3)


def test_the_first_values_are_held_to_their_tail_and_what_is_learned() -> None:
    """By hand: 2σ_V‖w_O‖s √(log(2NM/δ)) + d_h^(−1/4), the longest token the signal."""
    steps = steps_of("benign", noise_value_most=0.5, rest_value_most=np.where(PART > 0, 99, 2.0))
    sigma_v = math.sqrt(41.0**-2 * 9e18**-0.5)
    tail = 2 * sigma_v * 41 * math.sqrt(math.log(2 * 28 * 3 * 1e12))
    [found] = numbers("first_value")(steps)["first_value"]
    assert found == pytest.approx(2 / (tail + 9e18**-0.25), rel=1e-6)


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("lead", {"loss_slope": 0.5}),
        ("lead", {"signal_lead": np.where(PART > 100, np.nan, 99)}),
        ("slower_value", {"signal_lead": 1.0, **VALUES}),
        ("slower_value", {"loss_slope": np.where(PART < 80, 0.5, 0.1), **VALUES}),
        ("stage_3_lead", {"loss_slope": 0.5}),
        ("lead", {"steps": 1e30}),
    ],
)
def test_a_number_is_unknown_where_the_steps_do_not_tell(
    name: str, changed: dict[str, Any]
) -> None:
    assert numbers(name)(steps_of("benign", **changed))[name].isna().all()


@pytest.mark.parametrize("side", ["benign", "harmful"])
def test_a_lead_is_judged_where_t1_comes_before_stage_2_ends(side: Regime) -> None:
    early = steps_of(side, loss_slope=np.where(PART < 20, 0.5, 0.1))
    check_undecided("vacuous", "T₁ comes after stage 2", lambda: until_stage_2_ends(early))
    at_once = steps_of(side, loss_slope=0.1)
    check_undecided("vacuous", "T₁ comes after stage 2", lambda: until_stage_2_ends(at_once))
    both = pd.concat([steps_of(side), early.assign(key="other", seed=1)])
    assert until_stage_2_ends(both)["key"].tolist() == ["k"]


def test_what_outgrows_another_is_told_of_all_logged_steps() -> None:
    """Of each pair: how much more it has grown, where it is ahead, and how far it falls."""
    part = PART / 400
    columns = {
        "value_plus": 2 * part,
        "value_minus": -part,
        "value_noise": np.where(part < 1, 9, 0),
    }
    pairs = [("value_plus", "value_noise"), ("value_minus", "value_noise")]

    def found(**changed: Any) -> tuple[float, float, float]:
        [row] = outgrown(pairs)(steps_of("benign", **{**columns, **changed})).to_dict("records")
        assert row["status"] == "done"
        return row["growth"], row["ahead"], row["fall"]

    assert found() == pytest.approx((1, 1, 0))
    assert found(value_minus=part) == pytest.approx((-1, 0.02, 1e12)), "wrong sign"
    late = np.where(part < 1, 3 * part, 0.5)
    assert found(value_noise=late) == pytest.approx((0.5, 0.02, 0)), "ahead at the end alone"
    hump = {"value_plus": np.where(part < 0.5, 4 * part, 2 - part)}
    assert found(**hump) == pytest.approx((1, 1, 0.5), abs=0.03)
    failed = {"status": "failed", "reason": "step limit"}
    assert found(**failed)[0] == 0, "a cell that isn't fitted"
    late_start = steps_of("benign", **columns).iloc[1:]
    killed = steps_of("benign", **columns, status="failed", reason="worker killed")
    no_step = steps_of("benign", **columns).iloc[:1].assign(steps=0)
    for unknown in (late_start, killed, no_step):
        assert outgrown(pairs)(unknown)[["growth", "ahead", "fall"]].isna().to_numpy().all()
    assert outgrown(pairs)(killed)["status"].eq("failed").all(), "its last lead decides nothing"


def test_attention_leaves_where_a_class_is_half_of_1_over_m_off() -> None:
    """Between logged steps, at 50/40 T₁; and never where it stays even."""
    found = [
        numbers("leaving")(steps_of("benign", attention_signal_signal=paid))["leaving"].item()
        for paid in ((1 + PART / 100) / 3, 1 / 3)
    ]
    assert found == [pytest.approx(1.25), pytest.approx(math.nan, nan_ok=True)]
