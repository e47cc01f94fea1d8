"""The commands as functions: `sweep`, `load`, `draw` and `judge` from scripts and notebooks."""

from __future__ import annotations

import functools
import inspect
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import matplotlib.figure
import numpy as np
import pandas as pd
import pytest

import overfit_cli
from overfit_cli import Column, Study, UserError
from overfit_cli.core.cell import Batch, CellResult, Results
from overfit_cli.core.options import SweepOptions
from overfit_cli.core.parameters import StudyParameters, parameter
from overfit_cli.core.registry import find_study
from overfit_cli.core.training import Training
from overfit_cli.figures.record import same_picture
from tests.command import call, python

SCRIPT = """
import numpy as np
import overfit_cli

def train(n: int = 10, snr: float = 1.0, seed: int = 0):
    for step in range(3):
        yield {"train_loss": 1 / (1 + step)}
    return {"test_loss": 1 / (1 + n * snr**2), "draw": np.random.default_rng(seed).random()}

cells = overfit_cli.sweep(
    train, n=range(2, 6), snr=np.linspace(0.5, 2, 4), seeds=2, out="mine", jobs=2,
    trajectories=True,
)
assert len(cells) == 32, len(cells)
assert len(overfit_cli.load("mine")) == 32
assert len(overfit_cli.load("mine", trajectories=True)) == 96
again = overfit_cli.sweep(train, n="2:6", snr="0.5:2:4", seeds=[0, 1], out="mine", jobs=1)
assert len(again) == 40, len(again)
assert (again["test_loss"] > 0).all()
"""


@pytest.mark.slow
def test_a_notebooks_function_is_swept_by_workers(tmp_path: Path) -> None:
    """As in a notebook, the function stands in no file: its code is sent to the workers."""
    done = python("-W", "error", "-", cwd=tmp_path, text=SCRIPT)
    assert "32 there already; 8 to run" in done.stdout


def test_the_functions_of_the_package_are_the_commands(tmp_path: Path) -> None:
    cells = overfit_cli.sweep("toy", n=[1, 2], snr=2, seeds=1, out=tmp_path / "a", jobs=1)
    call("sweep", "toy", "--n=1,2", "--snr=2", "--seeds=1", "--jobs=1", "--out=b", cwd=tmp_path)
    other = overfit_cli.load(tmp_path / "b")
    same = ["key", "test_loss", "draw"]
    pd.testing.assert_frame_equal(
        cells.sort_values("key")[same].reset_index(drop=True), other[same]
    )


def test_python_has_the_options_of_the_command() -> None:
    """With the same defaults; their types are written out, for an editor and for mypy."""
    arguments = inspect.signature(overfit_cli.sweep).parameters
    options = {each.name: each.default for each in fields(SweepOptions)}
    assert {name: arguments[name].default for name in options} == options
    assert {*arguments} - {*options} == {"study", "parameters", "quiet", "axes"}


def test_a_refined_sweep_from_python(tmp_path: Path) -> None:
    given: dict[str, Any] = {"refine": 3, "threshold": 0.2, "jobs": 1, "quiet": True}
    cells = overfit_cli.sweep("toy", n=[1, 2, 4], snr="0.5:4:4", out=tmp_path / "a", **given)
    assert len(cells) > 24
    assert cells["snr"].nunique() > 4


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"width": 3}, "width: the study has no parameter 'width'"),
    ({"n": 0}, "n=0: n takes a whole number of at least 1"),
    ({"n": []}, "n: no value given"),
    ({"n": [0.5]}, "n=0.5: n takes a whole number"),
    ({"n": True}, "n=True: n takes a whole number"),
    ({"n": None}, "n: n takes a whole number"),
    ({"n": np.ones((2, 2))}, "n: n takes a whole number of at least 1"),
    ({"n": {"a": 1}}, "n={'a': 1}: n takes a whole number"),
    ({"n": range(200_000)}, "n: it takes up to 100000 values"),
    ({"snr": b"low"}, "snr=b'low': snr takes a number"),
    ({"mood": 3}, "mood=3: mood takes one of"),
    ({"seeds": []}, "seeds: no value given"),
    ({"seeds": [-1]}, "seeds=-1: a seed is a whole number of at least 0"),
    ({"seeds": ["1*2"]}, "seeds='1*2': a seed is a whole number of at least 0"),
    ({"seeds": 2.5}, "seeds=2.5: seeds takes a whole number"),
    ({"seeds": "7:3"}, "seeds='7:3': the range runs backwards"),
    ({"together": None}, "together: it takes a text, or several"),
    ({"jobs": 0}, "jobs=0: it takes a whole number of at least 1"),
    ({"address": ["a"]}, "address=['a']: it takes a text"),
    ({"shard": (1, 2)}, "shard=(1, 2): it takes a text"),
    ({"threshold": 0.5}, "threshold=0.5: it requires refine, the number of rounds"),
    ({"refine": 2, "threshold": "a"}, "threshold='a': it takes a finite number"),
    ({"refine": -1}, "refine=-1: it takes a whole number of at least 0"),
]


@pytest.mark.parametrize(("values", "words"), WRONG)
def test_what_python_gives_wrongly_is_a_sentence_too(
    tmp_path: Path, values: dict[str, Any], words: str
) -> None:
    with pytest.raises(UserError, match=re.escape(words)):
        overfit_cli.sweep("toy", out=tmp_path / "a", quiet=True, **{"jobs": 1, **values})
    assert not (tmp_path / "a").exists()


@pytest.mark.unix
def test_a_path_that_cannot_be_is_a_sentence_as_in_a_shell() -> None:
    for given, words in (
        ("", "it takes a path"),
        ("x" * 300, "it can't be used"),
        (3, "it takes a path"),
    ):
        with pytest.raises(UserError, match=f"^directory={given!r}: {words}"):
            overfit_cli.load(given)  # type: ignore[arg-type]


def test_numbers_of_any_library_are_values_and_seeds(tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "n": np.linspace(1, 3, 3),  # floats that are whole
        "snr": np.float32(2.0),
        "seeds": np.int64(2),
    }
    cells = overfit_cli.sweep("toy", out=tmp_path, quiet=True, jobs=1, **given)
    assert sorted(set(cells["n"])) == [1, 2, 3]
    assert sorted(set(cells["seed"])) == [0, 1]
    more = overfit_cli.sweep("toy", n=1, seeds="3:4", out=tmp_path, quiet=True, jobs=1)
    assert sorted(more["seed"]) == [3, 4]
    [point] = overfit_cli.sweep(
        "toy", n=np.array(2), seeds=pd.Series([7]), out=tmp_path, quiet=True, jobs=1
    ).to_dict("records")
    assert (point["n"], point["seed"]) == (2, 7)


def test_a_sweep_says_what_it_did(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    overfit_cli.sweep("toy", n=[1, 2], mood="raises", seeds=1, out="a", jobs=1)
    output = capsys.readouterr().out
    assert "toy: 2 cells (n 2 × seeds 1), a" in output
    assert "Done: 0 trained" in output
    assert "2 failed (2 error: RuntimeError: the toy | is broken)" in output
    overfit_cli.sweep("toy", n=[1, 2], mood="raises", seeds=1, out="b", jobs=1, fail_fast=True)
    assert "Stopped after a failed cell (fail_fast): 1 cell was not run." in capsys.readouterr().out
    overfit_cli.sweep("toy", n=[1, 2], seeds=1, out="a", jobs=1, quiet=True)
    assert capsys.readouterr().out == ""


def test_a_finished_sweep_asks_for_its_data_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def prepare(self: object, cells: Sequence[object]) -> dict[str, str]:
        asked.append(len(cells))
        return {}

    monkeypatch.setattr(type(find_study("toy")), "prepare", prepare)
    for n in ("1:2", "1:2", "1:3"):
        overfit_cli.sweep("toy", n=n, seeds=1, out=tmp_path, jobs=1, quiet=True)
    assert asked == [2, 1]


def test_a_dry_run_trains_nothing_and_returns_its_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given: dict[str, Any] = {"seeds": 1, "out": tmp_path / "a", "jobs": 1}
    plan = overfit_cli.sweep("toy", n=[1, 2], dry_run=True, **given)
    assert repr(plan) == "<Plan of 2 cells of toy: 2 to run>"
    assert "Nothing was run or written." in capsys.readouterr().out
    assert not (tmp_path / "a").exists()
    overfit_cli.sweep("toy", n=1, **given)
    plan = overfit_cli.sweep("toy", n=[1, 2], dry_run=True, **given)
    assert (plan.done, plan.to_run) == (1, 1)
    assert [cell.parameters.model_dump()["n"] for [cell] in plan.batches] == [2]


# What may be swept


class Scaled:
    """An object that is called like a function."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, n: int = 1) -> dict[str, float]:
        return {"loss": self.factor * n}

    def train(self, n: int = 1) -> dict[str, float]:
        return self(n)


def scaled(factor: float, n: int = 1) -> dict[str, float]:
    return {"loss": factor * n}


CALLABLES: list[tuple[Callable[..., Any], str]] = [
    (Scaled(2.0), "test_api:Scaled"),
    (Scaled(2.0).train, "test_api:train"),
    (functools.partial(scaled, 2.0), "test_api:scaled"),
    (lambda n=1: {"loss": 2.0 * n}, "test_api:lambda"),
]


@pytest.mark.parametrize(("study", "name"), CALLABLES)
@pytest.mark.one_in(4)
def test_whatever_can_be_called_can_be_swept(
    tmp_path: Path, study: Callable[..., Any], name: str
) -> None:
    for jobs in (1, 2):
        out = tmp_path / str(jobs)
        cells = overfit_cli.sweep(study, n=[1, 2, 3], out=out, jobs=jobs, quiet=True)
        assert sorted(cells["loss"]) == [2.0, 4.0, 6.0]
        assert set(cells["study"].str.removeprefix("tests.")) == {name}


@pytest.mark.slow
def test_what_cannot_be_swept_is_a_sentence(tmp_path: Path) -> None:
    lock = threading.Lock()

    def locked(n: int = 1) -> dict[str, float]:
        with lock:
            return {"loss": n}

    wrong: list[tuple[Any, dict[str, Any], str]] = [
        (3, {}, "3 is neither a function nor a study"),
        (Scaled, {}, "Scaled is a class; give an object of it: Scaled()."),
        (Mean, {}, "Mean is a class; give an object of it: Mean()."),
        (scaled, {"fresh": "no"}, "fresh='no': it takes True or False."),
        (scaled, {"n": 3, "parameters": {"n": 2}}, "n=3: it is in parameters too; give it once."),
        (scaled, {"profile": "quick"}, "profile='quick': only presets have profiles"),
        (locked, {"jobs": 2}, "can't be sent to workers (TypeError: cannot pickle"),
    ]
    for study, given, words in wrong:
        with pytest.raises(UserError, match=re.escape(words)):
            overfit_cli.sweep(study, out=tmp_path / "a", quiet=True, **given)
    assert not (tmp_path / "a").exists()
    cells = overfit_cli.sweep(
        locked, n=[1, 2], out=tmp_path / "a", quiet=True, jobs=2, backend="threading"
    )
    assert len(cells) == 2


class Parameters(StudyParameters):
    n: int = parameter(10, "numbers", at_least=1)
    snr: float = parameter(1.0, "signal-to-noise ratio", above=0)


class Mean(Study[Parameters]):
    """A study as a class, which no package installs."""

    name, version = "mean", 1
    parameters = Parameters
    columns = (Column("loss", "a loss"),)

    def train(self, batch: Batch[Parameters], training: Training) -> Results[Parameters]:
        for cell in batch:
            yield CellResult(cell, {"loss": cell.parameters.snr / cell.parameters.n})


def test_a_study_class_of_a_script_is_swept_and_drawn_in_its_process(tmp_path: Path) -> None:
    for study in (Mean(), Mean()):  # a cell of a notebook is run again
        cells = overfit_cli.sweep(
            study, n=[1, 2, 3], snr=[1, 2, 4], seeds=1, out=tmp_path / "a", jobs=1, quiet=True
        )
        assert len(cells) == 9
    drawn = overfit_cli.draw("heatmap", tmp_path / "a")
    assert isinstance(drawn, matplotlib.figure.Figure)

    class Other(Mean):
        name = "benign-vit"

    with pytest.raises(UserError, match="'benign-vit' is installed; give yours another name"):
        overfit_cli.sweep(Other(), n=1, out=tmp_path / "b", jobs=1, quiet=True)


def test_the_claims_of_a_function_are_judged_in_its_process(tmp_path: Path) -> None:
    def low(cells: pd.DataFrame) -> overfit_cli.Measurement:
        return overfit_cli.Measurement(verdict="holds", value=cells["loss"].max())

    claim = overfit_cli.Claim(
        name="low", source="me", statement="The loss is low.", holds_where="below 3", measure=low
    )

    @overfit_cli.experiment(claims=[claim])
    def train(n: int = 1) -> dict[str, float]:
        return {"loss": float(n)}

    overfit_cli.sweep(train, n=[1, 2], out=tmp_path / "a", jobs=1, quiet=True)
    [judged] = overfit_cli.judge(tmp_path / "a")
    assert (judged.name, judged.measurement.verdict) == ("low", "holds")
    assert judged.measurement.value == 2.0


def test_what_a_figure_is_given_wrongly_is_a_sentence(tmp_path: Path) -> None:
    overfit_cli.sweep("toy", n=[1, 2], snr=[1, 2], seeds=1, out=tmp_path, jobs=1, quiet=True)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"size": 3.4}, "size=3.4: it takes a text."),
        ({"log": True}, "log=True: it takes a text."),
        ({"law": [1]}, "law=[1]: it takes a text, or several."),
        ({"where": 3}, "where=3: it takes a text, or several."),
        ({"mean": "mode"}, "mean='mode': it takes"),
        ({"style": 3}, "style=3: it takes a path."),
        ({"minus": 3}, "minus=3: it takes a path."),
    ]
    for given, words in wrong:
        with pytest.raises(UserError, match=re.escape(words)):
            overfit_cli.draw("heatmap", tmp_path, **given)
    with pytest.raises(UserError, match="toy has no figure 'heat'; did you mean 'heatmap'"):
        overfit_cli.draw("heat", tmp_path)
    with pytest.raises(UserError, match="draw takes the run directories to draw from"):
        overfit_cli.draw("heatmap")


def test_python_draws_as_the_command_does(tmp_path: Path) -> None:
    """The same picture, pixel by pixel, of two directories in the user's own look."""
    for name, mood in (("a", "well"), ("b", "prints")):
        given: dict[str, Any] = {"out": tmp_path / name, "jobs": 1, "quiet": True}
        overfit_cli.sweep("toy", n=[1, 2, 3], snr=[1, 2, 4], mood=mood, seeds=2, **given)
    (tmp_path / "my.mplstyle").write_text("font.size: 9\nimage.cmap: cividis\nsavefig.dpi: 80")
    figure = overfit_cli.draw(
        "heatmap",
        tmp_path / "a",
        tmp_path / "b",
        law=["snr = N", "snr = 2"],
        size="page",
        log="x,value",
        style=tmp_path / "my.mplstyle",
        out=tmp_path / "python.png",
    )
    assert [axes.get_title(loc="left") for axes in figure.axes[:2]] == ["(a) a", "(b) b"]
    assert figure._repr_png_().startswith(b"\x89PNG")
    look = ("--size=page", "--style=my.mplstyle")
    shows = ("--from=a", "--from=b", "--law=snr = N", "--law=snr = 2", "--log=x,value")
    call("plot", "heatmap", *shows, *look, "--out=command.png", cwd=tmp_path)
    drawn = [(tmp_path / name).read_bytes() for name in ("python.png", "command.png")]
    assert same_picture("png", *drawn)
    less = overfit_cli.draw("heatmap", tmp_path / "a", minus=tmp_path / "b")
    assert less.caption.startswith("Test loss: well − prints (what goes wrong) over ")


def test_the_package_says_what_it_has() -> None:
    assert {"sweep", "load", "draw", "judge", "Parameter", "experiment"} <= set(dir(overfit_cli))
    for name in overfit_cli.__all__:
        assert getattr(overfit_cli, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'sweeep'"):
        _ = overfit_cli.sweeep


def test_functions_refuse_what_they_would_not_use(tmp_path: Path) -> None:
    out = tmp_path / "a"
    overfit_cli.sweep("toy", n=2, seeds=1, out=out, jobs=1, quiet=True)
    with pytest.raises(UserError, match=r"claim=.missed foo.: it compares nothing"):
        overfit_cli.judge(out, "missed foo")
    with pytest.raises(UserError, match="study: it says whose cells a frame has"):
        overfit_cli.judge(out, study="benign-vit")
    with pytest.raises(UserError, match="it holds no logged steps of these cells"):
        overfit_cli.load(out, trajectories=True)
    with pytest.raises(UserError, match="leave out trajectories"):
        overfit_cli.load(out, means=True, trajectories=True)
    with pytest.raises(UserError, match="a=3: it takes a path"):
        overfit_cli.compare(3, out)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="value=3: it takes a text, or several"):
        overfit_cli.compare(out, out, value=3)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="tolerance=-1: it takes a share of the mean of B, such as"):
        overfit_cli.compare(out, out, tolerance=-1)


def test_many_torn_parts_are_counted_in_one_note(tmp_path: Path) -> None:
    cells = tmp_path / "run" / "cells"
    cells.mkdir(parents=True)
    for number in range(40):
        (cells / f"{number:02}.parquet").write_bytes(b"torn")
    with (
        pytest.warns(UserWarning, match=r"cells/.* and 39 more files are left out: ") as notes,
        pytest.raises(UserError, match="no cells"),
    ):
        overfit_cli.load(tmp_path / "run")
    [note] = [str(each.message) for each in notes]
    assert note.endswith(": it was renamed, or is no part.")


def test_a_frame_from_anywhere_is_judged_by_its_studys_claims() -> None:
    """Parameters that it lacks have their defaults, and its cells are done."""
    grid = [(n, snr, seed) for n in range(2, 12) for snr in range(1, 16) for seed in range(6)]
    cells = pd.DataFrame(grid, columns=["n", "snr", "seed"])
    odds = (1 + 0.001 * cells["seed"]) * cells["n"] * cells["snr"] ** 2 / 1000
    cells = cells.assign(test_loss=0.69 / (1 + 2.45 * odds))
    judged = {item.name: item.measurement for item in overfit_cli.judge(cells, study="benign-vit")}
    assert judged["fig1-falls-with-n"].verdict == "holds"
    assert judged["fig1-contour"].value == pytest.approx(1000, rel=0.01)
    assert judged["fig1-fitted"].verdict == "inconclusive"  # there is no train_loss
    named = cells.assign(study="benign-vit")
    assert [item.name for item in overfit_cli.judge(named)] == list(judged)
    halves = pd.concat([named.iloc[::2], named.iloc[1::2]], ignore_index=False)
    halves.index = pd.Index(np.arange(len(halves)) // 2)  # each of them twice, as from two files
    again = {item.name: item.measurement for item in overfit_cli.judge(halves)}
    assert {name: item.verdict for name, item in again.items()} == {
        name: item.verdict for name, item in judged.items()
    }
    with pytest.raises(UserError, match="judge takes run directories, or one frame"):
        overfit_cli.judge([1, 2])  # type: ignore[arg-type]


@pytest.mark.slow
def test_seeds_that_repeat_anothers_numbers_decide_nothing() -> None:
    grid = [(n, snr, seed) for n in range(2, 12) for snr in range(1, 16) for seed in range(6)]
    cells = pd.DataFrame(grid, columns=["n", "snr", "seed"])
    odds = (1 + 0.001 * (cells["seed"] % 4)) * cells["n"] * cells["snr"] ** 2 / 1000
    cells = cells.assign(test_loss=0.69 / (1 + 2.45 * odds))
    partly = cells.drop(index=cells.index[cells["seed"] == 4][::7])
    flags = cells.assign(test_loss=(cells["test_loss"] < 0.2).astype(float))
    for one, repeats in ((cells, True), (partly, True), (flags, False)):
        claims = {claim.name: claim for claim in overfit_cli.judge(one, study="benign-vit")}
        judged = claims["fig1-falls-with-n"].measurement
        assert ("Seeds 4, 5 repeat all numbers of another seed" in judged.note) == repeats
        assert judged.verdict == "inconclusive" or not repeats


def test_a_frame_whose_study_is_not_known_is_refused() -> None:
    cells = pd.DataFrame({"n": [1], "seed": [0]})
    with pytest.raises(UserError, match="study: the cells have no column `study`; say whose"):
        overfit_cli.judge(cells)
    with pytest.raises(UserError, match="study: the cells have a column `study` of 2 names"):
        overfit_cli.judge(pd.concat([cells.assign(study=name) for name in ("toy", "fig1")]))
    with pytest.raises(UserError, match="'benign' is not a study; did you mean 'benign-vit'"):
        overfit_cli.judge(cells, study="benign")
    with pytest.raises(UserError, match="The cells have no column 'seed'"):
        overfit_cli.judge(cells[["n"]], study="benign-vit")
    with pytest.raises(UserError, match="The cells' column 'n' has '1': no number"):
        overfit_cli.judge(cells.astype({"n": str}), study="benign-vit")
    with pytest.raises(UserError, match="judge takes run directories, or one frame of cells"):
        overfit_cli.judge(cells, cells, study="benign-vit")


def test_one_cell_is_trained_kept_and_returned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def learn(rate: float = 0.5, seed: int = 0) -> Iterator[dict[str, float]]:
        for step in range(3):
            yield {"step": step, "loss": seed + (1 - rate) ** step}

    result = overfit_cli.train(learn, rate=0.25, seed=1, out="one")
    assert result.status == "done"
    assert list(result.trajectory["loss"]) == [2.0, 1.75, 1.5625]
    assert "1.75" in capsys.readouterr().out
    assert overfit_cli.load("one")["loss"].tolist() == [1.5625]
    assert len(overfit_cli.load("one", trajectories=True)) == 3
    overfit_cli.train(learn, quiet=True)
    assert not capsys.readouterr().out
    assert (tmp_path / "results").is_dir()
    with pytest.raises(overfit_cli.UserError, match="rate: a training takes one value of rate"):
        overfit_cli.train(learn, rate=[0.1, 0.2])


UNGUARDED = """
import overfit_cli

print("the script begins")

def learn(n: int = 1) -> dict[str, float]:
    return {"loss": 1 / n}

overfit_cli.sweep(learn, n="1:4", dry_run=True)
"""


@pytest.mark.slow
def test_a_dry_run_does_not_run_the_script_again(tmp_path: Path) -> None:
    """Batches are timed in its own process, so that no guard is needed."""
    (tmp_path / "script.py").write_text(UNGUARDED)
    output = python("script.py", cwd=tmp_path).stdout
    assert output.count("the script begins") == 1
    assert "timed batch" in output
