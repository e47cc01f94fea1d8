"""The caption beside a figure: what it shows, of which cells, with which settings and commands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import overfit_cli
from overfit_cli import __version__
from overfit_cli.core.figure import HEATMAP, Figure, defaults_but
from overfit_cli.core.study import FigureData
from overfit_cli.figures.caption import caption
from tests.command import call
from tests.fake_study import LAW, NS, OPTIONS, SNRS, data_of, draw_heatmap, fake_cells


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep of which every other row fails, in `out`, and one more in `more`."""
    folder = tmp_path_factory.mktemp("captions")
    grid = ("--n=1:4", "--snr=1:3:3", "--set=mood=diverges", "--seeds=2", "--jobs=1")
    call("sweep", "toy", *grid, "--out=out", cwd=folder, expect=1)
    call("sweep", "toy", "--n=1:4", "--snr=1:3:3", "--jobs=1", "--out=more", cwd=folder)
    return folder


WHOLE = f"""\
Test loss over signal-to-noise ratio and samples N: median of 2 seeds. 12 cells (diverged) count
as beyond the others, all at the 6 hatched points, where half of the seeds or more have no
number. Line: snr = N / 2.

Cells: 12 cells done, 12 diverged; seeds 0, 1. Axes: N (n) 1, 2, 3, 4; snr 1, 2, 3.

Settings: toy (Nobody 2024), version 1: pause 0, mood diverges.

Commands:
  overfit sweep toy --n=1:4 --snr=1:3:3 --set=mood=diverges --seeds=2 --jobs=1 --out=out
  overfit plot heatmap --from out --law 'snr = n / 2' --out pictures/a.png

overfit {__version__}
"""


def test_a_caption_says_how_the_figure_was_made(folder: Path) -> None:
    law = ("--law", "snr = n / 2")
    done = call("plot", "heatmap", "--from", "out", *law, "--out", "pictures/a.png", cwd=folder)
    assert done.stdout == "Drawn: pictures/a.png, and its caption in a.txt\n"
    assert sorted(path.name for path in (folder / "pictures").iterdir()) == ["a.png", "a.txt"]
    assert (folder / "pictures" / "a.txt").read_text() == WHOLE


@pytest.mark.slow
def test_a_figure_of_several_runs_names_all_commands_and_is_named_after_both(folder: Path) -> None:
    done = call("plot", "heatmap", "--from", "out", "--from", "more", cwd=folder).stdout
    assert "Drawn: out/figures/heatmap-with-more.png" in done
    text = (folder / "out" / "figures" / "heatmap-with-more.txt").read_text()
    commands = text[text.index("Commands:") :].splitlines()[1:4]
    assert [line.split()[-1] for line in commands] == ["--out=out", "--out=more", "more"]
    assert "run directory out, more" in text
    done = call("plot", "heatmap", "--from", "more", "--minus", "out", cwd=folder).stdout
    assert "Drawn: more/figures/heatmap-minus-out.png" in done
    text = (folder / "more" / "figures" / "heatmap-minus-out.txt").read_text()
    assert text.startswith("Test loss: well − diverges (what goes wrong) over")
    assert "--out=more" in text
    assert "--out=out" in text


def test_python_has_the_caption_at_hand_and_types_no_command(folder: Path) -> None:
    figure = overfit_cli.draw("heatmap", folder / "out", out=folder / "b.svg")
    assert (folder / "b.txt").read_text() == figure.caption
    assert "overfit plot" not in figure.caption
    overfit_cli.sweep("toy", n=[1, 2], snr=[1, 2], out=folder / "python", jobs=1, quiet=True)
    assert "Commands" not in overfit_cli.draw("heatmap", folder / "python").caption


def test_the_default_figures_caption_lies_beside_it_and_is_the_same_each_time(folder: Path) -> None:
    texts = []
    for _ in range(2):
        call("plot", "heatmap", "--from", "out", cwd=folder)
        assert (folder / "out" / "figures" / "heatmap.png").is_file()
        texts.append((folder / "out" / "figures" / "heatmap.txt").read_text())
    assert texts[0] == texts[1]
    assert all(len(line) <= 96 for line in texts[0].splitlines() if line[:1] != " ")


# Its parts


def written(data: FigureData, **options: object) -> str:
    picture = draw_heatmap(data, replace(OPTIONS, **options))  # type: ignore[arg-type]
    return " ".join(caption(HEATMAP, picture, data, []).split())


SMALL = fake_cells([1, 2], [1.0, 2.0])


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (
            fake_cells(NS, SNRS, seeds=4),
            "seeds 0 to 3. Axes: N (n) 10 values from 2 to 20; SNR (snr) 25 values from 1 to 25. "
            "Settings: fake (Nobody 2024), version 1: width 64, kernel softmax.",
        ),
        (SMALL.assign(seed=2 * SMALL["seed"]), "seeds 0, 2, 4."),
        (
            SMALL[SMALL["seed"] == 0],
            "training samples N: one seed. Cells: 4 cells done; seeds 0. Axes",
        ),
        (
            SMALL.assign(status=np.where(SMALL["seed"] == 1, "failed", "done")),
            "Cells: 8 cells done, 4 failed; seeds 0 to 2.",
        ),
    ],
)
def test_seeds_axes_and_cells_that_failed_are_told_in_short(cells: pd.DataFrame, told: str) -> None:
    assert told in written(data_of(cells))


def test_facts_are_in_plain_unicode() -> None:
    text = written(data_of(fake_cells(NS, SNRS)), law=(LAW, "n = sqrt(snr + 1)"))
    assert "Line: N·SNR² = 1000. Dashed line: N = √(SNR + 1)." in text
    assert "$" not in text
    assert "\\" not in text


def test_a_figure_of_a_paper_names_its_source() -> None:
    data = data_of(SMALL)
    figure = replace(HEATMAP, source="figure 1 of Nobody 2024")

    def told(figure: Figure) -> str:
        return " ".join(caption(figure, draw_heatmap(data, OPTIONS), data, []).split())

    assert "mean of 3 seeds. After figure 1 of Nobody 2024." in told(figure)
    assert "After" not in told(replace(figure, reproduces=defaults_but("n")))
    assert "of Nobody 2024." in told(replace(figure, reproduces=defaults_but("n", "snr")))


def test_a_figure_wider_than_a_column_says_so() -> None:
    full = "For the full width of a page."
    assert full not in written(data_of(SMALL))
    wide = pd.concat([SMALL, SMALL.assign(width=128, key=SMALL["key"] + "w")])
    assert full in written(data_of(wide), by="width")
