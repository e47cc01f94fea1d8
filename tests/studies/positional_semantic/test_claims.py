"""Claims on Cui et al. 2024, on cells in which they are true, false, or not to be told."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import overfit_cli
from calibration import positional_semantic as worlds
from calibration.rates import design
from overfit_cli.studies.positional_semantic.claims import published_theory
from overfit_cli.studies.positional_semantic.transition import transitions
from tests.judged import measure

RANDOM = np.random.default_rng(0)


def crossing(preset: str, ratio: float) -> pd.DataFrame:
    """Cells whose transitions lie at so many times the limit's, a little off by seed."""
    cells = design(preset)
    ratios = ratio * np.exp(0.01 * RANDOM.standard_normal(1000))[cells["seed"]]
    return worlds._crossing(cells, ratios, RANDOM)


@pytest.mark.parametrize("claim", ["transition", "beats-linear"])
@pytest.mark.parametrize(("ratio", "verdict"), [(1.0, "holds"), (1.3, "fails"), (0.7, "fails")])
def test_a_transition_is_held_to_the_limit_from_both_sides(
    claim: str, ratio: float, verdict: str
) -> None:
    assert measure(claim, crossing("positional-published", ratio)).verdict == verdict


def test_measured_transitions_are_where_they_were_put() -> None:
    table = transitions(crossing("positional-phase", 1.1), "energy", "omega")
    inside = table[(table["limit"] < 1.5) & (table["alpha"] > 0)]
    assert len(inside) >= 12
    assert inside["limit"].to_numpy() == pytest.approx(4 * inside["omega"].to_numpy(), rel=0.02)
    assert inside["ratio"].to_numpy() == pytest.approx(1.1, rel=0.08)


def test_a_seeds_transition_lies_between_the_alphas_where_its_losses_change_places() -> None:
    """And a seed with a failed cell there has none."""
    cells = overfit_cli.load("results/positional-phase-quick")
    table = transitions(cells, "energy", "omega").set_index(["omega", "seed"])["alpha"]
    losses = cells.set_index(["omega", "seed", "alpha", "start"])["train_loss"].unstack()
    simple = 0
    differences = losses["semantic"] - losses["positional"]
    for omega, seed in table.index:
        gaps = differences.loc[omega].loc[seed]
        ahead = np.sign(gaps.to_numpy())
        if (np.diff(ahead) != 0).sum() == 1:
            before = int(np.argmax(np.diff(ahead) < 0))
            assert gaps.index[before] <= table[omega, seed] <= gaps.index[before + 1]
            simple += 1
    assert simple > 10
    lost = cells["seed"].eq(0) & cells["omega"].eq(0.3) & cells["start"].eq("semantic")
    cells["train_loss"] = cells["train_loss"].mask(lost)
    table = transitions(cells, "energy", "omega").set_index(["omega", "seed"])["alpha"]
    assert pd.isna(table[0.3, 0])
    assert table[0.3][1:].notna().all()


def test_a_crossing_below_the_sampled_values_decides_nothing() -> None:
    cells = crossing("positional-published", 1.0)
    early = cells["seed"].eq(0) & cells["start"].eq("positional")
    cells["train_loss"] = cells["train_loss"].mask(early, 1e3 * cells["train_loss"])
    assert (transitions(cells, "energy", "omega").query("seed == 0")["alpha"] == 0).all()
    assert measure("transition", cells).verdict == "inconclusive"


def test_a_jump_of_one_overlap_alone_is_no_first_order() -> None:
    cells = crossing("positional-published", 1.0)
    is_semantic, noise = cells["start"] == "semantic", 1e-4 * RANDOM.standard_normal(len(cells))
    theta, m = np.where(is_semantic, 0.5, 0.01), np.where(is_semantic, 0.01, 0.25)
    both = cells.assign(theta=theta + noise, m=m + noise, slope=0.001 + noise)
    assert measure("first-order", both).verdict == "holds"
    assert measure("first-order", both.assign(m=0.25 + noise)).verdict == "fails"
    assert measure("first-order", both.assign(theta=0.5 + noise)).verdict == "fails"
    assert measure("first-order", both.assign(slope=0.2 + noise)).verdict == "fails"


def test_a_limit_of_one_solution_says_nothing_on_the_others_cells() -> None:
    cells = design("positional-published")
    noise = 1e-4 * RANDOM.standard_normal(len(cells))
    near = cells.assign(theta=0.5 + noise, replica_theta=0.5)
    wrong = near.assign(theta=near["theta"].mask(near["start"] == "positional", 0.9))
    claim = "semantic-theta-solved"
    assert measure(claim, wrong).verdict == measure(claim, near).verdict == "holds"
    off = near.assign(theta=near["theta"].mask(near["start"] == "semantic", 0.55 + noise))
    assert measure(claim, off).verdict == "fails"


def test_the_authors_solution_is_met_between_their_values_of_alpha() -> None:
    """The oracle is a straight line between the two nearest of their values."""
    cells = design("positional-published")
    for (start, column), unit in {("semantic", "theta"): 0.004, ("positional", "m"): 0.002}.items():
        solution = published_theory().query(f"start == '{start}'")
        line = np.interp(cells["alpha"].astype(float), solution["alpha"], solution[column])
        for shift, verdict in ((0.0, "holds"), (20 * unit, "fails"), (-20 * unit, "fails")):
            noise = unit * RANDOM.standard_normal(len(cells))
            made = cells.assign(**{column: line + shift + noise})
            assert measure(f"{start}-{column}", made).verdict == verdict
