"""Every malformed invocation gives one clear sentence and exit 2, no traceback, and no file.

Each row of the table is a command line and the words that its sentence holds: the flag and the
value that were given, and what would be accepted. What lay in the folder before lies there after.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from overfit_cli.core.parameters import describe
from overfit_cli.core.registry import find_study
from overfit_cli.sweeps import run as run_of_sweep
from tests.command import call, said

DECLARED = """
sweep benign-vit: n=0 n=1.5 n=two snr=0 snr=-1 snr=inf snr=1e+30 d=0 d=1.5 d=1e19 d=1e30
sweep benign-vit: label_flip=0.6 epsilon=0 max_steps=1e30 leap=2 leap=-0.1 sigma_h=0 sigma_v=-1
sweep benign-vit: output_scale=0 noise=pink noise=isotropic:orthogonal noise_per=sample
sweep benign-vit: sampling=magic initialisation=zero dtype=float16
train kernel-text: kernel=Softmax optimiser=sdg source=lra tokens=9 tokens=100001 negated=2
train kernel-text: dropout=1 batch_size=0 learning_rate=0
train kernel-pathfinder: difficulty=extreme size=7
train kernel-landscape: pair=-1 points=4 spacing=0 loss_samples=0 second_steps=-1
train kernel-landscape: directions=filtered task=images
"""
"""Values that the declaration of a parameter refuses: the sentence says what it accepts."""

VALUES = """
sweep --n 20:2 => --n 20:2 … backwards … 2:20
sweep --n -2:5 => --n -2 … at least 1
sweep --snr nan:3 => --snr nan … a number above 0
sweep --n '' => --n
sweep --n 1:99999999999999999999 => --n 99999999999999999999 … a whole number
sweep --n 1:99999999 => --n 1:99999999 … more than 100000
sweep --n 2:20:19 => --n 2:20:19 … its step is 0, or larger than the range
sweep --n 2:20:log => --n 2:20:log … 2:20:3
sweep --n 2: => --n 2: … 2:20:3
sweep --n 2,,3 => --n 2,,3 … a value is empty
sweep --n \uff12 => --n … a whole number
sweep --snr 1:2:1 => --snr 1:2:1 … fewer points than ends … 100 points
sweep --snr 1:2:10:cubic => --snr 1:2:10:cubic … 0.1:16:100:log
sweep --n 2:20:{zeros} => --n 2:20:000 … a range 2:20, 2:20:3
sweep --n {many} => --n 1,2,3 … more than 100000
sweep --n 1:1000 --snr 0.1:16:100000 => 300000000 … 5000000
sweep toy --n 1:1001 --snr 1:2:20 --dry-run => --n 1001 … up to 1000
sweep --seeds 0 => --seeds 0 … from 1 to 100000
train toy --seed 9223372036854775808 => --seed 9223372036854775808 … a whole number of at least 0
train --seed -1 => --seed -1 … at least 0
train --N 2:20 => --N: a training takes one value of n, not 19 … sweep
sweep --set label_flip=0:0.4:10:log => --set label_flip … start above 0
sweep --set d=2 --set noise=orthogonal => --set d 2 … at least 3
sweep --set d=1e12 => --set d 1000000000000 … sampling=direct … up to 1000000;
sweep --set d=1000000 --set d_h=1000000 => d 1000000, d_h 1000000: a cell needs about … GB
sweep --set sampling=law => --set initialisation pytorch … rotation invariant; set init
sweep --sampling law --initialisation gaussian --d 1000 => --d 1000 … at least 1802 … 1800 noise
sweep --initialisation gaussian --sigma_h 1e-18 --sigma_p 1e-12 => float32 … takes float64 … 1e-33
sweep --set sigma_h=0.1 => --set sigma_h 0.1 … initialisation=gaussian … it is pytorch
sweep --set n => --set n … NAME=VALUE
sweep toy --snr 0:1:5 --refine 2 --threshold 1 => at least 3 values of snr, all above 0.
sweep --snr 1:9:4 --refine -1 => --refine -1: it takes a whole number of at least 0
sweep --snr 1:9:4 --refine 1.5 => --refine 1.5: it takes a whole number
sweep --snr 1,2 --refine 2 => --snr: refining takes at least 3 values of snr, all above 0
sweep --snr 1:9:4 --label_flip 0,0.1 --refine 2 => --refine: label_flip varies too
sweep kernel-text --refine 2 => --refine: kernel-text has no figure of a boundary to refine.
sweep toy --snr 1:9:4 --refine 2 --threshold 1 --shard 1/2 => --shard 1/2: refinement chooses cells
sweep --snr 0.1-3 => --snr 0.1-3 … 0.1:16:100 (100 points)
sweep --snr 0.2:3:0.2 => --snr 0.2:3:0.2 … 0.1:16:100 (100 points)
"""

GRIDS = """
sweep toy --n snr/2 --snr 1 => --n snr/2: it is 0.5 at snr = 1, and n takes a whole
sweep toy --n 1/0 => --n 1/0: it is inf
sweep toy --n 2*snr --snr n => --n: it depends on snr, which depends on n; give one
sweep toy --n 2*n => --n: it depends on n; give
sweep toy --n 2*srn => --n 2*srn: 'srn' is no name here; did you mean 'snr'
sweep toy --n 2*mood => mood is no number
sweep toy --n "__import__('os')" => --n __import__
sweep toy --n=-snr --snr 1 => n takes a whole number of at least 1
sweep toy --n 1,2 --snr 1,2,3 --together n,snr => equal length, not 2 of n and 3 of snr.
sweep toy --n 1,2 --together n,snr => two lists or more of equal length, not 2 of n and 0 of snr.
sweep toy --n 1,2 --together n => --together n: it takes two lists or more
sweep toy --n 1,2 --together n,srn => no parameter 'srn'; did you mean 'snr'
sweep toy --n 1,2 --snr 1,2 --together n,snr --together n,snr => --together: n is named twice
sweep toy --n 1,2 --only 'n > 2' => --only n > 2: no point of the grid meets it
sweep toy --n 1,2 --only 'n >' => write NAME=VALUE
sweep toy --n 1,2 --only 'n > m' => 'm' is no name here
sweep toy --n 1,2 --only '2 > 1' => it names no parameter
sweep toy --claim 'tset_loss < 0.1' => --claim tset_loss < 0.1: 'tset_loss' is no name here; did you
sweep toy --claim 'test_loss[test_loss is largest] < 1' => test_loss is no number
"""

NAMES = """
sweep --set snrr=3 => snrr … did you mean 'snr'
sweep --Q 3 => --Q: benign-vit has no parameter 'Q'
sweep --N 0 => --N 0: n takes a whole number of at least 1
sweep --N 2 --n 3 => --N and --n: n is given twice; give it once.
plot heatmap --x n --x snr => --x is given 2 times … give it once
report --where n=3 => --where n=3 … name the run directory
sweep bening-vit => bening-vit … neither a study nor a preset … benign-vit
sweep nothing-like-it => FILE.py; `overfit list` names those that are installed.
sweep fig9 => fig9 … did you mean 'fig2'
sweep {name}.toml => xxx.toml … no such preset file
sweep mine.py --n => --n: it takes a value: --n VALUE.
sweep mine.py --claim 'loss falls along m' => it takes a parameter that is a number
sweep mine.py --claim 'a: loss < 1' --claim 'a: loss < 1' => another claim is called so
sweep mine.py --refine 2 => mine:train has no threshold of its own
sweep mine.py --k 3 => parameter 'k', and overfit has no such option; known: d, kind, n, snr
sweep toy --set width=3 => width … has no parameter 'width'
sweep --threshold 0.5 => --threshold 0.5: it requires refine, the number of rounds
plot heat --from out => has no figure 'heat'; did you mean 'heatmap'
compare out out --tolerance -1 => --tolerance -1: it takes a share of the mean
judge no=such => RUN no=such: there is no such directory
sweep mine.py n=5 => n=5: mine.py is named already; a command takes one
sweep fig1 --profile huge => --profile huge: it takes quick or paper.
sweep --profile paper => --profile paper … benign-vit is not a preset
sweep --jobs 0 => --jobs 0 … at least 1 … -1
sweep --jobs {nines} => --jobs 999 … a whole number
sweep --backend ray => --backend ray: it requires address
sweep --backend slurm => --backend slurm: it takes loky, threading, dask or ray.
sweep --address auto => --address auto: it requires the backend dask or ray
sweep toy --backend ray --address a:1 => ray needs the package ray … pip install '.[ray]'
sweep --shard 3/2 => --shard 3/2: it takes I/N, such as 2/8
sweep --device tpu => --device tpu: it takes auto, cpu or cuda.
sweeep => sweeep
list claim => KIND|STUDY claim: it takes studies, presets, figures or claims, or a study; did you
list kernel-text claims => or a study; the kind comes first.
list claims nope => 'nope' is not a study
reproduce jiang2024/fig11 => did you mean 'jiang2024/fig1'
reproduce '' => it takes a paper (cao2024, cui2024, deora2024, jiang2024, song2024), a figure of
reproduce --expect nowhere.toml => nowhere.toml
"""

KERNELS = """
sweep kernel-regression --set kernel=softmax,gausian => --set kernel gausian … gaussian,
sweep kernel-regression --set value_gap=1 => --set value_gap 1 … instance=random … 0;
sweep kernel-regression --set instance=example --n 4 => --n 4 … n takes 1,
sweep kernel-regression --set instance=example --set target=inside => inside … below,
train kernel-text --set heads=3 => --set heads 3 … divisor of d, which is 64
sweep kernel-text --set d=64,100 --set heads=8 => --set heads 8 … d, which is 100
train kernel-pathfinder --set size=8 => --set size 8 … take a larger size
train kernel-pathfinder --set contour_length=40 => 40 paddles … fewer or shorter
train kernel-pathfinder --set antialiasing=100 => antialiasing 100: times size=32 … less of either
train kernel-landscape --set source=lra => --set source lra … task=text … imdb.
sweep kernel-landscape --task pathfinder --source imdb => imdb … task=pathfinder … generated, lra.
train kernel-text --data nowhere => --data nowhere … no such folder, or archive
train kernel-text --set source=imdb => --data: source=imdb needs data … OVERFIT_DATA
train kernel-text --data empty --set source=imdb => empty … IMDb isn't there
train kernel-text --data file.txt --source imdb => --data file.txt … no such folder, or archive
train kernel-text --set source=imdb --n 25001 => --n 25001 … up to 25000
"""

DIRECTORIES = """
plot heatmap => No run directory in results/ fits heatmap; `overfit sweep` or `overfit train`
plot heatmap --from nowhere => --from nowhere … no such directory
plot heatmap --from file.txt => --from file.txt … that is a file
plot heatmap --from empty => --from empty … holds no cells
report --only kernel-txt => --only kernel-txt … no study and no paper; did you mean 'kernel-text'
report nowhere => RUN nowhere … no such directory
runs nowhere => FOLDER|RUN nowhere: it can't be read: No such file or directory.
compact nowhere => DIR nowhere: there is no such directory; name a directory
compact empty => DIR empty: it holds no cells; name a directory
merge out results/nowhere --out x => DIR results/nowhere: there is no such directory
sweep --n 2 --out file.txt => --out file.txt … File exists … a directory is needed
train toy --out file.txt/deeper => --out file.txt … Not a directory … a directory is needed
sweep --n 2 --out out => --out out … toy … benign-vit; name another one
sweep --n 2 --out '' => --out
sweep toy --out {no text} => --out bad\\udcffname: it takes a path, in UTF-8.
sweep toy --data {no text} => --data bad\\udcffname: it takes a path, in UTF-8.
sweep toy --out {name} => --out xxx … File name too long
report out --out file.txt => --out file.txt … File exists
sweep endless.toml => endless.toml … no such preset file
"""

FIGURES = """
plot heatmapp => No run directory in results/ fits heatmapp
plot score --from ran => 'score'; it has boundary, curves, cutoff, heatmap, lines.
plot heatmap --from out --x snrr => --x snrr … did you mean 'snr'
plot heatmap --from out --x d => --x d … no parameter … n
plot heatmap --from out --x n => --x n … y is n … different
plot heatmap --from out --by n => --by n … it is an axis already
plot heatmap --from out --by q => --by q: toy has no parameter 'q'; known:
plot heatmap --from out --value test_los => --value test_los … 'test_loss'
plot heatmap --from out --where n=99 => --where n=99: no cell has that; there is 1, 2, 3.
plot heatmap --from out --where N=low => --where N=low: 'low' is no name here
plot heatmap --from out --threshold nan => --threshold nan: 'nan' is no name here
plot heatmap --from out --out a.gif => --out a.gif … .png, .pdf, .svg or .csv
plot heatmap --from out --out file.txt/a.png => --out … file.txt
plot heatmap --from out --law n=1_000 => --law … can't be read
plot heatmap --from out --law n*snr**2 => --law n*snr**2 … equals sign
plot heatmap --from out "--law=__import__('os')=3" => --law
plot heatmap --from ran --law n=3 --law n= => --law n=: it can't be read
plot heatmap --from ran --size 3x => --size 3x: it takes column, page, or WIDTHxHEIGHT in inches
plot heatmap --from ran --size 0.5x0.5 => --size 0.5x0.5: the figure needs more room, such as page.
plot heatmap --from ran --log z => --log z: it takes some of x, y, value, separated by commas, or n
plot heatmap --from ran --log value --value nothing => --log value: the least number drawn is 0, w
plot heatmap --from ran --style no.mplstyle => --style no.mplstyle: there is no such file; it takes
plot heatmap --from ran --style bad.mplstyle => bad.mplstyle: it is no matplotlib style sheet
plot heatmap --from ran --band sd => --band sd: heatmap has no such option; it accepts by
plot heatmap --from ran --from nowhere => --from nowhere: there is no such directory
plot heatmap --from ran --from ran => --from ran: a run directory is named twice.
plot heatmap --from ran --from moods => --from ran: its cells, of mine:train, have no mood, which va
plot heatmap --from ran --minus nowhere => --minus nowhere: there is no such directory
plot heatmap --from ran --minus other => --minus other: no cell of it has the seed and the values
plot heatmap --from ran --from other --minus moods => --minus: it subtracts from one run directory
plot heatmap --from ran --where n=2 => name the parameter on this axis; here varies: snr.
plot heatmap --from broken => mine:train has measured nothing here: no cell is done.
plot lines --from ran --x d => --x d: d is constant in these cells; here varies: n, snr.
plot lines --from ran --x snr --band std => --band std: it takes interval, sd, quartiles or
plot curves --from out => --from out … no trajectories … overfit train
plot curves --from rates --x n => --x n … has no such option … band, by, log, mean
plot curves --from rates --value train_los => --value train_los … 'train_loss'
plot curves --from rates --value floor,gradient,train_loss,bound_paper,step => up to 4 columns
plot boundary --from ran --threshold 99 => --threshold 99: test loss crosses it nowhere on
plot boundary --from ran --value nothing => --threshold 0: nothing cr
plot learning-rates --from rates --x heads => --x heads … here varies: kernel, learning_rate.
"""

COMPARED = """
compare out => Missing argument 'B'
compare out out --tolerance many => --tolerance many: it takes a share of the mean of B, such as
compare out out --value tset_loss => --value tset_loss: A has no such numbers; did you mean 'test
compare out out --where-a n=7 => --where-a n=7: no cell has that; there is 1, 2, 3.
compare out out --out a.bmp => --out a.bmp: the file's name must end in .png, .pdf, .svg or .csv.
compare out none => B none: there is no such directory; name a directory that `overfit sweep` wrote.
compare out none.csv => none.csv: it can't be read (No such file or directory).
compare given.csv out => A given.csv: A is a run directory; name the published file second.
compare out given.csv --value draw => --value draw: B has no such numbers
compare out twice.csv => row 1: another row has the same n; give each its own point
compare out out --json file.txt/b => --json file.txt/b: it can't be written there
compare out out --tolerance 1 --out file.txt/b.png => file.txt/b.png: the figure can't be written
judge ran 'tset_loss < 1' => did you mean 'test_loss'?
judge ran 'test_loss < 1 where test_loss < 2' => would choose outcomes
judge ran 'test_loss < 1' --out a.gif => the file's name must end in .png, .pdf, .svg or .csv
judge mine.py 'test_loss < 1' => RUN mine.py: that is a file
export out --columns tset_loss => there is no column 'tset_loss' here; did you mean
export out --columns n,,snr => there is no column '' here; known:
export out --means --columns key => there is no column 'key' here; known: draw, failed
export out --to parquet => --to parquet: add --out FILE.parquet
export out --to parquet --out - => --to parquet: add --out FILE.parquet
export out --to xlsx => --to xlsx: it takes csv, parquet or latex.
export out --out a.txt => --out a.txt: add --to csv, parquet or latex, or a file that ends
export out --means --trajectories => --trajectories: means and LaTeX are of cells
export out --trajectories => DIR out: it holds no logged steps of these cells; a sweep with traj
export '' => DIR '': it takes a path, in UTF-8.
export out --out out/cells --to csv => --out out/cells: that is no file; name a file
export out --out mine.py/a.csv => --out mine.py/a.csv: it can't be written there
export broken --means => All 16 cells failed (error: … there are no means over seeds.
verify none.png => FILE none.png: it can't be read (No such file or directory).
verify out => out has no figure; `overfit plot --from out` draws one.
verify given.csv --from none => --from none: it isn't there; name the figure's run or CSV
verify given.csv --from '' => --from '': it takes a path
verify given.csv => FILE given.csv: it holds no record; it takes a PNG, PDF or SVG file that
verify /dev/zero => FILE /dev/zero: it can't be read (it isn't a regular file)
verify => Missing argument 'FILE|DIR'.
"""

LONG = {"{nines}": "9" * 5000, "{zeros}": "0" * 5001, "{name}": "x" * 300}
LONG["{no text}"] = "bad\udcffname"
LONG["{many}"] = ",".join(map(str, range(1, 100_002)))


def declared() -> Iterator[list[str]]:
    """The rows of the table for each value of `DECLARED`."""
    for line in DECLARED.strip().splitlines():
        command, settings = line.split(": ")
        parameters = describe(find_study(command.split()[1]).parameters)
        for setting in settings.split():
            name, value = setting.split("=")
            takes = f"{name} takes {parameters[name].accepts}"
            yield [f"{command} --set {setting}", f"--set {name} {value}: … {takes}"]


TABLE = [
    line.split(" => ")
    for part in (VALUES, GRIDS, NAMES, KERNELS, DIRECTORIES, FIGURES, COMPARED)
    for line in part.strip().splitlines()
]
TABLE += declared()

OF_TOY = "title = 'a'\nstudy = 'toy'\n"
SO_DEEP = "title = 'a'\nset = " + "{a = " * 5000 + "1" + "}" * 5000
PRESETS = {
    "deep": (SO_DEEP, "can't be read as TOML"),
    "hex": (f"{OF_TOY}[quick]\nseeds = 0x{'f' * 5000}", "quick.seeds: Input should be"),
    "notext": ("title = 'a\udcff'", "can't be read as TOML"),
    "broken": ("title = = 'a'\n", "can't be read as TOML"),
    "nested": (f"{OF_TOY}[set]\nn = {{a = {{b = 1}}}}", "set.n … one value, or a range in quotes"),
    "nan": (f"{OF_TOY}[set]\nsnr = nan", "nan.toml: snr='nan' … a number above 0"),
    "elsewhere": (f"{OF_TOY}directory = '../up'", "directory: String should match"),
    "typo": (f"{OF_TOY}[quick]\nsedes = 3\n", "sedes … did you mean 'seeds'"),
    "unknown": (f"{OF_TOY}figure = []\n", "figure: there is no such field; did you mean 'figures'"),
    "ours": (f"{OF_TOY}path = 'a'", "path: there is no such field"),
    "lacking": ("title = 'a'\n", "study: it is missing"),
    "stray": ("title = 'a'\nstudy = 'toyy'\n", "'toyy' is neither a study nor a file … toy"),
    "badaxis": ("title = 'a'\nstudy = 'benign-vit'\nset.sigma = '1:2'\n", "sigma … did you mean"),
}
TABLE += [[f"sweep {name}.toml", f"{name}.toml … {words}"] for name, (_, words) in PRESETS.items()]

EXPERIMENT = """
def train(n: int = 10, snr: float = 1.0, d: int = 3, kind: str = "a", seed: int = 0):
    if kind == "broken":
        raise RuntimeError("it broke")
    loss = (1 + seed) / (1 + n * snr**2)
    for step in range(3):
        yield {"train_loss": loss / (1 + step)}
    return {"test_loss": loss, "nothing": 0.0}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sweeps of the toy, a study and a function, and all manner of things that are none.

    `other` shares no n with `ran`, and of `broken` every cell failed.
    """
    folder = tmp_path_factory.mktemp("bad")
    (folder / "mine.py").write_text(EXPERIMENT)
    mine = "mine.py --snr=0.5:2:4 --seeds=2 --trajectories"
    few = "--kernel=softmax,gaussian --learning_rate=0.1,0.2 --training_steps=2 --seeds=1"
    for grid in (
        "toy --n=1:3 --snr=1:2:3 --out=out",
        "toy --n=1:2 --set=mood=well,prints --out=moods",
        f"{mine} --n=2:4 --out=ran",
        f"{mine} --n=5:7 --out=other",
        f"kernel-regression {few} --trajectories --out=rates",
    ):
        said(f"sweep {grid} --jobs=1", folder)
    said(f"sweep {mine} --n=2:3 --set=kind=broken --jobs=1 --out=broken", folder, 1)
    (folder / "file.txt").write_text("a file")
    (folder / "empty").mkdir()
    (folder / "results" / "empty" / "cells").mkdir(parents=True)
    (folder / "given.csv").write_text("n,snr,test_loss\n1,1,1\n")
    (folder / "twice.csv").write_text("n,test_loss\n1,1\n1,2\n")
    (folder / "bad.mplstyle").write_text("font.size: big")
    for name, (text, _) in PRESETS.items():
        (folder / f"{name}.toml").write_bytes(text.encode(errors="surrogateescape"))
    (folder / "endless.toml").symlink_to("/dev/zero")
    return folder


def snapshot(folder: Path) -> dict[Path, tuple[int, int]]:
    """Every file's path, size and time of writing."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in files}


@pytest.mark.unix
@pytest.mark.parametrize(
    ("line", "words"),
    [pytest.param(*row, marks=[pytest.mark.slow] * ("{many}" in row[0])) for row in TABLE],
    ids=[line for line, _ in TABLE],
)
def test_what_is_typed_wrongly_is_one_clear_sentence_and_exit_2(
    line: str, words: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERFIT_DATA", "")
    monkeypatch.setitem(sys.modules, "ray", None)
    for mark, text in LONG.items():
        line = line.replace(mark, text)
    before = snapshot(folder)
    shown = call(*shlex.split(line), cwd=folder, expect=2)
    [sentence] = [text for text in shown.stderr.splitlines() if not text.startswith("note: ")]
    assert sentence.startswith("overfit: ")
    assert all(part in sentence for part in words.split(" … ")), sentence
    assert len(sentence) < 500
    assert "None" not in sentence
    assert shown.stdout == "" or line.startswith(("sweep", "judge")), "a plan, or the verdicts"
    assert snapshot(folder) == before


def test_too_little_memory_is_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_of_sweep, "make_plan", mock.Mock(side_effect=MemoryError))
    done = call(*["sweep", "toy", "--n=1:3", "--jobs=1"], cwd=tmp_path, expect=1)
    assert done.stderr == (
        "overfit: it needs more memory than there is; what was written is kept.\n"
    )
