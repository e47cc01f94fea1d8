"""Worlds that break one clause of a claim on Cui et al. 2024."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from calibration.clauses import Broken, Change
from overfit_cli.claims.papers import Rows
from overfit_cli.core.claim import Verdict
from overfit_cli.studies.positional_semantic import claims
from overfit_cli.studies.positional_semantic.data import teacher_norm

Random = np.random.Generator
Numbers = Callable[[pd.DataFrame], object]
Curve = Callable[[pd.DataFrame, "pd.Series[float]", Random], object]
"""From the rows of a seed's curve along α, and one of its columns, to that column's numbers."""

RUN, SIZES = "positional-published-quick", "positional-sizes-quick"
COLUMNS = ("theta", "m", "test_error", "train_loss")
ERRORS = "semantic-test-error positional-test-error"
THEORY = f"semantic-theta positional-m {ERRORS} semantic-train-loss positional-train-loss"
MEANS = " ".join(f"{name}-published" for name in THEORY.split())
SIDED = " ".join(f"{name}-sided" for name in THEORY.split())
SOLVED = "semantic-theta-solved positional-m-solved"
TRANSITIONS, VANISH = "transition beats-linear", "semantic-m-vanishes positional-theta-vanishes"
ABOVE, STAYS, FIRST = "semantic-theta-above", "semantic-theta-stays-above", "first-order"

Verdicts = tuple[Verdict, ...]
HOLDS: Verdicts = ("holds",)
FAILS: Verdicts = ("fails",)
OPEN: Verdicts = ("inconclusive",)
NEVER = FAILS + OPEN  # of few seeds that a change makes too noisy to tell
NOT_RUN: Verdicts = ("not run",)


def near(beside: claims.Beside, names: Sequence[str]) -> Rows:
    """Cells about the numbers beside them, with a tenth of their own spread."""

    def moved(cells: pd.DataFrame) -> pd.DataFrame:
        for name in names:
            own = cells[name] - cells.groupby(["omega", "alpha", "start"])[name].transform("mean")
            cells[name] = beside(name, cells)["published"].fillna(0.0).to_numpy() + own / 10
        return cells

    return moved


as_kept: Rows = pd.DataFrame.copy
theory, means = near(claims.beside_theory, COLUMNS), near(claims.beside_means, COLUMNS)
sided = near(claims.beside_sided, COLUMNS)
solution = near(lambda name, c: c.assign(published=c[f"replica_{name}"]), ("theta", "m"))
ALL_OMEGA = ((MEANS, means), (SIDED, sided), (SOLVED, solution))


def curves(base: Rows, of: Curve) -> Change:
    """The base with other numbers along each seed's curves of all columns."""

    def changed(cells: pd.DataFrame, random: Random) -> pd.DataFrame:
        cells = base(cells)
        for _, at in cells.sort_values("alpha").groupby(["omega", "start", "seed"]):
            for name in COLUMNS:
                cells.loc[at.index, name] = np.asarray(of(at, at[name], random), float)
        return cells

    return changed


PERMUTED: Curve = lambda at, y, random: random.permutation(y)  # noqa: E731
CURVES: dict[str, Curve] = {
    "constant": lambda at, y, _: np.full(len(y), y.mean()),
    "alternating": lambda at, y, _: y + 0.2 * y.max() * (-1) ** np.arange(len(y)),
    "tilted": lambda at, y, _: y + y.max() * np.where(at["alpha"] < 1, 0.2, -0.2),
    "too large, then too small": lambda at, y, _: y * np.where(at["alpha"] < 1, 1.35, 0.68),
    "at a single one": lambda at, y, _: y - 0.2 * y.max() * at["alpha"].between(0.34, 0.35),
}


def rows(base: Rows, condition: str = "d > 0") -> Change:
    """The base, with fewer of its rows."""
    return lambda cells, _: base(cells).query(condition)


def failed(base: Rows) -> Change:
    """The base with a failed cell of each curve, which has its numbers all the same."""
    return lambda cells, _: base(cells).assign(
        status=cells["status"].mask((cells["alpha"] == 2) & (cells["seed"] % 1000 == 3), "failed")
    )


def without_omega(cells: pd.DataFrame, _: Random) -> pd.DataFrame:
    """The published means averaged over ω."""
    by_place = means(cells).groupby(["alpha", "start", "seed"])
    return cells.assign(**by_place[list(COLUMNS)].transform("mean"))


def noisy(**of: Numbers) -> Change:
    """Columns as functions of the cells, with noise of a hundredth."""

    def changed(cells: pd.DataFrame, random: Random) -> pd.DataFrame:
        noise = np.exp(0.01 * random.standard_normal((len(of), len(cells))))
        made = zip(of.items(), noise, strict=True)
        return cells.assign(**{name: make(cells) * each for (name, make), each in made})

    return changed


def by_norm(factor: float) -> Change:
    """The authors' test errors, times a factor, which change with the norms of the teachers."""

    def errors(cells: pd.DataFrame) -> object:
        norms = cells["seed"].map(lambda seed: teacher_norm(1000, seed)).to_numpy()
        centres = claims.beside_theory("test_error", cells)["published"].to_numpy()
        return factor * centres * norms**3

    return noisy(test_error=errors)


def crossing(early: float, late: float, side: float = 1.0, until: float = 3.0) -> Change:
    """Curves that cross at so many times the limit at ω = 0.1 and 0.3, and at 0.1 back again."""

    def changed(cells: pd.DataFrame, random: Random) -> pd.DataFrame:
        seeds = np.exp(0.02 * random.standard_normal(2000))[cells["seed"]]
        factors = cells["omega"].map({0.1: early, 0.3: late, 0.5: 1.0}).to_numpy() * seeds
        back = np.where((cells["alpha"] > until) & (cells["omega"] == 0.1), -1.0, side)

        def logs(transition: claims.Transition) -> pd.Series[float]:
            limits = claims.transitions(cells, transition).groupby("omega")["limit"].first()
            at = factors * cells["omega"].map(limits).fillna(3.0) / cells["alpha"]
            return pd.Series(back * np.log(at), cells.index)

        losses = 3 + 0.1 * logs("energy").where(cells["start"] == "semantic", 0.0)
        errors = cells["linear_test_error"] * np.exp(0.3 * logs("linear"))
        return cells.assign(train_loss=losses, test_error=errors)

    return changed


def merged(cells: pd.DataFrame, random: Random) -> pd.DataFrame:
    """Cells that cross at the limit, with a second solution for α from 0.6 to 1.5 alone."""
    is_one = (cells["start"] == "positional") & ~cells["alpha"].between(0.6, 1.5)
    return crossing(1.0, 1.0)(cells, random).assign(m=cells["m"].mask(is_one, 0.01))


def vanishing(of: Numbers) -> Change:
    """Cells of several d with m, and a θ as much larger as its margin is."""
    return noisy(m=of, theta=lambda c: 2.4 * np.asarray(of(c), float))


STAYING: dict[str, Numbers] = {
    "0: an intercept": lambda c: 0.02 + 0.5 / c["d"] ** 0.5,
    "0: constant": lambda c: 0 * c["d"] + 0.05,
    "as 1/d: slower": lambda c: 0.2 / c["d"] ** 0.2,
    "8 α: half constant": lambda c: np.where(c["alpha"] < 1.2, 0.06, 6 / c["d"]),
    "8 α: one constant": lambda c: np.where(c["alpha"] == 2, 0.12, 3 / c["d"]),
    "8 α: half grow": lambda c: (c["d"] / 200) ** np.where(c["alpha"] < 1.2, 0.2, -1.2) / 10,
}


def excess(of: Numbers) -> Change:
    """θ from the teacher beyond the authors' solution."""
    return noisy(theta=lambda c: claims.beside_theory("theta", c)["published"].to_numpy() + of(c))


def stopped(**of: Numbers) -> Change:
    """Trainings that have come to rest, with other columns."""
    return noisy(**{"slope": lambda c: np.full(len(c), 0.001), **of})


BROKEN = (
    *(
        world
        for names, base in ((THEORY, theory), *ALL_OMEGA)
        for world in (
            Broken(names, "nothing", RUN, rows(base), HOLDS),
            Broken(names, "permuted", RUN, curves(base, PERMUTED), NEVER),
            *(Broken(names, how, RUN, curves(base, of)) for how, of in CURVES.items()),
            Broken(names, "25 α", RUN, rows(base, "alpha < 1"), NOT_RUN),
            Broken(names, "from 0.01 to 2", RUN, rows(base, "alpha == 2"), NOT_RUN),
            Broken(names, "ends", RUN, failed(base), OPEN),
            Broken(names, "ω", RUN, rows(base, "omega != 0.3"), NOT_RUN),
        )
    ),
    *(
        Broken(names, "each ω", RUN, curves(base, lambda at, y, _: y * (1.3 - at["omega"])))
        for names, base in ALL_OMEGA
    ),
    Broken(MEANS, "each ω: the same curve", RUN, without_omega, NEVER),
    Broken(ERRORS, "‖Q⋆‖² = d: small teachers", RUN, by_norm(1.0), HOLDS),
    Broken(ERRORS, "‖Q⋆‖² = d: hidden by small teachers", RUN, by_norm(1.12)),
    Broken(ABOVE, "more than a twentieth", RUN, rows(theory)),
    Broken(ABOVE, "each of 4 α", RUN, curves(as_kept, CURVES["at a single one"]), NEVER),
    Broken(ABOVE, "with few samples", RUN, rows(as_kept, "alpha > 0.4"), NOT_RUN),
    Broken(STAYS, "nothing", SIZES, excess(lambda c: 0.06), HOLDS),
    Broken(STAYS, "0.015 more", SIZES, excess(lambda c: 0.0)),
    Broken(STAYS, "half as much", SIZES, excess(lambda c: 2 / c["d"] ** 0.5)),
    Broken(STAYS, "above", SIZES, excess(lambda c: -0.06)),
    Broken(STAYS, "above: below, and vanishing", SIZES, excess(lambda c: -6 / c["d"])),
    Broken(STAYS, "d = 800", SIZES, rows(as_kept, "d < 800"), NOT_RUN),
    Broken(VANISH, "nothing", SIZES, vanishing(lambda c: 0.3 / c["d"] ** 0.5), HOLDS),
    Broken(VANISH, "nothing: faster", SIZES, vanishing(lambda c: 3 / c["d"]), HOLDS),
    Broken(VANISH, "0", SIZES, vanishing(lambda c: 0.01 + 0.2 / c["d"] ** 0.5), NEVER),
    *(Broken(VANISH, clause, SIZES, vanishing(of)) for clause, of in STAYING.items()),
    Broken(VANISH, "d", SIZES, rows(as_kept, "d != 400"), NOT_RUN),
    Broken(TRANSITIONS, "nothing", RUN, crossing(1.0, 1.0), HOLDS),
    Broken(TRANSITIONS, "each ω: of both signs", RUN, crossing(1.3, 0.75)),
    Broken(TRANSITIONS, "each ω: one of them", RUN, crossing(1.0, 0.8)),
    Broken(TRANSITIONS, "below, and above", RUN, crossing(1.0, 1.0, side=-1.0), NEVER),
    Broken(TRANSITIONS, "above: and back again", RUN, crossing(1.0, 1.0, until=1.6), NEVER),
    Broken("transition", "the positional solution: at few α", RUN, merged, NEVER),
    Broken(TRANSITIONS, "each ω", RUN, rows(as_kept, "omega != 0.1"), NOT_RUN),
    Broken(f"{TRANSITIONS} {FIRST}", "ends", RUN, failed(as_kept), OPEN),
    Broken(FIRST, "nothing", RUN, stopped(), HOLDS),
    Broken(FIRST, "θ", RUN, stopped(theta=lambda c: np.where(c["omega"] == 0.3, 0.2, c["theta"]))),
    Broken(FIRST, "m", RUN, stopped(m=lambda c: np.where(c["omega"] == 0.1, 0.1, c["m"]))),
    Broken(FIRST, "minima", RUN, stopped(slope=lambda c: np.where(c["m"] < 0.1, 0.2, 0.001))),
    Broken(FIRST, "both", RUN, rows(as_kept, "start == 'semantic'"), NOT_RUN),
)
