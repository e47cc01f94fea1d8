"""Names that are taken are refused before a cell is trained; `steps` means what its place says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import overfit_cli
from overfit_cli.core.cell import ROW_COLUMNS
from tests.command import call, run

PARAMETERS = {
    **{name: f"{name}: int = 3" for name in ROW_COLUMNS - {"seed", "steps"}},
    "step": "step: int = 3",
    "copy": "copy: int = 3",
    "json": "json: str = 'a'",
    "model_fields": "model_fields: int = 3",
}
"""Parameters with names that columns of rows have, or the model that parameters are."""


def written(folder: Path, text: str) -> Path:
    (folder / "mine.py").write_text(text)
    return folder / "mine.py"


def refusal(folder: Path, text: str) -> str:
    """The sentence that refuses a file, to sweep and to train, before anything is written."""
    written(folder, text)
    sentences = {
        call(command, "mine.py", cwd=folder, expect=2).stderr for command in ("sweep", "train")
    }
    assert not (folder / "results").exists()
    [sentence] = sentences
    assert len(sentence.splitlines()) == 1
    return sentence


# Parameters


@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_a_parameter_whose_name_is_taken_is_refused_with_another(tmp_path: Path, name: str) -> None:
    said = refusal(tmp_path, f"def train({PARAMETERS[name]}): return {{'loss': 1.0}}\n")
    assert said.startswith(f"overfit: mine.py: train, parameter {name}: ")
    assert said.endswith(f"call it something else, such as my_{name}.\n")


@pytest.mark.parametrize("given", ["seed=0.5", "seed='a'", "seed=True", "seed: float = 0.1"])
def test_a_parameter_seed_is_the_cells_seed_or_refused(tmp_path: Path, given: str) -> None:
    said = refusal(tmp_path, f"def train({given}): return {{'loss': 1.0}}\n")
    assert (
        "parameter seed: it receives the cell's seed, an int; call anything else my_seed." in said
    )


@pytest.mark.parametrize("given", ["seed", "seed=7", "seed=None", "seed: int | None = None"])
def test_a_seed_may_have_any_default_that_is_one(tmp_path: Path, given: str) -> None:
    written(tmp_path, f"def train({given}): return {{'loss': 1.0 * seed}}\n")
    run("sweep", "mine.py", "--seeds=2", "--jobs=1", "--out=out", cwd=tmp_path)
    assert sorted(overfit_cli.load(tmp_path / "out")["loss"]) == [0.0, 1.0]


@pytest.mark.slow
def test_steps_beside_training_steps_is_refused(tmp_path: Path) -> None:
    text = "def train(steps: int = 3, training_steps: int = 3): return {'loss': 1.0}\n"
    assert "have one name, training_steps" in refusal(tmp_path, text)


# Columns


@pytest.mark.parametrize("said", ["columns=[Column('seed', 'a seed')]", "headline='seed'"])
def test_a_column_whose_name_is_taken_is_refused_where_the_decorator_has_it(
    tmp_path: Path, said: str
) -> None:
    text = f"from overfit_cli import Column, experiment\n@experiment({said})\n"
    refused = refusal(tmp_path, text + "def train(n: int = 1): return {'loss': n}\n")
    assert "a column can't be called 'seed', which every row has already" in refused


@pytest.mark.parametrize("name", sorted({*ROW_COLUMNS, "n"}))
def test_a_column_whose_name_is_taken_stops_the_sweep_at_its_first_cell(
    tmp_path: Path, name: str
) -> None:
    written(tmp_path, f"def f(n: int = 1):\n  row = {{'loss': n, '{name}': 1}}\n  return row\n")
    done = run("sweep", "mine.py", "--n=1:9", "--jobs=1", cwd=tmp_path, expect=1)
    why = f"a column can't be called '{name}', which every row has already; call it my_{name}."
    assert f"Stopped: {why} 8 cells were not run." in done.stdout
    assert len(overfit_cli.load(tmp_path / "results" / "mine-n")) == 1


# Steps: along an axis and in a condition the parameter, as a measured value those that were taken

STEPS = """
def train(n: int = 2, steps: int = 8, seed: int = 0):
    for t in range(min(n, steps)):  # it ends early
        yield {"loss": n + 1.0 / (1 + t) + seed / 1e3}
    return {"final": n / steps * (1 + seed / 1e3)}
"""
PLAIN = """
def train(n: int = 2, steps: int = 8, seed: int = 0):
    return {"final": n / steps * (1 + seed / 1e3)}
"""
SIX_SEEDS = ("--n=2,4,8", "--steps=4,8,16,32", "--seeds=6", "--jobs=1", "--out=out")


def swept(folder: Path, text: str) -> Path:
    written(folder, text)
    run("sweep", "mine.py", *SIX_SEEDS, cwd=folder)
    return folder / "out"


def test_the_parameter_steps_is_stored_as_training_steps(tmp_path: Path) -> None:
    cells = overfit_cli.load(swept(tmp_path, STEPS))
    assert {*cells["training_steps"]} == {4, 8, 16, 32}
    assert [*cells["steps"]] == [*cells[["n", "training_steps"]].min(axis=1)], "those taken"
    result = overfit_cli.train(tmp_path / "mine.py", steps=1, out=tmp_path / "a", quiet=True)
    assert result.steps == 1


def test_a_function_that_yields_nothing_takes_the_steps_that_it_is_told(tmp_path: Path) -> None:
    cells = overfit_cli.load(swept(tmp_path, PLAIN))
    assert [*cells["steps"]] == [*cells["training_steps"]]
    for kind in ("steps: str = 'many'", "steps: bool = True", "steps: float = 0.5"):
        written(tmp_path, f"def train({kind}): return {{'loss': 1.0}}\n")
        assert overfit_cli.train(tmp_path / "mine.py", out=tmp_path / "b", quiet=True).steps == 0


CLAIMS = {
    "power of n in steps is 1 within 0.01 where steps > 4": "holds",  # it takes n of the limit
    "power of n in training_steps is 0 within 0.01": "holds",
    "power of steps in final is -1 within 0.01": "holds",
    "power of training_steps in final is -1 within 0.01": "holds",
    "final falls along steps": "holds",
    "final[steps=8] > final[steps=16]": "holds",
    "final < 0.6 where steps > 8": "holds",
    "final * training_steps / n is 1 within 0.01": "holds",
    "steps - n is 0 within 0.01 where steps > 4": "holds",
    "power of n in steps at final = 0.3 is 1 within 0.1": "holds",  # of two axes, the parameter
}


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The verdict on each claim, on cells whose seeds differ a little."""
    out = swept(
        tmp_path_factory.mktemp("steps"), STEPS.replace("range(min", "range(seed * 0 + min")
    )
    judged = overfit_cli.judge(out, *CLAIMS)
    return {item.claim.statement: item.measurement.verdict for item in judged}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_claim_takes_steps_by_their_place(verdicts: dict[str, str], claim: str) -> None:
    assert verdicts[claim] == CLAIMS[claim]


@pytest.mark.slow
def test_figures_exports_and_conditions_take_steps_by_their_place(tmp_path: Path) -> None:
    out = swept(tmp_path, STEPS)
    chosen = overfit_cli.load(out, where="steps=16")
    assert {*chosen["training_steps"]} == {16}
    exported = call("export", "out", "--where=steps=8:16", "--columns=steps", cwd=tmp_path)
    header, *rows = exported.stdout.splitlines()
    assert header == "n,training_steps,seed,steps"
    assert {row.split(",")[1] for row in rows} == {"8", "16"}
    assert all(row.split(",")[0] == row.split(",")[3] for row in rows)
    for options, caption in (
        (("--x=steps", "--by=n"), "Final against training steps"),
        (("--x=n", "--value=steps"), "Steps against n"),
        (("--x=n", "--value=2*training_steps"), "against n"),
    ):
        call("plot", "lines", *options, "--from=out", "--out=a.svg", cwd=tmp_path)
        assert caption in (tmp_path / "a.txt").read_text()
    call("plot", "heatmap", "--law=n = steps", "--from=out", "--out=a.svg", cwd=tmp_path)
    assert re.search("Line: n = training_steps", (tmp_path / "a.txt").read_text())
