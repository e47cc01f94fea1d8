"""Names of columns that are taken, places of `steps`, and symbols that figures typeset."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.mathtext import MathTextParser

import overfit_cli
from overfit_cli import Column, Parameter
from overfit_cli.core.cell import ROW_COLUMNS
from overfit_cli.core.parameters import describe, is_plain
from overfit_cli.core.text import spaced
from overfit_cli.sweeps.load import study_in
from overfit_cli.sweeps.store import RunDirectory
from tests.command import call
from tests.functions.mine import swept, written


@pytest.mark.parametrize("given", ["seed", "seed=7", "seed=None", "seed: int | None = None"])
def test_a_seed_may_have_any_default_that_is_one(tmp_path: Path, given: str) -> None:
    cells = swept(tmp_path, f"def train({given}): return {{'loss': 1.0 * seed}}\n", "--seeds=2")
    assert sorted(cells["loss"]) == [0.0, 1.0]


def test_a_column_of_a_taken_name_fails_and_is_told_another(tmp_path: Path) -> None:
    names = sorted({*ROW_COLUMNS, "n"})
    text = f"def f(n: int = 1):\n  return {{'loss': n, {names}[n]: 1}}\n"
    failed = swept(tmp_path, text, f"--n=0:{len(names) - 1}", expect=1).set_index("n")["reason"]
    for number, name in enumerate(names):
        why = f"a column can't be called '{name}', which every row has already; call it my_{name}"
        assert why in failed[number]


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
    "final[steps=8] > final[steps=16]",
    "final * training_steps / n is 1 within 0.01",
    "steps - n is 0 within 0.01 where steps > 4",
    "power of n in steps at final = 0.3 is 1 within 0.1",  # of two axes, the parameter
)


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_claim_takes_steps_by_their_place(stepped: Path, claim: str) -> None:
    [judged] = overfit_cli.judge(stepped / "out", claim)
    assert judged.measurement.verdict == ("vacuous" if claim is CLAIMS[1] else "holds")


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
        ("lines --x=steps --by=n", "Final against training steps"),
        ("lines --x=n --value=steps", "Steps against n"),
        ("lines --x=n --value=2*training_steps", "against n"),
        ("heatmap --law=n=steps", "Line: n = training_steps"),
    ):
        call("plot", *options.split(), "--from=out", "--out=a.csv", cwd=stepped)
        assert caption in (stepped / "a.txt").read_text()


SYMBOLS = ("a$b", r"\frac", "a\0", "a^^2", r"\nothing", "{", "$n$", "\ud800", "%")


@pytest.mark.parametrize("field", ["symbol", "meaning", "label", "unit"])
def test_a_formula_that_no_figure_can_typeset_is_refused(field: str) -> None:
    words = (r"of $\frac$ in all", "cost $$", "a\x1b[2J")
    good = (r"\frac{1}{n}",) if field == "symbol" else (r"$\frac{1}{n}$ of 5 \$", "5$ of a_b")
    declarations: tuple[Any, ...] = (Parameter(), Column("a", "b"))
    for declared in declarations:
        for text in SYMBOLS if field == "symbol" else words:
            where = re.escape(f"{type(declared).__name__}({field}={text!r}): ")
            with pytest.raises(TypeError, match=f"^{where}.*(that can be drawn|typeset the form)"):
                replace(declared, **{field: text})
        for text in good:
            replace(declared, **{field: text})


PIECES = [*"x2+(* '_^{}", r"\hat ", r"\frac", r"\mathrm", r"\max", r"\sum", r"\|", r"\,"]
PIECES += [r"\top", r"\tilde{x}", r"\frac{1}{n}", "{n}", r"\sqrt{x}", r"\theta "]


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
@settings(max_examples=300, deadline=None)
@pytest.mark.slow
def test_what_is_accepted_without_matplotlib_is_typeset_by_it(symbol: str) -> None:
    if is_plain(symbol):
        MathTextParser("path").parse(f"${symbol}$")


ODD = """
from typing import Annotated, Literal
from overfit_cli import Column, Parameter, experiment

@experiment(
    name="lab/ridge", title="$\\\\frac$ & <b>", sides=("$ and _a_b_c", "of 5$"),
    columns=[Column("loss", "in $ of x_y_z", symbol=r"\\mathcal{L}_n'", unit="$", label="cost $")],
    claims=["loss < 20 where n > 2", "`loss (%` < 9", "`x|a` < 90"],
)
def train(
    n: Annotated[int, Parameter("a_b_c in $", symbol=r"n^\\star", unit="$")] = 2,
    d: Annotated[float, Parameter("5$ of x^^2", unit="%")] = 1.0,
    mood: Annotated[str, Parameter("$x_1$ and 5\\\\$")] = "a",
    seed: int = 0,
):
    for step in range(3):
        yield {"loss": n + d + step + seed}
    return {"loss": n * d + seed, "other_$": 1.0, "loss (%": d, "x|a": d, "(a+)+b": d}
"""
ON_ODD = """
plot boundary --threshold=3 --by=mood --size=page
plot cutoff --threshold=3 --by=mood --size=page
plot curves --where=d=1 --by=mood --size=page
plot lines --from=a$^^ --where=d=1 --by=mood --size=page
plot heatmap --law=n*d=3 --by=mood --size=page
plot lines --value=loss-`other_$` --x=n --by=mood
plot lines --value=x|a --where=mood=$
runs
runs {run}
judge {run} --out=j.png
report {run} --out=page
compare {run} a$^^ --out=difference.pdf
export {run} --means --to=latex --out=a.tex
"""


@pytest.mark.slow
def test_what_is_declared_and_measured_is_drawn_whatever_it_is_called(tmp_path: Path) -> None:
    """Also where names have a slash, or read like patterns."""
    written(tmp_path, ODD)
    grid = ("--n=1:3", "--d=1,2", "--mood=$,$\\frac$", "--seeds=2", "--jobs=1", "--trajectories")
    call("sweep", "mine.py", *grid, "--out=a$^^", cwd=tmp_path)
    done = call("sweep", "mine.py", *grid, cwd=tmp_path)
    run = "results/lab_ridge-n-d-mood"
    assert run in done.stdout
    for line in ON_ODD.strip().splitlines():
        words = line.format(run=run).split()
        figure = (f"--from={run}", "--out=a.svg") if words[0] == "plot" else ()
        call(*words, *figure, cwd=tmp_path)
    names = [one.name for one in overfit_cli.judge(tmp_path / run)]
    assert names == ["loss-lt-20-where-n-gt-2", "loss-percent-lt-9", "x-a-lt-90"]


@pytest.mark.slow
def test_a_run_with_symbols_that_nothing_can_typeset_is_still_drawn(tmp_path: Path) -> None:
    swept(tmp_path, ODD, "--n=1:3", "--d=1,2")
    manifest = tmp_path / "out" / "manifest.json"
    record = json.loads(manifest.read_text())
    record["function"]["parameters"][0]["about"]["symbol"] = r"\frac"
    record["function"]["columns"][0]["symbol"] = "a$b\0"
    manifest.write_text(json.dumps(record))
    (tmp_path / "mine.py").unlink()
    said = call("plot", "heatmap", "--from=out", "--out=map.png", cwd=tmp_path)
    assert "Warning" not in said.stderr and "can't be read" not in said.stderr
    study = study_in(RunDirectory(tmp_path / "out"))
    assert describe(study.parameters)["n"].unit == "$"
    assert describe(study.parameters)["n"].symbol == ""


def test_a_name_without_words_has_its_own_and_keeps_an_underscore_at_its_end() -> None:
    words = {"test_loss": "test loss", "n_": "n_", "_n": "_n", "a__b_": "a b_", "_": "_"}
    assert {name: spaced(name) for name in words} == words
