"""The token-space engine gives what the plain autograd loop gives, on the same draws."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import log_expit

from overfit_cli.core import matrix_products
from overfit_cli.core.cell import Cell
from overfit_cli.core.training import Execution, Training
from overfit_cli.studies.benign_vit.cnn_study import study as cnn_study
from overfit_cli.studies.benign_vit.data import draw, draw_samples, draw_weights
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters, token_scales
from overfit_cli.studies.benign_vit.reference import Trained, train_one_cell, train_one_cnn
from overfit_cli.studies.benign_vit.study import study
from overfit_cli.studies.benign_vit.training import train_together
from tests.studies.benign_vit.cells import small
from tests.training import begins_with, cell_of, train, train_in_batches

TOLERANCE = {"float32": 1e-3, "float64": 1e-9}


def cell(seed: int = 0, **settings: Any) -> Cell[BenignVitParameters]:
    return cell_of(study, small(**settings), seed)


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param({}, id="head space wider than the samples' span"),
        pytest.param({"n": 2, "d_h": 200}, id="head space much wider"),
        pytest.param({"n": 12, "dtype": "float32"}, id="head space narrower"),
        pytest.param({"n": 9, "d": 6}, id="more tokens than features"),
        pytest.param({"n": 3, "tokens": 2, "dtype": "float32"}, id="two tokens"),
        pytest.param({"n": 1, "d_h": 1, "d_v": 1}, id="one sample, width one"),
        pytest.param({"n": 40}, id="more samples than the smallest capacity"),
        pytest.param({"noise": "orthogonal"}, id="noise orthogonal to the signals"),
        pytest.param({"label_flip": 0.4, "n": 8, "dtype": "float32"}, id="flipped labels"),
    ],
)
def test_a_cell_trains_as_in_the_autograd_loop(shape: dict[str, object]) -> None:
    settings = small(**shape)
    [result] = train(study, cell_of(study, settings, 3))
    oracle = train_one_cell(settings, 3)
    assert result.status == "done"
    assert result.steps == oracle.steps > 0
    expected = {
        "train_loss": oracle.train_loss,
        "test_loss": oracle.test_loss,
        "test_error": oracle.test_error,
        "updates": oracle.steps,
        "label_imbalance": abs(oracle.train_labels.mean()),
        "train_margin": oracle.train_margins.mean(),
        "train_margin_min": oracle.train_margins.min(),
        "test_margin": oracle.test_margins.mean(),
        "train_attention_signal": oracle.train_attention[:, :, 0].mean(),
        "train_attention_noise": oracle.train_attention[:, :, 1].mean(),
        "test_attention_signal": oracle.test_attention[:, :, 0].mean(),
        "test_attention_noise": oracle.test_attention[:, :, 1].mean(),
        "test_signal_attention_min": oracle.test_attention[:, 0, 0].min(),
        **trained_values(settings, oracle),
    }
    tolerance = TOLERANCE[settings.dtype]
    assert result.measurements == pytest.approx(expected, rel=0, abs=tolerance)


def trained_values(settings: BenignVitParameters, oracle: Trained) -> dict[str, float]:
    """Values of the signals and of noise, and ‖w_O‖, from the oracle's weights."""
    with torch.no_grad():
        value = (oracle.model.value @ oracle.model.output_weight).double().numpy()
        norm = float(oracle.model.output_weight.norm())
    drawn, scales = draw(settings, 3), token_scales(settings)[1:, None]
    train, test = (part.tokens[:, 1:] * scales for part in (drawn.train, drawn.test))
    return {
        "test_noise_value_max": np.abs(test @ value).max(),
        "value_plus": settings.signal_norm * value[0],
        "value_minus": settings.signal_norm * value[1],
        "value_noise": np.abs(train[: settings.n, 0] @ value).mean(),
        "output_norm": norm,
    }


@pytest.mark.parametrize(
    ("library", "shape"),
    [
        ("PyTorch", {"n": 2}),
        ("PyTorch", {"n": 9, "dtype": "float64"}),
        ("oneDNN", {"dtype": "float64"}),
        ("oneDNN", {"n": 9}),
        ("", {"n": 1, "tokens": 32}),  # one sample
        ("", {"tokens": 20, "test_samples": 1}),
        ("", {"tokens": 7, "d": 64, "d_h": 17, "dtype": "float64", "test_samples": 7}),
        ("", {"n": 3, "d_h": 9}),  # off the cache's lines
    ],
)
def test_a_cell_gives_the_same_row_in_any_batch(
    library: str, shape: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a sweep change no bit on the CPU, nor do any others of these libraries."""
    shape = {"dtype": "float32"} | shape
    cells = [cell(**shape, learning_rate=0.1, snr=snr) for snr in (0.5, 2.0, 8.0)]
    alone = [train(study, item)[0].measurements for item in cells]
    assert [row.measurements for row in train_in_batches(study, *cells)] == alone
    if library:
        monkeypatch.setattr(matrix_products, "product_library", lambda: library)
        monkeypatch.setattr(matrix_products, "_SMALLEST", 10_000)
        alone = [train(study, item)[0].measurements for item in cells]
        in_parts = [*train(study, *cells[:2]), *train(study, *cells[2:])]
        assert [row.measurements for row in in_parts] == alone
        assert [row.measurements for row in train(study, *reversed(cells))] == alone[::-1]


def test_batches_for_a_cpu_share_one_seeds_projections_and_fit_the_cache() -> None:
    cells = [
        cell(seed=seed, n=n, snr=snr, leap=leap, d_h=512, tokens=16)
        for seed in (0, 1)
        for n in (2, 9, 20)
        for snr in range(1, 13)
        for leap in (0.0, 0.1)
    ]
    batches = study.batches(cells, "cpu")
    sizes: dict[tuple[int, float], int] = {}
    for batch in batches:
        [(_, n, leap)] = {(c.seed, c.parameters.n, c.parameters.leap) for c in batch}
        sizes[n, leap] = max(len(batch), sizes.get((n, leap), 0))
    assert [sizes[n, 0.0] for n in (2, 9, 20)] == [6, 3, 1]
    assert [sizes[n, 0.1] for n in (2, 9, 20)] == [1, 1, 1], "a leap is trained alone"


@pytest.mark.parametrize("seeds", [(0,), (0, 1)], ids=["one realisation shared", "two"])
def test_cells_trained_as_one_tensor_agree_with_cells_trained_one_by_one(
    seeds: tuple[int, ...],
) -> None:
    """The path that a GPU takes, on the CPU: cells that stop at different steps leave the batch."""
    kinds: list[dict[str, Any]] = [{}, {"label_flip": 0.5}, {"leap": 0.05}]
    cells = [
        cell(seed=seed, snr=snr, learning_rate=rate, **kind)
        for seed, snr, rate, kind in itertools.product(seeds, (0.5, 4.0), (0.02, 0.5), kinds)
    ]
    [batch] = study.batches(cells, "cuda")
    with torch.inference_mode():
        trained = list(train_together(batch, Training(Execution())))
    together = {result.cell.key: result for result in trained}
    assert len({result.steps for result in together.values()}) > 1, "none leaves before the others"
    for item in cells:
        [alone] = train(study, item)
        result = together[item.key]
        assert (result.status, result.steps) == (alone.status, alone.steps)
        assert result.measurements == pytest.approx(alone.measurements, rel=0, abs=1e-12)
    assert any(one.measurements["updates"] < one.steps for one in trained)


def test_batches_for_a_gpu_have_one_shape_and_few_seeds() -> None:
    cells = [cell(seed=seed, n=n, snr=snr) for seed in range(9) for n in (2, 3) for snr in (1, 2)]
    batches = study.batches(cells, "cuda")
    assert sorted(item.key for batch in batches for item in batch) == sorted(c.key for c in cells)
    for batch in batches:
        assert len({item.parameters.n for item in batch}) == 1
        assert len({item.seed for item in batch}) <= 4, "a process keeps four realisations"


def test_a_cell_that_is_out_of_steps_is_a_failed_row() -> None:
    [result] = train(study, cell(learning_rate=1e-6, max_steps=7))
    assert (result.status, result.reason, result.steps) == ("failed", "step limit", 7)
    assert result.measurements["train_loss"] > 0.1


def test_a_loss_of_epsilon_but_for_rounding_is_fitted_by_the_rows_own_numbers() -> None:
    """An ε that float32 would round up: leaps end as close to it as float32 can tell."""
    for epsilon in (0.024, 0.3, 0.1, 0.05):
        assert float(np.float32(epsilon)) > epsilon
        leaps: dict[str, Any] = {"learning_rate": 1e-8, "max_steps": 10**12, "leap": 0.5}
        [result] = train(study, cell(n=8, snr=3.0, epsilon=epsilon, dtype="float32", **leaps))
        assert result.status == "done"
        assert result.measurements["train_loss"] <= epsilon


def test_a_trajectory_logs_every_step_with_what_its_columns_promise() -> None:
    [result] = train(study, cell(n=6), trajectories=True)
    log = {name: np.array(values) for name, values in result.trajectory.items()}
    assert set(log) == {"step", *(column.name for column in study.trajectory_columns)}
    assert log["step"].tolist() == list(range(result.steps + 1))
    for source in ("signal", "noise", "rest"):
        onto = [log[f"attention_{source}_{target}"] for target in ("signal", "noise", "rest")]
        np.testing.assert_allclose(np.sum(onto, axis=0), 1.0, atol=1e-12)


def test_initial_weights_are_pytorchs_default_divided_but_for_the_output() -> None:
    settings = small(d=900, d_h=400, d_v=100, init_divisor=16.0)
    weights = draw_weights(settings, 0)
    for matrix in (weights.query, weights.key, weights.value):
        assert np.abs(matrix).max() == pytest.approx(1 / 30 / 16, rel=1e-3)
        assert matrix.std() == pytest.approx(1 / 30 / 16 / np.sqrt(3), rel=1e-2)
    assert np.abs(weights.output).max() == pytest.approx(1 / 10, rel=0.05)


def test_samples_follow_definition_3_1() -> None:
    settings = small(d=50, tokens=4, snr=3.0, sigma_p=0.5, sigma_p_tilde=2.0)
    samples = draw_samples(settings, 0, "train", 400)
    x = samples.tokens * token_scales(settings)[:, None]
    assert np.linalg.norm(x[:, 0], axis=1) == pytest.approx(3.0 * 0.5 * np.sqrt(50))
    assert (x[:, 0].argmax(1) == np.where(samples.labels > 0, 0, 1)).all()
    assert x[:, 1].std() == pytest.approx(2.0, rel=0.02)
    assert x[:, 2:].std() == pytest.approx(0.5, rel=0.02)
    assert abs(samples.labels.mean()) < 0.15
    orthogonal = small(d=50, tokens=4, noise="orthogonal")
    assert not draw_samples(orthogonal, 0, "train", 10).tokens[:, 1:, :2].any()


def test_train_and_test_draws_differ_and_longer_sets_extend_shorter_ones() -> None:
    settings = small()
    long, short = (draw_samples(settings, 0, "train", count) for count in (9, 4))
    assert begins_with(long.tokens, short.tokens)
    assert begins_with(long.labels, short.labels)
    test = draw_samples(settings, 0, "test", 4)
    assert not np.isin(test.tokens[:, 1:], long.tokens[:, 1:]).any()


# A CNN on the same samples

CNN: dict[str, Any] = {"d": 30, "tokens": 3, "sigma_p": 0.2, "sigma_p_tilde": 0.3, "snr": 1.5}
CNN |= {"test_samples": 20, "filters": 6, "sigma_0": 0.1, "filter_rate": 5.0, "n": 8}
LAW = {"d": 10**9, "sampling": "law", "initialisation": "gaussian", "noise_per": "token"}
LAW |= {"sigma_p": 1.0, "sigma_p_tilde": 1.5}


def cnn_cell(seed: int = 0, **settings: Any) -> Cell[Any]:
    return cell_of(cnn_study, {**CNN, "dtype": "float64", **settings}, seed)


@pytest.mark.parametrize(
    "other",
    [{}, {"power": 1.0}, {"power": 2.5}, {"label_flip": 0.3}, {"tokens": 2, "n": 6}, LAW],
    ids=["plain", "ReLU", "a broken power", "flipped labels", "two tokens", "in law"],
)
def test_a_cnn_trains_as_in_the_autograd_loop(other: dict[str, Any]) -> None:
    trained = cnn_cell(3, **other)
    [result] = train(cnn_study, trained)
    steps, margins, test_margins = train_one_cnn(trained.parameters, 3)
    assert (result.status, result.steps) == ("done", steps)
    assert steps > 5
    expected = {
        "train_loss": -log_expit(margins).mean(),
        "test_loss": -log_expit(test_margins).mean(),
        "test_error": (test_margins <= 0).mean(),
        "train_margin_min": margins.min(),
        "test_margin": test_margins.mean(),
    }
    for name, value in expected.items():
        assert result.measurements[name] == pytest.approx(value, rel=1e-9, abs=1e-12), name


def test_the_transformer_is_that_of_benign_vit() -> None:
    own = cnn_cell(model="vit", d_h=20, init_divisor=1.0, learning_rate=0.5)
    [result] = train(cnn_study, own)
    shared = {name: getattr(own.parameters, name) for name in BenignVitParameters.model_fields}
    [expected] = train(study, cell_of(study, BenignVitParameters(**shared), 0))
    assert result.status == "done"
    assert result.measurements == expected.measurements


def test_a_sample_on_which_all_filters_are_dead_is_never_fitted() -> None:
    """It has no gradient: its loss stays at ln 2 or more."""
    results = train(cnn_study, *(cnn_cell(seed, filters=1, max_steps=1000) for seed in range(4)))
    dead = [result for result in results if result.reason]
    assert {result.reason for result in dead} == {"step limit"}
    assert all(result.measurements["train_loss"] >= np.log(2) / 8 for result in dead)
