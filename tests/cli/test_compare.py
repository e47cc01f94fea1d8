"""`overfit compare` on the command line: its table, its JSON, its figure and its exit code."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

import overfit_cli
from overfit_cli import UserError
from overfit_cli.report.compare import Comparison, compare_sides
from overfit_cli.report.pictures import draw_difference
from tests.command import call
from tests.fake_study import heights
from tests.report.made_up import loss, write_run
from tests.screen import shown as shown_lines
from tests.terminal import on_a_terminal

T2 = 4.302653
"""The 97.5 % quantile of Student's t with two degrees of freedom: three seeds."""


def moved(n: int, snr: float, seed: int) -> float:
    """Run `b`: each seed a bit above `a`, and one place far above."""
    return n * snr + 0.02 * seed + (0.26 if (n, snr) == (1, 2) else 0)


# The authors' own rows (Cui et al. 2024), with the columns renamed to those of the function below,
# and the number of repeats that their README states.
PUBLISHED = """alpha,omega,start,linear_test_error,linear_test_error_sd,theta,theta_sd,n
0.01,0.1,positional,0.0035091753,0.000235493,0.0026560791,0.0017816781,24
0.092916667,0.1,positional,0.003339592,0.00016734509,0.009308964,0.0090547045,24
0.17583333,0.1,positional,0.0033,0.0001,0.05,0.002,24
0.01,0.1,semantic,0.0035091753,0.000235493,0.9,0.01,24
0.092916667,0.1,semantic,0.003339592,0.00016734509,0.9,0.01,24
0.17583333,0.1,semantic,0.0033,0.0001,0.9,0.01,24
"""
OF_CUI = """
import math
from typing import Literal

def train(omega: float = 0.1, alpha: float = 1.0,
          start: Literal["semantic", "positional"] = "semantic", seed: int = 0):
    noise = math.sin(5 * seed + 100 * alpha)
    theta = 0.9 + 0.01 * noise if start == "semantic" else 0.002 + 0.08 * alpha + 5e-4 * noise
    return {"theta": theta, "linear_test_error": 0.0033 + 1e-4 * noise}
"""
CUI = ("run", "cui.csv")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs `a` and `b` over n and snr, `one` over snr alone, and points of `a` in `a.csv`.

    And `run` of a function, beside what was published of it in `cui.csv`.
    """
    folder = tmp_path_factory.mktemp("compare")
    (folder / "mine.py").write_text(OF_CUI)
    (folder / "cui.csv").write_text(PUBLISHED)
    grid = ("--alpha=0.01:2:25", "--start=semantic,positional", "--seeds=6", "--jobs=1")
    call("sweep", "mine.py", *grid, "--out=run", cwd=folder)
    write_run(folder / "a", loss(lambda n, snr, seed: n * snr + 0.01 * seed))
    write_run(folder / "b", loss(moved))
    write_run(folder / "one", loss(lambda n, snr, seed: snr**2), n=(2,), snr=(1.0, 2.0, 4.0))
    write_run(folder / "two", loss(lambda n, snr, seed: 2 * snr), n=(2,), snr=(1.0, 2.0, 4.0))
    (folder / "a.csv").write_text("n,snr,test_loss\n1,1,1\n1,2,2\n2,1,2.5\n")
    return folder


def test_two_versions_of_one_function_are_compared(tmp_path: Path) -> None:
    for floor, name in (("0.0033", "before"), ("0.1283", "after")):
        (tmp_path / "mine.py").write_text(OF_CUI.replace("0.0033", floor))
        grid = ("--alpha=1:2:3", "--omega=0.1,0.2", "--seeds=2", "--jobs=1", f"--out={name}")
        call("sweep", "mine.py", *grid, cwd=tmp_path)
    comparison = overfit_cli.compare(tmp_path / "before", tmp_path / "after")
    assert comparison.pairs.both == 12
    differences = comparison.table().set_index("column")["difference"]
    assert differences["linear_test_error"] == pytest.approx(0.125)


# What is shown


def test_the_table_shows_both_means_the_interval_and_where_most_differs(folder: Path) -> None:
    shown = call("compare", "a", "b", cwd=folder).stdout
    lines = shown.splitlines()
    assert lines[:4] == [
        "Equal at every pair: steps.",
        "A: a, 12 cells of toy.",
        "B: b, 12 cells of toy.",
        "12 pairs of cells with the same n, snr, seed.",
    ]
    half = T2 * 0.01 / np.sqrt(3)  # seeds differ by 0.065, 0.075 and 0.085
    first, steps = compare_sides(folder / "a", folder / "b").rows()
    assert first == {
        "column": "test_loss",
        "mean of A": "2.26",
        "mean of B": "2.34",
        "B − A": f"0.075 [{0.075 - half:.3g}, {0.075 + half:.3g}]",
        "largest": "0.28 at n 1, snr 2, seed 2",
    }
    assert [*steps.values()] == ["steps", "3", "3", "0 [0, 0]", "0"]
    assert "Intervals of B − A: 95 % t over 3 seeds.\n" in shown
    assert [line.rstrip() for line in lines] == lines, "in a pipe no blanks end a line"


@pytest.mark.parametrize("width", [60, 120])
@pytest.mark.one_in(2)
def test_on_a_terminal_every_number_is_shown(folder: Path, width: int) -> None:
    code, stream = on_a_terminal("compare", "a", "b", cwd=folder, env={"COLUMNS": str(width)})
    lines = shown_lines(stream)
    assert code == 0
    assert max(map(len, lines)) <= width
    assert {"2.26", "2.34", "0.075", "0.28"} <= {word for line in lines for word in line.split()}


def test_published_numbers_are_a_table_too(folder: Path) -> None:
    shown = call("compare", "a", "a.csv", cwd=folder).stdout
    assert "B: a.csv, published, 3 points of toy.\n" in shown
    assert "3 points with the same n, snr: B against A's means over seeds.\n" in shown
    assert "Without a counterpart: 1 point of A, 0 points of B.\n" in shown
    assert "test_loss: the interval of B − A contains 0 at 2 of 3 points.\n" in shown
    assert "0.49 at n 2, snr 1" in " ".join(shown.split())


def test_places_are_counted_first_and_those_that_differ_named(folder: Path) -> None:
    shown = call("compare", *CUI, "--tolerance=10%", cwd=folder, expect=1).stdout
    differ, equivalent, theta, error = shown.splitlines()[:4]
    assert differ == "Different by more than 10 %: theta."
    assert equivalent == "Equivalent within 10 %: linear_test_error."
    assert theta.startswith("theta at 6 points: 3 equivalent, 2 open, 1 different: alpha 0.1758, ")
    assert error == "linear_test_error at 6 points: 6 equivalent, 0 open, 0 different."
    assert "Without a counterpart: 44 points of A, 0 points of B." in shown


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("a a --tolerance=1%", 0),
        ("a b", 0),
        ("a b --tolerance=0.001", 1),
        ("run cui.csv --tolerance=10%", 1),
        ("run cui.csv --tolerance=10% --where=start=semantic", 0),
        ("run cui.csv --tolerance=0.1", 0),
        ("run cui.csv", 0),
    ],
)
def test_the_exit_code_is_1_only_where_a_column_or_a_place_differs(
    words: str, code: int, folder: Path
) -> None:
    said = call("compare", *words.split(), cwd=folder, expect=code).stdout
    assert said.startswith("Different by more than ") == bool(code)


def test_everything_is_in_the_json(folder: Path) -> None:
    call("compare", "a", "a.csv", "--json=deep/a.json", cwd=folder)
    content = json.loads((folder / "deep" / "a.json").read_text())
    assert (content["schema"], content["difference"]) == (2, "B - A")
    assert (content["b"]["published"], content["tolerance"]) == (True, None)
    assert (content["pairs"], content["alone"]) == (3, {"a": 1, "b": 0})
    [change] = content["columns"]
    assert change["largest"] == {"difference": pytest.approx(0.49), "at": {"n": 2, "snr": 1.0}}
    places = [(point["at"]["n"], point["at"]["snr"], point["a"]) for point in change["points"]]
    np.testing.assert_allclose(places, [(1, 1, 1.01), (1, 2, 2.01), (2, 1, 2.01)])
    one_seed = ("compare", "a", "b", "--where=seed=0")
    printed = call(*one_seed, "--json=-", cwd=folder).stdout
    alone = json.loads(printed)["columns"][0]["difference"]
    assert (alone["value"], alone["low"], alone["high"]) == (pytest.approx(0.065), None, None)
    call(*one_seed, "--json=b.json", cwd=folder)
    assert printed == (folder / "b.json").read_text()
    assert not (folder / "-").exists()


def test_the_json_has_every_place_and_python_says_the_same(folder: Path) -> None:
    call("compare", *CUI, "--tolerance=10%", "--json=c.json", cwd=folder, expect=1)
    content = json.loads((folder / "c.json").read_text())
    assert content["tolerance"] == "10 %"
    assert [record["verdict"] for record in content["columns"]] == ["differs", "equivalent"]
    theta = content["columns"][0]
    assert sum(theta["verdicts"].values()) == len(theta["points"]) == 6
    run, cui = (folder / name for name in CUI)
    places = overfit_cli.compare(run, cui, tolerance="10%").places()
    of_theta = places[places["column"] == "theta"]
    assert of_theta["verdict"].tolist() == [point["verdict"] for point in theta["points"]]
    assert of_theta["z"].tolist() == pytest.approx([point["z"] for point in theta["points"]])
    alone = overfit_cli.compare(run, cui).places()
    assert "verdict" not in alone
    assert alone["z"].notna().all()


# The figure


def test_the_map_of_a_difference_is_centred_at_zero_and_says_which_is_less(folder: Path) -> None:
    shown = call("compare", "a", "b", "--out=map.png", cwd=folder).stdout
    assert "Drawn: map.png, and its caption in map.txt" in shown
    assert matplotlib.image.imread(folder / "map.png").shape[0] > 100
    caption = (folder / "map.txt").read_text()
    assert caption.startswith("B less A: B is b, A is a.\n\nTest loss, less that of a, over")
    assert "overfit compare a b --out=map.png" in caption
    figure = draw_difference(compare_sides(folder / "a", folder / "b"))
    mesh = figure.axes[0].collections[0]
    drawn = np.asarray(mesh.get_array())
    np.testing.assert_allclose(drawn, [[0.01, 0.27], [0.01, 0.01]])
    assert mesh.get_clim() == pytest.approx((-0.27, 0.27))
    assert mesh.get_cmap().name == "RdBu_r"


def test_the_map_beside_published_numbers_is_of_their_points(folder: Path) -> None:
    figure = draw_difference(compare_sides(folder / "a", folder / "a.csv"))
    drawn = np.ma.masked_invalid(np.asarray(figure.axes[0].collections[0].get_array()))
    np.testing.assert_allclose(drawn.compressed(), [-0.01, -0.01, 0.49], atol=1e-12)
    assert drawn.mask.tolist() == [[False, False], [False, True]]


def test_over_one_number_the_difference_is_a_line(folder: Path) -> None:
    figure = draw_difference(compare_sides(folder / "one", folder / "two"))
    [axes] = figure.axes
    line, zero = axes.lines
    assert np.asarray(line.get_xdata()).tolist() == [1, 2, 4]
    assert heights(line).tolist() == [1, 0, -8]
    assert heights(zero).tolist() == [0, 0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "linear")


def two_moods(folder: Path, n: tuple[int, ...]) -> Comparison:
    """Runs `a` and `b` over n, snr and two moods."""
    for name, height in (("a", 1.0), ("b", 3.0)):
        for mood in ("well", "prints"):
            write_run(folder / name, loss(lambda *_, x=height: x), n=n, mood=mood)
    return compare_sides(folder / "a", folder / "b")


def test_a_word_makes_panels_of_a_map_and_lines_over_a_number(tmp_path: Path) -> None:
    of_maps = draw_difference(two_moods(tmp_path / "maps", n=(1, 2)))
    titles = [axes.get_title(loc="left") for axes in of_maps.axes]
    assert titles[:2] == ["(a) what goes wrong: well", "(b) what goes wrong: prints"]
    of_lines = draw_difference(two_moods(tmp_path / "lines", n=(1,)))
    assert len(of_lines.axes[0].lines) == 3, "one for each mood, and zero"


def test_a_single_cell_has_no_figure(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", loss(lambda *_: 1), (1,), (1.0,))
    b = write_run(tmp_path / "b", loss(lambda *_: 1), (1,), (1.0,), mood="prints")
    with pytest.raises(UserError, match="out: no parameter varies in the pairs"):
        overfit_cli.compare(a, b, out=tmp_path / "a.png")
    shown = call("compare", "a", "b", cwd=tmp_path).stdout
    assert "mood: well in A, prints in B.\n" in shown
    assert "Next:" not in shown


def test_published_numbers_of_a_study_are_known_by_name(tmp_path: Path) -> None:
    run = str(Path(__file__).parents[2] / "results" / "positional-published-quick")
    command = ("compare", run, "published.csv", "--value=theta")
    assert "150 points with the same omega, alpha, start:" in call(*command, cwd=tmp_path).stdout
    (tmp_path / "published.csv").write_text("omega,alpha,start,theta\n0.1,2,semantic,0.7\n")
    assert "1 point with the same omega, alpha, start:" in call(*command, cwd=tmp_path).stdout
    other = call("compare", run, "unpublished.csv", cwd=tmp_path, expect=2).stderr
    assert other.startswith("overfit: unpublished.csv: it can't be read")
