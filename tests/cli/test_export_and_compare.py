"""`overfit export` and `overfit compare`: files, tables, figures and exit codes."""

from __future__ import annotations

import io
import json
import math
import shutil
from pathlib import Path

import matplotlib.image
import numpy as np
import pandas as pd
import pytest

import overfit_cli
from overfit_cli.cli.export_and_compare import estimate
from overfit_cli.report.compare import compare_sides
from overfit_cli.report.pictures import draw_difference
from tests.command import call, run, said
from tests.fake_study import heights
from tests.report.made_up import loss, write_run
from tests.screen import shown as shown_lines
from tests.terminal import on_a_terminal

T_OF_3 = 4.302652729749464
"""The 0.975 quantile of Student's t with two degrees of freedom, three seeds, from a table."""

FUNCTION = """
def train(n: int = 2, name: str = "plain", seed: int = 0):
    yield {"train_loss": 1.0 / n}
    if n > 3:
        raise ValueError('n is 4, "too large"')
    return {"loss": n + 0.1 * seed, "loss_sd": 1.0}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sweeps of the toy in `toy` (odd n fail), and of a function in `mine`."""
    folder = tmp_path_factory.mktemp("export")
    (folder / "mine.py").write_text(FUNCTION)
    toy = "toy --n=1:4 --seeds=3 --snr=1:2:2 --set=mood=diverges --trajectories"
    mine = "mine.py --n=1:4 --name='σ & co_1,plain' --seeds=2"
    said(f"sweep {toy} --jobs=1 --out=toy", folder, 1)
    said(f"sweep {mine} --jobs=1 --out=mine", folder, 1)
    return folder


def exported(folder: Path, arguments: str) -> pd.DataFrame:
    """What `overfit export` prints, read as CSV."""
    text = io.StringIO(said(f"export {arguments}", folder))
    return pd.read_csv(text, keep_default_na=False, na_values=[""])


def test_cells_are_read_back_to_the_last_bit_from_a_file_of_its_endings_format(
    folder: Path, tmp_path: Path
) -> None:
    files = [tmp_path / "new folder" / name for name in ("a.csv", "a.parquet", "a.tex")]
    for file in files:
        assert said(f"export toy --out '{file}'", folder) == f"Written: {file}\n"
    csv, parquet, latex = files
    assert csv.read_text() == said("export toy", folder)
    assert "tabular" in latex.read_text()
    read = (exported(folder, "toy"), pd.read_parquet(parquet), overfit_cli.load(folder / "toy"))
    printed, written, loaded = (cells.set_index("key").sort_index() for cells in read)
    assert (list(printed.columns), len(printed)) == (list(loaded.columns), 4 * 2 * 3)
    numbers = ["draw", "test_loss", "seconds"]
    pd.testing.assert_frame_equal(printed[numbers], loaded[numbers], check_exact=True)
    pd.testing.assert_frame_equal(written, loaded)


def test_chosen_columns_of_cells_and_of_means_are_sorted_by_parameters_and_seeds(
    folder: Path,
) -> None:
    cells = exported(folder, "toy --columns '`snr`,N,seed,status'")
    assert list(cells.columns) == ["snr", "n", "seed", "status"]
    places = list(zip(cells["n"], cells["snr"], cells["seed"], strict=True))
    assert places == sorted(places)
    assert set(cells[cells["n"] % 2 == 1]["status"]) == {"failed"}
    apart = said("export mine --columns=loss --where=name=plain --out=-", folder).splitlines()
    assert apart[:2] == ["n,seed,loss", "1,0,1.0"], "with what tells the rows apart"
    means = exported(folder, "toy --means --columns=mood,draw,seeds,snr")
    columns = ["n", "mood", "snr", "seeds", "failed", "draw", "draw_low", "draw_high", "draw_sd"]
    assert (list(means.columns), len(means)) == (columns, 8)
    error = call("export", "mine", "--means", cwd=folder, expect=2).stderr
    assert "--columns loss_sd: the means have two columns of that name; name others." in error
    assert len(exported(folder, "mine --means --columns=loss")) == 8


@pytest.mark.slow
def test_texts_with_commas_and_quotes_are_quoted_in_utf_8(folder: Path) -> None:
    latin = {"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    text = run("export", "mine", "--columns=n,name,reason", cwd=folder, env=latin).stdout
    assert '4,σ & co_1,"error: ValueError: n is 4, ""too large"" at mine.py:' in text
    [reason] = set(exported(folder, "mine --where=n=4")["reason"])
    assert reason.startswith('error: ValueError: n is 4, "too large" at mine.py:')


def test_trajectories_are_a_row_for_each_logged_step(folder: Path) -> None:
    steps = exported(folder, "toy --trajectories --columns=seed,n,snr,step,train_loss")
    done = 2 * 2 * 3  # cells with an even n
    assert len(steps) == 2 * done
    assert list(steps["step"]) == [0, 1] * done
    end = steps[steps["step"] == 1]
    assert end["train_loss"].tolist() == (1 / (1 + end["n"] * end["snr"] ** 2)).tolist()
    some = exported(folder, "toy --trajectories --where=n=2 --where=seed=0")
    assert some["n"].tolist() == [2] * 2 * 2


def test_means_and_intervals_are_those_of_the_seeds(folder: Path) -> None:
    means = exported(folder, "toy --means")
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


def test_a_table_in_latex_is_of_means_with_the_papers_symbols(folder: Path) -> None:
    lines = said("export toy --to=latex", folder).splitlines()
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
    assert (body[-2:], len(body)) == ([r"\bottomrule", r"\end{tabular}"], 4 + 8 + 2)
    mine = said("export mine --to=latex --columns=n,name,loss", folder)
    assert r"$4$ & σ \& co\_1 & $0$ & $2$ & -- \\" in mine
    text = said("export toy --to=latex --columns=draw --where=n=4", folder)
    draws = overfit_cli.load(folder / "toy", where=["n=4", "snr=1"])["draw"].to_numpy()
    assert f"{estimate(draws.mean(), T_OF_3 * draws.std(ddof=1) / math.sqrt(3))} \\\\\n" in text
    assert "seeds &" not in text  # all have the same number, which a comment tells


@pytest.mark.parametrize(
    ("words", "written"),
    [
        (
            r"\text{\input /etc/passwd }",
            r"\$\textbackslash{}text\{\textbackslash{}input /etc/passwd \}\$",
        ),
        (r"a & b", r"\$a \& b\$"),
        (r"\tilde{\sigma}_p", r"$\tilde{\sigma}_p$"),
    ],
)
def test_a_formula_in_latex_is_of_a_plain_list_or_its_signs_are_written(
    words: str, written: str, folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(folder / "mine", tmp_path / "sent")
    manifest = tmp_path / "sent" / "manifest.json"
    content = json.loads(manifest.read_text())
    content["function"]["parameters"][0]["about"]["label"] = f"the ${words}$ of it"
    manifest.write_text(json.dumps(content))
    assert f"the {written}" in said("export sent --to=latex", tmp_path)


@pytest.mark.parametrize(
    ("mean", "half", "written"),
    [
        (0.69312, 0.01234, r"$0.693 \pm 0.012$"),
        (15321.0, 1234.0, r"$15300 \pm 1200$"),
        (-0.04, 3.2, r"$0.0 \pm 3.2$"),
        (1.234e-7, 3.21e-9, r"$(1.234 \pm 0.032) \cdot 10^{-7}$"),
        (2.6e8, 1.1e9, r"$(0.3 \pm 1.1) \cdot 10^{9}$"),
        (0.2, 1e-17, "$0.2$"),
        (1e-7, 0.0, r"$1 \cdot 10^{-7}$"),
        (math.nan, math.nan, "--"),
        (math.inf, math.nan, r"$\infty$"),
    ],
)
def test_a_mean_is_written_as_well_as_it_is_known(mean: float, half: float, written: str) -> None:
    assert estimate(mean, half) == written


def moved(n: int, snr: float, seed: int) -> float:
    """Run `b`: each seed a bit above `a`, and one place far above."""
    return n * snr + 0.02 * seed + (0.26 if (n, snr) == (1, 2) else 0)


PUBLISHED = "n,snr,test_loss,test_loss_sd,seeds\n1,1,1,0.01,24\n1,2,1,1,24\n2,1,9,0.01,24\n"


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs over n and snr, `a` and `b` of three seeds and `six`; `one` and `two` over snr alone.

    Points of `a` are in `a.csv`, and numbers that were published of `six` in `six.csv`.
    """
    compared = tmp_path_factory.mktemp("compare")
    write_run(compared / "six", loss(lambda n, snr, seed: n + 0.001 * seed**2), seeds=range(6))
    (compared / "six.csv").write_text(PUBLISHED)
    write_run(compared / "a", loss(lambda n, snr, seed: n * snr + 0.01 * seed))
    write_run(compared / "b", loss(moved))
    write_run(compared / "one", loss(lambda n, snr, seed: snr**2), n=(2,), snr=(1.0, 2.0, 4.0))
    write_run(compared / "two", loss(lambda n, snr, seed: 2 * snr), n=(2,), snr=(1.0, 2.0, 4.0))
    (compared / "a.csv").write_text("n,snr,test_loss\n1,1,1\n1,2,2\n2,1,2.5\n")
    return compared


# What is shown


OF_RUNS = """\
Equal at every pair: steps.
A: a, 12 cells of toy.
B: b, 12 cells of toy.
12 pairs of cells with the same n, snr, seed.
  column      mean of A   mean of B   B − A                    largest
 ─────────────────────────────────────────────────────────────────────────────────────────
  test_loss        2.26        2.34   0.075 [0.0502, 0.0998]   0.28 at n 1, snr 2, seed 2
  steps               3           3   0 [0, 0]                 0
Intervals of B − A: 95 % t over 3 seeds.
"""
OF_POINTS = """\
Different by more than 10 %: test_loss.
test_loss at 3 points: 1 equivalent, 1 open, 1 different: n 2, snr 1 (z 1560).
A: six, 24 cells of toy.
B: six.csv, published, 3 points of toy.
3 points with the same n, snr: B against A's means over seeds.
Without a counterpart: 1 point of A, 0 points of B.
  column      mean of A   mean of B   B − A               largest
 ────────────────────────────────────────────────────────────────────────────
  test_loss        1.34        3.67   2.32 [2.18, 2.47]   6.99 at n 2, snr 1
Intervals of B − A: 95 % Welch's t over 24 and 6 seeds.
test_loss: the interval of B − A contains 0 at 2 of 3 points.
"""


def test_what_changes_is_a_table_below_what_differs_and_above_its_intervals(compared: Path) -> None:
    assert said("compare a b", compared) == OF_RUNS
    assert said("compare six six.csv --tolerance=10%", compared, 1) == OF_POINTS


@pytest.mark.slow
@pytest.mark.parametrize("width", [60, 120])
@pytest.mark.one_in(2)
def test_on_a_terminal_every_number_is_shown(compared: Path, width: int) -> None:
    code, stream = on_a_terminal("compare", "a", "b", cwd=compared, env={"COLUMNS": str(width)})
    lines = shown_lines(stream)
    assert code == 0
    assert max(map(len, lines)) <= width
    assert {"2.26", "2.34", "0.075", "0.28"} <= {word for line in lines for word in line.split()}


def test_the_code_is_1_where_a_column_or_a_place_differs(compared: Path) -> None:
    chosen = "six six.csv --tolerance=10% --where=n=1"
    for words, code in (("a a --tolerance=1%", 0), ("a b --tolerance=0.001", 1), (chosen, 0)):
        shown = said(f"compare {words}", compared, code)
        assert shown.startswith("Different by more than ") == bool(code)


def test_everything_is_in_the_json(compared: Path) -> None:
    said("compare a a.csv --json=deep/a.json", compared)
    content = json.loads((compared / "deep" / "a.json").read_text())
    assert (content["schema"], content["difference"]) == (2, "B - A")
    assert (content["b"]["published"], content["tolerance"]) == (True, None)
    assert (content["pairs"], content["alone"]) == (3, {"a": 1, "b": 0})
    [change] = content["columns"]
    assert change["largest"] == {"difference": pytest.approx(0.49), "at": {"n": 2, "snr": 1.0}}
    places = [(point["at"]["n"], point["at"]["snr"], point["a"]) for point in change["points"]]
    np.testing.assert_allclose(places, [(1, 1, 1.01), (1, 2, 2.01), (2, 1, 2.01)])
    printed = said("compare a b --where=seed=0 --json=-", compared)
    alone = json.loads(printed)["columns"][0]["difference"]
    assert (alone["value"], alone["low"], alone["high"]) == (pytest.approx(0.065), None, None)
    said("compare a b --where=seed=0 --json=b.json", compared)
    assert printed == (compared / "b.json").read_text() and not (compared / "-").exists()


# The figure


@pytest.mark.slow
def test_the_map_of_a_difference_is_centred_at_zero_and_says_which_is_less(compared: Path) -> None:
    shown = said("compare a b --out=map.png", compared)
    assert "Drawn: map.png, and its caption in map.txt" in shown
    assert matplotlib.image.imread(compared / "map.png").shape[0] > 100
    caption = (compared / "map.txt").read_text()
    assert caption.startswith("B less A: B is b, A is a.\n\nTest loss, less that of a, over")
    assert "overfit compare a b --out=map.png" in caption
    figure = draw_difference(compare_sides(compared / "a", compared / "b"))
    mesh = figure.axes[0].collections[0]
    drawn = np.asarray(mesh.get_array())
    np.testing.assert_allclose(drawn, [[0.01, 0.27], [0.01, 0.01]])
    assert mesh.get_clim() == pytest.approx((-0.27, 0.27))
    assert mesh.get_cmap().name == "RdBu_r"
    beside = draw_difference(compare_sides(compared / "a", compared / "a.csv"))
    gaps = np.ma.masked_invalid(np.asarray(beside.axes[0].collections[0].get_array()))
    np.testing.assert_allclose(gaps.compressed(), [-0.01, -0.01, 0.49], atol=1e-12)
    assert gaps.mask.tolist() == [[False, False], [False, True]], "of published points alone"


def test_over_one_number_the_difference_is_a_line(compared: Path) -> None:
    figure = draw_difference(compare_sides(compared / "one", compared / "two"))
    [axes] = figure.axes
    line, zero = axes.lines
    assert np.asarray(line.get_xdata()).tolist() == [1, 2, 4]
    assert heights(line).tolist() == [1, 0, -8]
    assert heights(zero).tolist() == [0, 0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "linear")


def test_a_word_makes_panels_of_a_map_and_lines_over_a_number(tmp_path: Path) -> None:
    for name, height in (("a", 1.0), ("b", 3.0)):
        for mood in ("well", "prints"):
            write_run(tmp_path / name, loss(lambda *_, x=height: x), mood=mood)
    of_maps = draw_difference(compare_sides(tmp_path / "a", tmp_path / "b"))
    titles = [axes.get_title(loc="left") for axes in of_maps.axes]
    assert titles[:2] == ["(a) what goes wrong: well", "(b) what goes wrong: prints"]
    of_lines = draw_difference(compare_sides(tmp_path / "a", tmp_path / "b", where=["n=1"]))
    assert len(of_lines.axes[0].lines) == 3, "one for each mood, and zero"


def test_a_single_cell_has_no_figure(tmp_path: Path) -> None:
    for name, mood in (("a", "well"), ("b", "prints")):
        write_run(tmp_path / name, loss(lambda *_: 1), (1,), (1.0,), mood=mood)
    error = call("compare", "a", "b", "--out=a.png", cwd=tmp_path, expect=2).stderr
    assert "--out: no parameter varies in the pairs" in error
    shown = said("compare a b", tmp_path)
    assert "mood: well in A, prints in B.\n" in shown and "Next:" not in shown


@pytest.mark.slow
def test_published_numbers_of_a_study_are_known_by_name(tmp_path: Path) -> None:
    run = str(Path(__file__).parents[2] / "results" / "positional-published-quick")
    command = f"compare {run} published.csv --value=theta"
    assert "150 points with the same omega, alpha, start:" in said(command, tmp_path)
    (tmp_path / "published.csv").write_text("omega,alpha,start,theta\n0.1,2,semantic,0.7\n")
    assert "1 point with the same omega, alpha, start:" in said(command, tmp_path)
