"""Behaviour of every study: rows that depend on the cell alone, failures as rows, and refusals."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from overfit_cli import UserError
from overfit_cli.core.cell import Cell
from overfit_cli.core.parameters import build
from overfit_cli.core.registry import find_study, installed_studies
from tests.judged import lines
from tests.studies.benign_vit.cells import SMALL as VIT
from tests.studies.multihead.test_sst2 import TINY, write
from tests.training import cell_of, train, train_in_batches

Values = Mapping[str, Any]

CNN: Values = {"d": 30, "tokens": 3, "filters": 6, "n": 8, "test_samples": 20, "max_steps": 50}
IMAGES: Values = {"n": 40, "test_samples": 20, "d": 16, "hidden": 16, "max_epochs": 3}
NETWORK: Values = {"n": 12, "test_samples": 8, "d": 8, "hidden": 12, "batch_size": 4}
PIXELS: Values = {"size": 12, "contour_length": 2, "distractors": 0, "seed_distance": 4}
SHORT: Values = {"training_steps": 6, "evaluate_every": 2}
SURFACE: Values = {"training_steps": 3, "second_steps": 2, "points": 6, "loss_samples": 5}
HEADS: Values = {"n": 30, "test_samples": 20, "training_steps": 20}

SMALL: Mapping[str, tuple[Values, Values]] = {
    "benign-vit": (VIT, {"snr": [0.5, 4.0]}),
    "benign-cnn": (CNN, {"snr": [1.0, 2.0], "model": ["cnn", "vit"]}),
    "benign-vit-images": (IMAGES, {"snr": [0.2, 2.0]}),
    "kernel-landscape": ({**NETWORK, **SURFACE, "tokens": 10}, {"kernel": ["softmax", "gaussian"]}),
    "kernel-text": ({**NETWORK, **SHORT, "tokens": 12}, {"kernel": ["softmax", "gaussian"]}),
    "kernel-pathfinder": ({**NETWORK, **SHORT, **PIXELS}, {"kernel": ["softmax", "gaussian"]}),
    "kernel-regression": (
        {"n": 3, "tokens": 3, "d": 11, "d_h": 4, "training_steps": 6},
        {"heads": [1, 2], "learning_rate": [0.03, 0.3]},
    ),
    "multihead-mixture": ({**HEADS, "certify": True, "epsilon": 0.3}, {"heads": [1, 10]}),
    "multihead-planted": ({**HEADS, "certify": True, "epsilon": 0.3}, {"heads": [1, 3, 10]}),
    "multihead-paths": ({"n": 6, "training_steps": 15, "test_samples": 10}, {"heads": [1, 3]}),
    "multihead-sst2": (TINY, {"heads": [1, 4], "learning_rate": [0.001, 0.01]}),
    "positional-semantic": (
        {"d": 60, "alpha": 0.2, "training_steps": 40, "test_samples": 200},
        {"start": ["semantic", "positional"], "omega": [0.1, 0.5]},
    ),
    "softmax-convergence": ({"m": 64, "n": 8}, {"step_factor": [1.0, 0.3]}),
    "softmax-diffusion": (
        {"n": 40, "m": 16, "training_steps": 30, "samples": 50, "validation": 50},
        {"model": ["softmax", "relu", "true"]},
    ),
}
"""Of each study: settings of small cells, and what varies among them."""

EXPLODES: Mapping[str, Values] = {
    "benign-vit": {"snr": 1e9, "sigma_p": 1e6, "init_divisor": 1e-12, "dtype": "float32"},
    "benign-vit-images": {"learning_rate": 1e3, "noise_deviation": 1e6, "dtype": "float32"},
    "kernel-landscape": {"optimiser": "sgd", "learning_rate": 1000.0, "training_steps": 40},
    "kernel-text": {"optimiser": "sgd", "learning_rate": 1000.0, "training_steps": 60},
    "kernel-regression": {"trained": "value", "learning_rate": 1e4, "training_steps": 100},
    "multihead-sst2": {"learning_rate": 1e3, "training_steps": 50, "weight_decay": 1.0},
    "softmax-convergence": {"activation": "exp", "step_factor": 100.0, "m": 16},
    "softmax-diffusion": {"model": "exp", "sigma": 20.0, "optimiser": "gd"},
}
"""Settings with which a training diverges."""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    """Data and a cache of these tests' own."""
    write(tmp_path / "data" / "sst2")
    monkeypatch.setenv("OVERFIT_DATA", str(tmp_path / "data"))


def cells_of(name: str) -> list[Cell[Any]]:
    """Cells of a study in float64, with two seeds."""
    fixed, varied = SMALL[name]
    study = find_study(name)
    precise = {"dtype": "float64"} if "dtype" in study.parameters.model_fields else {}
    return [
        cell_of(study, {**fixed, **precise, **dict(zip(varied, values, strict=True))}, seed)
        for values in itertools.product(*varied.values())
        for seed in (0, 1)
    ]


def test_every_study_has_small_cells() -> None:
    assert SMALL.keys() == {study.name for study in installed_studies()} - {"toy"}


def every(names: Mapping[str, object]) -> pytest.MarkDecorator:
    quick = ("benign-vit", "kernel-regression", "multihead-paths", "softmax-convergence")
    return pytest.mark.parametrize(
        "name",
        [pytest.param(one, marks=[] if one in quick else [pytest.mark.slow]) for one in names],
    )


@every(SMALL)
def test_a_cell_gives_the_same_row_whatever_it_is_trained_with(name: str) -> None:
    """Alone, in a batch, backwards, logged, and while others draw from the global streams.

    To 1e-7: the last bits of a matrix product depend on where in memory its factors lie.
    """
    study, cells = find_study(name), cells_of(name)
    batches = study.batches(cells, "cpu")
    assert sorted(one.key for batch in batches for one in batch) == sorted(c.key for c in cells)
    together = train_in_batches(study, *cells)
    backwards = train_in_batches(study, *reversed(cells))[::-1]
    assert len({tuple(sorted(result.measurements.items())) for result in together}) > 1

    def disturb(row: Mapping[str, float]) -> None:
        torch.manual_seed(int(row["step"]))
        np.random.seed(int(row["step"]))

    for cell, among, other in zip(cells, together, backwards, strict=True):
        [alone] = train(study, cell, on_step=disturb, trajectories=True)
        assert (among.status, among.trajectory) == ("done", {}) or among.reason == "step limit"
        assert among.measurements.keys() <= {column.name for column in study.columns}
        for result in (among, other):
            assert (result.steps, result.reason) == (alone.steps, alone.reason)
            approximate = pytest.approx(alone.measurements, rel=1e-7, abs=1e-12, nan_ok=True)
            assert result.measurements == approximate
        logged = {column.name for column in study.trajectory_columns}
        assert alone.trajectory.keys() - {"step"} <= logged
        for column in {"train_loss", "test_loss"} & alone.trajectory.keys():
            if alone.trajectory["step"][-1] == alone.steps:
                last = alone.trajectory[column][-1]
                assert last == pytest.approx(alone.measurements[column], nan_ok=True), column


@every(EXPLODES)
def test_a_cell_that_diverges_is_a_failed_row_and_its_neighbour_is_not(name: str) -> None:
    study, [fine, *_] = find_study(name), cells_of(name)
    wild = cell_of(study, fine.parameters.model_dump() | EXPLODES[name], 0)
    [failed, other] = train_in_batches(study, wild, fine, trajectories=True)
    assert (failed.status, failed.reason) == ("failed", "diverged")
    assert other.reason in ("", "step limit")
    assert "diverged" in study.summary(failed)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@every(SMALL)
def test_a_gpu_gives_the_numbers_of_the_cpu(name: str) -> None:
    study, cells = find_study(name), cells_of(name)
    on = functools.partial(train_in_batches, study, *cells)
    for cpu, gpu in zip(on(device="cpu"), on(device="cuda"), strict=True):
        assert (gpu.steps, gpu.reason) == (cpu.steps, cpu.reason)
        assert gpu.measurements == pytest.approx(cpu.measurements, rel=1e-7, abs=1e-9, nan_ok=True)


IMPOSSIBLE = r"""
kernel-pathfinder: seed_distance=30 => size=32: .* too few for seed_distance 30 .* larger size
kernel-pathfinder: distractors=40 => size=32: .* 40 distractors .* larger size
kernel-pathfinder: size=600 => size=600 that makes more than 1024 points
kernel-pathfinder: size=20.5 => size takes a whole number of .*, not 20.5
kernel-pathfinder: contour_length=1 => contour_length='?1'?: .* of at least 2
kernel-pathfinder: paddle_length=nan => paddle_length='?nan'?: .* a number above 0
kernel-pathfinder: continuity=0.5 => continuity='?0.5'?: .* of at least 1
kernel-regression: label=3 => label=3.0: with instance=random, label takes 2
kernel-regression: weights=identity => with instance=random, weights takes drawn
kernel-regression: n=4 tokens=4 d=4 => d takes a whole number of at least 16
kernel-regression: trained=layers-2 balance=10 => balance takes 1
multihead-mixture: d=3 => d='?3'?: with patterns=2, d takes a whole number of at least 4
multihead-mixture: relevant=10 => relevant takes a whole number up to 9
multihead-mixture: machine=true => it takes false: the comparison is no longer made
multihead-mixture: initialisation=gaussian first_phase=signs => section 5.1 begins at zero
multihead-mixture: heads=1000000 first_phase=signs => all heads begin alike
multihead-mixture: heads=1000000 initialisation=gaussian => all heads begin alike
positional-semantic: alpha=1.0 d=100000 => at most 0.2
positional-semantic: alpha=0.1 d=200000 => set sampling=law
positional-semantic: sampling=law optimiser=adam => Adam's steps depend
softmax-convergence: m=7 => m='?7'?: with initialisation=symmetric
softmax-convergence: data=digits d=65 => d='?65'?: with data=digits
softmax-convergence: data=digits outputs=2 => outputs='?2'?: with data=digits
softmax-convergence: data=digits n=1790 => n='?1790'?: with data=digits
softmax-diffusion: m=5 => pairs of opposite signs, so m takes an even number
softmax-diffusion: first_time=1.0 => with last_time=1, first_time takes a number below it
softmax-diffusion: deviation=0.5 => deviation takes a number of up to 0.106, so that the points lie
softmax-diffusion: target=digits model=true => the true score is unknown
softmax-diffusion: target=digits n=1000 => n and validation=800 take up to 1297 digits together
"""
"""Settings that a study refuses, and words of the sentence."""


@pytest.mark.parametrize("line", lines(IMPOSSIBLE))
def test_settings_that_cannot_be_trained_are_refused_in_a_sentence(line: str) -> None:
    name, _, rest = line.partition(": ")
    settings, _, words = rest.partition(" => ")
    with pytest.raises(UserError, match=words):
        build(find_study(name).parameters, dict(each.split("=") for each in settings.split()))
