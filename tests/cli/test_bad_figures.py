"""Every option of a figure that is given wrongly is one sentence, exit 2, and no file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import call

EXPERIMENT = """
def train(n: int = 10, snr: float = 1.0, kind: str = "a", seed: int = 0) -> dict[str, float]:
    if kind == "broken":
        raise RuntimeError("it broke")
    loss = (1 + seed) / (1 + n * snr**2)
    for step in range(3):
        yield {"train_loss": loss / (1 + step)}
    return {"test_loss": loss, "nothing": 0.0}
"""
GRID = ("--snr=0.5:2:4", "--seeds=2", "--jobs=1", "--trajectories")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sweeps in `out` and `other` (which shares no n with it), `toy`, and one of failed cells."""
    folder = tmp_path_factory.mktemp("figures")
    (folder / "mine.py").write_text(EXPERIMENT)
    call("sweep", "mine.py", "--n=2:4", *GRID, "--out=out", cwd=folder)
    call("sweep", "mine.py", "--n=5:7", *GRID, "--out=other", cwd=folder)
    broken = ("--set=kind=broken", "--out=broken")
    call("sweep", "mine.py", "--n=2:3", *GRID, *broken, cwd=folder, expect=1)
    call("sweep", "toy", "--n=1:2", "--set=mood=well,prints", "--jobs=1", "--out=toy", cwd=folder)
    (folder / "bad.mplstyle").write_text("font.size: big")
    (folder / "unknown.mplstyle").write_text("fnt.size: 8")
    (folder / "good.mplstyle").write_text("font.size: 9")
    return folder


HEATMAP = "plot heatmap --from out"
BAD = [
    # How it looks
    (f"{HEATMAP} --size 3x", "--size 3x: it takes column, page, or WIDTHxHEIGHT in inches"),
    (f"{HEATMAP} --size 99x3", "--size 99x3: both sides are at least 0.5 and up to 60 inches."),
    (f"{HEATMAP} --size 0.5x0.5", "--size 0.5x0.5: the figure needs more room, such as --size pa"),
    (f"{HEATMAP} --log z", "--log z: it takes some of x, y, value, separated by commas, or none."),
    (f"{HEATMAP} --log value --value nothing", "--log value: the least number drawn is 0, which"),
    (f"{HEATMAP} --style none.mplstyle", "--style none.mplstyle: there is no such file; it takes"),
    (f"{HEATMAP} --style out", "--style out: there is no such file; it takes a .mplstyle file."),
    (f"{HEATMAP} --style bad.mplstyle", "--style bad.mplstyle: it is no matplotlib style sheet"),
    (f"{HEATMAP} --style unknown.mplstyle", "Bad key fnt.size, line 1"),
    # What it shows
    (f"{HEATMAP} --law n=3 --law none", "--law n=3: none leaves out every equation; give one of"),
    (f"{HEATMAP} --law n=3 --law n=", "--law n=: it takes one equation in n and snr"),
    (f"{HEATMAP} --band sd", "--band sd: heatmap has no such option; it accepts by, "),
    (
        "plot lines --from out --x snr --band std",
        "--band std: it takes interval, sd, quartiles or",
    ),
    (
        "plot lines --from out --x snr --log y,value,z",
        "--log y,value,z: it takes some of x",
    ),
    ("list nope", "KIND|STUDY nope: it takes studies, presets, figures or claims; or a"),
    (f"{HEATMAP} --band sd", "--band sd: heatmap has no such option; it accepts by"),
    ("plot curves --from out --law n=3", "--law n=3: curves has no such option; it accepts"),
    ("plot curves --from out --law none", "--law none: curves has no such option; it accepts"),
    ("plot boundary --from out --threshold 99", "--threshold 99: test loss crosses it nowhere on"),
    ("plot boundary --from out --threshold 99", "it stays at or below throughout."),
    # Several run directories
    (f"{HEATMAP} --from nowhere", "--from nowhere: there is no such directory"),
    (f"{HEATMAP} --from out", "--from out: a run directory is named twice."),
    (f"{HEATMAP} --from toy", "--from toy: mine:train has no parameter 'mood', which varies"),
    (f"{HEATMAP} --minus nowhere", "--minus nowhere: there is no such directory"),
    (f"{HEATMAP} --minus out", "a run directory is named twice."),
    (
        f"{HEATMAP} --minus other",
        "--minus other: no cell of it has the seed and the values of n, s",
    ),
    (f"{HEATMAP} --from other --minus toy", "--minus: it subtracts from one run directory; name"),
    ("plot boundary --from out --minus other", "--minus other: boundary has no such option"),
    ("plot curves --from out --minus other", "--minus other: curves has no such option"),
    # Nothing to draw
    ("plot heatmap --from broken", "mine:train has measured nothing here: no cell is done."),
    ("plot lines --from broken --x n", "mine:train has measured nothing here: no cell is done."),
    ("plot curves --from broken", "--from broken: it holds no trajectories, which curves requires"),
    (f"{HEATMAP} --where n=99", "--where n=99: no cell has that; there is 2, 3, 4."),
]


@pytest.mark.parametrize(("line", "words"), BAD)
def test_it_is_one_sentence_and_draws_nothing(line: str, words: str, folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    out = ("--out=drawn.png",) if line.startswith("plot") else ()
    shown = call(*line.split(), *out, cwd=folder, expect=2)
    [sentence] = [text for text in shown.stderr.splitlines() if not text.startswith("note: ")]
    assert sentence.startswith("overfit: ")
    assert words in sentence
    assert shown.stdout == ""
    assert sorted(folder.rglob("*")) == before


@pytest.mark.slow
def test_the_same_options_given_rightly_draw(folder: Path) -> None:
    """So that none of the refusals above is for another reason."""
    right: tuple[str, ...] = ("--size=80x60mm", "--log=x,value")
    right += ("--law=n=3", "--law=n = 1 / snr", "--style=good.mplstyle", "--where=n=2:5")
    done = call(*HEATMAP.split(), *right, "--from=other", "--out=right.png", cwd=folder)
    assert "Drawn: right.png, and its caption in right.txt" in done.stdout
    for line in (
        "lines --x snr --band seeds",
        "lines --x snr --mean median",
        "curves --band seeds --by n",
    ):
        call("plot", *line.split(), "--from=out", "--out=right.png", cwd=folder)
