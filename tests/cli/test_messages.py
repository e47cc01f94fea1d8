"""A refused command says what is wrong in the words of what was typed."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path

import pandas as pd
import pytest

import overfit_cli
from overfit_cli.core.errors import UserError
from overfit_cli.report.latex import value
from overfit_cli.stats.intervals import mean_estimate
from tests.command import call

RIDGE = """
def train(n: int = 2, lam: float = 1.0, d: int = 3, seed: int = 0):
    return {"risk": n * lam + seed, "bias": lam - 1}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a function, its run, and a directory that a sweep left empty."""
    path = tmp_path_factory.mktemp("folder")
    (path / "ridge.py").write_text(RIDGE)
    (path / "results" / "empty" / "cells").mkdir(parents=True)
    call("sweep", "ridge.py", "--n=1:3", "--lam=1,2", "--jobs=1", "--out=run", cwd=path)
    return path


MERGE = "DIR results/nowhere: there is no such directory"
HEATMAP = "heatmap needs two parameters that vary, and here only lam varies; `overfit plot lines`"
REFUSED = [
    ("merge run results/nowhere --out x", MERGE),
    ("sweep ridge", "is neither a study nor a preset nor a file FILE.py; did you mean 'ridge.py'?"),
    ("sweep nothing-like-it", "FILE.py; `overfit list` names those that are installed."),
    ("sweep ridge.py --n", "--n: it takes a value: --n VALUE."),
    (
        "sweep ridge.py --k 3",
        "parameter 'k', and overfit has no such option; known: --d, --lam, --n.",
    ),
    (
        "sweep fig1 --no-thing",
        "--no-thing: sweep has no such option; a parameter is given as --NAME",
    ),
    ("sweep ridge.py n=5", "n=5: ridge.py is named already; write --n 5."),
    (
        "sweep toy --snr 0:1:5 --refine 2 --threshold 1",
        "all above 0; snr = 0 isn't.",
    ),
    ("sweep benign-vit --set sampling=law", "are rotation invariant; set initialisation=gaussian."),
    ("plot heatmap --from run --where n=2", HEATMAP),
    ("plot lines --from run --x d", "--x d: d is constant in these cells; n and lam vary."),
    (
        "plot score --from run",
        "'score'; it has boundary, curves, cutoff, heatmap, lines.",
    ),
    ("list claim", "it takes studies, presets, figures or claims; did you mean 'claims'?"),
    (
        "export run --trajectories",
        "DIR run: it holds no logged steps of these cells; `overfit",
    ),
    ("--install-completion xx", "--install-completion: it takes no other words"),
]


@pytest.mark.parametrize(("line", "words"), REFUSED)
def test_what_is_refused_is_said_in_the_words_that_were_typed(
    line: str, words: str, folder: Path
) -> None:
    assert words in call(*line.split(), cwd=folder, expect=2).stderr


def test_a_directory_that_a_sweep_left_empty_holds_no_cells_yet(folder: Path) -> None:
    said = call("plot", "heatmap", cwd=folder, expect=2).stderr
    assert "None" not in said


def test_a_value_that_nobody_gave_is_said_to_be_the_default(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(RIDGE.replace('"risk": n * lam', '"risk": 0 * n'))
    call("sweep", "mine.py", "--n=1:3", "--lam=1,2", "--seeds=1", "--jobs=1", cwd=tmp_path)
    said = call("plot", "boundary", "--from", "results/mine-n-lam", cwd=tmp_path, expect=2).stderr
    assert "--threshold" not in said
    drawn = call("plot", "heatmap", "--threshold", "5", cwd=tmp_path)
    assert "note: no contour: the means don't cross risk = 5" in drawn.stderr


@pytest.mark.parametrize(
    "code",
    [
        "import functools\n\ndef _fit(n: int = 1, rate: float = 1.0): return {'loss': n * rate}\n\n"
        "train = functools.partial(_fit, rate=2.0)\n",
        "class Fit:\n    def __call__(self, n: int = 1): return {'loss': n}\n\ntrain = Fit()\n",
    ],
)
def test_an_object_called_train_that_can_be_called_is_a_function(code: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(code)
    done = call("sweep", "mine.py", "--n=1:3", "--jobs=1", cwd=tmp_path)
    assert done.stdout.startswith("mine:train: ")


def test_chosen_columns_come_with_what_tells_rows_apart(folder: Path) -> None:
    lines = call("export", "run", "--columns", "risk", cwd=folder).stdout.splitlines()
    assert lines[:2] == ["n,lam,seed,risk", "1,1.0,0,1.0"]


def test_a_negative_zero_is_a_zero_in_latex() -> None:
    assert value(-0.0) == "$0$"


def test_the_json_of_a_comparison_goes_to_standard_output_alone(folder: Path) -> None:
    printed = call("compare", "run", "run", "--json", "-", cwd=folder).stdout
    assert json.loads(printed)["pairs"] == 18
    assert not (folder / "-").exists()


def test_in_a_pipe_a_row_of_a_table_is_a_line_without_blanks_at_its_end(folder: Path) -> None:
    printed = call("compare", "run", "run", cwd=folder).stdout
    assert "0 [0, 0]   0\n" in printed
    assert not [line for line in printed.splitlines() if line != line.rstrip()]


def test_the_interval_of_a_share_ends_at_one() -> None:
    shares = [0.8, 1.0, 1.0]
    assert mean_estimate(shares).high > 1
    clipped = mean_estimate(shares, within=(0.0, 1.0))
    assert (clipped.low, clipped.high) == (mean_estimate(shares).low, 1.0)
    assert math.isnan(mean_estimate([1.0], within=(0.0, 1.0)).high)


def test_functions_refuse_what_they_would_not_use(folder: Path) -> None:
    with pytest.raises(UserError, match="it holds no logged steps of these cells"):
        overfit_cli.load(folder / "run", trajectories=True)
    with pytest.raises(UserError, match="study: it says whose cells a frame has"):
        overfit_cli.judge(folder / "run", study="benign-vit")
    with pytest.raises(UserError, match="tolerance=-1: it takes a share of the mean of B, such as"):
        overfit_cli.compare(folder / "run", folder / "run", tolerance=-1)


def test_many_torn_parts_are_counted_in_one_note(tmp_path: Path) -> None:
    cells = tmp_path / "run" / "cells"
    cells.mkdir(parents=True)
    for number in range(40):
        (cells / f"{number:02}.parquet").write_bytes(b"torn")
    with warnings.catch_warnings(record=True) as notes, pytest.raises(UserError, match="no cells"):
        warnings.simplefilter("always")
        overfit_cli.load(tmp_path / "run")
    [note] = [str(each.message) for each in notes]
    assert note.startswith(f"40 files in {cells} are left out, such as ")
    assert note.endswith(".parquet: it isn't a whole parquet file.")


def test_rows_of_published_numbers_that_lack_a_parameter_are_named_by_what_they_share(
    folder: Path,
) -> None:
    table = pd.DataFrame({"n": [1, 1], "risk": [1.0, 2.0]})
    table.to_csv(folder / "published.csv", index=False)
    said = call("compare", "run", "published.csv", cwd=folder, expect=2).stderr
    assert "rows 1 and 2 have the same n; give each row its own point, with a column" in said


@pytest.mark.slow
def test_a_function_whose_manifest_is_gone_names_the_way_back(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(RIDGE)
    call("sweep", "mine.py", "--n=1:3", "--jobs=1", "--out=run", cwd=tmp_path)
    (tmp_path / "run" / "manifest.json").unlink()
    said = call("plot", "lines", "--from", "run", cwd=tmp_path, expect=2).stderr
    assert "its cells are of the function mine:train, and its manifest, which describes" in said
    call("sweep", "mine.py", "--n=1:4", "--jobs=1", "--out=run", cwd=tmp_path)
    call("plot", "lines", "--from", "run", cwd=tmp_path)
