"""A command line is a study: its parameters, folders, numbers, failures, code, and who runs it."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
from pathlib import Path

import cloudpickle
import pandas as pd
import pytest

import overfit_cli
from overfit_cli.core.errors import UserError
from overfit_cli.core.training import Execution, TimeLimitReached, Training
from overfit_cli.functions import function_study, program
from tests.command import call, run
from tests.functions.mine import written

TRAIN = """
import argparse, csv, os, pathlib

def loss_of(lr, width, epoch):
    return (1 - lr) ** epoch / width

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--nesterov", action="store_true")
    args = parser.parse_args()
    if args.width > 500:
        raise ValueError(f"width {args.width} is too large")
    with open("log.csv", "w") as file:
        log = csv.writer(file)
        log.writerow(["epoch", "lr", "loss"])
        log.writerows([epoch, args.lr, loss_of(args.lr, args.width, epoch)] for epoch in range(5))
    with open("results.csv", "a") as file:
        file.write(f"{vars(args)}\\n")
    result = dict(vars(args), loss=loss_of(args.lr, args.width, 4) + args.seed / 100, seconds=2.5)
    result["rows"] = len(pathlib.Path("results.csv").read_text().splitlines())
    print("config:", vars(args))
    print(result)
    print("bye")
"""
LINE = f"{sys.executable} train.py --lr {{lr}} --width {{width}} --seed {{seed}} {{--nesterov}}"
VALUES = ("--lr=0.5,1", "--width=2", "--seeds=2", "--jobs=1")


@pytest.fixture
def place(folder: Path) -> Path:
    """A folder with the program."""
    written(folder, TRAIN, "train.py")
    return folder


def cells_of(place: Path) -> pd.DataFrame:
    return overfit_cli.load(place / "out")


# Parameters and numbers


def test_each_cell_runs_the_program_in_a_folder_of_its_own_with_its_values(place: Path) -> None:
    done = call("sweep", LINE, *VALUES, "--nesterov=true,false", "--out=out", cwd=place)
    assert "8 trained" in done.stdout
    assert {path.name for path in place.iterdir()} == {"train.py", "out"}
    cells = cells_of(place)
    assert cells[["lr", "width", "nesterov"]].dtypes.astype(str).tolist() == [
        "float64",
        "int64",
        "bool",
    ]
    assert {*cells["rows"]} == {1}, "a cell has found the file of another one"
    expected = (1 - cells["lr"]) ** 4 / cells["width"] + cells["seed"] / 100
    assert cells["loss"].tolist() == pytest.approx(expected.tolist())
    assert {*cells["my_seconds"]} == {2.5}, "every row has its own seconds"
    assert not {"my_lr", "my_seed", "my_nesterov", "my_width"} & {*cells}
    [kept] = (place / "out" / "source").rglob("train.py")
    assert kept.read_bytes() == (place / "train.py").read_bytes()


def test_the_same_command_goes_on_and_the_study_has_figures_claims_and_a_report(
    place: Path,
) -> None:
    call("sweep", LINE, *VALUES, "--out=out", "--claim=loss < 0.2 where lr = 1", cwd=place)
    again = call("sweep", LINE, "--lr=0.25,0.5,1", *VALUES[1:], "--out=out", cwd=place)
    assert "2 trained" in again.stdout
    assert "4 reused" in again.stdout
    judged = call("judge", "out", "loss < 0.2 where lr = 1", cwd=place).stdout
    assert f"Next: overfit sweep '{LINE}' --set lr=0.25,0.5,1 --set width=2 --seeds" in judged
    call("plot", "lines", "--from=out", "--x=lr", "--value=loss", "--out=a.png", cwd=place)
    assert LINE.split()[1] in (place / "a.txt").read_text()
    call("report", "out", cwd=place)


def test_a_table_that_it_writes_is_the_trajectory_and_its_last_row_the_result(place: Path) -> None:
    line = LINE.removesuffix(" {--nesterov}")
    call("sweep", line, *VALUES, "--read=*g.csv", "--trajectories", "--out=out", cwd=place)
    cells = cells_of(place)
    assert {*cells["steps"]} == {4}
    assert cells["loss"].tolist() == pytest.approx(
        ((1 - cells["lr"]) ** 4 / cells["width"]).tolist()
    )
    steps = overfit_cli.load(place / "out", trajectories=True)
    assert steps["step"].tolist() == [0, 1, 2, 3, 4] * 4
    assert not {"epoch", "my_lr"} & {*steps}
    call("plot", "curves", "--from=out", "--value=loss", "--out=a.png", cwd=place)


@pytest.mark.parametrize(
    ("printed", "row"),
    [
        ('{"loss": 1}\n{"loss": 2, "test": {"acc": 0.5}, "name": "mlp"}', "loss=2 test_acc=0.5"),
        ("{'loss': np.float64(0.5), 'n': array([3]), 'a': None}", "loss=0.5 n=3 a=None"),
        ("{'loss': tensor(-0.5, grad_fn=<MeanBackward0>), 'ok': True}\nbye", "loss=-0.5 ok=1.0"),
        ("{'loss': nan, 'low': -inf, 'acc': '93.2'}", "loss=nan low=-inf acc=93.2"),
        (
            "{'a': array([1., 2.]), 'b': np.True_, 'c': PosixPath('3'), 'd': date(2020, 1, 1)}",
            "a=None b=1.0 c=None d=None",
        ),
        ("{'loss': 9007199254740993, 'text': 'inf (nan)'}", "loss=9007199254740993"),
        ('{"args": {"lr": 0.1, "batch": 8}, "loss": 2}', "args_batch=8 loss=2"),
        ('epoch 1\n{\n  "loss": 1,\n  "more": {\n    "a": 2\n  }\n}\nend', "loss=1 more_a=2"),
    ],
)
def test_the_last_dict_that_is_printed_gives_the_numbers(printed: str, row: str) -> None:
    found = program._numbers(program._last_dict(printed), {"lr": 0.1})
    assert " ".join(f"{name}={number}" for name, number in found.items()) == row


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ("1,2", "int"),
        ("2:20:3", "int"),
        ("1:100:5:log", "int"),
        ("1.0,2", "float"),
        ("1e-3:1:5:log", "float"),
        ("2*n,5", "float"),
        ("true,false", "bool"),
        ("sgd,adam", "text"),
        ("data/a,5", "text"),
        ([1, 2], "int"),
        ((0.5, 1), "float"),
        (True, "bool"),
        (pd.Series([1.0, 2.0]), "float"),
    ],
)
def test_values_tell_the_types(values: object, kind: str) -> None:
    assert program._kind(values, ["n", "width"]) == kind


def test_types_that_differ_from_those_of_the_cells_are_refused_and_can_be_typed(
    place: Path,
) -> None:
    line = f"{sys.executable} train.py --lr {{lr}} --seed {{seed}}"
    call("sweep", line, "--lr=0.5", "--out=out", "--jobs=1", cwd=place)
    refused = call("sweep", line, "--lr=1", "--out=out", "--jobs=1", cwd=place, expect=2)
    assert "lr was double and is int64 in its cells; values tell the types" in refused.stderr
    told = line.replace("{lr}", "{lr:float}")
    call("sweep", told, "--lr=1", "--out=out", "--jobs=1", cwd=place)
    assert sorted(cells_of(place)["lr"]) == [0.5] * 3 + [1.0] * 3


def test_other_words_are_other_cells_and_another_directory(place: Path) -> None:
    line = f"{sys.executable} train.py --lr {{lr}}"
    call("sweep", line, "--lr=0.5,1", "--jobs=1", cwd=place)
    call("sweep", f"{line} --width 64", "--lr=0.5,1", "--jobs=1", cwd=place)
    names = {path.name for path in (place / "results").iterdir()}
    assert names == {"train-lr", "train-width-64-lr"}
    out = "--out=results/train-lr"
    refused = call("sweep", f"{line} --width 8", "--lr=1,2", out, cwd=place, expect=2)
    assert "it holds cells of" in refused.stderr


# Failures


@pytest.mark.parametrize(
    ("code", "reason", "kept"),
    [
        ("raise ValueError('too large')", "ValueError: too large (exit code 1)", 'File "p.py"'),
        ("import sys; sys.exit(3)", "(exit code 3)", ""),
        ("import os; os.kill(os.getpid(), 9)", "(exit code -9)", ""),
        ("print('epoch 1')", "it printed no line with a dict or a JSON object", "epoch 1"),
        ("input()", "EOFError: EOF when reading a line (exit code 1)", "EOFError"),
        ("print({'name': 'mlp'})", "ValueError: it returned no number", ""),
    ],
)
def test_a_program_that_fails_is_a_failed_row(
    folder: Path, code: str, reason: str, kept: str
) -> None:
    written(folder, code, "p.py")
    line = f"{sys.executable} p.py {{seed}}"
    call("sweep", line, "--seeds=1", "--jobs=1", "--out=out", cwd=folder, expect=1)
    [row] = cells_of(folder).to_dict("records")
    assert reason in row["reason"]
    assert kept in str(row.get("traceback", ""))
    assert str(folder) not in str(row.get("traceback", ""))


def test_a_file_that_is_not_written_is_told_with_those_that_are(place: Path) -> None:
    line = f"{sys.executable} train.py --lr {{lr}}"
    how = ("--lr=0.5", "--read=logs/*.csv", "--out=out", "--jobs=1")
    call("sweep", line, *how, cwd=place, expect=1)
    [row] = cells_of(place).to_dict("records")
    assert row["reason"] == "error: it wrote 0 files logs/*.csv"
    assert row["traceback"] == "It wrote: log.csv, results.csv"
    call("sweep", line, "--lr=1", "--read=../log.csv", cwd=place, expect=2)
    call("sweep", line, "--lr=1", "--read=/tmp/log.csv", cwd=place, expect=2)
    call("sweep", "no-such-program {lr}", "--lr=1", cwd=place, expect=2)


@pytest.mark.unix
def test_a_program_ends_although_what_it_has_started_goes_on(folder: Path) -> None:
    code = "import subprocess, sys; subprocess.Popen(['sleep', '30']); print({'loss': 1})"
    written(folder, code, "p.py")
    _, function, _ = program.read_command(f"{sys.executable} p.py", "", {}, folder)
    began = time.monotonic()
    assert function(Training(Execution())) == {"loss": 1}
    assert time.monotonic() - began < 25


@pytest.mark.unix
@pytest.mark.parametrize("thread", [False, True])
def test_a_time_limit_ends_the_program_and_what_it_has_started(folder: Path, thread: bool) -> None:
    mark = folder / "mark"
    text = f"import time, pathlib; time.sleep(2); pathlib.Path({str(mark)!r}).touch()"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {text!r}])"
    written(folder, code, "p.py")
    _, function, _ = program.read_command(f"{sys.executable} p.py", "", {}, folder)
    ended = list[bool]()

    def trained() -> None:
        training = Training(Execution(time_limit=0.6))
        with contextlib.suppress(TimeLimitReached), training.limited():
            function(training)
            return
        ended.append(True)

    if thread:
        one = threading.Thread(target=trained)
        one.start()
        one.join()
    else:
        trained()
    assert ended
    time.sleep(2)
    assert not mark.exists()


# Its code, and where it runs


def test_an_edit_is_told_and_ends_a_sweep_that_runs(place: Path) -> None:
    line = f"{sys.executable} train.py --lr {{lr}}"
    _, function, code = program.read_command(line, "", {"lr": "0.5"}, place)
    call("sweep", line, "--lr=0.5", "--out=out", "--jobs=1", cwd=place)
    written(place, TRAIN.replace("import argparse", "# words\nimport argparse"), "train.py")
    assert program.read_command(line, "", {"lr": "0.5"}, place)[2].source == code.source
    with pytest.raises(UserError, match="has changed since the sweep began"):
        function(Training(Execution()), lr=0.5)
    written(place, TRAIN.replace("/ 100", "/ 10"), "train.py")
    told = call("sweep", line, "--lr=0.5", "--out=out", "--jobs=1", cwd=place).stdout
    assert "1 cell was trained by an earlier version of the code" in told


def test_files_in_the_words_are_found_and_held_to_their_content(folder: Path) -> None:
    written(folder, "import sys; print({'loss': float(open(sys.argv[1]).read())})", "p.py")
    written(folder, "0.5", "config.txt")
    line = f"{sys.executable} p.py config.txt {{n}}"
    call("sweep", line, "--n=1,2", "--out=out", "--jobs=1", cwd=folder)
    assert {*cells_of(folder)["loss"]} == {0.5}
    written(folder, "0.25", "config.txt")
    refused = call("sweep", line, "--n=1:3", "--out=out", "--jobs=1", cwd=folder, expect=2)
    assert "trained on other data (config.txt had other content then)" in refused.stderr


def test_a_module_is_a_program(folder: Path) -> None:
    (folder / "lab_of_programs").mkdir()
    written(folder, "SIZE = 3", "lab_of_programs/sizes.py")
    code = "from lab_of_programs.sizes import SIZE\nprint({'loss': SIZE})"
    written(folder, code, "lab_of_programs/run.py")
    line = f"{sys.executable} -m lab_of_programs.run {{n}}"
    call("sweep", line, "--n=1,2", "--out=out", "--jobs=1", cwd=folder)
    assert cells_of(folder)["loss"].tolist() == [3.0, 3.0]
    kept = {path.name for path in (folder / "out" / "source").rglob("*.py")}
    assert kept == {"run.py", "sizes.py"}


def test_a_study_that_is_sent_runs_in_another_process(place: Path) -> None:
    study = function_study.study_of_command(LINE, "", {"lr": 0.5, "width": 2}, place)
    sent = cloudpickle.loads(cloudpickle.dumps(study))
    assert (sent.name, sent.identity.source) == (study.name, study.identity.source)
    done = run("sweep", LINE, *VALUES[:3], "--jobs=2", "--shard=1/2", "--out=a", cwd=place)
    assert "2 trained" in done.stdout
    how = ("--backend=threading", "--jobs=2", "--shard=2/2", "--out=b")
    assert "2 trained" in run("sweep", LINE, *VALUES[:3], *how, cwd=place).stdout
    call("merge", "a", "b", "--out=out", cwd=place)
    assert len(cells_of(place)) == 4


def test_python_and_a_preset_take_command_lines(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    cells = overfit_cli.sweep(
        LINE, lr=iter([0.5, 1.0]), width=[2], seeds=2, jobs=1, out="out", quiet=True
    )
    assert cells["width"].dtype == "int64"
    assert len(cells) == 4
    one = overfit_cli.train(LINE, lr=0.5, width=2, read="log.csv", out="one", quiet=True)
    assert len(one.trajectory["loss"]) == 5
    text = f'title = "T"\nstudy = "{LINE}"\nread = "log.csv"\nset = {{ lr = "0.5,1", width = 2 }}\n'
    (place / "mine").mkdir()
    written(place, TRAIN, "mine/train.py")
    written(place, text, "mine/own.toml")
    call("sweep", "mine/own.toml", "--seeds=2", "--jobs=1", "--out=preset", cwd=place)
    assert len(overfit_cli.load(place / "preset")) == 4


# Scripts that are named as files with a training function

LOOP = """
for t in range(3):
    open("executed", "a").write("x")
print({"loss": 1})
"""
PARSED = """
import argparse
p = argparse.ArgumentParser()
p.add_argument("--lr")
"""
HELPER = """
def step(lr: float = 1.0):
    return {"w": lr}
"""
GUARD = """
if __name__ == "__main__":
    main()
"""
FIRE = f"""
import fire
def main(lr: float):
    print({{}})
{GUARD.replace("main()", "fire.Fire(main)")}
"""
HYDRA = f"""
import hydra
@hydra.main()
def main(cfg):
    return 1
{GUARD}
"""
MODEL = """
class Net:
    def forward(self):
        return 1
"""
LOADER = TRAIN.replace("def loss_of(lr, width, epoch)", "def train(model, loader)")
NOTHING = TRAIN.replace("loss_of", "_loss").replace('"--lr"', '"-l", "--lr"')
DECORATED = """
from overfit_cli import experiment
@experiment()
def simulate(lr: float):
    yield {"loss": lr}
"""


@pytest.mark.parametrize(
    ("code", "options"),
    [
        (f"{PARSED}args = p.parse_args()\n{LOOP}", "--lr {lr}"),
        (f"{PARSED}args, _ = p.parse_known_args()\n{HELPER}{LOOP}", "--lr {lr}"),
        (f"import sys\nlr = float(sys.argv[1])\n{HELPER}{LOOP}", "--lr {lr}"),
        (LOOP, "--lr {lr}"),
        (f"{PARSED}def main():\n    p.parse_args()\n{HELPER}{LOOP}main()", "--lr {lr}"),
        (f"order = sorted([1], key=lambda one: -one)\n{LOOP}", "--lr {lr}"),
        (MODEL + LOOP, "--lr {lr}"),
        (FIRE, "--lr {lr}"),
        (HYDRA, "lr={lr}"),
        (LOADER, "--lr {lr} --seed {seed}"),
        (NOTHING, "--lr {lr} --seed {seed}"),
    ],
)
def test_a_script_is_not_executed_and_the_command_is_named(
    folder: Path, code: str, options: str
) -> None:
    written(folder, code, "script.py")
    for words in (["--lr=0.1,0.2"], ["--lr=0.1,0.2", "--help"]):
        refused = call("sweep", "script.py", *words, cwd=folder, expect=2)
        command = f"overfit sweep 'python script.py {options}' --lr 0.1,0.2"
        assert command in " ".join(refused.stderr.split()), refused.stderr
    assert {path.name for path in folder.iterdir()} == {"script.py"}


@pytest.mark.parametrize(
    "code",
    [
        "def train(lr: float = 0.5):\n    sys.argv[1:] = [str(lr)]\n    return {'loss': lr}\n",
        HELPER + GUARD.replace("main()", "print(step())"),
        f"{HELPER}{PARSED}def _main():\n    p.parse_args()\n{GUARD}",
        "train = lambda lr=0.5: {'loss': lr}",
        DECORATED + GUARD.replace("main()", "import sys; print(sys.argv)"),
    ],
)
def test_a_file_with_a_training_function_is_no_script(folder: Path, code: str) -> None:
    written(folder, code, "mine.py")
    assert "Parameters of mine:" in call("sweep", "mine.py", "--help", cwd=folder).stdout


# Consent


def test_a_command_line_in_a_run_directory_is_never_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(folder, "open(__file__ + '.ran', 'a').write('x')\nprint({'loss': 1})", "p.py")
    line = f"{sys.executable} p.py {{n}} {{seed}}"
    how = ("--n=1,2", "--seeds=6", "--jobs=1", "--out=run", "--claim=loss < 2")
    call("sweep", line, *how, cwd=folder)
    call("plot", "lines", "--from=run", "--out=a.png", cwd=folder)
    mark = folder / "p.py.ran"
    mark.unlink()
    function_study._given.clear()
    manifest = json.loads((folder / "run" / "manifest.json").read_text())
    command, function = manifest["function"]["command"], manifest["function"]
    others = [
        ["report", "run"],
        ["runs", "run"],
        ["export", "run"],
        ["plot", "lines", "--from=run", "--out=b.png"],
        ["verify", "a.png", "--redraw"],
        ["merge", "run", "--out=merged"],
    ]
    for reference in ("", command, f"{folder}/p.py:{command}", f"{folder}/p.py:train"):
        function |= {"reference": reference, "claims": True}
        (folder / "run" / "manifest.json").write_text(json.dumps(manifest))
        for words in (["judge", "run"], ["judge", "run", "loss < 3"], *others):
            call(*words, cwd=folder, expect=(0, 1, 2))
        assert not mark.exists(), reference
        others.clear()
