"""A command line is a study: its parameters, folders, numbers, failures, code, and who runs it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cloudpickle
import pandas as pd
import pytest

import overfit_cli
from overfit_cli.core.errors import UserError
from overfit_cli.core.training import Execution, TimeLimitReached, Training
from overfit_cli.functions import function_study, program
from tests.command import call, run, said
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
VALUES = ("--lr=0.5,1", "--width=2", "--seeds=2")
ONE_LR = f"{sys.executable} train.py --lr {{lr}}"


@pytest.fixture
def place(folder: Path) -> Path:
    """A folder with the program."""
    written(folder, TRAIN, "train.py")
    return folder


def swept(folder: Path, line: str, *options: str, expect: int = 0, out: str = "out") -> str:
    """What a sweep of a command line says, as one line; its refusal with code 2."""
    done = call("sweep", line, *options, "--jobs=1", f"--out={out}", cwd=folder, expect=expect)
    return " ".join((done.stderr if expect == 2 else done.stdout).split())


def program_of(folder: Path, code: str) -> Callable[..., object]:
    """The function that runs `p.py`, with this code."""
    written(folder, code, "p.py")
    return program.read_command(f"{sys.executable} p.py", "", {}, folder)[1]


def cells_of(place: Path) -> pd.DataFrame:
    return overfit_cli.load(place / "out")


# Parameters and numbers


def test_each_cell_runs_the_program_in_a_folder_of_its_own_with_its_values(place: Path) -> None:
    values = ("--lr=0.5,1", "--width=2", "--seeds=1", "--nesterov=true,false")
    assert "4 trained" in swept(place, LINE, *values)
    judged = call("judge", "out", "loss < 0.2 where lr = 1", cwd=place).stdout
    assert f"Next: overfit sweep '{LINE}' --set lr=0.5,1 --set width=2 --set nesterov" in judged
    assert {path.name for path in place.iterdir()} == {"train.py", "out"}
    cells = cells_of(place)
    types = cells[["lr", "width", "nesterov"]].dtypes.astype(str).tolist()
    assert types == ["float64", "int64", "bool"]
    assert {*cells["rows"]} == {1}, "a cell has found the file of another one"
    expected = (1 - cells["lr"]) ** 4 / cells["width"] + cells["seed"] / 100
    assert cells["loss"].tolist() == pytest.approx(expected.tolist())
    assert {*cells["my_seconds"]} == {2.5}, "every row has its own seconds"
    assert not {"my_lr", "my_seed", "my_nesterov", "my_width"} & {*cells}
    [kept] = (place / "out" / "source").rglob("train.py")
    assert kept.read_bytes() == (place / "train.py").read_bytes()


def test_a_table_that_it_writes_is_the_trajectory_and_its_last_row_the_result(place: Path) -> None:
    swept(place, LINE.removesuffix(" {--nesterov}"), *VALUES, "--read=*g.csv", "--trajectories")
    cells = cells_of(place)
    assert {*cells["steps"]} == {4}
    expected = (1 - cells["lr"]) ** 4 / cells["width"]
    assert cells["loss"].tolist() == pytest.approx(expected.tolist())
    steps = overfit_cli.load(place / "out", trajectories=True)
    assert steps["step"].tolist() == [0, 1, 2, 3, 4] * 4
    assert not {"epoch", "my_lr"} & {*steps}


PRINTED = {
    '{"loss": 1}\n{"loss": 2, "test": {"acc": 0.5}, "name": "mlp"}': "loss=2 test_acc=0.5",
    "{'loss': np.float64(0.5), 'n': array([3]), 'a': None}": "loss=0.5 n=3 a=None",
    "{'loss': tensor(-0.5, grad_fn=<MeanBackward0>), 'ok': True}\nbye": "loss=-0.5 ok=1.0",
    "{'loss': nan, 'low': -inf, 'acc': '93.2'}": "loss=nan low=-inf acc=93.2",
    "{'a': array([1., 2.]), 'b': np.True_, 'c': PosixPath('3')}": "a=None b=1.0 c=None",
    "{'loss': 9007199254740993, 'text': 'inf (nan)'}": "loss=9007199254740993",
    '{"args": {"lr": 0.1, "batch": 8}, "loss": 2}': "args_batch=8 loss=2",
    'epoch 1\n{\n  "loss": 1,\n  "more": {\n    "a": 2\n  }\n}\nend': "loss=1 more_a=2",
}


def test_the_last_dict_that_is_printed_gives_the_numbers() -> None:
    for printed, row in PRINTED.items():
        found = program._numbers(program._last_dict(printed), {"lr": 0.1})
        assert " ".join(f"{name}={number}" for name, number in found.items()) == row


KINDS = {
    "int": ("1,2", "2:20:3", "1:100:5:log", [1, 2]),
    "float": ("1.0,2", "1e-3:1:5:log", "2*n,5", (0.5, 1), pd.Series([1.0, 2.0])),
    "bool": ("true,false", True),
    "text": ("sgd,adam", "data/a,5"),
}


def test_values_tell_the_types() -> None:
    for kind, given in KINDS.items():
        assert {program._kind(values, ["n", "width"]) for values in given} == {kind}


def test_types_that_differ_from_those_of_the_cells_are_refused_and_can_be_typed(
    place: Path,
) -> None:
    line = f"{ONE_LR} --seed {{seed}}"
    swept(place, line, "--lr=0.5", "--seeds=1")
    refused = swept(place, line, "--lr=1", expect=2)
    assert "lr was double and is int64 in its cells; values tell the types" in refused
    swept(place, line.replace("{lr}", "{lr:float}"), "--lr=1", "--seeds=1")
    assert sorted(cells_of(place)["lr"]) == [0.5, 1.0]
    refused = swept(place, f"{line} --width 8", "--lr=1", expect=2)
    assert "it holds cells of" in refused, "other words are another study"


def test_a_directory_is_named_after_the_words_and_what_varies(place: Path) -> None:
    planned = call("sweep", f"{ONE_LR} --width 64", "--lr=0.5,1", "--jobs=1", cwd=place).stdout
    assert "results/train-width-64-lr" in planned


# Failures


FAILING = {
    "raise ValueError('too large')": ("ValueError: too large (exit code 1)", 'File "p.py"'),
    "import sys; sys.exit(3)": ("(exit code 3)", ""),
    "import os; os.kill(os.getpid(), 9)": ("(exit code -9)", ""),
    "print('epoch 1')": ("it printed no line with a dict or a JSON object", "epoch 1"),
    "input()": ("EOFError: EOF when reading a line (exit code 1)", "EOFError"),
    "print({'name': 'mlp'})": ("ValueError: it returned no number", ""),
}


def test_a_program_that_fails_is_a_failed_row(folder: Path) -> None:
    written(folder, f"import sys; exec({[*FAILING]}[int(sys.argv[1])])", "p.py")
    swept(folder, f"{sys.executable} p.py {{n}}", "--n=0:5", expect=1)
    for row in cells_of(folder).to_dict("records"):
        reason, kept = [*FAILING.values()][row["n"]]
        assert reason in row["reason"]
        assert kept in str(row["traceback"])
        assert str(folder) not in str(row["traceback"])


def test_a_file_that_is_not_written_is_told_with_those_that_are(place: Path) -> None:
    swept(place, ONE_LR, "--lr=0.5", "--read=logs/*.csv", expect=1)
    [row] = cells_of(place).to_dict("records")
    assert row["reason"] == "error: it wrote 0 files logs/*.csv"
    assert row["traceback"] == "It wrote: log.csv, results.csv"
    for line, *options in ((ONE_LR, "--read=../log.csv"), (ONE_LR, "--read=/tmp/log.csv")):
        swept(place, line, "--lr=1", *options, expect=2)
    swept(place, "no-such-program {lr}", "--lr=1", expect=2)


@pytest.mark.unix
def test_a_program_ends_although_what_it_has_started_goes_on(folder: Path) -> None:
    code = "import subprocess, sys; subprocess.Popen(['sleep', '30']); print({'loss': 1})"
    began = time.monotonic()
    assert program_of(folder, code)(Training(Execution())) == {"loss": 1}
    assert time.monotonic() - began < 25


@pytest.mark.unix
def test_a_time_limit_ends_the_program_and_what_it_has_started(folder: Path) -> None:
    """Also where a thread runs it."""
    mark = folder / "mark"
    text = f"import time, pathlib; time.sleep(2); pathlib.Path({str(mark)!r}).touch()"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {text!r}])"
    function = program_of(folder, code)

    def train() -> None:
        training = Training(Execution(time_limit=0.6))
        with pytest.raises(TimeLimitReached), training.limited():
            function(training)

    with ThreadPoolExecutor(1) as pool:
        in_a_thread = pool.submit(train)
        train()
    in_a_thread.result()
    time.sleep(2)
    assert not mark.exists()


# Its code, and where it runs


def test_an_edit_is_told_and_ends_a_sweep_that_runs(place: Path) -> None:
    _, function, code = program.read_command(ONE_LR, "", {"lr": "0.5"}, place)
    swept(place, ONE_LR, "--lr=0.5")
    written(place, TRAIN.replace("import argparse", "# words\nimport argparse"), "train.py")
    assert program.read_command(ONE_LR, "", {"lr": "0.5"}, place)[2].source == code.source
    with pytest.raises(UserError, match="has changed since the sweep began"):
        function(Training(Execution()), lr=0.5)
    written(place, TRAIN.replace("/ 100", "/ 10"), "train.py")
    told = swept(place, ONE_LR, "--lr=0.5")
    assert "1 cell was trained by an earlier version of the code" in told


def test_files_in_the_words_are_found_and_held_to_their_content(folder: Path) -> None:
    written(folder, "import sys; print({'loss': float(open(sys.argv[1]).read())})", "p.py")
    written(folder, "0.5", "config.txt")
    line = f"{sys.executable} p.py config.txt {{n}}"
    swept(folder, line, "--n=1,2")
    assert {*cells_of(folder)["loss"]} == {0.5}
    written(folder, "0.25", "config.txt")
    refused = swept(folder, line, "--n=1:3", expect=2)
    assert "trained on other data (config.txt had other content then)" in refused


def test_a_module_is_a_program(folder: Path) -> None:
    (folder / "lab_of_programs").mkdir()
    written(folder, "SIZE = 3", "lab_of_programs/sizes.py")
    code = "from lab_of_programs.sizes import SIZE\nprint({'loss': SIZE})"
    written(folder, code, "lab_of_programs/run.py")
    swept(folder, f"{sys.executable} -m lab_of_programs.run {{n}}", "--n=1,2")
    assert cells_of(folder)["loss"].tolist() == [3.0, 3.0]
    kept = {path.name for path in (folder / "out" / "source").rglob("*.py")}
    assert kept == {"run.py", "sizes.py"}


@pytest.mark.slow
def test_a_study_that_is_sent_runs_in_another_process(place: Path) -> None:
    study = function_study.study_of_command(LINE, "", {"lr": 0.5, "width": 2}, place)
    sent = cloudpickle.loads(cloudpickle.dumps(study))
    assert (sent.name, sent.identity.source) == (study.name, study.identity.source)
    for how in (["--shard=1/2"], ["--backend=threading", "--shard=2/2"]):
        options = (*VALUES, "--jobs=2", *how, f"--out={how[-1][-3]}")
        assert "2 trained" in run("sweep", LINE, *options, cwd=place).stdout
    call("merge", "1", "2", "--out=out", cwd=place)
    assert len(cells_of(place)) == 4


def test_python_and_a_preset_take_command_lines(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    how: Any = {"seeds": 1, "jobs": 1, "out": "out", "quiet": True}
    cells = overfit_cli.sweep(LINE, lr=iter([0.5, 1.0]), width=[2], **how)
    assert (cells["width"].dtype, len(cells)) == ("int64", 2)
    one = overfit_cli.train(LINE, lr=0.5, width=2, read="log.csv", out="one", quiet=True)
    assert len(one.trajectory["loss"]) == 5
    text = f'title = "T"\nstudy = "{LINE}"\nread = "log.csv"\nset = {{ lr = "0.5,1", width = 2 }}\n'
    (place / "mine").mkdir()
    written(place, TRAIN, "mine/train.py")
    written(place, text, "mine/own.toml")
    call("sweep", "mine/own.toml", "--seeds=1", "--jobs=1", "--out=preset", cwd=place)
    assert len(overfit_cli.load(place / "preset")) == 2


# Scripts that are named as files with a training function

LOOP = 'for t in range(3): open("executed", "a").write("x")\n'
PARSED = 'import argparse\np = argparse.ArgumentParser()\np.add_argument("--lr")\n'
HELPER = 'def step(lr: float = 1.0): return {"w": lr}\n'
GUARD = '\nif __name__ == "__main__": '
SCRIPTS = [
    f"{PARSED}args = p.parse_args()\n{LOOP}",
    f"{PARSED}args, _ = p.parse_known_args()\n{HELPER}{LOOP}",
    f"import sys\nlr = float(sys.argv[1])\n{HELPER}{LOOP}",
    LOOP,
    f"{PARSED}def main(): p.parse_args()\n{HELPER}{LOOP}main()",
    f"order = sorted([1], key=lambda one: -one)\n{LOOP}",
    f"class Net:\n    def forward(self): return 1\n{LOOP}",
    f"import fire\ndef main(lr: float): print({{}}){GUARD}fire.Fire(main)",
    f"import hydra\n@hydra.main()\ndef main(cfg): return 1{GUARD}main()",
    TRAIN.replace("def loss_of(lr, width, epoch)", "def train(model, loader)"),
    TRAIN.replace("loss_of", "_loss").replace('"--lr"', '"-l", "--lr"'),
]
FUNCTIONS = [
    "def train(lr: float = 0.5):\n    sys.argv[1:] = [str(lr)]\n    return {'loss': lr}\n",
    f"{HELPER}{GUARD}print(step())",
    f"{HELPER}{PARSED}def _main(): p.parse_args()\n{GUARD}main()",
    "train = lambda lr=0.5: {'loss': lr}",
    "from overfit_cli import experiment\n@experiment()\ndef simulate(lr: float): yield {'loss': lr}"
    f"{GUARD}import sys; print(sys.argv)",
]


@pytest.mark.parametrize("code", SCRIPTS)
def test_a_script_is_not_executed_and_the_command_is_named(folder: Path, code: str) -> None:
    written(folder, code, "script.py")
    options = "lr={lr}" if "hydra" in code else "--lr {lr}" + " --seed {seed}" * ("--seed" in code)
    for words in (["--lr=0.1,0.2"], ["--lr=0.1,0.2", "--help"]):
        refused = call("sweep", "script.py", *words, cwd=folder, expect=2)
        command = f"overfit sweep 'python script.py {options}' --lr 0.1,0.2"
        assert command in " ".join(refused.stderr.split()), refused.stderr
    assert {path.name for path in folder.iterdir()} == {"script.py"}


def test_a_file_with_a_training_function_is_no_script(folder: Path) -> None:
    for code in FUNCTIONS:
        written(folder, code, "mine.py")
        assert "Parameters of mine:" in call("sweep", "mine.py", "--help", cwd=folder).stdout


# Consent


@pytest.mark.slow
def test_a_command_line_in_a_run_directory_is_never_run(folder: Path) -> None:
    written(folder, "open(__file__ + '.ran', 'a').write('x')\nprint({'loss': 1})", "p.py")
    swept(folder, f"{sys.executable} p.py {{n}}", "--n=1,2", "--claim=loss < 2", out="run")
    mark = folder / "p.py.ran"
    mark.unlink()
    function_study._given.clear()
    manifest = json.loads((folder / "run" / "manifest.json").read_text())
    command, function = manifest["function"]["command"], manifest["function"]
    others = ["export run", "runs run", "merge run --out=merged", "judge run 'loss < 3'"]
    others += ["plot lines --from=run --out=b.csv", "judge run"]
    references = ("", command, f"{folder}/p.py:{command}", f"{folder}/p.py:train")
    for place, line in enumerate(others):
        function |= {"reference": references[place % len(references)], "claims": True}
        (folder / "run" / "manifest.json").write_text(json.dumps(manifest))
        said(line, folder, (0, 1, 2))
        assert not mark.exists(), function["reference"]
