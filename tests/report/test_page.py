"""HTML: what has room on a page, what it says, its diagrams and numbers; forms in a notebook."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import overfit_cli
from overfit_cli.claims.bounds import MET, WITHOUT_EXCEPTION
from overfit_cli.claims.parts import Margin, Part
from overfit_cli.claims.rules import judge, judge_estimate
from overfit_cli.core.cell import Paper
from overfit_cli.core.cells import Cells
from overfit_cli.core.claim import Interval, Kind, Measurement, Verdict, number_with_interval
from overfit_cli.core.registry import claims_of, installed_studies
from overfit_cli.core.text import three_digits
from overfit_cli.figures import draw
from overfit_cli.figures.draw import draw_figure
from overfit_cli.figures.picture import Picture, reduce_colours
from overfit_cli.report import page as html
from overfit_cli.report import pictures, words
from overfit_cli.report.contents import Entry, contents
from overfit_cli.report.judge import Judged, JudgedClaims, judge_runs
from overfit_cli.report.pictures import Diagram, make_diagram
from overfit_cli.report.runs import load_runs
from overfit_cli.stats.intervals import Estimate
from overfit_cli.sweeps import manifest
from overfit_cli.sweeps.load import load_run
from tests.report.made_up import judged
from tests.toy_runs import sweep_toy

FIGURES = ["heatmap", "cutoff", "boundary"]


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> list[Entry]:
    """Two toy runs: `b` decides the toy's claim, and `a` nothing."""
    folder = tmp_path_factory.mktemp("runs")
    runs = load_runs([sweep_toy(folder / name) for name in "ba"])
    return contents(judge_runs(runs[:1], on_every_run=False), runs)


def page_of(*claims: Judged) -> str:
    return html.page(contents(claims, []))


def bytes_of_figures(page: str) -> int:
    """The bytes of all figures and diagrams on a page."""
    drawn = r'(?s)<img src="(data:[^"]*)"|<script type="application/json">(.*?)</script>'
    return len("".join(map("".join, re.findall(drawn, page))).encode())


def shown_in(page: str) -> dict[str, list[str]]:
    """By run, what is drawn of it: its figures, and `diagram`."""
    found = {}
    for article in page.split('<details class="run"')[1:]:
        name = re.findall(r"<h4>(.*?)</h4>", article)[0]
        figures = re.findall(r"<figcaption><strong>([\w-]+)</strong>", article)
        found[name] = figures + ["diagram"] * article.count('<div class="diagram')
    return found


@pytest.mark.slow
def test_a_run_that_decides_has_room_before_a_run_that_does_not(papers: list[Entry]) -> None:
    whole = html.page(papers)
    assert shown_in(whole) == {name: [*FIGURES, "diagram"] for name in ("b", "a")}
    left_out = "Figures of this run are left out: the page has reached its size limit."
    found = {}
    for share in (0.0, 0.5, 0.9, 1.0):
        most = max(0, int(share * bytes_of_figures(whole)) - 1)
        with mock.patch.object(pictures, "MOST_BYTES", most):
            page = html.page(papers)
        assert bytes_of_figures(page) <= most
        assert '<tr id="claim-toy-toy-claim"' in page
        found[share] = shown_in(page), page.count(left_out)
    assert found[0.0] == ({"b": [], "a": []}, 2)
    assert found[1.0] == ({"b": [*FIGURES, "diagram"], "a": []}, 1)


def test_it_says_when_and_with_what_it_was_written() -> None:
    for commit, said in (("0123456789abcdef", r" \(commit 0123456789\)"), (None, "")):
        version = re.escape(overfit_cli.__version__)
        written = rf"Written \d{{4}}-\d\d-\d\d with overfit {version}{said}\.</p>"
        with mock.patch.object(manifest, "package_commit", return_value=commit):
            assert re.search(written, html.page([]))


def test_a_thin_line_over_many_shades_keeps_its_colour() -> None:
    shades = np.zeros((256, 256, 3), np.uint8)
    shades[..., 0], shades[..., 2] = np.arange(256), np.arange(256)[:, None]
    shades[100] = orange = (213, 94, 0)
    image = reduce_colours(Image.fromarray(shades), pictures.COLOURS)
    reduced = np.asarray(image.convert("RGB"), int)
    assert np.abs(reduced[100] - orange).max() < 16
    assert np.abs(reduced - shades).max() < 48
    assert len(np.unique(reduced.reshape(-1, 3), axis=0)) <= pictures.COLOURS


MEANINGS: dict[Kind, str] = {
    "paper": "Contradicts nowhere.",
    "sharp": "Not as sharp as asked; no sentence of the paper is contradicted.",
    "ours": "The answer to a question of our own is no.",
}


def test_a_claim_that_fails_says_what_that_means_and_every_text_is_escaped() -> None:
    hostile = judged('a"<b>\x1b\n', "holds", study="toy")
    page = page_of(hostile, *(judged(kind, "fails", study="toy", kind=kind) for kind in MEANINGS))
    for meaning in MEANINGS.values():
        assert f'<em class="meaning fails">{meaning}</em> It is so.' in page
    assert page.count('<em class="meaning') == len(MEANINGS)
    assert "<strong>a&#34;&lt;b&gt;\\x1b\\n</strong>" in page
    assert 'data-name="a&#34;&lt;b&gt;\\x1b\\n"' in page
    assert "\x1b" not in page


@pytest.mark.slow
def test_a_figure_that_can_not_be_drawn_is_named_and_costs_nothing_else(tmp_path: Path) -> None:
    """A study's figure may have a defect, or a preset's be one of another study."""

    def fail_at_boundaries(name: str, *given: Any, **options: Any) -> Picture:
        if name == "boundary":
            raise ValueError("not enough values to unpack")
        return draw_figure(name, *given, **options)

    runs = load_runs([sweep_toy(tmp_path / name) for name in ("b", "kernel-fig4-quick")])
    with mock.patch.object(draw, "draw_figure", fail_at_boundaries):
        page = html.page(contents([], runs))
    assert shown_in(page)["b"] == ["heatmap", "cutoff", "lines", "diagram"]
    assert "boundary: its drawing failed (ValueError: not enough values to unpack)." in page
    assert "Not drawn: landscape: toy has no figure &#39;landscape&#39;" in page


def test_a_finding_is_shown_while_its_claims_have_their_verdicts() -> None:
    others: dict[str, Verdict] = {"fig1-sides": "holds", "fig1-exponent": "inconclusive"}
    others["fig1-balanced-exponent"] = "holds"
    rest = [judged(name, verdict, study="benign-vit") for name, verdict in others.items()]
    linked = 'href="#claim-benign-vit-fig1-contour" title="fig1-contour"><span class="number">1013'
    contour = judged("fig1-contour", "holds", study="benign-vit", value=1013.0)
    fails = judged("fig1-contour", "fails", study="benign-vit", value=1013.0)
    for first in ([contour], [fails], [replace(contour, joint_verdict="inconclusive")], []):
        page, is_shown = page_of(*first, *rest), first == [contour]
        assert ("Figure 1&#39;s boundary" in page, linked in page) == (is_shown, is_shown)


def test_findings_name_claims_and_every_number_has_its_verdict() -> None:
    known: dict[Paper, set[str]] = {}
    for study in installed_studies():
        if study.paper and study.paper.authors != "Nobody":
            known.setdefault(study.paper, set()).update(claim.name for claim in claims_of(study))
    for paper, claims in known.items():
        assert 2 <= len(paper.findings) <= 3
        for finding in paper.findings:
            named = set(re.findall(r"\{([\w.-]+)\}", finding.text))
            assert named <= finding.verdicts.keys() <= claims


# In a notebook, parsed here

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
    claims.append(replace(claims[0], joint_verdict="inconclusive"))
    root = parsed(JudgedClaims(claims))
    counts = "4 claims of one: holds 1, fails 1, inconclusive 1, not run 1."
    assert texts(root, ".//caption") == [counts]
    assert texts(root, ".//th") == ["claim", "verdict", "measured", "required"]
    assert texts(root, ".//summary") == ["rises", "falls", "c", "rises"], "a paper's by its name"
    assert "It is so. (nowhere)" in texts(root, ".//details")[0]
    assert repr(claims[:2]) == "[<Judged rises: holds, 1>, <Judged falls: fails, 2>]"
    alone = "? inconclusive by itself holds"
    assert texts(root, ".//tbody/tr/td[2]") == ["✓ holds", "✗ fails", "– not run", alone]
    assert texts(root, ".//tbody/tr/td[3]") == ["1", "2", "–", "1"]
    assert JudgedClaims(claims) == [*claims]
    assert texts(parsed(JudgedClaims()), ".//caption") == ["0 claims."]
    [caption] = texts(parsed(judged(HOSTILE, "holds", study=HOSTILE)), ".//caption")
    assert caption == f"1 claim of {SEEN}: holds 1.", "names are escaped"


def test_the_users_claim_is_its_sentence_under_which_its_details_unfold(tmp_path: Path) -> None:
    run = sweep_toy(tmp_path / "run", n="1:6")
    root = parsed(overfit_cli.judge(run.path, "test_loss < 5", "test_loss < 1e-9 where n > 2"))
    assert texts(root, ".//summary") == ["test_loss < 5", "test_loss < 1e-9 where n > 2"]
    details = texts(root, ".//details")
    assert all("It holds where" in text and f"Measured on {run.path}." in text for text in details)
    assert "Judged on 12 settings" in details[0]
    assert texts(root, ".//tbody/tr/td[4]") == ["holds below 5", "holds below 10⁻⁹"]


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


# Phase diagrams as numbers: what is known at each place, and from how many seeds


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Cells:
    """Toy cells of N 1 to 3 and two SNR; each has these losses times N at four seeds."""
    data = load_run(sweep_toy(tmp_path_factory.mktemp("diagrams") / "run"))
    losses = pd.DataFrame({"seed": range(4), "of_seed": [0.1, 0.2, 0.4, 0.8]})
    cells = data.trained.drop(columns="seed").merge(losses, how="cross")
    key = cells["key"] + cells["seed"].astype(str)
    return data.with_trained(cells.assign(key=key, test_loss=cells.pop("of_seed") * cells["n"]))


def diagram_of(data: Cells, cells: pd.DataFrame | None = None, **columns: Any) -> Diagram:
    """The diagram, which there is, of other cells or of cells with other columns."""
    rows = data.trained if cells is None else cells
    diagram = make_diagram(data.with_trained(rows.assign(**columns)))
    assert diagram is not None
    return diagram


def test_missed_seeds_count_as_beyond_the_others_and_are_not_no_cells(data: Cells) -> None:
    cells = data.trained.query("snr > 1 or n < 3")
    missed = (cells["snr"] == 1) & (cells["seed"] < cells["n"])  # one seed at n = 1, two at n = 2
    status, reason = np.where(missed, "failed", "done"), np.where(missed, "diverged", "")
    diagram = diagram_of(data, cells, status=status, reason=reason)
    assert (diagram["mean"], diagram["why"]) == ("median", "diverged")
    points = diagram["panels"][0]["points"]
    # Row by row, of two SNR each: N of 1, 2 and 3.
    assert points["seeds"] == [3, 4, 2, 4, None, 4]
    assert points["lost"] == [1, 0, 2, 0, None, 0]
    assert points["middle"][:2] == [pytest.approx(0.6), pytest.approx(0.3)], "0.4 of the survivors"
    assert points["middle"][2] is None, "half of the seeds missed"
    assert (points["least"][0], points["most"][0]) == (0.2, 0.8)


def test_the_colours_ends_and_ticks_of_a_diagram_are_those_of_its_scale(data: Cells) -> None:
    n = data.trained["n"]
    close = diagram_of(data, snr=data.trained["snr"].map({1.0: 11.31, 2.0: 11.34}))
    assert close["x"]["ticks"] == ["11.31", "11.34"], "they differ where values do"
    linear = diagram_of(data)
    assert linear["middle"] == pytest.approx((linear["low"] + linear["high"]) / 2)
    by_ratio = diagram_of(data, test_loss=np.where(n == 1, 1e-3, 10.0))
    assert by_ratio["middle"] == pytest.approx(math.sqrt(1e-3 * 10.0))


def test_a_diagram_that_says_nothing_is_not_made(data: Cells) -> None:
    assert make_diagram(data.with_trained(data.trained.assign(test_loss=0.5))) is None
    four = data.trained[data.trained["n"] < 3]
    assert make_diagram(replace(data, frame=four)) is None, "2 by 2 points"
    odd = (data.trained["n"] + 2 * data.trained["snr"]) % 4 == 1
    half = data.trained.assign(status=np.where(odd | (data.trained["n"] == 2), "failed", "done"))
    assert make_diagram(data.with_trained(half)) is None


# Numbers as they are told: drawn between margin and interval, in digits and in words

Pair = tuple[float, float]
INF, NAN = math.inf, math.nan


def measured(value: float | None, ends: Pair | None, margin: Pair | None) -> Measurement:
    interval = Interval(*ends, "95 %") if ends else None
    return Measurement(verdict="holds", value=value, interval=interval, margin=margin)


TARGET = judge_estimate(Estimate(1.93, 1.91, 1.95, "95 %", 10), Margin(least=1.9, target=2.0))
THEOREM = judge([Part.of([0.0] * 12, WITHOUT_EXCEPTION, "no exception")])


@pytest.mark.parametrize(
    ("measurement", "order", "scale"),
    [
        (measured(1.97, (1.83, 2.07), (1.75, 2.25)), "0 M[ I[ v ]I ]M W", "linear"),
        (measured(10.0, (8.0, 12.0), (1.0, 100.0)), "0 M[ I[ v ]I ]M W", "logarithmic"),
        (measured(-2.0, (-3.0, INF), (-INF, 0.0)), "0 I[ v ]M ]I", "linear"),
        (measured(2.0, (2.0, 2.0), (1.0, 3.0)), "0 M[ v ]M W", "linear"),
        (TARGET, "0 M[ I[ v ]I t W", "linear"),
        (THEOREM, "0 v ]I M[ ]M W", "linear"),
    ],
)
def test_a_bar_has_its_parts_in_order(measurement: Measurement, order: str, scale: str) -> None:
    drawn = html.bar(measurement)
    assert drawn is not None
    places = {"0": 0.0, "W": html.WIDTH, "v": drawn["value"], "t": drawn["target"]}
    for sign, name in (("M", "margin"), ("I", "interval")):
        places[f"{sign}["], places[f"]{sign}"] = drawn[name]
    found = [places[name] for name in order.split()]
    assert found == sorted(set(found))
    assert drawn["scale"] == scale
    assert all(0 <= place <= html.WIDTH for place in places.values() if place is not None)


def test_nothing_is_drawn_without_a_number_and_something_around_it() -> None:
    unit = (0.0, 1.0)
    nothing = [measured(None, unit, unit), measured(NAN, unit, None), measured(3.0, None, None)]
    assert [html.bar(each) for each in nothing] == [None] * 3
    drawn = html.bar(measured(1.0, (NAN, NAN), (0.5, 2.0)))  # the interval is unknown
    assert drawn is not None
    assert (drawn["interval"], drawn["margin"] is None) == (None, False)


def in_words(details: dict[str, float]) -> str:
    return words.describe_measurement(Measurement(verdict="holds", details=details))


required = words.requirement_in_words
MISSED = {"heads missing, least": 1.0, "heads missing, most": 2.5, MET: 0.0}


@pytest.mark.parametrize(
    ("tell", "given", "told"),
    [
        (required, [measured(2.0, None, (1.75, 2.25))], "holds from 1.75 to 2.25"),
        (required, [measured(2.0, None, (-INF, 2.25))], "holds below 2.25"),
        (required, [measured(2.0, None, None)], ""),
        (required, [TARGET], "stated: 2; holds above 1.9"),
        (required, [TARGET, "paper"], "paper: 2; holds above 1.9"),
        (required, [THEOREM, "paper"], "must be 1, without an exception"),
        (words.margin_in_words, [(1.75, 2.25)], "margin 1.75 to 2.25"),
        (words.margin_in_words, [(-INF, 5e-324)], "margin below 0"),
        (words.margin_in_words, [(0.8, INF)], "margin above 0.8"),
        (words.margin_in_words, [(-INF, INF)], ""),
        (words.margin_in_words, [None], ""),
        (three_digits, [1013.4], "1010"),
        (three_digits, [1.9666], "1.97"),
        (three_digits, [-0.00012345], "−0.000123"),
        (three_digits, [5.2e-7], "5.2·10⁻⁷"),
        (three_digits, [0], "0"),
        (number_with_interval, [1013.4, Interval(988.1, 1056.0, "95 %")], "1010 [988, 1060]"),
        (number_with_interval, [12345.0, None], "12345"),
        (number_with_interval, [-3.0, None], "−3"),
        (number_with_interval, [None, None], "–"),
        (in_words, [{"d = 3": 7.916, "seeds": 10}], "d = 3 7.92; seeds 10."),
        (in_words, [{"seeds": 10}], "Seeds 10."),
        (in_words, [{"power": 2, "power, from": 1.5, "power, to": 2.5}], "Power 2 [1.5, 2.5]."),
        (in_words, [{"cells, from": 3.0}], "Cells, from 3."),
        (in_words, [{"decades, least": NAN, "decades, most": NAN}], "Decades not known."),
        (in_words, [{"loss": NAN}], "Loss not known."),
        (in_words, [{"loss, most": 3}], "Loss, most 3."),
        (in_words, [MISSED], f"Heads missing (met at 0 or less) 1 to 2.5; {MET} 0."),
        (words.counts_in_words, [["holds", "vacuous"]], "1 hold, 0 fail, 1 vacuous."),
        (words.counts_in_words, [["holds", "not run"]], "1 hold, 0 fail, 1 not run."),
    ],
)
def test_numbers_are_told_in_few_words(tell: Callable[..., str], given: Any, told: str) -> None:
    """And in three digits."""
    assert tell(*given) == told


@pytest.mark.parametrize(
    ("text", "typeset"),
    [
        ("λ_B² and N·SNR^p of W_Q", "λ<sub>B</sub>² and N·SNR<sup>p</sup> of W<sub>Q</sub>"),
        ("σ̃_p, (1 − ηα)^t", "σ̃<sub>p</sub>, (1 − ηα)<sup>t</sup>"),
        ("e^(16B), train_loss, x_<b>", "e<sup>(16B)</sup>, train_loss, x_&lt;b&gt;"),
        ("the power -2 of ‖μ‖, from -0.5", "the power −2 of ‖μ‖, from −0.5"),
        ("at most 3e-9", 'at most <span class="number">3·10⁻⁹</span>'),
        ("below 1e+12", 'below <span class="number">10¹²</span>'),
        ("ε^(1/(2M²)) or n^o(1)", "ε<sup>(1/(2M²))</sup> or n<sup>o(1)</sup>"),
        ("min_h ‖W_O,h‖", "min<sub>h</sub> ‖W<sub>O,h</sub>‖"),
        ("d_h^−0.507 and w_j,0", "d<sub>h</sub><sup>−0.507</sup> and w<sub>j,0</sub>"),
        ("‖X‖²_{2,∞}", "‖X‖²<sub>{2,∞}</sub>"),
        ("fig1-exponent on 2026-11-27, seeds 0-9", "fig1-exponent on 2026-11-27, seeds 0-9"),
    ],
)
def test_indices_powers_and_numbers_are_typeset_and_names_are_not(text: str, typeset: str) -> None:
    assert words.typeset(text) == typeset
