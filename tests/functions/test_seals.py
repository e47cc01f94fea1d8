"""Claims of one's own are sealed before their cells, and a change afterwards is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from overfit_cli.sweeps.manifest import NO_MANIFEST, Run, read_manifest
from tests.command import call, run
from tests.functions.mine import told, written

FILE = """
import numpy as np
from overfit_cli import experiment

@experiment(claims={claims})
def train(n: int = 10, seed: int = 0):
    noise = np.random.default_rng([n, seed]).normal()
    return {{"error": float(np.exp(0.01 * noise) / n)}}
"""
NARROW = "inverse: power of n in error is -1 within 0.0001"
WIDE = "inverse: power of n in error is -1 within 0.5"
SMALL = "small: error < 0.2"
LOW = "low: error < 0.2"
SWEEP = ("sweep", "decay.py", "--n", "10,20,40", "--jobs=1")


def state(folder: Path, *claims: str) -> None:
    """Write the function's file with these claims."""
    written(folder, FILE.format(claims=[*claims]), "decay.py")


def sweep(folder: Path, seeds: int, *more: str, out: str = "out") -> str:
    return run(*SWEEP, f"--seeds={seeds}", f"--out={out}", *more, cwd=folder).stdout


def report(folder: Path) -> str:
    return told(folder, "report", "out", "--details")


def judge(folder: Path, *claims: str) -> str:
    return told(folder, "judge", "out", *claims)


@pytest.mark.slow
def test_further_looks_share_half_of_the_error(tmp_path: Path) -> None:
    state(tmp_path, SMALL)
    for seeds, level in ((6, "95 % by order"), (6, "95 % by order"), (8, "98.75 % by order")):
        sweep(tmp_path, seeds)
        assert f"{level} over {seeds} seeds" in report(tmp_path)
    sweep(tmp_path, 12)
    text = report(tmp_path)
    assert "99.38 % by order over 12 seeds" in text
    assert "Seeds were added 2 times, so that intervals have the level 99.38 %." in text


@pytest.mark.parametrize(
    ("runs", "further"),
    [
        ([((1,), seeds) for seeds in ((0, 1), (1, 0), (0, 1, 2), (5,), (5, 0))], [0, 0, 1, 2, 2]),
        ([((1, 2), (0, 1)), ((3,), (0, 1, 2)), ((2, 3), (3,))], [0, 0, 1]),
        ([((1, 2), (0, 1)), (("2*m",), (0, 1, 2))], [0, 1]),  # an expression may be any value
    ],
)
def test_a_look_is_further_where_it_has_new_seeds_at_a_setting_of_before(
    runs: list[Any], further: list[int]
) -> None:
    made = list[Run]()
    for n, seeds in runs:
        derived = ("n",) * ("2*m" in n)
        made.append(Run.model_construct(values={"n": n}, seeds=seeds, derived=derived))
    for count, looks in enumerate([0, *further]):
        manifest = NO_MANIFEST.model_copy(update={"runs": tuple(made[:count])})
        assert manifest.further_looks == looks


@pytest.mark.slow
def test_a_claim_that_is_changed_added_or_removed_after_a_cell_says_so(tmp_path: Path) -> None:
    state(tmp_path, NARROW, SMALL)
    sweep(tmp_path, 6)
    assert read_manifest(tmp_path / "out").wordings == {"inverse": NARROW[9:], "small": SMALL[7:]}
    state(tmp_path, WIDE, SMALL)
    words = f"This claim was changed after the first cell was trained. It was: '{NARROW[9:]}'."
    judged = judge(tmp_path)
    assert judged.count(words) == 1
    assert "inverse ours holds" in judged
    assert words in report(tmp_path)
    files = tmp_path / "results" / "report"
    claims = json.loads((files / "claims.json").read_text())["claims"]
    assert [words in claim["note"] for claim in claims] == [True, False]
    assert words in (files / "report.md").read_text()
    short = call("report", "out", cwd=tmp_path).stdout
    assert "\nChanged after the first cell was trained (see --details): inverse.\n" in short
    state(tmp_path, SMALL, "new: error > 0.001")
    judged = judge(tmp_path)
    assert judged.count("This claim was added after the first cell was trained.") == 1
    assert "inverse ours inconclusive" in judged
    removed = "This claim was removed after the first cell was trained; it is judged as it was then"
    assert removed in judged
    state(tmp_path, NARROW.replace("inverse", "renamed"), SMALL)
    assert "after the first cell" not in judge(tmp_path)
    assert "after the first cell" not in judge(tmp_path, SMALL[7:])
    state(tmp_path, WIDE, SMALL)
    sweep(tmp_path, 6, "--fresh")  # cells that run again keep the seals of the first
    judged = judge(tmp_path)
    assert "This claim was changed after the first cell was trained." in judged
    assert "95 % by order over 6 seeds" in judged


PRESET = """
title = "Decay"
study = "decay.py"
set.n = "10,20"
quick = {{ seeds = 8 }}
[claims]
{claims}
"""


@pytest.mark.slow
def test_the_claims_of_a_preset_are_sealed_too_beside_those_of_its_user(tmp_path: Path) -> None:
    state(tmp_path)
    claims = 'small = "error < 0.05 where n = 10"\nlow = "error < 1"'
    preset = written(tmp_path, PRESET.format(claims=claims), "decay.toml")
    stated = ("--claim", "mine: error < 0.2")
    run("sweep", "decay.toml", "--jobs=1", "--out=out", *stated, cwd=tmp_path)
    preset.write_text(PRESET.format(claims='small = "error < 0.2"'))
    words = judge(tmp_path)
    assert all(f"{name} ours holds" in words for name in ("mine", "small", "low"))
    assert "It was: 'error < 0.05 where n = 10'." in words
    assert "This claim was removed after the first cell was trained" in words
    preset.write_text(PRESET.format(claims='small = "error is low"'))
    refused = call("judge", "out", cwd=tmp_path, expect=2).stderr
    assert "decay.toml: claims.small: it has no form of a claim." in " ".join(refused.split())
    preset.unlink()
    words = judge(tmp_path)
    assert "small ours fails" in words
    assert "after the first cell" not in words


@pytest.mark.slow
def test_a_claim_that_is_stated_with_a_sweep_is_judged_too(tmp_path: Path) -> None:
    state(tmp_path, SMALL)
    stated = ("--claim", LOW, "--claim=error falls along n")
    assert "Next: overfit judge out\n" in sweep(tmp_path, 8, *stated)
    manifest = read_manifest(tmp_path / "out")
    assert manifest.stated == {"low": LOW[5:], "error-falls-along-n": "error falls along n"}
    assert {"low", "error-falls-along-n", "small"} == (manifest.claims or {}).keys()
    words = judge(tmp_path)
    assert "low ours holds" in words
    assert "error-falls-along-n ours holds" in words
    assert "after the first cell" not in words
    assert "low" in call("runs", "out", cwd=tmp_path).stdout
    sweep(tmp_path, 9, *stated)
    for claim in ("error < 0.3", "low: error < 0.3"):
        refused = call(*SWEEP, "--claim", claim, "--out=out", cwd=tmp_path, expect=2).stderr
        assert refused.startswith("overfit: --claim ")
        assert "out was begun without it; name another directory" in refused


def test_a_dry_run_says_how_many_seeds_would_decide_a_claim(tmp_path: Path) -> None:
    state(tmp_path, SMALL)
    near = "near: error is 0.1 within 0.0006 where n = 10"
    dry = ("--dry-run", "--claim", near)
    first = sweep(tmp_path, 3, *dry, "--claim", "best: error[best n] < 1")
    needs = "It needs cells where n = 10. 6 seeds or more could decide it; this sweep has 3.\n"
    assert f"near: {needs}" in first
    assert "best: It needs 2 values of n or more." in first
    assert "small: It needs any cells. 6 seeds or more could decide it" in first
    sweep(tmp_path, 10)
    again = sweep(tmp_path, 10, *dry)
    assert "near: inconclusive in out.\n" in again
    assert " seeds to decide it with a probability of 90 %" in again
    assert "small: holds in out.\n" in again


@pytest.mark.slow
def test_a_claim_that_is_judged_on_other_cells_than_those_of_its_seal_says_so(
    tmp_path: Path,
) -> None:
    state(tmp_path, "late: error < 0.06 where n >= 20")
    sweep(tmp_path, 6)
    assert "late ours holds where n >= 20 " in judge(tmp_path)
    assert "sealed for other cells" not in judge(tmp_path)
    alone = told(tmp_path, "judge", "out", "--where", "n=20")
    sealed = "It was sealed for other cells: seed 0 to 5; n 20, 40."
    assert "not as sealed" in alone
    assert sealed in alone
    more = ("--n", "10,15", "--jobs=1", "--seeds=6", "--out=out")
    run("sweep", "decay.py", *more, cwd=tmp_path)  # the claim is about neither
    assert "not as sealed" not in judge(tmp_path)
    sweep(tmp_path, 9)
    assert f"{sealed} Judged on those alone: holds." in judge(tmp_path)
    assert "not as sealed" in judge(tmp_path)


def test_a_seed_that_changes_nothing_is_told_after_the_sweep_and_asks_for_no_more(
    tmp_path: Path,
) -> None:
    written(tmp_path, FILE.format(claims="[]").replace("[n, seed]", "n"), "decay.py")
    said = "Seeds 1 to 5 repeat all numbers of another seed"
    assert said in sweep(tmp_path, 6)
    judged = judge(tmp_path, SMALL)
    assert said in judged
    assert "--seeds" not in judged
