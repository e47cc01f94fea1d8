"""Landscapes: the plane against a plain loop, shared networks, what a kill leaves, and surfaces."""

from __future__ import annotations

import copy
import functools
import io
import itertools
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import torch
from torch.nn import functional

from overfit_cli.core.cell import Cell, CellResult
from overfit_cli.core.parameters import Value
from overfit_cli.core.processes import Interrupted
from overfit_cli.studies.attention_kernel import plane
from overfit_cli.studies.attention_kernel.classifier import Transformer, evaluate
from overfit_cli.studies.attention_kernel.classifier_parameters import KernelLandscapeParameters
from overfit_cli.studies.attention_kernel.classifiers import landscape as study
from overfit_cli.studies.attention_kernel.figures import (
    MEASURES,
    Surface,
    draw_surfaces,
    most_typical,
)
from overfit_cli.studies.attention_kernel.plane import Plane, draw_directions, fixed_batch
from tests.fake_study import corners
from tests.studies.attention_kernel.test_classifier import samples, shaken
from tests.studies.test_every_study import PIXELS
from tests.training import cell_of, train

pytestmark = pytest.mark.usefixtures("cache")

SMALL: dict[str, Value] = {
    **{"tokens": 10, "n": 12, "test_samples": 4, "d": 8, "hidden": 6, "batch_size": 4},
    **{"training_steps": 3, "second_steps": 2, "points": 6, "loss_samples": 5, "dtype": "float64"},
}


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> mock.Mock:
    """Note the training of each stage."""
    noted = mock.Mock(wraps=plane._train_stage)
    monkeypatch.setattr(plane, "_train_stage", noted)
    return noted


def cell(seed: int = 0, **values: Any) -> Cell[KernelLandscapeParameters]:
    return cell_of(study, {**SMALL, **values}, seed)


trained = functools.partial(train, study, trajectories=True)


def same(first: list[CellResult[Any]], second: list[CellResult[Any]]) -> bool:
    """Bit for bit."""
    pairs = zip(first, second, strict=True)
    return all(a.measurements == b.measurements and a.trajectory == b.trajectory for a, b in pairs)


# The plane


def network(kernel: str, layers: int = 2) -> Transformer:
    return shaken(kernel, layers=layers, dropout=0.5).train()


@pytest.mark.parametrize(
    ("kernel", "layers", "padded", "at_a_time"),
    [
        *(("softmax", 2, False, 1), ("gaussian", 2, True, 20), ("gaussian", 2, False, 80)),
        *(("softmax", 2, True, 9999), ("gaussian", 1, True, 9999)),
    ],
)
def test_the_plane_is_the_loss_of_the_network_with_its_weights_moved(
    kernel: str, layers: int, padded: bool, at_a_time: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Points and samples one by one, some at a time, or all at once."""
    monkeypatch.setitem(plane.MOST_TOKENS, "cpu", at_a_time)
    model, (tokens, lengths), labels = network(kernel, layers), samples(5), torch.arange(5) % 2
    mask = lengths if padded else None
    before = copy.deepcopy(model.state_dict())
    directions = draw_directions(model, "filter", 0, 0)
    index = torch.tensor([[0.0, 0.0], [0.5, 0.0], [0.0, -0.5], [0.3, 0.7], [-0.2, 0.1]]).double()
    fast = Plane(model, directions, tokens, labels, mask).losses(index)
    slow = []
    for a, b in index:
        moved = copy.deepcopy(model).eval()
        with torch.no_grad():
            moved.layers[0].query.weight += a * directions.query  # type: ignore[union-attr]
            moved.layers[0].key.weight += b * directions.key  # type: ignore[union-attr]
            slow.append(functional.cross_entropy(moved(tokens, mask), labels).item())
    assert fast.tolist() == pytest.approx(slow, rel=1e-12)
    assert len(set(slow)) == 5
    assert all(torch.equal(values, before[name]) for name, values in model.state_dict().items())


def test_directions_are_of_a_seed_and_pair_and_those_of_filters_as_long_as_rows_of_weights() -> (
    None
):
    model = network("softmax")
    scaled, raw = (draw_directions(model, kind, 0, 0) for kind in ("filter", "raw"))
    for name in ("query", "key"):
        weight = model.state_dict()[f"layers.0.{name}.weight"]
        direction, free = getattr(scaled, name), getattr(raw, name)
        assert torch.allclose(direction.norm(dim=1), weight.norm(dim=1), rtol=1e-12)
        assert not torch.allclose(free.norm(dim=1), weight.norm(dim=1), rtol=0.1)
        assert torch.allclose(functional.normalize(direction), functional.normalize(free))
    assert not torch.equal(raw.query, raw.key)
    draws = [draw_directions(model, "raw", *one).query for one in ((0, 0), (0, 1), (1, 0), (0, 0))]
    assert len({float(draw[0, 0]) for draw in draws}) == 3
    assert torch.equal(draws[0], draws[-1])


# Networks


def test_kernels_share_the_first_stage_and_pairs_the_second(trainings: mock.Mock) -> None:
    kernels, pairs = ("softmax", "gaussian"), (0, 1)
    cells = [cell(kernel=kernel, pair=pair) for kernel in kernels for pair in pairs]
    results = trained(*cells)
    assert sorted(call.args[4] for call in trainings.call_args_list) == [1, 2, 2]
    numbers = [result.measurements for result in results]
    assert numbers[0]["centre_loss"] == numbers[1]["centre_loss"] != numbers[2]["centre_loss"]
    assert len({number["rms_laplacian"] for number in numbers}) == 4
    # What only shapes the surface trains nothing anew; another seed does.
    trained(cell(points=5), cell(directions="raw"), cell(loss_samples=3), cell(spacing=0.1))
    assert trainings.call_count == 3
    trained(cell(seed=1))
    assert trainings.call_count == 5


def test_what_is_kept_changes_no_number(
    trainings: mock.Mock, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = [cell(kernel=kernel, points=5) for kernel in ("softmax", "gaussian")]
    first = trained(*cells)
    count = trainings.call_count
    assert same(trained(*cells), first)
    assert trainings.call_count == count
    monkeypatch.setenv("OVERFIT_CACHE", str(cache / "other"))
    assert same(trained(*reversed(cells)), first[::-1])
    assert trainings.call_count == 2 * count
    # Where nothing can be kept, the first stage is trained whenever it is needed.
    (cache / "file").write_text("in the way")
    monkeypatch.setenv("OVERFIT_CACHE", str(cache / "file"))
    assert same(trained(*cells), first)


def test_a_damaged_network_is_trained_anew_alike(trainings: mock.Mock, cache: Path) -> None:
    def other_weights(content: bytes) -> bytes:
        weights, changed = torch.load(io.BytesIO(content), weights_only=True), io.BytesIO()
        weights.pop("classes.bias")
        torch.save({name: values + 1 for name, values in weights.items()}, changed)
        return changed.getvalue()

    first = trained(cell())
    damages = (lambda content: content[:300], lambda _: b"not a network", other_weights)
    for count, damage in enumerate(damages):
        files = [*(cache / "networks").glob("*/network.pt")]
        assert len(files) == 2
        for file in files:
            file.write_bytes(damage(file.read_bytes()))
        assert same(trained(cell()), first)
        assert trainings.call_count == 4 + 2 * count


def test_the_second_stage_goes_on_from_the_first_with_the_next_minibatches() -> None:
    """Under SGD without dropout, 3 and 2 steps with softmax are 5 steps."""
    plain: dict[str, Any] = {"optimiser": "sgd", "learning_rate": 0.1, "dropout": 0.0}
    [two_stages] = trained(cell(**plain))
    [at_once] = trained(cell(**plain, training_steps=5, second_steps=0))
    loss = at_once.measurements["centre_loss"]
    assert two_stages.measurements["centre_loss"] == pytest.approx(loss, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("content", [None, "cut short", "a folder"])
def test_a_killed_surface_goes_on_to_the_same_numbers(
    cache: Path, monkeypatch: pytest.MonkeyPatch, content: str | None
) -> None:
    """And begins anew where what was kept of it is damaged, or something else."""
    monkeypatch.setattr(plane, "SAVED_EVERY", -1.0)
    monkeypatch.setattr(plane, "BLOCK", 4)
    undisturbed, losses, evaluated = trained(cell()), Plane.losses, 0

    def killed(self: Plane, points: torch.Tensor) -> torch.Tensor:
        nonlocal evaluated
        evaluated += len(points)
        if evaluated == 20:
            raise Interrupted
        return losses(self, points)

    monkeypatch.setattr(Plane, "losses", killed)
    with pytest.raises(Interrupted):
        trained(cell())
    [file] = (cache / "surfaces").iterdir()
    if content == "a folder":
        file.unlink()
        file.mkdir()
    elif content:
        file.write_bytes(file.read_bytes()[:-40])
    assert same(trained(cell()), undisturbed)
    assert evaluated == 20 + 36 - (0 if content else 16)
    assert not file.is_file()


# Metrics


AT = plane.offsets(50, 0.02)
A, B = np.meshgrid(AT, AT, indexing="ij")


def test_offsets_are_the_papers() -> None:
    assert AT.tolist() == pytest.approx([0.02 * (r - 25) for r in range(1, 51)])
    assert plane.offsets(5, 1).tolist() == [-1, 0, 1, 2, 3]


BOWL = 2 + (A - 0.1) ** 2 + 3 * (B + 0.2) ** 2 + 0.5 * A * B
WAVES = np.cos(10 * np.pi * A) + np.cos(10 * np.pi * B)
"""Lowest at ±0.1 and ±0.3; those at ±0.5 lie on or off the edge."""


@pytest.mark.parametrize(
    ("surface", "minima", "laplacian"),
    [
        (BOWL, 1, pytest.approx(8, rel=1e-9)),
        (-BOWL, 0, pytest.approx(8, rel=1e-9)),
        *((flat, 0, pytest.approx(0, abs=1e-9)) for flat in (A + 2 * B, A**2 - B**2, 0 * A + 0.7)),
        (WAVES, 16, pytest.approx((10 * np.pi) ** 2 * np.sqrt(np.mean(WAVES**2)), rel=0.1)),
    ],
    ids=["bowl", "hill", "slope", "saddle", "flat", "waves"],
)
def test_a_surface_has_its_own_minima_and_laplacian(
    surface: np.ndarray, minima: int, laplacian: object
) -> None:
    assert plane.interior_minima(surface) == minima
    assert plane.rms_laplacian(surface, 0.02) == laplacian


def test_minima_are_below_all_eight_neighbours_and_off_the_edge() -> None:
    for lowest, count in (([0, 2], 0), ([2, 0], 0), ([4, 2], 0), ([2, 4], 0), ([2, 2], 1)):
        surface = np.ones((5, 5))
        surface[*lowest] = 0
        assert plane.interior_minima(surface) == count
    for tied in ((1, 1), (1, 2), (3, 1), (2, 3)):
        both = surface.copy()
        both[tied] = 0
        assert plane.interior_minima(both) == 0


# The study


@pytest.mark.parametrize("task", ["text", pytest.param("pathfinder", marks=pytest.mark.slow)])
def test_a_surface_is_logged_point_by_point_around_the_networks_loss(task: str) -> None:
    sample_cell = cell(task=task, **(PIXELS if task == "pathfinder" else {}))
    [result] = trained(sample_cell)
    assert (result.status, result.steps) == ("done", 5)
    assert result.measurements.keys() == {column.name for column in study.columns}
    logged = result.trajectory
    assert logged.keys() == {"step", *(column.name for column in study.trajectory_columns)}
    assert list(logged["step"]) == list(range(36))
    points = itertools.product(plane.offsets(6, 0.02), repeat=2)
    assert list(zip(logged["a"], logged["b"], strict=True)) == list(points)
    surface = np.array(logged["loss"]).reshape(6, 6)
    got = result.measurements
    assert surface[2, 2] == pytest.approx(got["centre_loss"], rel=1e-12)
    assert got["rms_laplacian"] == plane.rms_laplacian(surface, 0.02)
    assert got["interior_minima"] == plane.interior_minima(surface)
    parameters = sample_cell.parameters
    samples = study.task(parameters, 0)
    model = plane.trained_network(parameters, samples, 0, 2, "cpu")
    batch = fixed_batch(parameters, samples, 0)
    assert len(batch.labels) == 5
    assert got["centre_loss"] == evaluate(model, batch, "cpu")["test_loss"]
    assert f"around a loss of {got['centre_loss']:.4f}" in study.summary(result)


# The figure


def test_the_surface_that_is_shown_is_the_one_nearest_the_medians() -> None:
    """The first one may be an outlier."""
    measures = {name: [9.0, 1.0, 2.0, 3.0, 0.0] for name in MEASURES}
    cells = pd.DataFrame({"seed": range(5), "pair": 0, "kernel": "softmax", **measures})
    assert most_typical(cells, ["kernel"]) == (2, 0)


def ramps() -> list[Surface]:
    """One rises from 0 to 1 along the first direction, the other from 0 to 4 along the second."""
    across, up = np.linspace(-1, 1, 5), np.linspace(-1, 1, 7)
    first, second = np.meshgrid((across + 1) / 2, 2 * (up + 1), indexing="ij")
    return [Surface("a ramp", across, up, first), Surface("a steeper one", across, up, second)]


def test_surfaces_share_a_bar_have_a_unit_of_small_heights_and_contours_across_their_rise() -> None:
    small = [surface._replace(heights=surface.heights / 10_000) for surface in ramps()]
    figure = draw_surfaces(small, "height")
    [bar] = [axes for axes in figure.axes if axes.get_label() == "<colorbar>"]
    assert bar.get_ylabel() == r"$height\ (10^{-4})$"
    [solid, _] = [axes for axes in figure.axes if axes.name == "3d"]
    assert solid.get_zlim() == pytest.approx((0, 4))  # type: ignore[attr-defined]
    assert len(solid.get_xticklabels()) > 0
    right, up = (axes for axes in figure.axes if axes.get_xlabel().startswith("direction"))
    for axes, side in ((right, 0), (up, 1)):
        lowest = corners(axes.collections[0])
        assert lowest[:, side].max() < 0.5
        assert lowest[:, 1 - side].max() == pytest.approx(1)
