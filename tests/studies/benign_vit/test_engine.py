"""The token-space engine gives what the plain autograd loop gives, on the same draws."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from overfit_cli.core import matrix_products
from overfit_cli.core.cell import Cell
from overfit_cli.core.training import Execution, Training
from overfit_cli.studies.benign_vit.data import draw_samples, draw_weights
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters, token_scales
from overfit_cli.studies.benign_vit.reference import Trained, train_one_cell
from overfit_cli.studies.benign_vit.study import study
from overfit_cli.studies.benign_vit.training import train_together
from tests.training import cell_of, train

TOLERANCE = {"float32": 1e-3, "float64": 1e-9}

SMALL = {"d": 40, "d_h": 24, "d_v": 8, "tokens": 5, "test_samples": 30, "sigma_p": 1.0}
SMALL |= {"init_divisor": 4.0, "sigma_p_tilde": 2.0, "epsilon": 0.1}


def small(**settings: object) -> BenignVitParameters:
    return BenignVitParameters.model_validate({**SMALL, **settings})


def cell(seed: int = 0, **settings: object) -> Cell[BenignVitParameters]:
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
    settings = small(**{"n": 4, "snr": 1.5, "learning_rate": 0.3, "dtype": "float64", **shape})
    [result] = train(study, cell_of(study, settings, 3))
    oracle = train_one_cell(settings, 3)

    assert result.status == "done"
    assert result.steps == oracle.steps > 0
    got = result.measurements
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
    assert got.keys() == expected.keys()
    for name, value in expected.items():
        assert got[name] == pytest.approx(value, abs=TOLERANCE[settings.dtype]), name


def trained_values(settings: BenignVitParameters, oracle: Trained) -> dict[str, float]:
    """Values of the signals and of noise, and ‖w_O‖, from the oracle's weights."""
    with torch.no_grad():
        value = (oracle.model.value @ oracle.model.output_weight).double().numpy()
        norm = float(oracle.model.output_weight.norm())
    train, test = (
        (part.tokens * token_scales(settings)[:, None])[:, 1:]
        for part in (
            draw_samples(settings, 3, "train", settings.n),
            draw_samples(settings, 3, "test", settings.test_samples),
        )
    )  # noise tokens, (samples, tokens − 1, features)
    return {
        "test_noise_value_max": np.abs(test @ value).max(),
        "value_plus": settings.signal_norm * value[0],
        "value_minus": settings.signal_norm * value[1],
        "value_noise": np.abs(train[:, 0] @ value).mean(),
        "output_norm": norm,
    }


@pytest.mark.parametrize(
    ("n", "library", "dtype"),
    [
        (2, "PyTorch", "float32"),
        (4, "oneDNN", "float64"),
        (9, "oneDNN", "float32"),
        (9, "PyTorch", "float64"),
    ],
)
def test_a_cell_gives_the_same_row_in_any_batch(
    n: int, library: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches, their order and their neighbours change no bit on the CPU."""
    monkeypatch.setattr(matrix_products, "product_library", lambda: library)
    monkeypatch.setattr(matrix_products, "_SMALLEST", 10_000)
    cells = [cell(n=n, snr=snr, dtype=dtype) for snr in (0.5, 1.0, 2.0, 4.0, 8.0)]
    alone = [train(study, item)[0].measurements for item in cells]
    for size in (2, 3, 5):
        parts = [cells[first : first + size] for first in range(0, len(cells), size)]
        assert [row.measurements for part in parts for row in train(study, *part)] == alone
    assert [row.measurements for row in train(study, *reversed(cells))] == alone[::-1]


@pytest.mark.parametrize(
    "shape",
    [
        {"n": 1, "tokens": 32},  # one sample
        {"n": 4, "tokens": 20, "test_samples": 1},
        {"n": 4, "tokens": 7, "d": 64, "d_h": 17, "dtype": "float64", "test_samples": 7},
        {"n": 3, "tokens": 5, "d": 40, "d_h": 9},  # off the cache's lines
    ],
)
def test_a_sweep_gives_the_bits_of_a_cell_alone_in_odd_shapes(shape: dict[str, Any]) -> None:
    cells = [cell(**shape, snr=snr) for snr in (0.5, 1.0, 2.0, 4.0, 8.0)]
    alone = {item.key: train(study, item)[0].measurements for item in cells}
    batches = study.batches(cells, "cpu")
    assert {
        row.cell.key: row.measurements for batch in batches for row in train(study, *batch)
    } == alone


def test_batches_for_a_cpu_share_one_seeds_projections_and_fit_the_cache() -> None:
    cells = [
        cell(seed=seed, n=n, snr=snr, leap=leap, d_h=512, tokens=16)
        for seed in (0, 1)
        for n in (2, 9, 20)
        for snr in range(1, 13)
        for leap in (0.0, 0.1)
    ]
    batches = study.batches(cells, "cpu")
    assert sorted(item.key for batch in batches for item in batch) == sorted(c.key for c in cells)
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
    cells = [
        cell(seed=seed, n=4, snr=snr, dtype="float64", learning_rate=rate, label_flip=flip)
        for seed, snr, rate, flip in itertools.product(seeds, (0.5, 4.0), (0.1, 0.5), (0.0, 0.5))
    ]
    [batch] = study.batches(cells, "cuda")
    with torch.inference_mode():
        together = {
            result.cell.key: result for result in train_together(batch, Training(Execution()))
        }
    assert len({result.steps for result in together.values()}) > 1, "none leaves before the others"
    for item in cells:
        [alone] = train(study, item)
        result = together[item.key]
        assert (result.status, result.steps) == (alone.status, alone.steps)
        for name, value in alone.measurements.items():
            assert result.measurements[name] == pytest.approx(value, abs=1e-12), name


def test_batches_for_a_gpu_have_one_shape_and_few_seeds() -> None:
    cells = [cell(seed=seed, n=n, snr=snr) for seed in range(9) for n in (2, 3) for snr in (1, 2)]
    batches = study.batches(cells, "cuda")
    assert sorted(item.key for batch in batches for item in batch) == sorted(c.key for c in cells)
    for batch in batches:
        assert len({item.parameters.model_dump()["n"] for item in batch}) == 1
        assert len({item.seed for item in batch}) <= 4, "a process keeps four realisations"


def test_a_cell_that_is_out_of_steps_is_a_failed_row() -> None:
    [result] = train(study, cell(n=4, learning_rate=1e-6, max_steps=7))
    assert (result.status, result.reason, result.steps) == ("failed", "step limit", 7)
    assert result.measurements["train_loss"] > 0.1


def test_a_loss_of_epsilon_but_for_rounding_is_fitted_by_the_rows_own_numbers() -> None:
    """An ε that float32 would round up: leaps end as close to it as float32 can tell."""
    for epsilon in (0.024, 0.3, 0.1, 0.05):
        assert float(np.float32(epsilon)) > epsilon
        chosen = cell(n=8, snr=3.0, epsilon=epsilon, learning_rate=1e-8, max_steps=10**12, leap=0.5)
        [result] = train(study, chosen)
        assert result.status == "done"
        assert result.measurements["train_loss"] <= epsilon


def test_a_trajectory_logs_every_step_with_what_its_columns_promise() -> None:
    chosen = cell(n=6, snr=1.5, dtype="float64")
    [result] = train(study, chosen, trajectories=True)
    log = {name: np.array(values) for name, values in result.trajectory.items()}
    assert set(log) == {"step", *(column.name for column in study.trajectory_columns)}
    assert log["step"].tolist() == list(range(result.steps + 1))
    assert log["train_loss"][-1] == result.measurements["train_loss"] <= 0.1
    assert log["test_loss"][-1] == result.measurements["test_loss"]
    for source in ("signal", "noise", "rest"):
        onto = [log[f"attention_{source}_{target}"] for target in ("signal", "noise", "rest")]
        np.testing.assert_allclose(np.sum(onto, axis=0), 1.0, atol=1e-12)
    assert train(study, chosen)[0].measurements == result.measurements, "logging changes no number"


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
    np.testing.assert_array_equal(long.tokens[:4], short.tokens)
    np.testing.assert_array_equal(long.labels[:4], short.labels)
    test = draw_samples(settings, 0, "test", 4)
    assert not np.isin(test.tokens[:, 1:], long.tokens[:, 1:]).any()
