"""The report for CI systems: `junit.xml`, a test case for each claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

from overfit_cli.plain_text import visible
from overfit_cli.report.judged import Judged
from overfit_cli.report.words import in_words, number_in_words

_SKIPPED = ("inconclusive", "vacuous", "not run")


def junit(judged: Sequence[Judged], unexpected: Mapping[str, str] | None = None) -> str:
    """Return the verdicts as JUnit has them: a suite for each study.

    Args:
        judged: the claims.
        unexpected: what is wrong with the verdict of a claim, by `study/claim`, where verdicts are
            held to expected ones: only those claims fail then. Without it a claim fails that
            doesn't hold, and one that nothing decided is skipped.
    """
    root = ElementTree.Element("testsuites", name="overfit")
    for study in dict.fromkeys(one.study for one in judged):
        own = [one for one in judged if one.study == study]
        suite = ElementTree.SubElement(root, "testsuite", name=visible(study))
        for one in own:
            _case(suite, one, unexpected)
        for kind, counted in (("failure", "failures"), ("skipped", "skipped")):
            suite.set(counted, str(len(suite.findall(f"testcase/{kind}"))))
        suite.set("tests", str(len(own)))
        suite.set("errors", "0")
    ElementTree.indent(root)
    text: str = ElementTree.tostring(root, encoding="unicode", xml_declaration=True)
    return text + "\n"


def _case(suite: ElementTree.Element, one: Judged, unexpected: Mapping[str, str] | None) -> None:
    """Add a claim to its study's suite."""
    case = ElementTree.SubElement(
        suite, "testcase", classname=visible(f"overfit.{one.study}"), name=visible(one.name)
    )
    verdict = one.measurement.verdict
    message = visible(f"{verdict}: {number_in_words(one.measurement)}")
    wrong = None if unexpected is None else unexpected.get(one.address)
    if wrong or (unexpected is None and verdict == "fails"):
        failure = ElementTree.SubElement(case, "failure", message=visible(wrong or message))
        failure.text = visible(f"{one.claim.statement} {in_words(one.measurement)}")
    elif unexpected is None and verdict in _SKIPPED:
        ElementTree.SubElement(case, "skipped", message=message)
    else:
        ElementTree.SubElement(case, "system-out").text = message
