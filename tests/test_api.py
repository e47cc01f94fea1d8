"""The commands as functions: `sweep`, `load`, `draw` and `judge` from scripts and notebooks."""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import overfit_cli
from overfit_cli import UserError
from overfit_cli.core.options import SweepOptions
from overfit_cli.core.registry import find_study
from overfit_cli.figures.draw import same_picture
from tests.command import python, said
from tests.fake_study import fake_cells
from tests.functions.mine import Scaled, scaled
from tests.toy_runs import rows


def test_python_sweeps_as_the_command_does(tmp_path: Path) -> None:
    cells = overfit_cli.sweep("toy", n=[1, 2], snr=2, seeds=1, out=tmp_path / "a", jobs=1)
    said("sweep toy --n=1,2 --snr=2 --seeds=1 --jobs=1 --out=b", tmp_path)
    by_key = cells.sort_values("key", ignore_index=True).drop(columns="seconds")
    pd.testing.assert_frame_equal(by_key, rows(tmp_path / "b"))


def test_python_has_the_options_of_the_command() -> None:
    """With the same defaults."""
    arguments = inspect.signature(overfit_cli.sweep).parameters
    options = {each.name: each.default for each in fields(SweepOptions)}
    assert {name: arguments[name].default for name in options} == options
    assert {*arguments} - {*options} == {"study", "parameters", "quiet", "axes"}


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run directory of four cells."""
    out = tmp_path_factory.mktemp("toy") / "run"
    overfit_cli.sweep("toy", n=[1, 2], snr=[1, 2], seeds=1, out=out, jobs=1, quiet=True)
    return out


STUDY = type(find_study("toy"))
Mean, Other = (type("Mean", (STUDY,), {"name": name}) for name in ("mean", "benign-vit"))


api: Any = overfit_cli
"""The package without its types."""


def sweeps(study: Any = "toy", **given: Any) -> Callable[[Path], object]:
    return lambda run: api.sweep(study, **{"jobs": 1, **given})


def draws(**options: Any) -> Callable[[Path], object]:
    return lambda run: api.draw("heatmap", run, **options)


FRAME = pd.DataFrame({"n": [1], "seed": [0]})
WRONG: list[tuple[Callable[[Path], object], str]] = [
    (sweeps(n=[]), "n: no value given"),
    (sweeps(n=np.ones((2, 2))), "n: n takes a whole number of at least 1"),
    (sweeps(n={"a": 1}), "n={'a': 1}: n takes a whole number"),
    (sweeps(n=range(200_000)), "n: it takes up to 100000 values"),
    (sweeps(snr=b"low"), "snr=b'low': snr takes a number"),
    (sweeps(seeds=["1*2"]), "seeds='1*2': it takes a number of seeds from 1 to 100000, or seeds"),
    (sweeps(seeds=2.5), "seeds=2.5: seeds takes a whole number"),
    (sweeps(together=None), "together: it takes a text, or several"),
    (sweeps(address=["a"]), "address=['a']: it takes a text"),
    (sweeps(device=None), "device: it takes auto, cpu or cuda."),
    (sweeps(threshold=0.5), "threshold=0.5: it requires refine, the number of rounds"),
    (sweeps(3), "3 is neither a function nor a study"),
    (sweeps(Scaled), "Scaled is a class; give an object of it: Scaled()."),
    (sweeps(Other()), "A study 'benign-vit' is installed; give yours another name"),
    (sweeps(scaled, fresh="no"), "fresh='no': it takes True or False."),
    (sweeps(scaled, n=3, parameters={"n": 2}), "n=3: n is given twice; give it once."),
    (draws(size=3.4), "size=3.4: it takes a text."),
    (draws(mean="mode"), "mean='mode': it takes"),
    (draws(style=3), "style=3: it takes a path"),
    (draws(colour="red"), "colour='red': there is no such option"),
    (lambda run: api.draw("heatmap"), "draw takes the run directories to draw from"),
    (lambda run: api.load(run, means=True, trajectories=True), "leave out trajectories"),
    (lambda run: api.compare(run, run, tolerance=-1), "tolerance=-1: it takes a share of the mean"),
    (lambda run: api.judge("no=such"), "run='no=such': there is no such directory"),
    (lambda run: api.judge(FRAME, FRAME), "judge takes run directories or one frame"),
    (lambda run: api.judge(FRAME), "study: the cells have a column `study` of 0 names; name one"),
    (lambda run: api.judge(FRAME, study="benign"), "not a study; did you mean 'benign-vit'"),
    (lambda run: api.judge(FRAME[["n"]], study="toy"), "The cells have no column 'seed'"),
    (lambda run: api.judge(FRAME.astype({"n": str}), study="toy"), "column 'n' has '1': no number"),
]
"""What no command line can say, and what Python says in other words."""


def test_what_python_gives_wrongly_is_a_sentence_too(toy: Path, tmp_path: Path) -> None:
    for asked, words in WRONG:
        with contextlib.chdir(tmp_path), pytest.raises(UserError, match=re.escape(words)):
            asked(toy)
        assert not [*tmp_path.iterdir()], words


def test_numbers_of_any_library_are_values_and_seeds(tmp_path: Path) -> None:
    points: list[tuple[dict[str, Any], list[list[int]]]] = [
        ({"n": np.linspace(1, 2, 2), "snr": np.float32(2), "seeds": np.int64(1)}, [[1, 0], [2, 0]]),
        ({"n": 1, "seeds": "3:4"}, [[1, 3], [1, 4]]),
        ({"n": np.array(2), "seeds": pd.Series([7])}, [[2, 7]]),
    ]
    for given, swept in points:
        cells = overfit_cli.sweep("toy", out=tmp_path, quiet=True, jobs=1, **given)
        assert cells[["n", "seed"]].to_numpy().tolist() == swept


def test_a_sweep_says_what_it_did_unless_it_is_quiet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given: dict[str, Any] = {"n": [1, 2], "seeds": 1, "jobs": 1, "mood": "raises"}
    overfit_cli.sweep("toy", out="a", fail_fast=True, **given)
    output = capsys.readouterr().out
    assert "toy: 2 cells (n 2 × seeds 1), a" in output
    assert "Stopped: a cell failed (fail_fast). 1 cell was not run." in output
    overfit_cli.sweep("toy", out="b", quiet=True, **given)
    assert capsys.readouterr().out == ""


def test_a_finished_sweep_asks_for_its_data_no_more(tmp_path: Path) -> None:
    with mock.patch.object(STUDY, "prepare", return_value={}) as prepare:
        for n in ("1:2", "1:2", "1:3"):
            overfit_cli.sweep("toy", n=n, seeds=1, out=tmp_path, jobs=1, quiet=True)
    assert [len(asked.args[0]) for asked in prepare.call_args_list] == [2, 1]


def test_a_dry_run_returns_its_plan(tmp_path: Path) -> None:
    given: dict[str, Any] = {"seeds": 1, "out": tmp_path / "a", "jobs": 1}
    overfit_cli.sweep("toy", n=1, **given)
    plan = overfit_cli.sweep("toy", n=[1, 2], dry_run=True, **given)
    assert repr(plan) == "<Plan of 2 cells of toy: 1 to run>"
    assert (plan.done, plan.to_run) == (1, 1)
    assert [cell.parameters.model_dump()["n"] for [cell] in plan.batches] == [2]


CALLABLES: list[tuple[Callable[..., Any], str]] = [
    (Scaled(2.0), "functions.mine:Scaled"),
    (Scaled(2.0).train, "functions.mine:train"),
    (functools.partial(scaled, 2.0), "functions.mine:scaled"),
    (lambda n=1: {"loss": 2.0 * n}, "test_api:lambda"),
]


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_whatever_can_be_called_can_be_swept(tmp_path: Path, jobs: int) -> None:
    for study, name in CALLABLES:
        out = tmp_path / name
        cells = overfit_cli.sweep(study, n=[1, 2, 3], out=out, jobs=jobs, quiet=True)
        names = cells["study"].str.removeprefix("tests.")
        assert (sorted(cells["loss"]), {*names}) == ([2.0, 4.0, 6.0], {name})


@pytest.mark.slow
def test_a_function_that_cannot_be_sent_to_workers_is_swept_in_threads(tmp_path: Path) -> None:
    lock = threading.Lock()

    def locked(n: int = 1) -> dict[str, float]:
        with lock:
            return {"loss": n}

    given: dict[str, Any] = {"n": [1, 2], "out": tmp_path / "a", "quiet": True, "jobs": 2}
    with pytest.raises(UserError, match=r"can't be sent to workers \(TypeError: cannot pickle"):
        overfit_cli.sweep(locked, **given)
    assert not (tmp_path / "a").exists()
    assert len(overfit_cli.sweep(locked, **given, backend="threading")) == 2


def test_a_study_class_of_a_script_is_swept_drawn_and_judged_in_its_process(tmp_path: Path) -> None:
    given: dict[str, Any] = {"n": [1, 2, 3], "snr": [1, 2, 4], "seeds": 1, "jobs": 1}
    for study in (Mean(), Mean()):  # a cell of a notebook is run again
        assert len(overfit_cli.sweep(study, out=tmp_path / "a", quiet=True, **given)) == 9
    figure = overfit_cli.draw("heatmap", tmp_path / "a")
    assert figure._repr_png_().startswith(b"\x89PNG")
    [judged] = overfit_cli.judge(tmp_path / "a")
    assert (judged.name, judged.headline) == ("toy-claim", "fails")


@pytest.mark.slow
def test_python_draws_as_the_command_does(tmp_path: Path) -> None:
    """The same picture, pixel by pixel, of two directories in the user's own look."""
    a, b, style = (tmp_path / name for name in ("a", "b", "my.mplstyle"))
    for out, mood in ((a, "well"), (b, "prints")):
        given: dict[str, Any] = {"out": out, "jobs": 1, "quiet": True, "seeds": 2}
        overfit_cli.sweep("toy", n=[1, 2, 3], snr=[1, 2, 4], mood=mood, **given)
    style.write_text("font.size: 9\nimage.cmap: cividis\nsavefig.dpi: 80")
    shows: dict[str, Any] = {"law": ["snr = N", "snr = 2"], "size": "page", "log": "x,value"}
    figure = overfit_cli.draw("heatmap", a, b, style=style, out=tmp_path / "python.png", **shows)
    assert [axes.get_title(loc="left") for axes in figure.axes[:2]] == ["(a) a", "(b) b"]
    look = "--size=page --style=my.mplstyle --out=command.png"
    laws = "--law='snr = N' --law='snr = 2' --log=x,value"
    said(f"plot heatmap --from=a --from=b {laws} {look}", tmp_path)
    drawn = [(tmp_path / name).read_bytes() for name in ("python.png", "command.png")]
    assert same_picture("png", *drawn)
    less = overfit_cli.draw("heatmap", a, minus=b)
    assert less.caption.startswith("Test loss: well − prints (what goes wrong) over ")


def test_the_package_says_what_it_has() -> None:
    assert {"sweep", "load", "draw", "judge", "Parameter", "experiment"} <= set(dir(overfit_cli))
    for name in overfit_cli.__all__:
        assert getattr(overfit_cli, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'sweeep'"):
        _ = overfit_cli.sweeep


MEASURED = ["n", "snr", "seed", "test_loss"]
OF_LAW = fake_cells(range(2, 12), range(1, 16), seeds=6, noise=0.001)[MEASURED]
"""Cells as of benign-vit, with losses of their own for each seed."""


@pytest.mark.slow
def test_a_frame_from_anywhere_is_judged_by_its_studys_claims() -> None:
    cells = OF_LAW
    judged = {item.name: item.measurement for item in overfit_cli.judge(cells, study="benign-vit")}
    assert judged["fig1-contour"].verdict == "holds"
    assert judged["fig1-contour"].value == pytest.approx(1000, rel=0.01)
    assert judged["fig1-fitted"].verdict == "inconclusive"  # there is no train_loss
    halves = pd.concat([cells.iloc[::2], cells.iloc[1::2]]).assign(study="benign-vit")
    halves.index = pd.Index(np.arange(len(halves)) // 2)  # each of them twice, as from two files
    again = {item.name: item.measurement.verdict for item in overfit_cli.judge(halves)}
    assert again == {name: item.verdict for name, item in judged.items()}


def test_one_cell_is_trained_kept_and_returned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def learn(rate: float = 0.5, seed: int = 0) -> Iterator[dict[str, float]]:
        for step in range(3):
            yield {"step": step, "loss": seed + (1 - rate) ** step}

    result = overfit_cli.train(learn, rate=0.25, seed=1, out="one")
    assert (result.status, [*result.trajectory["loss"]]) == ("done", [2.0, 1.75, 1.5625])
    assert "1.75" in capsys.readouterr().out
    assert overfit_cli.load("one")["loss"].tolist() == [1.5625]
    assert len(overfit_cli.load("one", trajectories=True)) == 3
    overfit_cli.train(learn, quiet=True)
    assert not capsys.readouterr().out and (tmp_path / "results").is_dir()


@pytest.mark.slow
def test_a_dry_run_does_not_run_the_script_again(tmp_path: Path) -> None:
    """Batches are timed in its own process, so that no guard is needed."""
    script = (
        "import overfit_cli\nprint('it begins')\ndef learn(n: int = 1):\n return {'loss': 1 / n}\n"
    )
    (tmp_path / "a.py").write_text(f"{script}overfit_cli.sweep(learn, n='1:4', dry_run=True)")
    output = python("a.py", cwd=tmp_path).stdout
    assert output.count("it begins") == 1 and "timed batch" in output
