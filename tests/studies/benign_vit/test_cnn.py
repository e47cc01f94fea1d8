"""A CNN and a Vision Transformer on the same samples: the engine, and who needs fewer of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_expit

from overfit_cli.core.cell import Cell
from overfit_cli.studies.benign_vit.cnn_study import BenignCnnParameters, study
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.reference import train_one_cnn
from overfit_cli.studies.benign_vit.study import study as vit_study
from tests.judged import claims_by_name
from tests.training import cell_of, train

SMALL: dict[str, object] = {
    "d": 30,
    "tokens": 3,
    "sigma_p": 0.2,
    "sigma_p_tilde": 0.3,
    "test_samples": 20,
    "snr": 1.5,
}
SMALL |= {"filters": 6, "sigma_0": 0.1, "filter_rate": 5.0, "n": 8, "dtype": "float64"}
LAW = {
    "d": 10**9,
    "sampling": "law",
    "initialisation": "gaussian",
    "noise_per": "token",
    "sigma_p": 1.0,
    "sigma_p_tilde": 1.5,
}
CLAIMS = claims_by_name("benign-cnn")


def cell(seed: int = 0, **settings: object) -> Cell[BenignVitParameters]:
    return cell_of(study, BenignCnnParameters.model_validate({**SMALL, **settings}), seed)


@pytest.mark.parametrize(
    "other",
    [{}, {"power": 1.0}, {"power": 2.5}, {"label_flip": 0.3}, {"tokens": 2, "n": 6}, LAW],
    ids=["plain", "ReLU", "a broken power", "flipped labels", "two tokens", "in law"],
)
def test_a_cnn_trains_as_in_the_autograd_loop(other: dict[str, object]) -> None:
    trained = cell(3, **other)
    [result] = train(study, trained)
    assert isinstance(trained.parameters, BenignCnnParameters)
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
    own = cell(model="vit", d_h=20, init_divisor=1.0, learning_rate=0.5)
    [result] = train(study, own)
    shared = {name: getattr(own.parameters, name) for name in BenignVitParameters.model_fields}
    [expected] = train(vit_study, cell_of(vit_study, BenignVitParameters(**shared), 0))
    assert result.status == "done"
    assert result.measurements == expected.measurements


def test_a_sample_on_which_all_filters_are_dead_is_never_fitted() -> None:
    """It has no gradient: its loss stays at ln 2 or more."""
    results = train(study, *(cell(seed, filters=1, max_steps=3000) for seed in range(4)))
    dead = [result for result in results if result.reason]
    assert {result.reason for result in dead} == {"step limit"}
    assert all(result.measurements["train_loss"] >= np.log(2) / 8 for result in dead)
