"""Parts of a step and largest changes of the kernel, against slow oracles; powers of λ on cells."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import optimize

from calibration.rates import design, worlds_of
from overfit_cli.core.registry import find_study
from overfit_cli.core.training import named_rng
from overfit_cli.studies.softmax_network.activations import Network, gram_matrix
from overfit_cli.studies.softmax_network.convergence.engine import largest_drift, step_parts
from overfit_cli.studies.softmax_network.convergence.study import study
from overfit_cli.studies.softmax_network.convergence.widths import by_data, table1_steps
from overfit_cli.studies.softmax_network.paper import Activation
from overfit_cli.studies.softmax_network.reference import plain_network
from tests.judged import claims_by_name, measure
from tests.training import cell_of, train_in_batches

CLAIMS = claims_by_name("softmax-convergence")
WORLDS = worlds_of(find_study("softmax-convergence"))
trained = partial(train_in_batches, study, trajectories=True)


def network(activation: Activation, m: int, n: int = 3) -> tuple[Network, torch.Tensor]:
    """A network of m hidden units and d = 2, and n inputs, in a batch of one."""
    random = np.random.default_rng(5)
    weights = torch.tensor(random.normal(size=(1, m, 2)))
    signs = torch.tensor(random.choice([-1.0, 1.0], (1, 2, m)))
    x = torch.tensor(random.normal(size=(1, n, 2)))
    return Network(activation, weights, signs), x / x.norm(dim=-1, keepdim=True)


def test_the_parts_of_a_step_are_those_of_lemma_e1() -> None:
    """Term by term, in loops over units; together they are the change of ‖F − Y‖², to 1e-12."""
    net, x = network("softmax", 6)
    y, eta = torch.ones(1, 3, 2, dtype=torch.float64), 0.01
    out = net.forward(x)
    parts = step_parts(out, out.values - y, torch.tensor([eta], dtype=torch.float64))
    gradient = out.gradient(out.values - y)[0]
    before, after = net.weights[0], net.weights[0] - eta * gradient
    v = out.values[0] - y[0]
    c0 = c1 = c2 = 0.0
    for i, point in enumerate(x[0]):
        old, new = (torch.exp(weights @ point) for weights in (before, after))
        for output, signs in enumerate(net.signs[0]):
            v0 = v1 = v2 = 0.0
            for r, sign in enumerate(signs):
                dz = float(-eta * gradient[r] @ point)
                v0 += 6 * float(sign * (1 / new.sum() - 1 / old.sum()) * new[r])
                v1 += 6 * float(sign * old[r] / old.sum()) * dz
                v2 += 6 * float(sign / old.sum() * (new[r] - old[r] * (1 + dz)))
            c0, c1, c2 = (
                total + 2 * float(v[i, output]) * part
                for total, part in ((c0, v0), (c1, v1), (c2, v2))
            )
    assert [float(parts.c0), float(parts.c1)] == pytest.approx([c0, c1], rel=1e-9)
    moved = plain_network("softmax", x[0], after, net.signs[0])
    change = (moved - y[0]).square().sum() - v.square().sum()
    c3 = (moved - out.values[0]).square().sum()
    assert c0 + c1 + c2 + float(c3) == pytest.approx(float(change), rel=1e-11)
    assert float(parts.longest) == pytest.approx(float(gradient.norm(dim=1).max()))


@pytest.mark.parametrize("activation", ["softmax", "exp"])
def test_ascent_finds_what_a_search_over_all_directions_finds(activation: Activation) -> None:
    """Three units in the plane: a general optimiser over their three angles, to 0.002."""
    net, x = network(activation, 3)
    gram, radius = gram_matrix(net.forward(x)), 1e-3

    def drift(angles: np.ndarray) -> float:
        step = radius * torch.tensor(np.stack([np.cos(angles), np.sin(angles)], -1))
        moved = Network(activation, net.weights + step, net.signs)
        return -float((gram_matrix(moved.forward(x)) - gram).norm())

    box = optimize.Bounds(np.zeros(3), np.full(3, 2 * math.pi))
    best = -optimize.differential_evolution(drift, box, seed=0, tol=1e-8, maxiter=60).fun
    directions = torch.tensor(np.random.default_rng(6).normal(size=(4, 1, 3, 2)))
    found = float(largest_drift(net, x, directions, radius)) * radius * 3 * 2
    assert found == pytest.approx(best, rel=2e-3)


def test_no_weights_within_r_change_relus_kernel_by_more_than_the_count() -> None:
    net, x = network("relu", 200)
    gram, radius = gram_matrix(net.forward(x)), 0.05
    bound = float(largest_drift(net, x, torch.empty(0), radius)) * radius * 3 * 2
    random = np.random.default_rng(7)
    found = []
    for _ in range(200):
        step = torch.tensor(random.normal(size=(1, 200, 2)))
        step = radius * step / step.norm(dim=-1, keepdim=True)
        moved = Network("relu", net.weights + step, net.signs)
        found.append(float((gram_matrix(moved.forward(x)) - gram).norm()))
    assert 0.2 * bound < max(found) <= bound


def test_a_cell_keeps_the_worst_of_its_steps() -> None:
    [result] = trained(cell_of(study, {"m": 64, "n": 4}))
    steps, numbers = result.trajectory, result.measurements
    assert numbers["c1"] == max(steps["c1"]) == pytest.approx(-2.0), "F is 0 at the start"
    assert numbers["lambda_lost"] == pytest.approx(
        1 - min(steps["lambda_min"]) / numbers["lambda_start"], abs=1e-12
    )
    assert numbers["step_length"] < 0.05
    assert "c0_over_bound" not in steps
    [relu] = trained(cell_of(study, {"m": 64, "n": 4, "activation": "relu"}))
    assert "c1" not in relu.measurements


def test_relu_units_that_never_flip_leave_a_cell_whole() -> None:
    """Neither H nor K changes then, and the bound of Theorem F.2 is zero."""
    [result] = trained(
        cell_of(
            study, {"activation": "relu", "m": 8, "n": 2, "step_factor": 1e-6, "training_steps": 3}
        )
    )
    assert result.measurements["kernel_drift"] == 0
    assert "gap_over_bound" not in result.measurements


def true_cells(name: str) -> pd.DataFrame:
    return WORLDS[name].true(design(CLAIMS[name].preset), named_rng(0, "doctored", name))


def test_steps_without_lambda_do_not_collapse() -> None:
    cells = true_cells("softmax-steps-collapse")
    assert measure("softmax-steps-collapse", cells).verdict == "holds"
    varied = cells.assign(lambda_start=np.where(cells["activation"] == "relu", 0.1, 1.0))
    assert measure("softmax-steps-collapse", varied).verdict == "fails"
    late = varied.assign(steps_to_epsilon=3 * table1_steps(varied))
    lost = (late["seed"] == 0) & (late["n"] == 3)
    late.loc[lost, ["status", "reason"]] = "failed", "step limit"
    late.loc[lost, "steps_to_epsilon"] = np.nan
    assert measure("softmax-steps-collapse", late).verdict == "inconclusive"
    assert measure("softmax-steps-lambda-power", late).verdict == "inconclusive"


def test_widths_are_measured_for_each_kind_of_data_by_itself() -> None:
    cells = pd.DataFrame({"data": ["sphere", "sphere", "digits"], "d": [2, 4, 2], "m": 8})
    table = by_data(cells, lambda part: pd.DataFrame({"count": [len(part)]}))
    assert table[["count", "data", "d"]].to_numpy().tolist() == [
        [1, "sphere", 2],
        [1, "sphere", 4],
        [1, "digits", 2],
    ]


def test_one_output_and_several_are_judged_apart() -> None:
    several = true_cells("softmax-linear-rate-outputs").assign(rate_ratio=2.0)
    one = true_cells("softmax-linear-rate")
    both = pd.concat([one, several], ignore_index=True)
    assert measure("softmax-linear-rate", both).verdict == "holds"
    assert measure("softmax-linear-rate-outputs", both).verdict == "fails"


def test_bounds_with_several_outputs_are_judged_where_b_is_least() -> None:
    name = "softmax-lemma53-bound-outputs"
    cells = true_cells(name)
    large = cells["sigma"] == 1
    assert measure(name, cells.assign(movement_over_bound=np.where(large, 9.0, -0.5))) == measure(
        name, cells[~large]
    )
    assert measure(name, cells[large]).verdict == "not run"
    assert measure(name, cells.assign(movement_over_bound=0.1)).verdict == "fails"
