"""Output of `overfit report` on a terminal: counts, a table, what is not settled, and the page."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from overfit_cli.cli import judge_and_report
from tests.command import call
from tests.kept import RESULTS
from tests.screen import shown
from tests.terminal import on_a_terminal

NEEDED = ["8"]  # at the level of a further look
"""The seeds that claims on a median need."""

FILE = """
import numpy as np
import overfit_cli

@overfit_cli.experiment(claims=[
    "small: error < 0.2 where n >= 10",
    "smaller: error < 0.05",
    "close: error < 0.05 where n = 20",
])
def train(n: int = 10, seed: int = 0):
    return {"error": (1 + 0.01 * np.random.default_rng(seed).normal()) / n}
"""


def said(folder: Path, *arguments: str, expect: int = 0) -> str:
    return call("report", *arguments, cwd=folder, expect=expect).stdout


def claims_in(folder: Path) -> list[dict[str, str | None]]:
    claims: list[dict[str, str | None]] = json.loads((folder / "claims.json").read_text())["claims"]
    return claims


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a claim that holds, one that fails, and one that is open."""
    folder = tmp_path_factory.mktemp("said")
    (folder / "decay.py").write_text(FILE)
    call("sweep", "decay.py", "--n=10,20,40", "--seeds=8", "--jobs=1", "--out=run", cwd=folder)
    return folder


def test_counts_come_first_then_the_table_then_what_does_not_hold(folder: Path) -> None:
    code, stream = on_a_terminal("report", "run", cwd=folder)
    lines = [line.rstrip() for line in shown(stream) if line]
    starts = [line.split()[:1] for line in lines]
    assert code == 0
    assert starts.index(["paper"]) < starts.index(["claim"]) < starts.index(["smaller:"])
    assert not [line for line in lines if line.startswith("small:")], "it holds"
    assert lines[-3:] == [
        "Written beside the page: report.md, claims.json",
        "1 hold, 1 fail, 1 inconclusive.",
        "Page: results/report/index.html",
    ]
    assert max(map(len, lines)) <= 80
    assert "…" not in stream
    [small] = [line for line in lines if line.startswith("  small ")]
    assert re.fullmatch(r"  small +ours +holds +\S+ \[\S+, \S+\]", small), "a row is one line"


@pytest.mark.slow
def test_too_few_seeds_are_one_sentence_and_the_sweep_that_adds_them(folder: Path) -> None:
    few = ("--n=10,20,40", "--seeds=3", "--jobs=1", "--out=few")
    call("sweep", "decay.py", *few, cwd=folder)
    before = said(folder, "few", "--out=rep")
    [needed] = re.findall(r"^More seeds are needed in few: (.*)\.$", before, re.MULTILINE)
    assert [part.split(" for ")[0] for part in needed.split("; ")] == NEEDED
    assert "∞" not in before
    assert "Holds where" not in before, "a claim that only lacks seeds has no paragraph"
    [command] = re.findall(r"^Next: overfit (.*)$", before, re.MULTILINE)
    assert command.endswith(f"--seeds {NEEDED[-1]} --out few")
    call(*shlex.split(command), cwd=folder)
    assert "More seeds are needed" not in said(folder, "few", "--out=rep")


@pytest.mark.slow
def test_details_describe_what_holds_with_its_level_and_seeds(folder: Path) -> None:
    lines = said(folder, "run", "--details").splitlines()
    [small] = [line for line in lines if line.startswith("small: ")]
    assert re.match(r"small: \d\S* \[.*\] 95 % \w.* over 8 seeds\. ", small)
    assert not [line for line in lines if line.startswith("  ") and "seeds" in line]


def test_an_expected_claim_that_is_not_there_is_named_with_the_one_meant(folder: Path) -> None:
    verdicts = {"small": "holds", "smaller": "fails", "close": "inconclusive", "smal": "holds"}
    stated = [f'{claim} = "{verdict}"' for claim, verdict in verdicts.items()]
    (folder / "expected.toml").write_text("\n".join(['["decay:train"]', *stated]))
    strict = said(folder, "run", "--expect=expected.toml", "--strict", expect=1)
    meant = "decay:train/smal; did you mean decay:train/small?"
    assert f"Expected, but there is no such claim: {meant}\n" in strict
    assert strict == said(folder, "run", "--expect=expected.toml"), "with the code 0"


@pytest.mark.slow
def test_a_strict_report_in_which_nothing_is_judged_is_red_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "expected.toml").write_text('[toy]\ntoy-claim = "not run"\n')
    nothing = said(tmp_path, "--strict", expect=1)
    assert nothing.startswith("No claim was judged: no run directory in results/")
    said(tmp_path)
    (tmp_path / "mine.py").write_text("def train(n: int = 1):\n    return {'loss': 1 / (2 - n)}\n")
    sweep = ("sweep", "mine.py", "--jobs=1")
    call(*sweep, "--out=mine", cwd=tmp_path)
    for how in ([], ["--expect", "expected.toml"]):
        words = said(tmp_path, "mine", "--strict", *how, "--out=r", expect=1)
        assert "mine:train has no claims." in words.splitlines()
    assert "0 of 0 verdicts are as expected.\n" in words
    call(*sweep, "--n=2", "--out=ünë", cwd=tmp_path, expect=1)
    words = said(tmp_path, "ünë", "--out=r")
    assert "ünë: its one cell failed, so there are no numbers to judge.\n" in words
    assert "No claim" not in words


@pytest.mark.slow
def test_without_a_named_run_many_verdicts_are_counted_and_what_fails_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n, name in ((2, "first"), (30, "second")):
        grid = (f"--n={n}", "--seeds=1", "--jobs=1", f"--out=results/{name}")
        call("sweep", "toy", *grid, cwd=tmp_path)
    listed = said(tmp_path, "--out=own")
    assert re.search(r"toy-claim +ours +holds +0\.333", listed)
    assert "need other cells" not in listed
    assert {claim["study"] for claim in claims_in(tmp_path / "own")} == {"toy"}, "it has cells"
    said(tmp_path, "--out=more", "--only=toy", "--only=kernel-text")
    assert {claim["study"] for claim in claims_in(tmp_path / "more")} == {"toy", "kernel-text"}
    monkeypatch.setattr(judge_and_report, "MOST_LISTED", 0)
    lines = said(tmp_path, "--only=jiang2024", "--only=toy").splitlines()
    assert len(lines) < 20
    assert any(line.split()[:5] == ["Jiang", "et", "al.", "2024", "paper"] for line in lines)
    [own] = [line for line in lines if "Nobody 2024" in line]
    [heading] = [line for line in lines if "holds" in line]
    assert own.index("1") == heading.index("holds") + 4, "the first name decides"
    assert "Drawing the page of 2 runs in results/." in lines
    (tmp_path / "results" / "first").rename(tmp_path / "results" / "third")
    assert "Claims that fail: 1 of 1: toy-claim." in said(tmp_path)


@pytest.mark.slow
def test_a_claim_of_another_preset_without_a_number_is_not_said(tmp_path: Path) -> None:
    words = said(tmp_path, str(RESULTS / "theorem-regime-quick"))
    foreign = {
        claim["claim"]
        for claim in claims_in(tmp_path / "results" / "report")
        if claim["value"] is None and claim["preset"] != "theorem-regime"
    }
    names = set(re.findall(r"^  ([\w-]+) +(?:paper|sharp|ours) ", words, re.MULTILINE))
    assert {"theorem-regime-benign", "theorem-harmful-steps"} & names
    assert "theorem-benign-steps" in foreign
    assert not names & foreign
