"""Symbols and words of a declaration: refused where no figure can typeset them, else drawn."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.mathtext import MathTextParser

from overfit_cli import Column, Parameter
from overfit_cli.core.parameters import describe, is_plain
from overfit_cli.core.registry import find_study, study_names
from overfit_cli.core.text import spaced
from overfit_cli.sweeps.load import study_in
from overfit_cli.sweeps.store import RunDirectory
from tests.command import call
from tests.functions.mine import swept, written

SYMBOLS = ("a$b", r"\frac", "a\0", "a^^2", r"\nothing", "{", "$n$", "\ud800", "%")


@pytest.mark.parametrize("symbol", SYMBOLS)
@pytest.mark.parametrize(
    "declared", ["Parameter('samples', symbol={})", "Column('a', 'b', symbol={})"]
)
def test_a_symbol_that_no_figure_can_typeset_is_one_sentence(
    tmp_path: Path, symbol: str, declared: str
) -> None:
    declaration = declared.format(ascii(symbol))
    written(tmp_path, f"from overfit_cli import Column, Parameter\n{declaration}\n")
    [sentence] = call("sweep", "mine.py", cwd=tmp_path, expect=2).stderr.splitlines()
    assert f"(symbol={symbol!r}): " in sentence
    assert "that can be drawn" in sentence or "can't typeset the formula" in sentence


@pytest.mark.parametrize("field", ["meaning", "label", "unit"])
def test_words_with_a_formula_that_no_figure_can_typeset_are_one_sentence(field: str) -> None:
    def declare(declared: Any, text: str) -> None:
        replace(declared, **{field: text})

    with pytest.raises(TypeError, match=rf"Parameter\({field}='of .*typeset the formula"):
        declare(Parameter(), r"of $\frac$ in all")
    with pytest.raises(TypeError, match=rf"Column\({field}='a.*'\): it takes a text of char"):
        declare(Column("a", "b"), "a\x1b[2J")
    with pytest.raises(TypeError, match=r"can't typeset the formula ''"):
        declare(Parameter(), "cost $$")
    declare(Parameter(), r"$\frac{1}{n}$ of 5 \$")
    declare(Parameter(), "5$ of a_b_c")


PIECES = [*"x2+(* '_^{}", r"\hat ", r"\frac", r"\mathrm", r"\max", r"\sum", r"\|", r"\,"]
PIECES += [r"\top", r"\tilde{x}", r"\frac{1}{n}", "{n}", r"\sqrt{x}", r"\theta "]


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
@settings(max_examples=300, deadline=None)
@pytest.mark.slow
def test_what_is_accepted_without_matplotlib_is_typeset_by_it(symbol: str) -> None:
    if is_plain(symbol):
        MathTextParser("path").parse(f"${symbol}$")


def test_studies_symbols_are_accepted_without_matplotlib() -> None:
    for study in map(find_study, study_names()):
        columns = [*study.columns, *study.trajectory_columns]
        symbols = {info.symbol for info in describe(study.parameters).values()}
        symbols |= {column.symbol for column in columns}
        assert all(map(is_plain, symbols - {""}))


ODD = """
from typing import Annotated, Literal
from overfit_cli import Column, Parameter, experiment

@experiment(
    title="$\\\\frac$ & <b>", sides=("$ and _a_b_c", "of 5$"),
    columns=[Column("loss", "in $ of x_y_z", symbol=r"\\mathcal{L}_n'", unit="$", label="cost $")],
    claims=["loss < 20 where n > 2"],
)
def train(
    n: Annotated[int, Parameter("a_b_c in $", symbol=r"n^\\star", unit="$")] = 2,
    d: Annotated[float, Parameter("5$ of x^^2", unit="%")] = 1.0,
    mood: Annotated[str, Parameter("$x_1$ and 5\\\\$")] = "a",
    seed: int = 0,
):
    for step in range(3):
        yield {"loss": n + d + step + seed}
    return {"loss": n * d + seed, "other_$": 1.0}
"""


@pytest.mark.slow
def test_what_is_declared_and_measured_is_drawn_whatever_it_is_called(tmp_path: Path) -> None:
    written(tmp_path, ODD)
    grid = ("--n=1:3", "--d=1,2", "--mood=$,$\\frac$", "--seeds=2", "--jobs=1", "--trajectories")
    for out in ("$x_1_2$", "a$^^"):
        call("sweep", "mine.py", *grid, f"--out={out}", cwd=tmp_path)
    one = ("--from=$x_1_2$", "--by=mood", "--out=one.svg")
    two = ("--from=$x_1_2$", "--from=a$^^", "--by=mood", "--out=two.pdf")
    for figure in (
        ("heatmap", *one),
        ("boundary", *one, "--threshold=3"),
        ("cutoff", *one, "--threshold=3"),
        ("lines", *one, "--where=d=1"),
        ("curves", *one, "--where=d=1"),
        ("lines", *two, "--where=d=1"),
        ("heatmap", *one, "--law=n*d=3"),
        ("lines", *one, "--value=loss - other_$", "--x=n"),
    ):
        call("plot", *figure, cwd=tmp_path)
    call("report", "$x_1_2$", "a$^^", "--out=report", cwd=tmp_path)
    call("compare", "$x_1_2$", "a$^^", "--out=difference.png", cwd=tmp_path)


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


@pytest.mark.parametrize(
    ("name", "words"),
    [("test_loss", "test loss"), ("n_", "n_"), ("_n", "_n"), ("a__b_", "a b_"), ("_", "_")],
)
def test_a_name_without_words_has_its_own_and_keeps_an_underscore_at_its_end(
    name: str, words: str
) -> None:
    assert spaced(name) == words
