"""`overfit export`: cells, means over seeds and logged steps, out of the tool."""

from __future__ import annotations

import io
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import overfit_cli
from overfit_cli.cli.export_and_compare import estimate
from tests.command import call, run

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


def test_cells_are_read_back_to_the_last_bit(folder: Path) -> None:
    cells = exported(folder, "toy").set_index("key").sort_index()
    loaded = overfit_cli.load(folder / "toy").set_index("key").sort_index()
    assert (list(cells.columns), len(cells)) == (list(loaded.columns), 4 * 2 * 3)
    numbers = ["draw", "test_loss", "seconds"]
    pd.testing.assert_frame_equal(cells[numbers], loaded[numbers], check_exact=True)


def test_cells_are_sorted_by_parameters_and_seeds(folder: Path) -> None:
    cells = exported(folder, "toy", "--columns", "`snr`,N,seed,status")
    assert list(cells.columns) == ["snr", "n", "seed", "status"]
    places = list(zip(cells["n"], cells["snr"], cells["seed"], strict=True))
    assert places == sorted(places)
    assert set(cells[cells["n"] % 2 == 1]["status"]) == {"failed"}
    apart = exported_text(folder, "mine", "--columns=loss", "--where=name=plain").splitlines()
    assert apart[:2] == ["n,seed,loss", "1,0,1.0"], "with what tells the rows apart"


def test_texts_with_commas_and_quotes_are_quoted_in_utf_8(folder: Path) -> None:
    latin = {"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    text = run("export", "mine", "--columns=n,name,reason", cwd=folder, env=latin).stdout
    assert '4,σ & co_1,"error: ValueError: n is 4, ""too large"" at mine.py:' in text
    [reason] = set(exported(folder, "mine", "--where=n=4")["reason"])
    assert reason.startswith('error: ValueError: n is 4, "too large" at mine.py:')


def test_a_file_is_written_in_the_format_of_its_ending(folder: Path, tmp_path: Path) -> None:
    files = [tmp_path / "new folder" / name for name in ("a.csv", "a.parquet", "a.tex")]
    for file in files:
        assert exported_text(folder, "toy", "--out", str(file)) == f"Written: {file}\n"
    csv, parquet, latex = files
    assert csv.read_text() == exported_text(folder, "toy")
    assert "tabular" in latex.read_text()
    cells, loaded = pd.read_parquet(parquet), overfit_cli.load(folder / "toy")
    both = [one.set_index("key").sort_index() for one in (cells, loaded)]
    pd.testing.assert_frame_equal(both[0], both[1])


def test_trajectories_are_a_row_for_each_logged_step(folder: Path) -> None:
    steps = exported(folder, "toy", "--trajectories", "--columns=seed,n,snr,step,train_loss")
    done = 2 * 2 * 3  # cells with an even n
    assert len(steps) == 2 * done
    assert list(steps["step"]) == [0, 1] * done
    end = steps[steps["step"] == 1]
    assert end["train_loss"].tolist() == (1 / (1 + end["n"] * end["snr"] ** 2)).tolist()
    some = exported(folder, "toy", "--trajectories", "--where=n=2", "--where=seed=0")
    assert some["n"].tolist() == [2] * 2 * 2


def test_a_training_is_exported_with_its_steps(folder: Path) -> None:
    assert len(exported(folder, "one")) == 1
    assert exported(folder, "one", "--trajectories")["step"].tolist() == [0, 1]
    [mean] = exported(folder, "one", "--means").to_dict("records")
    assert (mean["seeds"], mean["test_loss"]) == (1, 1 / 3)
    assert math.isnan(mean["test_loss_low"])


def test_means_and_intervals_are_those_of_the_seeds(folder: Path) -> None:
    means = exported(folder, "toy", "--means")
    assert list(means.columns[:5]) == ["n", "snr", "seeds", "failed", "steps"]
    places = list(zip(means["n"], means["snr"], strict=True))
    assert places == [(n, snr) for n in (1, 2, 3, 4) for snr in (1, 2)]
    cells = overfit_cli.load(folder / "toy")
    for row in means[means["n"] % 2 == 0].to_dict("records"):
        draws = cells[(cells["n"] == row["n"]) & (cells["snr"] == row["snr"])]["draw"].to_numpy()
        mean, deviation = draws.mean(), draws.std(ddof=1)
        half = T_OF_3 * deviation / math.sqrt(3)
        found = [row[name] for name in ("draw", "draw_low", "draw_high", "draw_sd")]
        assert found == pytest.approx([mean, mean - half, mean + half, deviation], rel=1e-12)
    odd, even = means[means["n"] % 2 == 1], means[means["n"] % 2 == 0]
    assert set(zip(odd["seeds"], odd["failed"], strict=True)) == {(0, 3)}
    assert set(zip(even["seeds"], even["failed"], strict=True)) == {(3, 0)}
    assert odd["draw"].isna().all()


def test_means_are_of_the_columns_that_are_named_at_each_place(folder: Path) -> None:
    means = exported(folder, "toy", "--means", "--columns=mood,draw,seeds,snr")
    columns = ["n", "mood", "snr", "seeds", "failed", "draw", "draw_low", "draw_high", "draw_sd"]
    assert (list(means.columns), len(means)) == (columns, 8)


def test_from_python_means_are_loaded_as_they_are_exported(folder: Path) -> None:
    means = overfit_cli.load(folder / "toy", means=True, where="n=2")
    printed = exported(folder, "toy", "--means", "--where=n=2")
    assert [*means.columns] == ["snr", *printed.columns[1:]]
    assert np.array_equal(means["draw_high"], printed["draw_high"])


def test_two_columns_of_one_name_are_refused(folder: Path) -> None:
    error = call("export", "mine", "--means", cwd=folder, expect=2).stderr
    assert "--columns loss_sd: the means have two columns of that name; name others." in error
    assert len(exported(folder, "mine", "--means", "--columns=loss")) == 8


def test_means_of_a_refined_run_say_of_how_many_seeds(tmp_path: Path) -> None:
    refined = ("--n=1:4", "--snr=0.1:2:6", "--refine=1", "--threshold=0.5", "--jobs=1")
    call("sweep", "toy", *refined, "--out=out", cwd=tmp_path)
    done = call("export", "out", "--means", "--columns=test_loss", cwd=tmp_path)
    assert done.stdout.startswith("n,snr,seeds,failed,test_loss,")


def test_a_table_in_latex_is_of_means_with_the_papers_symbols(folder: Path) -> None:
    lines = exported_text(folder, "toy", "--to=latex").splitlines()
    assert lines[:2] == [r"% \usepackage{booktabs}", "% toy, version 1: 24 cells, 3 seeds"]
    assert any("overfit export toy --to=latex" in line for line in lines)
    body = [line for line in lines if not line.startswith("%")]
    assert body[:5] == [
        r"\begin{tabular}{rrrrr}",
        r"\toprule",
        r"$N$ & signal-to-noise ratio & seeds & failed & test loss \\",
        r"\midrule",
        r"$1$ & $1$ & $0$ & $3$ & -- \\",
    ]
    assert body[-2:] == [r"\bottomrule", r"\end{tabular}"]
    assert len(body) == 4 + 8 + 2
    mine = exported_text(folder, "mine", "--to=latex", "--columns=n,name,loss")
    assert r"$4$ & σ \& co\_1 & $0$ & $2$ & -- \\" in mine


def test_a_mean_in_latex_has_half_its_interval_in_two_digits(folder: Path) -> None:
    text = exported_text(folder, "toy", "--to=latex", "--columns=draw", "--where=n=4")
    draws = overfit_cli.load(folder / "toy", where=["n=4", "snr=1"])["draw"].to_numpy()
    half = T_OF_3 * draws.std(ddof=1) / math.sqrt(3)
    digits = 1 - math.floor(math.log10(half))
    assert rf"${draws.mean():.{digits}f} \pm {half:.{digits}f}$ \\" in text
    assert "seeds &" not in text  # all have the same number, which a comment tells


@pytest.mark.parametrize(
    ("mean", "half", "written"),
    [
        (0.69312, 0.01234, r"$0.693 \pm 0.012$"),
        (0.69312, 0.00996, r"$0.693 \pm 0.010$"),
        (15321.0, 1234.0, r"$15300 \pm 1200$"),
        (-0.04, 3.2, r"$0.0 \pm 3.2$"),
        (-1.26, 0.31, r"$-1.26 \pm 0.31$"),
        (1.234e-7, 3.21e-9, r"$(1.234 \pm 0.032) \cdot 10^{-7}$"),
        (2.6e8, 1.1e9, r"$(0.3 \pm 1.1) \cdot 10^{9}$"),
        (0.2, 1e-17, "$0.2$"),
        (1e-7, 0.0, r"$1 \cdot 10^{-7}$"),
        (0.123456, math.nan, "$0.1235$"),
        (math.nan, math.nan, "--"),
        (math.inf, math.nan, r"$\infty$"),
    ],
)
def test_a_mean_is_written_as_well_as_it_is_known(mean: float, half: float, written: str) -> None:
    assert estimate(mean, half) == written
