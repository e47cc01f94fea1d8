"""`overfit export`: cells, means over seeds and logged steps, out of the tool."""

from __future__ import annotations

import csv
import io
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import overfit_cli
from overfit_cli.core.cell import CellResult
from overfit_cli.core.spreadsheet import csv_text, unquoted
from overfit_cli.sweeps.store import RunDirectory
from tests.command import call, run
from tests.toy_runs import TOY, toy_cells

T_OF_3 = 4.302652729749464
"""The 0.975 quantile of Student's t with two degrees of freedom, from a table."""

FUNCTION = """
def train(n: int = 2, name: str = "plain", seed: int = 0):
    yield {"train_loss": 1.0 / n}
    if n > 3:
        raise ValueError('n is 4, "too large"')
    return {"loss": n + 0.1 * seed, "loss_sd": 1.0}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sweeps of the toy in `toy` (odd n fail), and of a function in `mine`; a training in `one`."""
    folder = tmp_path_factory.mktemp("export")
    toy = ("sweep", "toy", "--seeds=3", "--snr=1:2:2", "--set=mood=diverges", "--jobs=1")
    call(*toy, "--n=1:4", "--trajectories", "--out=toy", cwd=folder, expect=1)
    (folder / "mine.py").write_text(FUNCTION)
    mine = ("sweep", "mine.py", "--n=1:4", "--name=σ & co_1,plain", "--seeds=2", "--jobs=1")
    call(*mine, "--out=mine", cwd=folder, expect=1)
    call("train", "toy", "--n=2", "--out=one", cwd=folder)
    return folder


def exported_text(folder: Path, *arguments: str) -> str:
    """What `overfit export` prints."""
    return call("export", *arguments, cwd=folder).stdout


def exported(folder: Path, *arguments: str) -> pd.DataFrame:
    """What `overfit export` prints, read as CSV."""
    text = exported_text(folder, *arguments)
    return pd.read_csv(io.StringIO(text), keep_default_na=False, na_values=[""])


# Cells


def test_cells_are_read_back_to_the_last_bit(folder: Path) -> None:
    cells = exported(folder, "toy").set_index("key").sort_index()
    loaded = overfit_cli.load(folder / "toy").set_index("key").sort_index()
    assert list(cells.columns) == list(loaded.columns)
    assert len(cells) == 4 * 2 * 3
    for name in ("draw", "test_loss", "seconds"):
        assert (cells[name].isna() == loaded[name].isna()).all()
        assert (cells[name].dropna() == loaded[name].dropna()).all()


def test_cells_are_sorted_by_parameters_and_seeds(folder: Path) -> None:
    cells = exported(folder, "toy", "--columns", "snr,N,seed,status")
    assert list(cells.columns) == ["snr", "n", "seed", "status"]
    places = list(zip(cells["n"], cells["snr"], cells["seed"], strict=True))
    assert places == sorted(places)
    assert set(cells[cells["n"] % 2 == 1]["status"]) == {"failed"}
    apart = exported_text(folder, "mine", "--columns=loss", "--where=name=plain").splitlines()
    assert apart[:2] == ["n,seed,loss", "1,0,1.0"], "with what tells the rows apart"


def test_texts_with_commas_and_quotes_are_quoted(folder: Path) -> None:
    text = call("export", "mine", "--columns=n,name,reason", cwd=folder).stdout
    assert '4,σ & co_1,"error: ValueError: n is 4, ""too large"" at mine.py:' in text
    [reason] = set(exported(folder, "mine", "--where=n=4")["reason"])
    assert reason.startswith('error: ValueError: n is 4, "too large" at mine.py:')


FORMULAS = ('=HYPERLINK("http://x","y")', "+1+cmd", "-2+3", "@SUM(A1)")


def test_a_spreadsheet_executes_no_text_of_a_run(folder: Path, tmp_path: Path) -> None:
    names = ",".join(name for name in FORMULAS if "," not in name)
    mine = str(folder / "mine.py")
    call("sweep", mine, f"--name={names}", "--n=2", "--jobs=1", "--out=sent", cwd=tmp_path)
    fields = [row["name"] for row in csv.DictReader(io.StringIO(exported_text(tmp_path, "sent")))]
    assert fields and all(field.startswith("'") for field in fields)
    values = {*overfit_cli.load(tmp_path / "sent")["name"]}
    assert {unquoted(field) for field in fields} == values
    call("export", "sent", "--means", "--columns=loss", "--out=means.csv", cwd=tmp_path)
    same = call("compare", "sent", "means.csv", cwd=tmp_path).stdout
    assert f"{len(values)} points" in same


@pytest.mark.parametrize("text", [*FORMULAS, "\t=1", "''", "plain", "it's"])
def test_an_escaped_text_is_read_back_and_a_number_stays_one(text: str) -> None:
    rows = pd.DataFrame({text: [text, None], "-a": [-1.5, math.nan], "b": ["-1e-3", "-inf"]})
    [names, first, second] = csv.reader(io.StringIO(csv_text(rows), newline=""))
    assert [unquoted(field) for field in (names[0], first[0])] == [text, text]
    assert not re.match("[=+\\-@\t]", first[0])
    assert names[1:] == ["'-a", "b"]
    assert (first[1:], second) == (["-1.5", "-1e-3"], ["", "", "-inf"])


def test_a_reason_in_a_run_that_was_sent_is_a_text(tmp_path: Path) -> None:
    directory, cell = RunDirectory(tmp_path / "sent"), toy_cells("1")[0]
    directory.prepare()
    directory.write(TOY, [CellResult(cell, reason="=1+1")])
    [row] = csv.DictReader(io.StringIO(exported_text(tmp_path, "sent")))
    assert row["reason"] == "'=1+1"


def test_a_file_is_written_in_the_format_of_its_ending(folder: Path, tmp_path: Path) -> None:
    for name in ("cells.csv", "cells.parquet", "table.tex"):
        target = tmp_path / "new folder" / name
        said = call("export", "toy", "--out", str(target), cwd=folder).stdout
        assert said == f"Written: {target}\n"
    shown = call("export", "toy", cwd=folder).stdout
    assert (tmp_path / "new folder" / "cells.csv").read_text() == shown
    assert "tabular" in (tmp_path / "new folder" / "table.tex").read_text()


def test_parquet_keeps_types_and_says_of_which_study_it_is(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "cells.parquet"
    call("export", "toy", "--out", str(target), cwd=folder)
    loaded = overfit_cli.load(folder / "toy")
    cells = pd.read_parquet(target)
    assert (cells.dtypes == loaded.dtypes).all()
    both = [one.set_index("key").sort_index() for one in (cells, loaded)]
    pd.testing.assert_frame_equal(both[0], both[1])
    metadata = pq.read_schema(target).metadata
    assert (metadata[b"overfit.study"], metadata[b"overfit.version"]) == (b"toy", b"1")


@pytest.mark.slow
def test_utf_8_is_written_whatever_the_locale(folder: Path) -> None:
    latin = {"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    assert "σ & co_1" in run("export", "mine", cwd=folder, env=latin).stdout


# Logged steps


def test_trajectories_are_a_row_for_each_logged_step(folder: Path) -> None:
    steps = exported(folder, "toy", "--trajectories", "--columns=seed,n,snr,step,train_loss")
    done = 2 * 2 * 3  # cells with an even n
    assert len(steps) == 2 * done
    assert list(steps["step"]) == [0, 1] * done
    end = steps[steps["step"] == 1]
    assert end["train_loss"].tolist() == (1 / (1 + end["n"] * end["snr"] ** 2)).tolist()
    some = exported(folder, "toy", "--trajectories", "--where=n=2", "--where=seed=0")
    assert set(some["n"]) == {2}
    assert len(some) == 2 * 2


def test_a_training_is_exported_with_its_steps(folder: Path) -> None:
    assert len(exported(folder, "one")) == 1
    assert exported(folder, "one", "--trajectories")["step"].tolist() == [0, 1]
    [mean] = exported(folder, "one", "--means").to_dict("records")
    assert mean["seeds"] == 1
    assert mean["test_loss"] == 1 / 3
    assert math.isnan(mean["test_loss_low"])


# Means over seeds


def test_means_and_intervals_are_those_of_the_seeds(folder: Path) -> None:
    means = exported(folder, "toy", "--means")
    assert list(means.columns[:5]) == ["n", "snr", "seeds", "failed", "steps"]
    assert list(zip(means["n"], means["snr"], strict=True)) == [
        (n, snr) for n in (1, 2, 3, 4) for snr in (1, 2)
    ]
    cells = overfit_cli.load(folder / "toy")
    for row in means[means["n"] % 2 == 0].to_dict("records"):
        draws = cells[(cells["n"] == row["n"]) & (cells["snr"] == row["snr"])]["draw"].to_numpy()
        assert len(draws) == 3
        mean = draws.sum() / 3
        deviation = math.sqrt(((draws - mean) ** 2).sum() / 2)
        half = T_OF_3 * deviation / math.sqrt(3)
        found = [row[name] for name in ("draw", "draw_low", "draw_high", "draw_sd")]
        assert found == pytest.approx([mean, mean - half, mean + half, deviation], rel=1e-12)
    odd, even = means[means["n"] % 2 == 1], means[means["n"] % 2 == 0]
    assert set(zip(odd["seeds"], odd["failed"], strict=True)) == {(0, 3)}
    assert set(zip(even["seeds"], even["failed"], strict=True)) == {(3, 0)}
    assert odd["draw"].isna().all()


def test_means_are_of_the_columns_that_are_named_at_each_place(folder: Path) -> None:
    means = exported(folder, "toy", "--means", "--columns=mood,draw,seeds,snr")
    assert list(means.columns) == [
        *("n", "mood", "snr", "seeds", "failed"),
        *("draw", "draw_low", "draw_high", "draw_sd"),
    ]
    assert len(means) == 8


def test_from_python_means_are_loaded_as_they_are_exported(folder: Path) -> None:
    means = overfit_cli.load(folder / "toy", means=True, where="n=2")
    printed = exported(folder, "toy", "--means", "--where=n=2")
    assert list(means.columns) == ["snr", *list(printed.columns[1:])]
    assert np.array_equal(means["draw_high"], printed["draw_high"])


def test_two_columns_of_one_name_are_refused(folder: Path) -> None:
    error = call("export", "mine", "--means", cwd=folder, expect=2).stderr
    assert "The means have two columns 'loss_sd'; choose others with --columns." in error
    assert len(exported(folder, "mine", "--means", "--columns=loss")) == 8


def test_of_a_refined_run_a_note_says_how_its_cells_were_chosen(tmp_path: Path) -> None:
    refined = ("--n=1:4", "--snr=0.1:2:6", "--refine=1", "--threshold=0.5", "--jobs=1")
    call("sweep", "toy", *refined, "--out=out", cwd=tmp_path)
    done = call("export", "out", "--means", "--columns=test_loss", cwd=tmp_path)
    assert done.stdout.startswith("n,snr,seeds,failed,test_loss,")
    assert "note: out: a sweep with --refine chose its cells" in done.stderr


# LaTeX


def test_a_table_in_latex_is_of_means_with_the_papers_symbols(folder: Path) -> None:
    text = call("export", "toy", "--to=latex", cwd=folder).stdout
    assert text.splitlines()[0] == r"% \usepackage{booktabs}"
    assert "% toy: toy, version 1, 24 cells, 3 seeds" in text
    assert "overfit export toy --to=latex" in text
    body = [line for line in text.splitlines() if not line.startswith("%")]
    assert body[:4] == [
        r"\begin{tabular}{rrrrr}",
        r"\toprule",
        r"$N$ & signal-to-noise ratio & seeds & failed & test loss \\",
        r"\midrule",
    ]
    assert body[4] == r"$1$ & $1$ & $0$ & $3$ & -- \\"
    assert body[-2:] == [r"\bottomrule", r"\end{tabular}"]
    rows = body[4:-2]
    assert [row.count("&") for row in rows] == [4] * 8
    assert all(row.endswith(r" \\") for row in rows)


def test_words_are_escaped_in_latex_and_braces_balance(folder: Path) -> None:
    text = call("export", "mine", "--to=latex", "--columns=n,name,loss", cwd=folder).stdout
    assert r"$4$ & $\sigma$ \& co\_1 & $0$ & $2$ & -- \\" in text
    plain = re.sub(r"\\[{}]", "", text)
    assert plain.count("{") == plain.count("}")
    assert text.count("$") % 2 == 0


def test_a_mean_in_latex_has_half_its_interval_in_two_digits(folder: Path) -> None:
    text = call("export", "toy", "--to=latex", "--columns=draw", "--where=n=4", cwd=folder).stdout
    draws = overfit_cli.load(folder / "toy", where=["n=4", "snr=1"])["draw"].to_numpy()
    half = T_OF_3 * draws.std(ddof=1) / math.sqrt(3)
    digits = 1 - math.floor(math.log10(half))
    assert rf"${draws.mean():.{digits}f} \pm {half:.{digits}f}$ \\" in text
    assert "seeds &" not in text  # all have the same number, which a comment tells
