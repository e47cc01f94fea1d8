"""HTML forms of claims and comparisons in a notebook, parsed here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import overfit_cli
from overfit_cli.report.judge import JudgedClaims
from tests.kept import RESULTS
from tests.report.made_up import judged
from tests.toy_runs import sweep_toy

HOSTILE = "<script>alert('a & b')</script>\x1b[31m"
SEEN = "<script>alert('a & b')</script>\\x1b[31m"


def parsed(shown: Any) -> ElementTree.Element:
    """The HTML of an object, which has no script, no style of its own colours and no open tag."""
    root = ElementTree.fromstring(f"<div>{shown._repr_html_()}</div>")
    allowed = {"div", "p", "table", "caption", "thead", "tbody", "tr", "th", "td", "strong"}
    assert {element.tag for element in root.iter()} <= allowed | {"details", "summary"}
    styles = {element.get("style") or "" for element in root.iter()}
    assert not any("color" in style or "background" in style for style in styles)
    assert not any(name.startswith("on") for element in root.iter() for name in element.attrib)
    return root


def texts(root: ElementTree.Element, path: str) -> list[str]:
    """The texts of the elements at a path."""
    return ["".join(element.itertext()) for element in root.iterfind(path)]


def test_every_claim_has_a_row_with_its_verdict_number_and_margin() -> None:
    claims = [judged("rises", "holds"), judged("falls", "fails", value=2.0), judged("c", "not run")]
    root = parsed(JudgedClaims(claims))
    assert texts(root, ".//caption") == ["3 claims of one: holds 1, fails 1, not run 1."]
    assert texts(root, ".//th") == ["claim", "verdict", "measured", "required"]
    assert texts(root, ".//td/strong") == ["✓ holds", "✗ fails", "– not run"]
    assert texts(root, ".//tbody/tr/td[3]") == ["1", "2", "–"]
    together = replace(claims[0], joint_verdict="inconclusive")
    assert texts(parsed(together), ".//tbody/tr/td[2]") == ["? inconclusive by itself holds"]
    assert JudgedClaims(claims) == [*claims]
    assert texts(parsed(JudgedClaims()), ".//caption") == ["0 claims."]


def test_the_users_claim_is_its_sentence_under_which_its_details_unfold(tmp_path: Path) -> None:
    run = sweep_toy(tmp_path / "run", n="1:6")
    root = parsed(overfit_cli.judge(run.path, "test_loss < 5", "test_loss < 1e-9 where n > 2"))
    assert texts(root, ".//summary") == ["test_loss < 5", "test_loss < 1e-9 where n > 2"]
    details = texts(root, ".//details")
    assert all("It holds where" in text and f"Measured on {run.path}." in text for text in details)
    assert "Judged on 12 settings" in details[0]
    assert texts(root, ".//tbody/tr/td[4]") == ["holds below 5", "holds below 10⁻⁹"]


@pytest.mark.slow
def test_a_papers_claim_is_its_name_and_its_sentence_unfolds() -> None:
    claims = overfit_cli.judge(RESULTS / "fig1-quick")
    root = parsed(claims)
    assert texts(root, ".//summary") == [each.name for each in claims]
    [exponent] = [text for text in texts(root, ".//details") if text.startswith("fig1-exponent")]
    assert "N·SNR² = C" in exponent
    assert "section 6 and figure 1b" in exponent
    lines = repr(claims).strip("[]").splitlines()
    assert len(lines) == len(claims)
    assert any("<Judged fig1-exponent: holds, 1.97 [1.83, 2.07]>" in line for line in lines)


def test_names_are_escaped_wherever_they_stand(tmp_path: Path) -> None:
    [caption] = texts(parsed(judged(HOSTILE, "holds", study=HOSTILE)), ".//caption")
    assert caption == f"1 claim of {SEEN}: holds 1."


def test_a_comparison_has_a_row_for_each_column_and_says_what_changes(tmp_path: Path) -> None:
    a, b = sweep_toy(tmp_path / "a"), sweep_toy(tmp_path / "<b>run")
    comparison = overfit_cli.compare(a.path, b.path, value="test_loss")
    root = parsed(comparison)
    assert texts(root, "table/caption") == ["Measured columns. Every difference is B less A."]
    assert texts(root, "table/tbody/tr/td[1]") == ["test_loss"]
    first, *sides, _, last = texts(root, "p")
    assert first == "Equal at every pair: test_loss."
    assert sides == ["A: a, 6 cells of toy.", "B: <b>run, 6 cells of toy."]
    assert last.startswith("Intervals of B − A: ")
    assert repr(comparison).startswith("<Comparison of A a and B <b>run: Equal at every pair")
    assert "\n" not in repr(comparison)


def test_a_trained_cell_is_a_line_with_its_numbers_or_why_it_failed(tmp_path: Path) -> None:
    result = overfit_cli.train("toy", n=2, out=tmp_path / "one", quiet=True)
    failed = overfit_cli.train("toy", n=1, mood="diverges", snr=2, out=tmp_path / "b", quiet=True)
    assert repr(result).startswith("<CellResult of toy, n 2, ")
    assert len(repr(result)) < 300
    assert failed.reason
    assert repr(failed).endswith(f": {failed.reason}>")
