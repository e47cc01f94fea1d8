"""Every malformed invocation gives one clear sentence and exit 2, and no traceback.

Each case is a command line and the words that its sentence must hold: the flag and the value that
were given, and what would be accepted. What lay in the directory before lies there after.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pandas as pd
import pytest

from overfit_cli.cli import app
from tests.command import run

RANGES = [
    ("sweep --n 20:2", ["--n 20:2", "backwards", "2:20"]),
    ("sweep --snr 16:0.1", ["--snr 16:0.1", "backwards", "0.1:16"]),
    ("sweep --n 0", ["--n 0", "whole number of at least 1"]),
    ("sweep --n -3", ["--n -3", "whole number of at least 1"]),
    ("sweep --n -2:5", ["--n -2", "at least 1"]),
    ("sweep --snr 0", ["--snr 0", "a number above 0"]),
    ("sweep --snr 0:16", ["--snr 0", "a number above 0"]),
    ("sweep --snr -1", ["--snr -1", "above 0"]),
    ("sweep --snr nan", ["--snr nan", "a number above 0"]),
    ("sweep --snr nan:3", ["--snr nan", "a number above 0"]),
    ("sweep --snr inf", ["--snr inf", "a number above 0"]),
    ("sweep --snr 1e400", ["--snr 1e400", "a number above 0"]),
    ("sweep --snr 1e30", ["--snr 1e+30", "up to 1000000000"]),
    ("sweep --n 1.5", ["--n 1.5", "a whole number"]),
    ("sweep --n two", ["--n two", "a whole number"]),
    ("sweep --n 1:99999999999999999999", ["--n 99999999999999999999", "a whole number"]),
    ("sweep --n 1:99999999", ["--n 1:99999999", "more than 100000"]),
    ("sweep --n 2:20:0", ["--n 2:20:0", "2:20:3"]),
    ("sweep --n 2:20:3:4", ["--n 2:20:3:4", "2:20:3"]),
    ("sweep --n 2:20:log", ["--n 2:20:log", "2:20:3"]),
    ("sweep --n 2:", ["--n", "a whole number", "''"]),
    ("sweep --n :", ["--n", "a whole number"]),
    ("sweep --n 2,,3", ["--n 2,,3", "empty value"]),
    ("sweep --seeds 4,", ["--seeds 4,", "empty value"]),
    ("sweep --n 1_0", ["--n 1_0", "a whole number"]),
    ("sweep --n \uff12", ["--n", "a whole number"]),
    ("sweep --snr 1:2:1", ["--snr 1:2:1", "from 2 to 100000 points", "1"]),
    ("sweep --snr 1:2:9999999", ["--snr 1:2:9999999", "from 2 to 100000 points"]),
    ("sweep --snr 1:2:10:cubic", ["--snr 1:2:10:cubic", "0.1:16:100:log"]),
    ("sweep --set label_flip=0:0.4:10:log", ["--set label_flip", "start above 0"]),
    ("sweep --set noise=isotropic:orthogonal", ["--set noise", "isotropic, orthogonal"]),
    ("sweep --set noise=pink", ["--set noise", "pink", "isotropic, orthogonal"]),
    ("sweep --set dtype=float16", ["--set dtype", "float16", "float32, float64"]),
    ("sweep --set d=1.5", ["--set d", "1.5", "a whole number"]),
    ("sweep --set d=1e30", ["--set d", "1e30", "a whole number"]),
    ("sweep --set label_flip=0.6", ["--set label_flip", "0.6", "up to 0.5"]),
    ("sweep --set epsilon=0", ["--set epsilon", "0", "above 0"]),
    ("sweep --set d=2 --set noise=orthogonal", ["--set d 2", "at least 3"]),
    ("sweep --set snrr=3", ["snrr", "did you mean 'snr'"]),
    ("sweep --set learning_rat=3", ["learning_rat", "did you mean 'learning_rate'"]),
    ("sweep --set n", ["--set n", "NAME=VALUE"]),
    ("sweep --set =3", ["--set =3", "NAME=VALUE"]),
    ("sweep --n 2 --set n=3", ["--set n=3", "given twice"]),
    ("sweep --n 1:5000 --snr 1:2:5000 --seeds 9", ["225000000", "up to 5000000"]),
    ("sweep --set d=1000000 --set d_h=1000000", ["GB", "this machine has"]),
    ("sweep --seeds 0", ["--seeds 0", "from 1 to 100000"]),
    ("sweep --seeds -1", ["--seeds -1", "from 1 to 100000"]),
    ("sweep --seeds 5:3", ["--seeds 5:3", "backwards"]),
    ("sweep --seeds some", ["--seeds some", "a whole number"]),
]

NAMES = [
    ("sweep bening-vit", ["bening-vit", "neither a study nor a preset", "benign-vit"]),
    ("sweep fig2", ["fig2", "did you mean 'fig1'"]),
    ("sweep nowhere.toml", ["nowhere.toml", "no such preset file"]),
    ("sweep fig1 --profile huge", ["--profile huge", "quick, paper"]),
    ("sweep --profile paper", ["--profile paper", "benign-vit is no preset"]),
    ("sweep ../experiments/fig1", ["neither a study nor a preset"]),
    ("sweep --jobs 0", ["--jobs 0", "at least 1", "-1"]),
    ("sweep --jobs many", ["--jobs many", "a whole number"]),
    ("sweep --backend ray", ["--backend", "ray", "loky", "threading"]),
    ("sweep --device tpu", ["--device", "tpu", "auto", "cpu", "cuda"]),
    ("sweep --sead 3", ["--sead"]),
    ("sweeep", ["sweeep"]),
    ("train --n 2:20", ["--n", "one value of n", "19", "sweep"]),
    ("train --seed -1", ["--seed -1", "at least 0"]),
    ("train --seed x", ["--seed x", "at least 0"]),
    ("train --snr 0", ["--snr 0", "above 0"]),
    ("list stuff", ["stuff", "studies", "presets"]),
    ("plot heatmapp --from out", ["heatmapp", "did you mean 'heatmap'"]),
    ("plot heatmapp", ["heatmapp", "did you mean 'heatmap'"]),
    ("plot heatmap", ["results", "overfit sweep"]),
    ("plot heatmap --from nowhere", ["--from nowhere", "no such directory"]),
    ("plot heatmap --from file.txt", ["--from file.txt", "that is a file"]),
    ("plot heatmap --from empty", ["--from empty", "holds no cells"]),
    ("plot heatmap --from foreign", ["--from foreign", "holds no cells"]),
    ("plot curves --from out", ["--from out", "no trajectories", "overfit train"]),
    ("plot heatmap --from out --x snrr", ["--x snrr", "did you mean 'snr'"]),
    ("plot heatmap --from out --x d", ["--x d", "no parameter", "n"]),
    ("plot heatmap --from out --x n", ["--x n", "--y n", "different"]),
    ("plot heatmap --from out --value test_los", ["--value test_los", "'test_loss'"]),
    ("plot heatmap --from out --threshold nan", ["--threshold nan", "finite"]),
    ("plot heatmap --from out --threshold low", ["--threshold low", "finite number"]),
    ("plot heatmap --from out --out a.gif", ["--out a.gif", ".png, .pdf or .svg"]),
    ("plot heatmap --from out --out file.txt/a.png", ["--out", "file.txt"]),
    ("plot heatmap --from out --law n=1_000", ["--law", "plain decimals"]),
    ("plot heatmap --from out --threshold 1_0", ["--threshold 1_0", "finite number"]),
    ("plot heatmap --from out --law n*snr**2", ["--law 'n*snr**2'", "equals sign"]),
    ("plot heatmap --from out --law n*width=3", ["--law", "width"]),
    ("plot heatmap --from out --law __import__('os')=3", ["--law"]),
    ("report --from nowhere", ["--from nowhere", "no such directory"]),
    ("report --from file.txt", ["--from file.txt", "that is a file"]),
]

DIRECTORIES = [
    ("sweep --n 2 --out file.txt", ["--out file.txt", "is a file", "a directory is needed"]),
    ("sweep --n 2 --out file.txt/deeper", ["--out file.txt/deeper", "file.txt is a file"]),
    ("sweep --n 2 --out out", ["--out out", "toy", "benign-vit", "another directory"]),
    ("train --n 2 --out file.txt", ["--out file.txt", "is a file"]),
    ("report --from out --out file.txt", ["--out file.txt", "is a file"]),
    ("sweep typo.toml", ["typo.toml", "sedes", "did you mean 'seeds'"]),
    ("sweep unknown.toml", ["unknown.toml", "'figure'", "did you mean 'figures'"]),
    ("sweep lacking.toml", ["lacking.toml", "lacks 'study'"]),
    ("sweep broken.toml", ["broken.toml", "can't be read as TOML"]),
    ("sweep stray.toml", ["stray.toml", "'toyy' is no study", "toy"]),
    ("sweep badaxis.toml", ["badaxis.toml: sigma", "did you mean"]),
    ("sweep badfigure.toml", ["badfigure.toml", "no figure 'heatmapp'", "'heatmap'"]),
    ("sweep badvalue.toml", ["badvalue.toml", "quick.set.n", "one value, or a range in quotes"]),
    (f"sweep toy --out {'x' * 300}", ["--out xxx", "File name too long"]),
]

PRESETS = {
    "typo.toml": "title = 'a'\nstudy = 'toy'\n[quick]\nsedes = 3\n",
    "unknown.toml": "title = 'a'\nstudy = 'toy'\nfigure = ['heatmap']\n",
    "lacking.toml": "title = 'a'\n",
    "broken.toml": "title = = 'a'\n",
    "stray.toml": "title = 'a'\nstudy = 'toyy'\n",
    "badfigure.toml": "title = 'a'\nstudy = 'toy'\nfigures = ['heatmapp']\n",
    "badvalue.toml": "title = 'a'\nstudy = 'toy'\n[quick]\nset.n = [2, 3]\n",
    "badaxis.toml": "title = 'a'\nstudy = 'benign-vit'\n[set]\nsigma = '1:2'\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep of the toy in `out`, and all manner of things that are none."""
    folder = tmp_path_factory.mktemp("bad")
    run("sweep", "toy", "--n", "1:3", "--snr", "1:2:3", "--out", "out", cwd=folder)
    (folder / "file.txt").write_text("a file")
    (folder / "empty").mkdir()
    (folder / "foreign" / "cells").mkdir(parents=True)
    pd.DataFrame({"a": [1]}).to_parquet(folder / "foreign" / "cells" / "a.parquet")
    for name, text in PRESETS.items():
        (folder / name).write_text(text)
    return folder


def snapshot(folder: Path) -> dict[str, str]:
    """Every file's path and content."""
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


@pytest.mark.parametrize(("line", "words"), RANGES + NAMES + DIRECTORIES)
def test_bad_input_gives_one_clear_sentence_and_exit_2(
    line: str,
    words: list[str],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["overfit", *line.split()])
    before = snapshot(folder)
    with pytest.raises(SystemExit) as ended, warnings.catch_warnings():
        warnings.simplefilter("default")
        app.main()
    shown = capsys.readouterr()
    sentences = [text for text in shown.err.splitlines() if not text.startswith("note: ")]
    assert ended.value.code == 2, shown
    assert len(sentences) == 1, shown.err
    for word in words:
        assert word in sentences[0]
    assert sentences[0].startswith("overfit: ")
    assert "Traceback" not in shown.err + shown.out
    assert not list((folder / "results").rglob("*.parquet"))
    assert {path: text for path, text in snapshot(folder).items() if path in before} == before


@pytest.mark.parametrize("option", ["--out", "--seeds", "--n"])
def test_an_empty_value_is_refused(
    option: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["overfit", "sweep", option, ""])
    with pytest.raises(SystemExit) as ended:
        app.main()
    assert ended.value.code == 2
    assert option in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_there_are_at_least_forty_of_them() -> None:
    assert len({line for line, _ in RANGES + NAMES + DIRECTORIES}) >= 40


def test_no_arguments_show_the_help(tmp_path: Path) -> None:
    done = run(cwd=tmp_path, expect=2)
    for command in ("sweep", "train", "plot", "report", "list"):
        assert command in done.stdout + done.stderr


@pytest.fixture
def read_only(tmp_path: Path) -> Path:
    """A directory that can't be written to, by root either."""
    folder = tmp_path / "fixed"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "ro,size=100k", "tmpfs", str(folder)]
    if os.getuid() == 0:
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            pytest.skip("a read-only mount isn't allowed here")
    else:
        folder.chmod(0o500)
    return folder


@pytest.mark.parametrize("command", ["sweep toy --out", "train toy --out", "report --out"])
def test_a_read_only_directory_gives_a_sentence(read_only: Path, command: str) -> None:
    try:
        for where in ("fixed", "fixed/deeper"):
            done = run(*command.split(), where, cwd=read_only.parent, expect=2)
            [sentence] = done.stderr.splitlines()
            assert f"--out {where}" in sentence
            assert "can't be" in sentence
    finally:
        if os.getuid() == 0:
            subprocess.run(["umount", "-l", str(read_only)], check=True)


def test_a_figure_into_a_read_only_directory_gives_a_sentence(read_only: Path) -> None:
    folder = read_only.parent
    try:
        run("sweep", "toy", "--n", "1:3", "--snr", "1:2:3", "--out", "out", cwd=folder)
        plot = ("plot", "heatmap", "--from", "out", "--out", "fixed/a.png")
        done = run(*plot, cwd=folder, expect=2)
        [sentence] = done.stderr.splitlines()
        assert "--out fixed/a.png" in sentence
    finally:
        if os.getuid() == 0:
            subprocess.run(["umount", "-l", str(read_only)], check=True)
