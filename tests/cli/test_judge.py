"""`overfit judge`: verdicts, what is lost, and commands that decide."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import overfit_cli
from tests.command import call
from tests.toy_runs import put

FILE = '''
import numpy as np
from overfit_cli import experiment

@experiment(claims=[
    "inverse: power of n in error is -1 within {within}",
    "error < 0.2",
])
def train(n: int = 10, seed: int = 0):
    """Errors that fall as 1/n."""
    noise = np.random.default_rng([n, seed]).normal()
    return {{"error": float(np.exp(0.01 * noise) / n)}}
'''
DECAY = FILE.format(within=0.1)
BROKEN = """
from pathlib import Path

def train(n: int = 10, seed: int = 0):
    if n == 20 and seed == 2:
        Path("mended").read_text()
    return {"error": (1 + 0.01 * seed) / n}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the function's file, and its run of ten seeds."""
    path = tmp_path_factory.mktemp("judged")
    sweep(path, "--n=10,20,40", "--seeds=10")
    return path


def sweep(folder: Path, *options: str, text: str = DECAY, expect: int = 0) -> str:
    """Write the function's file and sweep it, into `results/decay-n` if n varies alone."""
    (folder / "decay.py").write_text(text)
    return call("sweep", "decay.py", *options, "--jobs=1", cwd=folder, expect=expect).stdout


def said(folder: Path, *arguments: str, expect: int = 0) -> str:
    """What `overfit judge` prints, in one line."""
    return " ".join(call("judge", *arguments, cwd=folder, expect=expect).stdout.split())


def judged_twice(folder: Path, *arguments: str) -> tuple[str, list[str], str]:
    """What is said, the commands that are proposed, and what is said once they were run."""
    before = call("judge", *arguments, cwd=folder, expect=(0, 1)).stdout
    commands = re.findall(r"^Next: overfit (.*)$", before, re.MULTILINE)
    for command in commands:
        call(*shlex.split(command), "--jobs=1", cwd=folder)
    return " ".join(before.split()), commands, said(folder, *arguments)


def test_claims_of_the_function_and_of_the_shell_have_verdicts_intervals_and_rates_of_error(
    folder: Path,
) -> None:
    words = said(folder, "results/decay-n")
    assert "inverse ours holds −" in words and "error-lt-0.2 ours holds" in words
    assert "added after" not in words
    words = said(folder, "results/decay-n", "error < 0.03 where n >= 20", "error falls along n")
    for told in (
        "error-lt-0.03-where-n-ge-20 ours fails",
        "95 % by order over 10 seeds",
        "The worst is at n=20.",
        "10 cells are left out because the claim excludes them.",
        "With 10 seeds it would hold in",
    ):
        assert told in words
    assert words.count("This claim was added after the first cell was trained.") == 2
    words = said(folder, "results/decay-n", "error < 0.2", "--where", "n=10:20")
    assert "Only cells with n=10:20 are judged. " in words
    assert "Judged on 2 settings (n 10, 20) and 10 seeds (0 to 9)." in words


def test_the_proposed_command_adds_the_seeds_that_decide(tmp_path: Path) -> None:
    """The verdict is then given at the level of a further look, for which they are enough.

    The seeds that were sealed are fewer.
    """
    sweep(tmp_path, "--n=10,20,40", "--seeds=3")
    before, [command], after = judged_twice(tmp_path, "results/decay-n", "error-lt-0.2")
    assert "inconclusive" in before and "takes 8 seeds to decide it with a probab" in before
    assert command == "sweep decay.py:train --set n=10,20,40 --seeds 8 --out results/decay-n"
    cells = overfit_cli.load(tmp_path / "results/decay-n")
    assert sorted(cells["seed"].unique()) == list(range(8))
    assert "error-lt-0.2 ours holds, not as sealed " in after
    assert re.search(r" error-lt-0.2: .* 98.75 % by order over 8 seeds\. ", after)
    assert "Next:" not in after


@pytest.mark.slow
def test_of_claims_that_are_open_together_one_command_decides_all(tmp_path: Path) -> None:
    sweep(tmp_path, "--n=10,20,40", "--seeds=6")
    judged = ("results/decay-n", "error < 0.2", "error < 1", "error > 0", "--strict")
    before, [_], after = judged_twice(tmp_path, *judged)
    assert "error-lt-0.2 ours inconclusive, by itself holds" in before
    assert "takes 9 seeds to decide it with a probability of 90 % at the level of 3 ver" in before
    assert "error-lt-0.2 is inconclusive" in before
    assert "Next:" not in after


def test_cells_that_are_absent_or_failed_are_named_and_run_by_the_proposed_command(
    tmp_path: Path,
) -> None:
    sweep(tmp_path, "--n=10,20", "--seeds=6", text=BROKEN, expect=1)
    sweep(tmp_path, "--n=40", "--seeds=6", "--out=results/decay-n", text=BROKEN)
    for part in (tmp_path / "results/decay-n/cells").glob("*.parquet"):
        table = pq.read_table(part)
        put(part.parent, table.filter(pc.less(table["n"], 40)))
        part.unlink()
    words = said(tmp_path, "results/decay-n", "error < 1")
    assert "error-lt-1 ours inconclusive" in words
    assert "Judged on 3 settings (n 10, 20, 40) and 6 seeds (0 to 5)." in words
    lost = "Lost: 7 cells (n=20, seed 2; n=40, seeds 0 to 5): 6 absent; 1 error: FileNotFoundError"
    assert lost in words
    (tmp_path / "mended").touch()
    _, commands, after = judged_twice(tmp_path, "results/decay-n", "error < 1")
    assert all("--retry-failed" in command for command in commands)
    assert "error-lt-1 ours holds" in after and "Lost:" not in after


def test_values_that_a_claim_needs_are_in_the_proposed_command(tmp_path: Path) -> None:
    sweep(tmp_path, "--set=n=15", "--seeds=6")
    claim = ("results/decay-n15", "error[n=20] < error[n=15]")
    before, [command], after = judged_twice(tmp_path, *claim)
    assert "no cell has that; there is 15." in before
    assert command == "sweep decay.py:train --set n=20 --seeds 6 --out results/decay-n15"
    assert "ours holds" in after
    axis = said(tmp_path, "results/decay-n15", "error falls along n where n > 50")
    assert "Put values in place of RANGE: Next: overfit sweep decay.py:train --set n=RANGE" in axis


@pytest.mark.parametrize(
    "sweeps",
    [
        ["--n=10 --m=1,2", "--n=20 --m=1"],
        ["--n=10,20 --m=1,2 --together=n,m"],
        ["--set=n=10,20 --m=1,2 --only=n*m<25"],
    ],
)
def test_settings_that_brackets_take_and_no_sweep_has_are_absent_and_proposed(
    tmp_path: Path, sweeps: list[str]
) -> None:
    text = DECAY.replace("n: int", "m=1, n: int")
    for options in sweeps:
        sweep(tmp_path, *options.split(), "--seeds=8", "--out=ragged", text=text)
    before, commands, after = judged_twice(tmp_path, "ragged", "error[n=20] < error[n=10]")
    assert re.search(r"Lost: .*cells \(.*n=20, seeds 0 to 7", before)
    assert re.search("n=[0-9,]*20", commands[-1])
    assert not re.search("--together|--only", commands[-1])
    assert "ours holds" in after and "Next:" not in after


def test_a_run_that_lies_elsewhere_is_proposed_with_the_path_of_its_function(
    tmp_path: Path,
) -> None:
    sweep(tmp_path, "--n=10,20,40", "--seeds=3", "--out=typed")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    _, [command], after = judged_twice(elsewhere, "../typed", "error < 1")
    place = f"sweep {tmp_path / 'decay.py'}:train --set n="
    assert command.startswith(place) and command.endswith(" --out ../typed")
    assert " ours holds" in after


def test_a_function_without_seeds_is_decided_by_its_cells(tmp_path: Path) -> None:
    text = BROKEN.replace(", seed: int = 0", "").replace(" and seed == 2", "")
    sweep(tmp_path, "--n=10,20,40", text=text.replace("0.01 * seed", "0"), expect=1)
    (tmp_path / "mended").touch()
    claims = ("error falls along n", "error[n=80] < 1")
    before, _, after = judged_twice(tmp_path, "results/decay-n", *claims)
    assert "Judged on 3 settings (n 10, 20, 40). " in before
    assert "Lost: 1 cell (n=20): 1 error: FileNotFoundError" in before
    assert "seeds decide" not in before
    assert after.count("ours holds") == 2 and "Next:" not in after


@pytest.mark.slow
def test_a_refined_run_is_decided_by_a_sweep_of_its_grid(tmp_path: Path) -> None:
    refined = ("--n=10:40:4", "--m=1,2,3", "--refine=1", "--threshold=0.06", "--seeds=3")
    sweep(tmp_path, *refined, "--out=refined", text=DECAY.replace("n: int", "m=1.0, n: int"))
    before, [command], _ = judged_twice(tmp_path, "refined", "error falls along n")
    assert "Refining leaves out cells far from the boundary" in before
    assert command.endswith(" --out refined-grid")
    assert not re.search("--refine|--threshold", command)
    assert "ours holds" in said(tmp_path, "refined-grid", "error falls along n")


def test_verdicts_are_written_as_those_of_a_report(folder: Path) -> None:
    printed = call("judge", "results/decay-n", "error < 0.2", "--json=-", cwd=folder).stdout
    [record] = json.loads(printed)["claims"]
    assert (record["claim"], record["verdict"]) == ("error-lt-0.2", "holds")
    assert "With 10 seeds it would hold in" in record["note"]
    done = call("judge", "results/decay-n", "error < 0.2", "--json=v.json", cwd=folder).stdout
    assert done.endswith("Written: v.json\n")
    assert (folder / "v.json").read_text() == printed
    said(folder, "results/decay-n", "error < 0.05", "--strict", expect=1)


def test_claims_are_drawn_beside_their_caption(folder: Path, tmp_path: Path) -> None:
    words = said(folder, "results/decay-n", "--strict", "--out", str(tmp_path / "claims.svg"))
    assert "Drawn:" in words
    assert "power of n in error is -1 within 0.1" in (tmp_path / "claims.svg").read_text()
    caption = " ".join((tmp_path / "claims.txt").read_text().split())
    assert "power of n in error is -1 within 0.1: holds, −" in caption


def test_a_functions_claim_about_a_column_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """Its columns are known once a cell is trained: the sweep says so, and `judge` refuses."""
    misspelt = DECAY.replace("error < 0.2", "eror falls along n")
    refusal = "'eror' is no name here; did you mean 'error'?"
    swept = sweep(tmp_path, "--n=10,20,40", "--seeds=6", text=misspelt)
    assert refusal in " ".join(swept.split())
    assert refusal in call("judge", "results/decay-n", cwd=tmp_path, expect=2).stderr
    (tmp_path / "decay.py").write_text(misspelt.replace("eror", "error"))
    mended = said(tmp_path, "results/decay-n")
    assert "error-falls-along-n" in mended and "eror-falls-along-n" not in mended
