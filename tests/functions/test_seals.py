"""Claims of one's own are sealed before their cells, and a change afterwards is said."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from overfit_cli.claims.seals import count_further_looks
from overfit_cli.sweeps.manifest import read_manifest
from tests.command import call, run

FILE = """
import numpy as np
from overfit_cli import Claim, experiment
from overfit_cli.claims.cells import require_done
from overfit_cli.claims.rules import Margin, judge_estimate
from overfit_cli.core.claim import inconclusive
from overfit_cli.stats.boundaries import seeds_exponents
from overfit_cli.stats.intervals import mean_estimate

ABOUT = Margin({margin}, because="a tenth")

def power(cells):
    powers = seeds_exponents(require_done(cells), ["n"], "error")
    if powers is None:
        raise inconclusive("one value of n")
    return judge_estimate(mean_estimate(powers["n"]), ABOUT)

CLAIM = Claim(
    name="inverse",
    source="mine",
    statement="The error falls as 1/n.",
    holds_where=ABOUT.in_words("the power of n"),
    measure=power,
)

@experiment(claims=[CLAIM])
def train(n: int = 10, seed: int = 0):
    noise = np.random.default_rng([n, seed]).normal()
    return {{"error": float(np.exp(0.01 * noise) / n)}}
"""
GRID = ("--n", "10,20,40")


def write(folder: Path, margin: str = "-1.1, -0.9") -> None:
    (folder / "decay.py").write_text(FILE.format(margin=margin))


def sweep(folder: Path, seeds: int) -> None:
    run("sweep", "decay.py", *GRID, f"--seeds={seeds}", "--jobs=1", cwd=folder)


def report(folder: Path) -> str:
    command = ("report", "results/decay-n", "--details")
    return " ".join(call(*command, cwd=folder).stdout.split())


@pytest.mark.slow
def test_a_claim_that_changed_is_named_by_the_report(tmp_path: Path) -> None:
    write(tmp_path)
    sweep(tmp_path, 6)
    write(tmp_path, "-1.5, -0.5")
    assert "This claim was changed after the first cell was trained." in report(tmp_path)
    short = call("report", "results/decay-n", cwd=tmp_path).stdout
    assert "\nChanged after the first cell was trained (see --details): inverse.\n" in short


@pytest.mark.slow
def test_further_looks_share_half_of_the_error(tmp_path: Path) -> None:
    write(tmp_path)
    sweep(tmp_path, 5)
    assert "95 % t over 5 seeds" in report(tmp_path)
    sweep(tmp_path, 5)
    assert "95 % t over 5 seeds" in report(tmp_path)
    sweep(tmp_path, 8)
    sweep(tmp_path, 12)
    text = report(tmp_path)
    assert "99.38 % t over 12 seeds" in text
    assert "Seeds were added 2 times, so that intervals have the level 99.38 %." in text
    manifest = read_manifest(tmp_path / "results" / "decay-n")
    assert manifest
    assert manifest.further_looks == 2
    assert list(manifest.claims or {}) == ["inverse"]


def test_a_look_is_further_where_it_has_new_seeds() -> None:
    assert count_further_looks([]) == count_further_looks([[0, 1]]) == 0
    assert count_further_looks([[0, 1], [1, 0], [0, 1, 2], [5], [5, 0]]) == 2


SENTENCES = """
import numpy as np
from overfit_cli import experiment

@experiment(claims={claims!r})
def train(n: int = 10, seed: int = 0):
    noise = np.random.default_rng([n, seed]).normal()
    return {{"error": float(np.exp(0.01 * noise) / n)}}
"""
NARROW = "inverse: power of n in error is -1 within 0.0001"
WIDE = "inverse: power of n in error is -1 within 0.5"
SMALL = "small: error < 0.2"


def state(folder: Path, *claims: str) -> None:
    """Write the function's file with these claims."""
    (folder / "decay.py").write_text(SENTENCES.format(claims=list(claims)))


def judge(folder: Path, *arguments: str) -> str:
    said = call("judge", "results/decay-n", *arguments, cwd=folder).stdout
    return " ".join(said.split())


@pytest.mark.slow
def test_a_margin_that_is_moved_after_the_run_shows_everywhere_with_what_it_was(
    tmp_path: Path,
) -> None:
    state(tmp_path, NARROW, SMALL)
    sweep(tmp_path, 6)
    manifest = read_manifest(tmp_path / "results" / "decay-n")
    assert manifest
    assert manifest.wordings == {"inverse": NARROW[9:], "small": SMALL[7:]}
    state(tmp_path, WIDE, SMALL)
    words = (
        "This claim was changed after the first cell was trained. It was 'power of n in error is "
        "-1 within 0.0001', which is inconclusive."
    )
    judged = judge(tmp_path)
    assert judged.count(words) == 1
    assert "inverse ours holds" in judged
    assert words in report(tmp_path)
    written = tmp_path / "results" / "report"
    claims = json.loads((written / "claims.json").read_text())["claims"]
    assert [words in claim["note"] for claim in claims] == [True, False]
    assert words in (written / "report.md").read_text()
    page = (written / "index.html").read_text()
    assert words.replace("'", "&#39;").replace("-1", "−1") in page


@pytest.mark.slow
def test_a_claim_that_is_added_or_removed_after_the_first_cell_is_judged_and_says_so(
    tmp_path: Path,
) -> None:
    state(tmp_path, NARROW, SMALL)
    sweep(tmp_path, 6)
    state(tmp_path, SMALL, "new: error > 0.001")
    judged = judge(tmp_path)
    assert judged.count("This claim was added after the first cell was trained.") == 1
    assert "inverse ours inconclusive" in judged
    assert (
        "This claim was removed after the first cell was trained; it is judged as it was then."
        in judged
    )
    assert "removed after the first cell" in report(tmp_path)
    state(tmp_path, NARROW.replace("inverse", "renamed"), SMALL)
    assert "after the first cell" not in judge(tmp_path)
    assert "after the first cell" not in judge(tmp_path, SMALL[7:])


def test_claims_of_a_file_that_had_none_are_added(tmp_path: Path) -> None:
    state(tmp_path)
    sweep(tmp_path, 6)
    state(tmp_path, SMALL)
    assert "This claim was added after the first cell was trained." in judge(tmp_path)


def test_cells_that_run_again_keep_the_seals_of_the_first(tmp_path: Path) -> None:
    state(tmp_path, NARROW)
    sweep(tmp_path, 6)
    state(tmp_path, WIDE)
    run("sweep", "decay.py", *GRID, "--seeds=6", "--jobs=1", "--fresh", cwd=tmp_path)
    judged = judge(tmp_path)
    assert "This claim was changed after the first cell was trained." in judged
    assert "95 % by order over 6 seeds" in judged


PRESET = """
title = "Decay"
study = "decay.py"
[claims]
{claims}
[quick]
seeds = 8
set.n = "10,20,40"
"""


def test_the_claims_of_a_preset_are_sealed_too(tmp_path: Path) -> None:
    state(tmp_path)
    preset = tmp_path / "decay.toml"
    preset.write_text(
        PRESET.format(claims='small = "error < 0.05 where n = 10"\nlow = "error < 1"')
    )
    run("sweep", "decay.toml", "--jobs=1", cwd=tmp_path)
    preset.write_text(PRESET.format(claims='small = "error < 0.2"'))
    words = " ".join(call("judge", "results/decay-quick", cwd=tmp_path).stdout.split())
    assert "small ours holds" in words
    assert "It was 'error < 0.05 where n = 10', which fails." in words
    assert "low ours holds" in words
    assert "This claim was removed after the first cell was trained" in words
    preset.write_text(PRESET.format(claims='small = "error is low"'))
    refused = call("judge", "results/decay-quick", cwd=tmp_path, expect=2).stderr
    assert "decay.toml: claims.small: it compares nothing." in " ".join(refused.split())
    preset.unlink()
    words = " ".join(call("judge", "results/decay-quick", cwd=tmp_path).stdout.split())
    assert "small ours fails" in words
    assert "after the first cell" not in words


@pytest.mark.slow
def test_a_planned_cell_that_was_never_run_is_missed(tmp_path: Path) -> None:
    """Absent cells may be the ones that decide: the manifest knows what was planned."""
    write(tmp_path)
    sweep(tmp_path, 6)
    assert "inverse ours holds" in report(tmp_path)
    run("sweep", "decay.py", *GRID, "--seeds=7", "--jobs=1", "--out=more", cwd=tmp_path)
    shutil.copy(tmp_path / "more" / "manifest.json", tmp_path / "results" / "decay-n")
    text = report(tmp_path)
    assert "inverse ours inconclusive" in text
    assert "3 of 21 cells" in text


LOW = "low: error < 0.2"
STATED = ("sweep", "decay.py", *GRID, "--jobs=1", "--claim", LOW)


def test_a_claim_that_is_stated_with_a_sweep_is_judged_like_the_functions_own(
    tmp_path: Path,
) -> None:
    state(tmp_path, SMALL)
    done = call(*STATED, "--claim=error falls along n", "--seeds=8", cwd=tmp_path)
    assert "Next: overfit judge results/decay-n\n" in done.stdout
    manifest = read_manifest(tmp_path / "results" / "decay-n")
    assert manifest
    assert manifest.stated == {"low": LOW[5:], "error-falls-along-n": "error falls along n"}
    assert {"low", "error-falls-along-n", "small"} == (manifest.claims or {}).keys()
    for words in (judge(tmp_path), report(tmp_path)):
        assert "low ours holds" in words
        assert "error-falls-along-n ours holds" in words
        assert "after the first cell" not in words
    assert "low" in call("runs", "results/decay-n", cwd=tmp_path).stdout


def test_a_claim_of_the_same_sweep_again_is_no_other_and_a_new_one_is_refused(
    tmp_path: Path,
) -> None:
    state(tmp_path)
    call(*STATED, "--seeds=1", cwd=tmp_path)
    call(*STATED, "--seeds=2", cwd=tmp_path)
    for claim in ("error < 0.3", "low: error < 0.3"):
        refused = call(*STATED[:-1], claim, "--seeds=2", cwd=tmp_path, expect=2).stderr
        assert refused.startswith("overfit: --claim ")
        assert "results/decay-n was begun without it; name another directory" in refused


def test_claims_of_a_preset_and_of_its_user_stand_beside_each_other(tmp_path: Path) -> None:
    state(tmp_path)
    preset = PRESET.format(claims='small = "error < 0.2"')
    (tmp_path / "decay.toml").write_text(preset)
    call("sweep", "decay.toml", "--jobs=1", "--claim", LOW, cwd=tmp_path)
    words = " ".join(call("judge", "results/decay-quick", cwd=tmp_path).stdout.split())
    assert "small ours holds" in words
    assert "low ours holds" in words
    assert "after the first cell" not in words


def test_a_dry_run_says_how_many_seeds_would_decide_a_claim(tmp_path: Path) -> None:
    state(tmp_path, SMALL)
    near = "near: error is 0.1 within 0.0006 where n = 10"
    dry = ("--dry-run", "--claim", near, "--claim", "best: error[best n] < 1")
    first = call("sweep", "decay.py", *GRID, *dry, cwd=tmp_path).stdout
    needs = "It needs cells where n = 10. 6 seeds or more could decide it; this sweep has 3.\n"
    assert f"near: {needs}" in first
    assert "best: It needs 2 values of n or more." in first
    assert "small: It takes any cells. 6 seeds or more could decide it" in first
    sweep(tmp_path, 10)
    again = call("sweep", "decay.py", *GRID, "--seeds=10", *dry, cwd=tmp_path).stdout
    assert "near: inconclusive in results/decay-n.\n" in again
    assert " seeds to decide it with a probability of 90 %" in again
    assert "small: holds in results/decay-n.\n" in again


@pytest.mark.parametrize(
    ("claims", "sentence"),
    [
        (["error is low"], "it compares nothing"),
        (["error falls along m"], "it takes a parameter that is a number"),
        ([LOW, LOW], "another claim is called so"),
        (["small: error < 1"], "another claim is called so"),
    ],
)
def test_a_claim_that_cannot_be_judged_is_refused_before_anything_runs(
    claims: list[str], sentence: str, tmp_path: Path
) -> None:
    state(tmp_path, SMALL)
    stated = [word for claim in claims for word in ("--claim", claim)]
    assert sentence in call("sweep", "decay.py", *stated, cwd=tmp_path, expect=2).stderr
    assert not (tmp_path / "results").exists()
