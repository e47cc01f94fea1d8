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
from overfit_cli.core.training import Execution
from overfit_cli.studies.attention_kernel.regression.study import study as regression
from overfit_cli.sweeps.grid import make_grid
from overfit_cli.sweeps.store import RunDirectory
from overfit_cli.sweeps.worker import train_all
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
    ("sweep --n 2:20:0", ["--n 2:20:0", "step of a range is at least 1"]),
    ("sweep --n 2:20:3:4", ["--n 2:20:3:4", "2:20:3"]),
    ("sweep --n 2:20:log", ["--n 2:20:log", "2:20:3"]),
    ("sweep --n 2:", ["--n", "a whole number", "''"]),
    ("sweep --n :", ["--n", "a whole number"]),
    ("sweep --n 2,,3", ["--n 2,,3", "empty value"]),
    ("sweep --seeds 4,", ["--seeds 4,", "empty value"]),
    ("sweep --n 1_0", ["--n 1_0", "a whole number"]),
    ("sweep --n \uff12", ["--n", "a whole number"]),
    ("sweep --snr 1:1:999999999999", ["--snr 1:1:999999999999", "from 2 to 100000 points"]),
    ("sweep --snr 1e999999999", ["--snr 1e999999999", "a number above 0"]),
    ("sweep --snr -1e999999999", ["--snr -1e999999999", "a number above 0"]),
    ("sweep --snr 1e-999999999999999999999", ["--snr", "a number above 0"]),
    ("sweep --n 1e999999999", ["--n 1e999999999", "a whole number"]),
    ("sweep --n 1:1:999999999999", ["--n 1:1:999999999999", "step is larger than the range"]),
    ("sweep --n 2:20:19", ["--n 2:20:19", "step is larger than the range"]),
    (f"sweep --n 2:20:{'0' * 5001}", ["--n 2:20:000", "step of a range is at least 1"]),
    (f"train toy --seed {2**63}", [f"--seed {2**63}", "a whole number of at least 0"]),
    ("train toy --seed 1e300", ["--seed 1e300: it takes a whole number."]),
    (f"sweep --n 2:20:{'9' * 5000}", ["--n 2:20:999", "2:20:3"]),
    (f"sweep --snr 1:2:{'9' * 5000}", ["--snr 1:2:999", "from 2 to 100000 points"]),
    (f"sweep --n {'9' * 5000}", ["--n 999", "a whole number"]),
    (f"sweep --seeds {'9' * 5000}", ["--seeds 999", "a whole number"]),
    (f"sweep --jobs {'9' * 5000}", ["--jobs 999", "a whole number"]),
    (f"sweep --n {','.join(map(str, range(1, 100_002)))}", ["--n 1,2,3", "more than 100000"]),
    ("sweep --n 1:1000 --snr 0.1:16:100000", ["300000000", "5000000"]),
    ("sweep --dry-run --n 1:1000 --snr 0.1:16:100000", ["300000000", "5000000"]),
    ("sweep --snr 1:2:1", ["--snr 1:2:1", "from 2 to 100000 points", "1"]),
    ("sweep --snr 1:2:9999999", ["--snr 1:2:9999999", "from 2 to 100000 points"]),
    ("sweep --snr 1:2:10:cubic", ["--snr 1:2:10:cubic", "0.1:16:100:log"]),
    ("sweep --set label_flip=0:0.4:10:log", ["--set label_flip", "start above 0"]),
    ("sweep --set noise=isotropic:orthogonal", ["--set noise", "isotropic, orthogonal"]),
    ("sweep --set noise=pink", ["--set noise", "pink", "isotropic, orthogonal"]),
    ("sweep --set dtype=float16", ["--set dtype", "float16", "float32, float64"]),
    ("sweep --set d=1.5", ["--set d", "1.5", "a whole number"]),
    ("sweep --set d=0", ["--set d 0", "a whole number of at least 2"]),
    ("sweep --set d=1e12", ["--set d 1000000000000", "sampling=direct", "up to 1000000;"]),
    ("sweep --set d_h=1e12", ["--set d_h 1000000000000", "sampling=direct", "sampling=law"]),
    ("sweep --set sampling=law", ["--set initialisation pytorch", "sampling=law", "gaussian"]),
    ("sweep --set sampling=magic", ["--set sampling", "magic", "direct, law"]),
    ("sweep --set initialisation=zero", ["--set initialisation", "pytorch, gaussian, condition"]),
    (
        "sweep --set sampling=law --set initialisation=gaussian --set d=1000",
        ["--set d 1000", "at least 1802", "1800 noise tokens"],
    ),
    (
        "sweep --set sampling=law --set initialisation=gaussian --set d=1.5",
        ["--set d", "1.5", "a whole number"],
    ),
    (
        "sweep --set sampling=law --set initialisation=gaussian --set d=0",
        ["--set d 0", "a whole number of at least 2"],
    ),
    (
        "sweep --set sampling=law --set initialisation=gaussian --set d=1e30",
        ["--set d 1e30", "a whole number"],
    ),
    (
        "sweep --set sampling=law --set initialisation=gaussian --set d=1e19",
        ["--set d 1e19", "a whole number", "up to 9e+18"],
    ),
    (
        "sweep --set sampling=law --set initialisation=gaussian --set sigma_h=0",
        ["--set sigma_h 0", "a number above 0"],
    ),
    (
        "sweep --set sampling=law --set initialisation=gaussian --set sigma_v=-1",
        ["--set sigma_v -1", "a number above 0"],
    ),
    (
        "sweep --set sampling=law --set initialisation=gaussian --set output_scale=0",
        ["--set output_scale 0", "a number above 0"],
    ),
    (
        "sweep --set initialisation=gaussian --set sigma_h=1e-18 --set sigma_p=1e-12",
        ["--set dtype float32", "takes float64", "1e-33"],
    ),
    ("sweep --set max_steps=1e30", ["--set max_steps", "up to 1e+18"]),
    ("sweep --set sigma_h=0.1", ["--set sigma_h 0.1", "initialisation=gaussian", "it is pytorch"]),
    (
        "sweep --set sampling=law --set initialisation=gaussian --set d=1e6 --set init_divisor=4",
        ["--set init_divisor 4", "initialisation=pytorch"],
    ),
    ("sweep --set leap=2", ["--set leap 2", "up to 1"]),
    ("sweep --set leap=-0.1", ["--set leap -0.1", "at least 0"]),
    ("sweep --set noise_per=sample", ["--set noise_per", "sample", "feature, token"]),
    (
        "train --set sampling=law --set initialisation=gaussian --set d=1000",
        ["--set d 1000", "at least 1802"],
    ),
    ("sweep --set d=1e30", ["--set d", "1e30", "a whole number"]),
    ("sweep --set label_flip=0.6", ["--set label_flip", "0.6", "up to 0.5"]),
    ("sweep --set epsilon=0", ["--set epsilon", "0", "above 0"]),
    ("sweep --set d=2 --set noise=orthogonal", ["--set d 2", "at least 3"]),
    ("sweep --set snrr=3", ["snrr", "did you mean 'snr'"]),
    ("sweep --set learning_rat=3", ["learning_rat", "did you mean 'learning_rate'"]),
    ("sweep --set n", ["--set n", "NAME=VALUE"]),
    ("sweep --set =3", ["--set =3", "NAME=VALUE"]),
    ("sweep --n 2 --set n=3", ["--n and --set n: n is given twice; give it once."]),
    ("sweep --n 1:5000 --snr 1:2:5000 --seeds 9", ["225000000", "up to 5000000"]),
    (
        "sweep --set d=1000000 --set d_h=1000000",
        ["d 1000000, d_h 1000000: a cell needs about", "GB", "this machine has"],
    ),
    ("sweep --seeds 0", ["--seeds 0", "from 1 to 100000"]),
    ("sweep --seeds -1", ["--seeds -1", "from 1 to 100000"]),
    ("sweep --seeds 5:3", ["--seeds 5:3", "backwards"]),
    ("sweep --seeds some", ["--seeds some", "a whole number"]),
]

NAMES = [
    ("plot heatmap --x n --x snr", ["--x is given 2 times", "give it once"]),
    ("sweep toy --seeds 2 --n 1 --seeds 3", ["--seeds is given 2 times"]),
    ("train toy --out a --out b --out c", ["--out is given 3 times"]),
    ("report --out a b c --out d", ["--out is given 2 times"]),
    ("list claims nope", ["'nope' is not a study"]),
    ("report --where n=3", ["--where n=3", "name the run directory"]),
    ("sweep bening-vit", ["bening-vit", "neither a study nor a preset", "benign-vit"]),
    ("sweep fig9", ["fig9", "did you mean 'fig2'"]),
    ("sweep nowhere.toml", ["nowhere.toml", "no such preset file"]),
    ("sweep fig1 --profile huge", ["--profile huge: it takes quick or paper."]),
    ("sweep --profile paper", ["--profile paper", "benign-vit is not a preset"]),
    ("sweep ../experiments/fig1", ["neither a study nor a preset"]),
    ("sweep --jobs 0", ["--jobs 0", "at least 1", "-1"]),
    ("sweep --jobs many", ["--jobs many", "a whole number"]),
    ("sweep --backend ray", ["--backend ray: it requires address"]),
    ("sweep --backend dask", ["--backend dask: it requires address"]),
    ("sweep --backend slurm", ["--backend slurm: it takes loky, threading, dask or ray."]),
    ("sweep --address auto", ["--address auto: it requires the backend dask or ray"]),
    ("sweep --shard 3/2", ["--shard 3/2: it takes I/N, such as 2/8"]),
    ("sweep --device tpu", ["--device tpu: it takes auto, cpu or cuda."]),
    ("sweep --sead 3", ["--sead"]),
    ("sweeep", ["sweeep"]),
    ("train --n 2:20", ["--n", "one value of n", "19", "sweep"]),
    ("train --seed -1", ["--seed -1", "at least 0"]),
    ("train --seed x", ["--seed x: it takes a whole number."]),
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
    ("plot heatmap --from out --x n", ["--x n", "y is n", "different"]),
    ("plot heatmap --from out --value test_los", ["--value test_los", "'test_loss'"]),
    ("plot heatmap --from out --threshold nan", ["--threshold nan", "finite"]),
    ("plot heatmap --from out --threshold low", ["--threshold low", "finite number"]),
    ("plot heatmap --from out --out a.gif", ["--out a.gif", ".png, .pdf, .svg or .csv"]),
    ("plot heatmap --from out --out file.txt/a.png", ["--out", "file.txt"]),
    ("plot heatmap --from out --law n=1_000", ["--law", "plain decimals"]),
    ("plot heatmap --from out --threshold 1_0", ["--threshold 1_0", "finite number"]),
    ("plot heatmap --from out --law n*snr**2", ["--law n*snr**2", "equals sign"]),
    ("plot heatmap --from out --law n*width=3", ["--law", "width"]),
    ("plot heatmap --from out --law __import__('os')=3", ["--law"]),
    ("report nowhere", ["RUN nowhere", "no such directory"]),
    ("report file.txt", ["RUN file.txt", "that is a file"]),
]

KERNELS = [
    ("sweep kernel-regression --set kernel=softmax,gausian", ["--set kernel gausian", "gaussian,"]),
    ("train kernel-text --set kernel=Softmax", ["--set kernel Softmax", "one of softmax, gaus"]),
    ("sweep kernel-regression --set value_gap=1", ["--set value_gap 1", "instance=random", "0;"]),
    ("sweep kernel-regression --set instance=example --set value_gap=9", ["value_gap 9", "2.5"]),
    ("sweep kernel-regression --set instance=example --n 4", ["--n 4", "n takes 1,"]),
    ("sweep kernel-regression --set instance=example --set tokens=3", ["tokens 3", "takes 2,"]),
    ("sweep kernel-regression --set instance=example --set d=3", ["--set d 3", "d takes 2,"]),
    ("sweep kernel-regression --set instance=example --set target=inside", ["inside", "below,"]),
    ("train kernel-text --set tokens=9", ["--set tokens 9", "at least 10 and up to 100000"]),
    ("train kernel-text --set tokens=100001", ["--set tokens 100001", "up to 100000"]),
    ("train kernel-text --set negated=2", ["--set negated 2", "at least 0 and up to 1"]),
    ("train kernel-text --set dropout=1", ["--set dropout 1", "at least 0 and below 1"]),
    ("train kernel-text --set optimiser=sdg", ["--set optimiser sdg", "adamw, adam, sgd"]),
    ("train kernel-text --set batch_size=0", ["--set batch_size 0", "at least 1"]),
    ("train kernel-text --set learning_rate=0", ["--set learning_rate 0", "above 0"]),
    ("train kernel-text --set heads=3", ["--set heads 3", "divisor of d, which is 64"]),
    ("sweep kernel-text --set d=64,100 --set heads=8", ["--set heads 8", "d, which is 100"]),
    ("train kernel-text --set source=imbd", ["--set source imbd", "generated, imdb"]),
    ("train kernel-text --set source=lra", ["--set source lra", "generated, imdb"]),
    ("train kernel-pathfinder --set difficulty=extreme", ["extreme", "easy, intermediate, hard"]),
    ("train kernel-pathfinder --set size=8", ["--set size 8", "take a larger size"]),
    ("train kernel-pathfinder --set size=7", ["--set size 7", "at least 8"]),
    ("train kernel-pathfinder --set contour_length=40", ["40 paddles", "fewer or shorter"]),
    ("train kernel-pathfinder --set antialiasing=100", ["antialiasing 100", "less of either"]),
    ("train kernel-landscape --set pair=-1", ["--set pair -1", "at least 0"]),
    ("train kernel-landscape --set points=4", ["--set points 4", "at least 5 and up to 1000"]),
    ("train kernel-landscape --set spacing=0", ["--set spacing 0", "above 0"]),
    ("train kernel-landscape --set directions=filtered", ["filtered", "one of filter, raw"]),
    ("train kernel-landscape --set loss_samples=0", ["--set loss_samples 0", "at least 1"]),
    ("train kernel-landscape --set second_steps=-1", ["--set second_steps -1", "at least 0"]),
    ("train kernel-landscape --set task=images", ["--set task images", "text, pathfinder"]),
    ("train kernel-landscape --set source=lra", ["--set source lra", "task=text", "imdb."]),
    ("train kernel-landscape --set heads=5", ["--set heads 5", "divisor of d, which is 64"]),
    (
        "sweep kernel-landscape --set task=pathfinder --set source=imdb",
        ["--set source imdb", "task=pathfinder", "generated, lra."],
    ),
]

DATA = [
    ("train kernel-text --data nowhere", ["--data nowhere", "no such folder or file"]),
    ("sweep kernel-text --data nowhere", ["--data nowhere", "no such folder or file"]),
    ("train kernel-text --set source=imdb", ["--data: source=imdb needs data", "OVERFIT_DATA"]),
    (
        "sweep kernel-fig2 --profile paper --set tokens=99",
        ["--data: source=imdb needs data", "OVERFIT_DATA"],
    ),
    ("sweep kernel-fig4 --set source=imdb", ["--data: source=imdb needs data", "OVERFIT_DATA"]),
    ("train kernel-text --data empty --set source=imdb", ["empty", "IMDb isn't there"]),
    (
        "train kernel-text --data file.txt --set source=imdb",
        ["--data file.txt", "name a folder, or an archive"],
    ),
    ("train kernel-text --set source=imdb --n 25001", ["--n 25001", "up to 25000"]),
    ("train kernel-pathfinder --set source=lra", ["--data: source=lra needs data", "OVERFIT_DATA"]),
    (
        "sweep kernel-pathfinder --data empty --set source=lra",
        ["empty", "curv_contour_length_14", "pathfinder32"],
    ),
]

PANELS = [
    ("plot heatmap --from out --by n", ["--by n", "it is an axis already"]),
    ("plot learning-rates --from rates --by kernal", ["--by kernal", "did you mean 'kernel'"]),
    ("plot learning-rates --from rates --x heads", ["--x heads", "kernel and learning_rate vary."]),
    ("plot learning-rates --from rates --y n", ["--y n", "has no such option", "by,"]),
    ("plot learning-rates --from rates --value los", ["--value los", "measures no 'los'"]),
    ("plot curves --from rates --by kernal", ["--by kernal", "did you mean 'kernel'"]),
    (
        "plot curves --from rates --x n",
        ["--x n", "has no such option", "band, by, log, mean"],
    ),
    ("plot curves --from rates --value train_los", ["--value train_los", "'train_loss'"]),
    (
        "plot curves --from rates --value floor,delta,lambda_b,pl_ratio,pl_bound",
        ["--value", "up to 4 columns"],
    ),
    ("plot samples --from rates", ["kernel-regression has no figure 'samples'", "lines,"]),
]

DIRECTORIES = [
    ("sweep --n 2 --out file.txt", ["--out file.txt", "is a file", "a directory is needed"]),
    ("sweep --n 2 --out file.txt/deeper", ["--out file.txt/deeper", "file.txt is a file"]),
    ("sweep --n 2 --out out", ["--out out", "toy", "benign-vit", "another directory"]),
    ("train --n 2 --out file.txt", ["--out file.txt", "is a file"]),
    ("report out --out file.txt", ["--out file.txt", "is a file"]),
    ("sweep typo.toml", ["typo.toml", "sedes", "did you mean 'seeds'"]),
    ("sweep unknown.toml", ["unknown.toml", "'figure'", "did you mean 'figures'"]),
    ("sweep lacking.toml", ["lacking.toml", "lacks 'study'"]),
    ("sweep broken.toml", ["broken.toml", "can't be read as TOML"]),
    ("sweep stray.toml", ["stray.toml", "'toyy' is neither a study nor a file", "toy"]),
    ("sweep badaxis.toml", ["badaxis.toml: sigma", "did you mean"]),
    ("sweep badfigure.toml", ["badfigure.toml", "no figure 'heatmapp'", "'heatmap'"]),
    ("sweep deep.toml", ["deep.toml", "can't be read as TOML"]),
    ("sweep hex.toml", ["hex.toml", "seeds is a number too long to show"]),
    ("sweep hexset.toml", ["hexset.toml", "set.n is a number too long to show"]),
    ("sweep toy --n 1:1001 --snr 1:2:200 --dry-run", ["--n 1001", "up to 1000"]),
    ("sweep long.toml", ["long.toml", "can't be read as TOML"]),
    ("sweep large.toml", ["large.toml", "can't be read", "1048576 bytes"]),
    ("sweep notext.toml", ["notext.toml", "can't be read as TOML"]),
    ("sweep nested.toml", ["nested.toml", "set.n", "one value, or a range in quotes"]),
    ("sweep nan.toml", ["nan.toml: snr='nan'", "a number above 0"]),
    ("sweep endless.toml", ["endless.toml", "no such preset file"]),
    (f"sweep {'x' * 300}.toml", ["xxx.toml", "no such preset file"]),
    ("sweep elsewhere.toml", ["elsewhere.toml", "directory is '../up'"]),
    ("sweep badvalue.toml", ["badvalue.toml", "quick.set.n", "one value, or a range in quotes"]),
    (f"sweep toy --out {'x' * 300}", ["--out xxx", "File name too long"]),
]

PRESETS = {
    "deep.toml": "title = 'a'\nset = " + "{a = " * 5000 + "1" + "}" * 5000,
    "hex.toml": "title = 'a'\nstudy = 'toy'\n[quick]\nseeds = 0x" + "f" * 5000,
    "hexset.toml": "title = 'a'\nstudy = 'toy'\n[set]\nn = 0x" + "f" * 5000,
    "long.toml": "title = 'a'\nstudy = 'toy'\n[quick]\nseeds = 1" + "0" * 5000,
    "large.toml": "#" * ((1 << 20) + 1),
    "notext.toml": "title = 'a\udcff'",
    "nested.toml": "title = 'a'\nstudy = 'toy'\n[set]\nn = {a = {b = 1}}",
    "nan.toml": "title = 'a'\nstudy = 'toy'\n[set]\nsnr = nan",
    "elsewhere.toml": "title = 'a'\nstudy = 'toy'\ndirectory = '../up'",
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
    """Sweeps in `out` (the toy) and `rates`, and all manner of things that are none."""
    folder = tmp_path_factory.mktemp("bad")
    run("sweep", "toy", "--jobs", "1", "--n", "1:3", "--snr", "1:2:3", "--out", "out", cwd=folder)
    few = {"kernel": "softmax,gaussian", "learning_rate": "0.1,0.2", "training_steps": "2"}
    rates = RunDirectory(folder / "rates")
    rates.prepare()
    cells = make_grid(regression, few, (0,)).cells()
    for cell in cells:
        rates.write(regression, list(train_all(regression, [cell], Execution(trajectories=True))))
    (folder / "file.txt").write_text("a file")
    (folder / "empty").mkdir()
    (folder / "foreign" / "cells").mkdir(parents=True)
    pd.DataFrame({"a": [1]}).to_parquet(folder / "foreign" / "cells" / "a.parquet")
    for name, text in PRESETS.items():
        (folder / name).write_bytes(text.encode(errors="surrogateescape"))
    (folder / "endless.toml").symlink_to("/dev/zero")
    return folder


def snapshot(folder: Path) -> dict[str, str]:
    """Every file's path and content."""
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


@pytest.mark.unix
@pytest.mark.parametrize(("line", "words"), RANGES + NAMES + KERNELS + DATA + PANELS + DIRECTORIES)
def test_bad_input_gives_one_clear_sentence_and_exit_2(
    line: str,
    words: list[str],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("OVERFIT_DATA", "")
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


def test_no_arguments_show_the_help(tmp_path: Path) -> None:
    done = run(cwd=tmp_path)
    assert done.stderr == ""
    for command in ("sweep", "train", "plot", "report", "list"):
        assert f"\n  {command} " in done.stdout


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


@pytest.mark.unix
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


@pytest.mark.unix
def test_a_figure_into_a_read_only_directory_gives_a_sentence(read_only: Path) -> None:
    folder = read_only.parent
    try:
        run(
            "sweep",
            "toy",
            "--jobs",
            "1",
            "--n",
            "1:3",
            "--snr",
            "1:2:3",
            "--out",
            "out",
            cwd=folder,
        )
        plot = ("plot", "heatmap", "--from", "out", "--out", "fixed/a.png")
        done = run(*plot, cwd=folder, expect=2)
        [sentence] = done.stderr.splitlines()
        assert "--out fixed/a.png" in sentence
    finally:
        if os.getuid() == 0:
            subprocess.run(["umount", "-l", str(read_only)], check=True)
