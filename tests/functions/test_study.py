"""A plain function is a study: its signature, what it returns, and what can be wrong with both."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import cloudpickle
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import overfit_cli
from overfit_cli.core.cell import ROW_COLUMNS
from overfit_cli.core.errors import UserError
from overfit_cli.core.text import in_latex
from overfit_cli.functions.function_study import study_of_reference, study_of_rows
from overfit_cli.sweeps.load import study_in
from overfit_cli.sweeps.part import CELLS, write_part
from overfit_cli.sweeps.store import RunDirectory
from tests.command import call, python, run, start, wait_for
from tests.functions.mine import edit, swept, written

EXPERIMENT = '''
import os, time
import numpy as np

def train(n: int = 10, snr: float = 1.0, seed: int = 0) -> dict[str, float]:
    """A loss that falls."""
    time.sleep(float(os.environ.get("PAUSE", "0")))
    draw = np.random.default_rng(seed).random()
    return {"test_loss": 1 / (1 + n * snr**2), "draw": draw}
'''
GRID = ("--n", "2:5", "--snr", "0.5:2:4", "--seeds", "2")


def plotted(folder: Path, *options: str) -> pd.DataFrame:
    """What a figure of the sweep in `out` draws."""
    call("plot", *options, "--from=out", "--out=a.csv", cwd=folder)
    return pd.read_csv(folder / "a.csv")


# From a file to a picture


def test_a_function_is_swept_and_drawn_by_the_usual_commands(tmp_path: Path) -> None:
    file = written(tmp_path, EXPERIMENT)
    done = run("sweep", "mine.py", *GRID, "--jobs=1", cwd=tmp_path)
    assert "mine:train: 32 cells (n 4 × snr 4 × seeds 2), results/mine-n-snr" in done.stdout
    assert "Next: overfit plot heatmap --from results/mine-n-snr" in done.stdout
    cells = overfit_cli.load(tmp_path / "results" / "mine-n-snr")
    assert cells["test_loss"].to_numpy() == pytest.approx(1 / (1 + cells["n"] * cells["snr"] ** 2))
    assert cells.groupby("seed")["draw"].nunique().tolist() == [1, 1]
    drawn = call("plot", "heatmap", "--law", "n * snr**2 = 4", "--out=a.csv", cwd=tmp_path)
    assert "From results/mine-n-snr, the newest run directory that fits." in drawn.stdout
    caption = (tmp_path / "a.txt").read_text()
    assert "Test loss over snr and n: median of 2 seeds." in caption
    assert "Line: n·snr² = 4." in caption
    again = run("sweep", f"{file}:train", *GRID, "--trajectories", "--jobs=1", cwd=tmp_path)
    assert "32 there already; 0 to run" in again.stdout, "it has no steps to log"


# Generators

STEPS = """
def train(rate: float = 0.1, steps_taken: int = 5, seed: int = 0):
    loss = 1.0
    for _ in range(steps_taken):
        yield {"train_loss": loss}
        loss = loss * (1 - rate) if rate < 2 else loss * 1e200
    return {"final_loss": loss}
"""


def test_what_is_yielded_is_a_trajectory_and_what_is_returned_the_result(tmp_path: Path) -> None:
    cells = swept(tmp_path, STEPS, "--rate=0.1,0.5", "--trajectories")
    assert cells["final_loss"].to_numpy() == pytest.approx((1 - cells["rate"]) ** 5)
    assert set(cells["steps"]) == {5}
    steps = overfit_cli.load(tmp_path / "out", trajectories=True)
    assert sorted(set(steps["step"])) == [0, 1, 2, 3, 4]
    assert steps["train_loss"].to_numpy() == pytest.approx((1 - steps["rate"]) ** steps["step"])
    curves = ("plot", "curves", "--from=out", "--out=a.csv")
    call(*curves, "--value=train_loss", "--by=rate", cwd=tmp_path)
    errors = call(*curves, "--value=test_loss", cwd=tmp_path, expect=2).stderr
    assert "mine:train logs no 'test_loss'; did you mean 'train_loss'?" in errors
    trained = call("train", "mine.py", "--rate=0.5", cwd=tmp_path).stdout
    assert re.search(r"train\n *step +loss\n +0 +1\n +1 +0.5\n", trained), "steps as they come"
    assert "Trained after 5 steps: final_loss 0.03125." in trained
    assert "plot curves --from results/mine-rate0.5" in trained


def test_a_generator_may_number_its_steps_and_end_with_its_last_row(tmp_path: Path) -> None:
    text = "def f(seed: int):\n  for t in (0, 10, 30):\n    yield {'step': t, 'loss': 1.0}\n"
    cells = swept(tmp_path, text, "--trajectories")
    assert (set(cells["steps"]), set(cells["loss"])) == ({30}, {1.0})
    steps = overfit_cli.load(tmp_path / "out", trajectories=True)
    assert sorted(set(steps["step"])) == [0, 10, 30]
    text = "def f():\n  yield {'a': 1.0}\n  yield {'a': 2.0, 'b': 3.0}\n  yield {'b': 4.0}\n"
    written(tmp_path, text)
    lines = call("train", "mine.py", cwd=tmp_path).stdout.splitlines()[:5]
    shown = [" ".join(line.split()) for line in lines]
    assert shown == ["step a", "0 1", "step a b", "1 2 3", "2 – 4"]


@pytest.mark.slow
def test_a_file_may_have_the_name_of_a_library(tmp_path: Path) -> None:
    """Neither the command nor its workers take it for the library."""
    command = Path(sys.executable).with_name("overfit")
    for name in ("numpy", "typing"):
        (tmp_path / name).mkdir()
        written(tmp_path / name, EXPERIMENT, f"{name}.py")
        sweep = ("sweep", f"{name}.py", "--n=1:4", "--jobs=2")
        assert "12 trained" in python(command, *sweep, cwd=tmp_path / name).stdout


# What goes wrong

RETURNED = {
    "raise ValueError('no\\nluck')": "ValueError: no | luck at mine.py:3 in train: raise",
    "raise SystemExit(3)": "SystemExit: 3",
    "return 3.0": "TypeError: it returned 3.0, and not a dict of numbers",
    "return {}": "ValueError: it returned no number",
    "return {'test_loss': 'low'}": "TypeError: it returned test_loss = 'low', which is",
    "import numpy as np; return {'test_loss': np.zeros(2)}": "TypeError: it returned test_",
    "return {3: 1.0}": "3 is not a column name",
    "return {'test_loss': float('nan')}": "test_loss isn't finite",
    "return {'test_loss': float('inf')}": "test_loss isn't finite",
}
YIELDED = {
    "yield {'loss': 'low'}": "TypeError: it yielded loss = 'low', which is not a number",
    "yield 3.0": "TypeError: it yielded 3.0, and not a dict of numbers",
    "yield {'step': 2, 'loss': 1.0}": "ValueError: it yielded step = 2 after 2; steps are whole",
    "yield {'step': float('nan'), 'loss': 1.0}": "ValueError: it yielded step = nan after 2",
    "row = {'n': 2.0, 'loss': 1.0}; yield row": "ValueError: a column can't be called 'n', wh",
    "raise RuntimeError('no luck'); yield": "RuntimeError: no luck",
}
"""What a function does in a cell, and the reason that the cell's row then has."""


@pytest.mark.parametrize("outcomes", [RETURNED, YIELDED], ids=["returned", "yielded"])
def test_what_goes_wrong_in_a_cell_is_a_failed_row_that_keeps_the_steps_before(
    tmp_path: Path, outcomes: dict[str, str]
) -> None:
    """A cell fails in each way, and the last is done."""
    text = "def train(n: int, seed: int = 0):\n"
    for number, body in enumerate(outcomes):
        text += f"  if n == {number}:\n    {body}\n"
    text += "  return {'test_loss': n}\n"
    logged = "  for t in range(3): yield {'loss': 1.0 / (1 + t)}\n"
    if outcomes is YIELDED:
        text = text.replace("  if", f"{logged}  if", 1)
    options = (f"--n=0:{len(outcomes)}", "--seeds=1", "--trajectories")
    *failed, done = swept(tmp_path, text, *options, expect=1).sort_values("n").to_dict("records")
    assert (done["status"], done["test_loss"]) == ("done", len(outcomes))
    for row, said in zip(failed, outcomes.values(), strict=True):
        kind = "diverged" if "finite" in said else "error"
        assert row["reason"].startswith(f"{kind}: {said}")
        assert row["status"] == "failed" and np.isnan(row["test_loss"])
    if outcomes is YIELDED:
        steps = overfit_cli.load(tmp_path / "out", trajectories=True).groupby("n")["loss"]
        assert steps.agg(list).tolist() == [[1.0, 1 / 2, 1 / 3]] * (len(outcomes) + 1)
        shown = call("train", "mine.py", "--n=0", "--out=one", cwd=tmp_path, expect=1)
        assert "0.3333" in shown.stdout
        assert f"The cell failed: {failed[0]['reason'].partition(' at ')[0]}" in shown.stderr


def test_the_first_number_returned_is_the_headline_where_it_is_missing_too(tmp_path: Path) -> None:
    """Also where a cell returns fewer numbers; a bare parameter is a theory and a value."""
    body = """
def train(n: int = 1, seed: int = 0):
    if n == 1:
        return {"aa": 1.0 * n}
    return {"zz": None if n == 4 else 1.0 * n + seed, "aa": 1.0 * n}
"""
    cells = swept(tmp_path, body, "--n=1:6")
    assert list(cells.columns)[-2:] == ["zz", "aa"]
    for option, told in (("", "Zz against n"), ("--theory=n", "Dashed: n."), ("--value= n ", "n")):
        options = filter(None, ["plot", "lines", option, "--from=out", "--out=a.csv"])
        call(*options, cwd=tmp_path)
        assert told in (tmp_path / "a.txt").read_text()


def test_of_many_reasons_a_few_are_said(tmp_path: Path) -> None:
    written(tmp_path, "def f(n: int = 1): raise type(f'No{n}', (Exception,), {})")
    done = run("sweep", "mine.py", "--n=1:30", "--jobs=1", cwd=tmp_path, expect=1)
    assert "26 for other reasons" in done.stdout
    assert len(done.stdout) < 1000


def test_a_number_of_any_library_is_one_and_kept_beside_one_that_diverged(tmp_path: Path) -> None:
    text = """
import numpy as np, torch

def f():
    yield {"loss": torch.tensor([2.0], requires_grad=True), "seen": True}
    three = torch.tensor(3.0, requires_grad=True) * 1
    return {"a": three, "b": np.array([[4.0]]), "c": np.int8(5), "d": float("nan"), "e": None}
"""
    [cell] = swept(tmp_path, text, "--trajectories", expect=1).to_dict("records")
    assert (cell["a"], cell["b"], cell["c"]) == (3.0, 4.0, 5.0)
    assert cell["reason"].startswith("diverged: d isn't finite")


IMPORTS = """from typing import Annotated, Literal
from overfit_cli import Claim, Column, Measurement, Parameter, experiment
"""
TAKEN = {*ROW_COLUMNS, "step", "copy", "json", "model_fields"} - {"seed", "steps"}
"""Names that columns of rows have, or the model that parameters are."""

NONE = " is no parameter of a study; it has a name, without * or /, and takes int, float, bool, str"
SIGNATURES = {
    "*sizes": f"parameter sizes: `*sizes`{NONE}",
    "n": f"parameter n: `n`{NONE}",
    "n=None": f"parameter n: `n=None`{NONE}",
    "n: list = 3": f"`n: list = 3`{NONE}",
    "n: 'Missing' = 3": "its annotations can't be read: name 'Missing' is not defined",
    "n: int = 0.5": "parameter n: the default of n, 0.5: Input should be a valid integer",
    "n: Literal['a', 1] = 'a'": NONE,
    "n: str = '\\ud800'": NONE,
    "n: int = 2**63": NONE,
    "n: Literal['a', 'b'] = 'c'": "the default of n, 'c': Input should be 'a' or 'b'",
    "steps: int = 3, training_steps: int = 4": "two of its parameters have one name, training_st",
    "_n: int = 3": "parameter _n: the name is taken, or doesn't begin with a letter",
    "n: Annotated[int, Parameter('samples', at_least=1)] = 0": "the default of n, 0: Input should",
    "n: Annotated[int, Parameter('a', at_least='1')] = 2": "the default of n, 2: must be real",
    "n: Annotated[int, Parameter('a', above=3, below=2)] = 2": "the default of n, 2: Input should",
    "n: Annotated[str, Parameter('name', at_least=1)] = 'a'": NONE,
    "n: Annotated[int, Parameter] = 1": NONE,
    "n: Annotated[int, Parameter('a'), Parameter('b')] = 1": NONE,
} | {f"{name}: int = 3": f"something else, such as my_{name}.\n" for name in sorted(TAKEN)}
SIGNATURES |= dict.fromkeys(
    ["seed=0.5", "seed='a'", "seed=True", "seed: float = 0.1"],
    "parameter seed: it receives the cell's seed, an int; call anything else my_seed.",
)
DECORATORS = {
    "columns=['a']": "experiment(columns=...): Input should be a dictionary or an instance of Col",
    "claims=[3]": "experiment(claims=[3]): it takes a list of Claim(...)",
    "claims='a < 3'": "experiment(claims='a < 3'): it takes a list of Claim(...)",
    "claims=['a < ']": "experiment(claims=...): ",
    "claims=['n: loss < 3', 'n: loss < 4']": "two of its claims have one name, n.",
    "version=0": "experiment(version=...): Input should be greater than or equal to 1, not 0.",
    "name='a\\nb'": "its name is 'a\\nb', and no line that can be printed.",
    "columns=[Column('a', 'A.'), Column('a', 'B.')]": "two of its columns have one name, a.",
    "columns=[Column('seed', 'a seed')]": "a column can't be called 'seed', which every row has",
    "headline='seed'": "a column can't be called 'seed', which every row has already",
}
FILES = {
    "": ("mine.py", "mine.py: it has no function 'train'; none is known."),
    "from os.path import join": ("mine.py", "it has no function 'train'"),
    "def a(): ...\ndef b(): ...": ("mine.py", "known: a, b. FILE.py:FUNCTION names one."),
    "def train(): ...": ("mine.py:trian", "it has no function 'trian'; did you mean 'train'?"),
    "def train(:": ("mine.py", "it can't be loaded: SyntaxError"),
    "import nowhere": ("mine.py", "it can't be loaded: ModuleNotFoundError: No module named"),
    "raise SystemExit(3)": ("mine.py", "it can't be loaded: SystemExit: 3"),
    "class Stop(BaseException): ...\nraise Stop": ("mine.py", "can't be loaded: Stop at mine.py"),
    "y = 3": ("other.py", "other.py: there is no such file"),
    "z = 3": ("mine.py:", "it takes FILE.py, FILE.py:FUNCTION or package.module:FUNCTION"),
    "u = 3": ("math:sqrt", f"parameter x: `x`{NONE}"),
    "Parameter(3)": ("mine.py", "Parameter(meaning=3): it takes"),
    "@experiment\ndef f(): ...": ("mine.py", "it can't be loaded: TypeError"),
    "@experiment(name='toy')\ndef f(): ...": ("mine.py", "a study 'toy' is installed; give it a"),
}
FILES |= {f"def train({one}): ...": ("mine.py", said) for one, said in SIGNATURES.items()}
BARE = "\ndef train(): ..."
FILES |= {f"@experiment({one}){BARE}": ("mine.py", said) for one, said in DECORATORS.items()}


@pytest.mark.parametrize("text", FILES)
def test_a_file_without_a_study_is_a_sentence_of_sweep_and_train(tmp_path: Path, text: str) -> None:
    """Before anything is written."""
    reference, words = FILES[text]
    written(tmp_path, IMPORTS + text)
    said = {call(each, reference, cwd=tmp_path, expect=2).stderr for each in ("sweep", "train")}
    assert not (tmp_path / "results").exists()
    [sentence] = said
    assert len(sentence.splitlines()) == 1
    assert words in sentence


def test_a_parameter_without_a_default_must_be_given(tmp_path: Path) -> None:
    written(tmp_path, "def train(n: int, rate: float = 0.1): return {'a': n * rate}")
    sweep = ("sweep", "mine.py", "--rate=0.1:1:3")
    errors = call(*sweep, cwd=tmp_path, expect=2).stderr
    assert "--n: it has no default; give a whole number." in errors
    errors = call(*sweep, "--n=4", "--seeds=2", cwd=tmp_path, expect=2).stderr
    assert "--seeds: mine:train takes no seed; give it a parameter seed: int." in errors
    for how in ("--dry-run", "--jobs=1"):
        assert "3 cells (rate 3 × seeds 1)" in run(*sweep, "--n=4", how, cwd=tmp_path).stdout
    call("train", "mine.py", "--n=3", cwd=tmp_path)


# The signature

RICH = f"""{IMPORTS}
def low(cells):
    return Measurement(verdict="holds", value=float(cells["loss"].min()), note="It is low.")

@experiment(version=3, headline="loss", threshold=0.5, title="A rich one",
            columns=[Column("loss", "test loss", symbol="L_D")],
            claims=[Claim(name="low", source="nowhere", statement="The loss is low.",
                          holds_where="always", measure=low)])
def fit(
    width: Annotated[int, Parameter("hidden units", symbol="m", at_least=1)] = 10,
    kind: Literal["relu", "tanh"] = "relu",
    heads: Literal[1, 2, 4] = 1,
    bias: bool = True,
    label: str = "a:b",
    rate: Annotated[float, Parameter("step size", unit="1/s", above=0)] = 1,
    few: Annotated[int, Parameter(above=0.5, at_most=3.5)] = 1,
    device: str = "cpu",
    seed: int = 0,
) -> dict:
    return {{"time": 1.0, "loss": heads / width}}
"""
TYPED_WRONGLY = {
    "--width=0": "--width 0: width takes a whole number of at least 1, not 0.",
    "--few=0": "few takes a whole number above 0 and up to 3, not 0",
    "--sedes=3": "did you mean '--seeds'?",
    "-n 3": "-n: options begin with two dashes",
}


def test_types_meanings_and_bounds_come_from_the_signature(tmp_path: Path) -> None:
    written(tmp_path, RICH)
    shown = call("sweep", "mine.py", "--help", cwd=tmp_path).stdout
    assert re.search(r"width +hidden units, m +≥ 1 +10", shown)
    assert re.search(r"rate +step size \(1/s\) +> 0 +1", shown)
    assert re.search(r"heads .*1, 2, 4 +1", shown)
    asked = ("--width=10:30:10", "--kind=relu,tanh", "--heads=1,4", "--bias=false", "--label=x,y:z")
    more = ("--few=1,3", "--set=device=gpu", "--device=cpu", "--seeds=1", "--out=out")
    done = run("sweep", "mine.py", *asked, *more, "--jobs=1", cwd=tmp_path)
    assert "48 cells (width 3 × kind 2 × heads 2 × label 2 × few 2 × seeds 1)" in done.stdout
    cells = overfit_cli.load(tmp_path / "out")
    assert set(cells["version"]) == {3}
    assert set(cells["label"]) == {"x", "y:z"}
    assert set(cells["device"]) == {"gpu"}
    assert cells["heads"].dtype == "int64"
    assert not cells["bias"].any()
    assert "It is low." in call("judge", "out", cwd=tmp_path).stdout
    for words, sentence in TYPED_WRONGLY.items():
        errors = call("sweep", "mine.py", *words.split(), cwd=tmp_path, expect=2).stderr
        assert sentence in errors


def test_an_error_in_the_code_of_a_claim_is_the_commands(tmp_path: Path) -> None:
    said = "name='low', source='me', statement='It is low.', holds_where='h', measure="
    for measure, words in (
        ("lambda cells: cells['nothing'].max()", "can't be judged: KeyError: 'nothing'."),
        ("lambda cells: Measurement(verdict='It is low.')", "is no Measurement of one"),
    ):
        claimed = f"@experiment(claims=[Claim({said}{measure})])\n"
        swept(tmp_path, f"{IMPORTS}{claimed}def train(n: int = 1): return {{'loss': n}}\n")
        failed = call("judge", "out", cwd=tmp_path, expect=2).stderr
        assert "The claim low " in failed and words in failed


# A changed signature


def test_cells_of_another_signature_are_left_out(tmp_path: Path) -> None:
    """The file has a parameter more: its cells are others, and the old ones mix with none."""
    grid = ("--n=2,3", "--seeds=2")
    sweep = ("sweep", "mine.py", *grid, "--out=out", "--jobs=1")
    swept(tmp_path, EXPERIMENT, *grid)
    written(tmp_path, EXPERIMENT.replace("snr: float = 1.0", "snr: float = 1.0, depth: int = 2"))
    changed = "changed since cells there were trained (depth was absent and is int64); those cells"
    done = run(*sweep, cwd=tmp_path)
    assert "4 to run" in done.stdout and changed in done.stdout
    with pytest.warns(UserWarning, match="its study has other parameters: depth was absent"):
        cells = overfit_cli.load(tmp_path / "out")
    assert (len(cells), set(cells["depth"])) == (4, {2})
    drawn = call("plot", "lines", "--from=out", "--out=a.csv", cwd=tmp_path)
    assert "depth was absent" in drawn.stderr
    again = run(*sweep, cwd=tmp_path)
    assert "has changed" not in again.stdout + again.stderr
    written(tmp_path, EXPERIMENT)
    assert "4 there already" in run(*sweep, cwd=tmp_path).stdout
    with pytest.warns(UserWarning, match="is left out: .*: depth was int64 and is absent"):
        cells = overfit_cli.load(tmp_path / "out")
    assert "depth" not in cells, "rows are those of the function as it is again"
    assert len(cells) == 4


def test_a_parameter_of_another_type_is_another_one(tmp_path: Path) -> None:
    text = "def f(n: int = 1, seed: int = 0): return {'loss': n}"
    for values in ("1", "1,2", "1,2,3"):  # most parts are of the old type
        swept(tmp_path, text, f"--n={values}")
    written(tmp_path, text.replace("n: int", "n: float"))
    done = run("sweep", "mine.py", "--n=1,2,3", "--out=out", "--jobs=1", cwd=tmp_path)
    assert "n was int64 and is double" in done.stdout
    with pytest.warns(UserWarning, match="is left out: its study has other parameters"):
        assert overfit_cli.load(tmp_path / "out")["n"].dtype == float


@pytest.mark.slow
def test_a_file_that_changes_while_it_is_swept_mixes_no_code(tmp_path: Path) -> None:
    """Workers go on with the code that the sweep began with."""
    file = written(tmp_path, EXPERIMENT)
    sweep = start("sweep", "mine.py", "--n=1:8", "--jobs=2", cwd=tmp_path, env={"PAUSE": "0.1"})
    wait_for(lambda: len(list(tmp_path.glob("results/*/cells/*.parquet"))) > 3)
    edit(file, "1 / (1 + n", "2 / (1 + n")
    output, errors = sweep.communicate()
    assert "Done: 24 trained" in output, errors
    cells = overfit_cli.load(tmp_path / "results" / "mine-n")
    assert cells["test_loss"].to_numpy() == pytest.approx(1 / (1 + cells["n"]))


ROW = {"key": "a", "study": "mine:train", "version": 1, "seed": 0, "n": 2, "status": "done"}
ROW |= {"reason": "", "steps": 0, "seconds": 0.1, "loss": 1.0}


def test_a_run_without_its_manifest_says_what_it_lacks(tmp_path: Path) -> None:
    (tmp_path / CELLS).mkdir()
    write_part(tmp_path / CELLS, pa.Table.from_pylist([ROW]), CELLS, "mine:train", "", 0)
    with pytest.raises(UserError, match="cells are of the function mine:train, and no manifest"):
        study_in(RunDirectory(tmp_path))


def test_what_a_file_has_before_a_rows_columns_is_no_measurement() -> None:
    """As the numbers of rows, which pandas writes into a CSV file."""
    study = study_of_rows("no:such", pd.DataFrame([{"Unnamed: 0": 0, **ROW}]))
    assert [column.name for column in study.columns] == ["loss"]
    assert study.headline == "loss"


# What travels

WORKER = """
import functools, itertools, threading
import numpy as np
from folder import inside

np.seterr(all="raise")
LOCK, CALLS = threading.Lock(), itertools.count(1)

@functools.cache
def scaled(n):
    return n * inside.SCALE

def train(n: int = 1):
    import late
    with LOCK:
        raises = np.geterr()["divide"] == "raise"
        return {"loss": scaled(n) * late.SCALE, "raises": raises, "calls": next(CALLS)}
"""
TRAIN = """
import pickle, sys
from overfit_cli.core.cell import Cell
from overfit_cli.core.training import Execution, Training
for pickled in 2 * sys.argv[1:]:
    study = pickle.loads(bytes.fromhex(pickled))
    cell = Cell(study.name, 1, study.parameters(n=3), 0)
    [result] = study.train([cell], Training(Execution()))
    print(result.measurements)
assert not {"late", "folder"} & {*sys.modules}
"""


@pytest.mark.slow
def test_a_worker_that_lacks_the_files_of_two_versions_trains_both(folder: Path) -> None:
    """What a file sets when it is imported, caches, locks and late imports work there too."""
    sent, file = list[str](), written(folder, WORKER)
    (folder / "folder").mkdir()
    for scale in (1, 10):
        for name in ("late.py", "folder/inside.py"):
            written(folder, f"SCALE = {scale}\n", name)
        sent.append(cloudpickle.dumps(study_of_reference(str(file))).hex())
    assert python("-c", TRAIN, *sent).stdout.splitlines() == [
        str({"loss": loss, "raises": 1.0, "calls": calls}) for calls in (1, 2) for loss in (3, 300)
    ]


# Which function

MADE = """
import functools

def fit(n: int = 2, k: int = 3):
    '''Fit.

    With more words.'''
    return {"loss": n * k}

class Model:
    '''A model.'''
    def __call__(self, n: int = 2, k: int = 3):
        return {"loss": k * n}
"""


def test_what_is_called_train_may_be_made_of_something_else(tmp_path: Path) -> None:
    for made, told in (
        ("functools.partial(fit, k=3)", "Fit.\n\nWith more words."),
        ("Model()", "A model."),
    ):
        cells = swept(tmp_path, f"{MADE}\ntrain = {made}\n", "--n=1:3", "--seeds=1", "--fresh")
        assert sorted(cells["loss"]) == [3, 6, 9]
        assert f"\n{told}\n" in call("sweep", "mine.py", "--help", cwd=tmp_path).stdout


# What some seeds lack

LACKS = """
from typing import Literal

def train(n: int = 4, how: Literal["none", "raises", "infinite"] = "none", seed: int = 0):
    time = n * (1.0 + seed)
    if time > 20:
        if how == "raises":
            raise TimeoutError("not reached")
        return {"time": None if how == "none" else float("inf")}
    return {"time": time}
"""
ALL_LACKS = ("--n=1,4,8", "--how=none,raises,infinite", "--seeds=8")


def test_a_number_that_some_seeds_lack_is_beyond_however_the_function_says_so(
    tmp_path: Path,
) -> None:
    """Of 8 seeds 3 lack it at n = 4, where the median of all is 18, and 6 at n = 8."""
    swept(tmp_path, LACKS, *ALL_LACKS, expect=1)
    cells = plotted(tmp_path, "heatmap", "--x=n", "--y=how").query("element == 'map'")
    values = cells.sort_values("x")["value"].tolist()
    assert values == pytest.approx([4.5] * 3 + [18.0] * 3 + [np.nan] * 3, nan_ok=True)
    assert "Trained: time none." in call("train", "mine.py", "--n=90", cwd=tmp_path).stdout


FEWER = """
def train(n: int = 4, seed: int = 0):
    return {"loss": n + 10.0 * seed, "late": n + 10.0 * seed if n + seed < 5 else None}
"""


def test_means_count_their_numbers_each_column_its_own_and_equal_those_of_the_run(
    tmp_path: Path,
) -> None:
    swept(tmp_path, FEWER, "--n=1,4", "--seeds=3")
    call("export", "out", "--means", "--out=means.csv", cwd=tmp_path)
    means = pd.read_csv(tmp_path / "means.csv").set_index("n")
    assert means[["seeds", "failed", "late_seeds"]].to_numpy().tolist() == [[3, 0, 3], [3, 0, 1]]
    compared = overfit_cli.compare(tmp_path / "out", tmp_path / "means.csv")
    assert compared.places().query("column == 'late'")["seeds_b"].tolist() == [3, 1]
    assert compared.table()["difference"].to_numpy() == pytest.approx(0, abs=1e-12)


# Rays

RAY = """
def train(n: int = 10, width: int = 40, snr: float = 1.0, seed: int = 0):
    draw = 1 + 0.001 * seed
    return {"loss": draw / n * (width / n), "error": 1 / (1 + draw * n * snr**2)}
"""


def test_a_ray_is_a_line_for_claims_and_figures(tmp_path: Path) -> None:
    """At one width the power is -2, along a ray it is -1."""
    swept(tmp_path, RAY, "--n=10,20,40,80", "--width=2*n,4*n", "--seeds=6")
    claimed = "power of n in loss is -1 within 0.1"
    said = call("judge", "out", claimed, f"{claimed} where width = 4*n", cwd=tmp_path).stdout
    assert "these cells have fewer" in " ".join(said.split()), said
    assert "−1 [−1, −1]" in said
    lines = plotted(tmp_path, "lines", "--x=n", "--by=width/n").query("element == 'line'")
    rays = [ray for _, ray in lines.groupby("panel") if len(ray) == 4]
    slopes = [np.polyfit(np.log(ray["x"]), np.log(ray["y"]), 1)[0] for ray in rays]
    assert slopes == pytest.approx([-1, -1])


@pytest.mark.slow
def test_a_contour_and_a_boundary_have_a_point_for_each_step_along_a_ray(tmp_path: Path) -> None:
    grid = "--n=10,20,40", "--width=4*n", "--snr=0.05:0.8:6:log"
    swept(tmp_path, RAY, *grid, "--seeds=6")
    claimed = "power of n in snr at error = 0.5 is -0.5 within 0.05"
    assert "holds" in call("judge", "out", claimed, cwd=tmp_path).stdout
    table = plotted(tmp_path, "boundary", "--x=snr", "--y=n", "--value=error", "--threshold=0.5")
    assert table.columns.tolist() == ["n", "snr", "snr_low", "snr_high", "seeds", "off_grid"]
    assert table["snr"].to_numpy() == pytest.approx(table["n"].to_numpy() ** -0.5, rel=0.05)


# Theory on maps

PLANE = """
def train(rho: float = 0.1, delta: float = 0.5, seed: int = 0):
    at = 0.2 + 0.6 * delta
    return {"success": 1 / (1 + 2.0 ** (20 * (rho - at))), "edge": at, "along": 2 * rho,
            "same": 1 / (1 + 2.0 ** (20 * (rho - at)))}
"""


def test_a_theory_is_a_place_on_an_axis_or_where_it_is_the_threshold(tmp_path: Path) -> None:
    swept(tmp_path, PLANE, "--rho=0.1:0.9:9", "--delta=0.2,0.4,0.6,0.8", "--seeds=1")
    options = "--x=rho", "--y=delta", "--threshold=0.5"
    edge = [0.32, 0.44, 0.56, 0.68]
    for theory, x in (("edge", edge), ("same", edge), ("along", [0.1, 0.2, 0.3, 0.4])):
        table = plotted(tmp_path, "heatmap", f"--theory={theory}", *options)
        curve = table[table["label"] == f"theory: {theory}"].dropna(subset=["x"]).sort_values("y")
        at = np.interp([0.2, 0.4, 0.6, 0.8], curve["y"], curve["x"])
        assert at == pytest.approx(x, abs=0.01), theory


# LaTeX


@pytest.mark.slow
def test_verdicts_are_macros_and_captions_are_safe_in_latex(tmp_path: Path) -> None:
    swept(tmp_path, RAY, "--n=10,20,40", "--width=4*n", "--seeds=12")
    claims = "small ray: loss < 5", "loss rises along n", "loss > -1", "loss > 1", "loss > +1"
    call("judge", "out", *claims, "--latex=macros.tex", "--out=a.pdf", cwd=tmp_path)
    lines = (tmp_path / "macros.tex").read_text().splitlines()
    macros = [line for line in lines if not line.startswith("%")]
    assert macros[0] == r"\newcommand{\claimSmallRayVerdict}{holds}"
    assert macros[3].startswith(r"\newcommand{\claimLossRisesAlongNVerdict}{fails}")
    assert re.fullmatch(r"\\newcommand\{\\claimSmallRayInterval\}\{\$\[0\.4.*\]\$\}", macros[2])
    assert len({line.partition("}")[0] for line in macros}) == len(macros) == 15
    caption = (tmp_path / "a.caption.tex").read_text()
    assert caption.isascii()
    assert not re.search(r"(?<!\\)[%_#&]", caption)
    assert in_latex("5 % of δ² − σ̃_p") == r"5 \% of $\delta$${}^{2}$ $-$ $\tilde{\sigma}$\_p"


# Values


def test_values_that_are_one_number_are_one_cell_and_texts_with_commas_one_value(
    tmp_path: Path,
) -> None:
    text = "def train(lr: float = 0.1, widths: str = '64,64', seed: int = 0):\n"
    text += "    return {'layers': len(widths.split(',')), 'rate': lr}\n"
    cells = swept(tmp_path, text, "--lr=0.3,0.30000000000000004", '--widths="64,64",8', "--seeds=1")
    assert sorted(zip(cells["lr"], cells["widths"], cells["layers"], strict=True)) == [
        (0.3, "64,64", 2),
        (0.3, "8", 1),
    ]
    where = call("export", "out", '--where=widths="64,64"', cwd=tmp_path).stdout
    assert len(where.splitlines()) == 2
    assert len(overfit_cli.load(tmp_path / "out", where={"widths": ["64,64"]})) == 1
    said = run("sweep", "mine.py", "--widths=64,64", "--seeds=1", "--dry-run", cwd=tmp_path)
    assert """in double quotes, '"64,64"'""" in said.stdout + said.stderr


def test_whole_numbers_stay_whole(tmp_path: Path) -> None:
    """Beside a real number, or beyond 64 bits, they are real."""
    text = "def train(n: int = 1, seed: int = 0):\n"
    text += "    return {'count': 2**53 + 1, 'mixed': 1 if seed else 1.5, 'big': 2**70}\n"
    cells = swept(tmp_path, text, "--seeds=2")
    assert cells["count"].tolist() == [2**53 + 1] * 2
    assert sorted(cells["mixed"]) == [1.0, 1.5]
    assert cells["big"].tolist() == [2.0**70] * 2
    assert str(2**53 + 1) in call("export", "out", cwd=tmp_path).stdout


def test_cells_from_before_a_parameter_are_adopted_at_its_old_constant(tmp_path: Path) -> None:
    before = "def train(lr: float = 0.1, seed: int = 0):\n    yield {'loss': lr}\n"
    swept(tmp_path, before, "--lr=0.1,0.2", "--seeds=2", "--trajectories")
    after = before.replace("seed", "momentum: float = 0.9, seed", 1)
    options = "--lr=0.1,0.2", "--momentum=0.5,0.9", "--seeds=2", "--trajectories"
    written(tmp_path, after)
    sweep = "sweep", "mine.py", *options, "--out=out", "--jobs=1"
    assert "adopt NAME=VALUE" in " ".join(run(*sweep, "--dry-run", cwd=tmp_path).stdout.split())
    run(*sweep, "--adopt=momentum=0.9", cwd=tmp_path)
    with pytest.warns(UserWarning, match="Cells of 2 sources: 4 of"):
        cells = overfit_cli.load(tmp_path / "out")
    assert cells["momentum"].value_counts().to_dict() == {0.5: 4, 0.9: 4}
    with pytest.warns(UserWarning, match="Cells of 2 sources: 4 of"):
        steps = overfit_cli.load(tmp_path / "out", trajectories=True)
    assert {*steps["key"]} == {*cells["key"]}
    assert "8 there already" in run(*sweep, cwd=tmp_path).stdout
