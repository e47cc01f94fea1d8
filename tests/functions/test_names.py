"""Names of columns that are taken fail cells; `steps` means what its place says."""

from __future__ import annotations

from pathlib import Path

import pytest

import overfit_cli
from overfit_cli.core.cell import ROW_COLUMNS
from tests.command import call, run
from tests.functions.mine import drawn, swept, written


@pytest.mark.parametrize("given", ["seed", "seed=7", "seed=None", "seed: int | None = None"])
def test_a_seed_may_have_any_default_that_is_one(tmp_path: Path, given: str) -> None:
    cells = swept(tmp_path, f"def train({given}): return {{'loss': 1.0 * seed}}\n", "--seeds=2")
    assert sorted(cells["loss"]) == [0.0, 1.0]


@pytest.mark.parametrize("name", sorted({*ROW_COLUMNS, "n"}))
def test_a_cell_that_gives_a_column_whose_name_is_taken_fails_and_is_told_another_one(
    tmp_path: Path, name: str
) -> None:
    written(tmp_path, f"def f(n: int = 1):\n  row = {{'loss': n, '{name}': 1}}\n  return row\n")
    done = run("sweep", "mine.py", "--n=1:2", "--jobs=1", cwd=tmp_path, expect=1)
    why = f"a column can't be called '{name}', which every row has already; call it my_{name}"
    assert f"2 failed (2 error: {why})" in done.stdout


# Steps: along an axis and in a condition the parameter, as a measured value those that were taken

STEPS = """
def train(n: int = 2, steps: int = 8, seed: int = 0):
    for t in range(min(n, steps)):  # it ends early
        yield {"loss": n + 1.0 / (1 + t) + seed / 1e3}
    return {"final": n / steps * (1 + seed / 1e3)}
"""
SIX_SEEDS = ("--n=2,4,8", "--steps=4,8,16,32", "--seeds=6")


@pytest.fixture(scope="module")
def stepped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a sweep `out` over steps."""
    folder = tmp_path_factory.mktemp("steps")
    swept(folder, STEPS, *SIX_SEEDS)
    return folder


def test_the_parameter_steps_is_stored_as_training_steps(stepped: Path) -> None:
    cells = overfit_cli.load(stepped / "out")
    assert {*cells["training_steps"]} == {4, 8, 16, 32}
    assert [*cells["steps"]] == [*cells[["n", "training_steps"]].min(axis=1)], "those taken"
    result = overfit_cli.train(stepped / "mine.py", steps=1, out=stepped / "a", quiet=True)
    assert result.steps == 1


def test_a_function_that_yields_nothing_takes_the_steps_that_it_is_told(tmp_path: Path) -> None:
    plain = "def train(n: int = 2, steps: int = 8): return {'final': n / steps}\n"
    cells = swept(tmp_path, plain, *SIX_SEEDS[:2])
    assert [*cells["steps"]] == [*cells["training_steps"]]
    for kind in ("steps: str = 'many'", "steps: bool = True", "steps: float = 0.5"):
        file = written(tmp_path, f"def train({kind}): return {{'loss': 1.0}}\n")
        assert overfit_cli.train(file, out=tmp_path / "b", quiet=True).steps == 0


CLAIMS = (
    "power of n in steps is 1 within 0.01 where steps > 4",  # it takes n of the limit
    "power of n in training_steps is 0 within 0.01",
    "power of steps in final is -1 within 0.01",
    "power of training_steps in final is -1 within 0.01",
    "final falls along steps",
    "final[steps=8] > final[steps=16]",
    "final < 0.6 where steps > 8",
    "final * training_steps / n is 1 within 0.01",
    "steps - n is 0 within 0.01 where steps > 4",
    "power of n in steps at final = 0.3 is 1 within 0.1",  # of two axes, the parameter
)


def test_a_claim_takes_steps_by_their_place(stepped: Path) -> None:
    judged = overfit_cli.judge(stepped / "out", *CLAIMS)
    verdicts = {item.claim.statement: item.measurement.verdict for item in judged}
    assert verdicts == dict.fromkeys(CLAIMS, "holds")


@pytest.mark.slow
def test_figures_exports_and_conditions_take_steps_by_their_place(stepped: Path) -> None:
    chosen = overfit_cli.load(stepped / "out", where="steps=16")
    assert {*chosen["training_steps"]} == {16}
    exported = call("export", "out", "--where=steps=8:16", "--columns=steps", cwd=stepped)
    header, *rows = exported.stdout.splitlines()
    assert header == "n,training_steps,seed,steps"
    assert {row.split(",")[1] for row in rows} == {"8", "16"}
    assert all(row.split(",")[0] == row.split(",")[3] for row in rows)
    for options, caption in (
        (("lines", "--x=steps", "--by=n"), "Final against training steps"),
        (("lines", "--x=n", "--value=steps"), "Steps against n"),
        (("lines", "--x=n", "--value=2*training_steps"), "against n"),
        (("heatmap", "--law=n = steps"), "Line: n = training_steps"),
    ):
        assert caption in drawn(stepped, *options)
