"""Verdicts that are expected, in a TOML file: what CI holds a report to."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from overfit_cli.claim import VERDICTS, Verdict
from overfit_cli.errors import UserError, most_alike, shortened
from overfit_cli.files import read_toml
from overfit_cli.report.judged import Judged

MOST_BYTES = 1 << 20

Expected = Mapping[str, Sequence[Verdict]]
"""The verdicts that are expected of a claim, by `study/claim`: usually one."""


@dataclass(frozen=True)
class Comparison:
    """A report held to expected verdicts.

    Attributes:
        unexpected: what is wrong with a claim's verdict, by `study/claim`.
        unknown: claims that the file names and nobody makes, each with the one that is meant, or
            with nothing.
        left_out: how many claims weren't compared, because they weren't asked for.
        compared: how many were.
    """

    unexpected: Mapping[str, str]
    unknown: Mapping[str, str]
    left_out: int
    compared: int

    @property
    def is_fulfilled(self) -> bool:
        """Whether verdicts were compared, and every one is as expected."""
        return self.compared > 0 and not self.unexpected and not self.unknown


def read_expected(path: Path) -> Expected:
    """Read a file of expected verdicts: a table for each study, with a verdict for each claim.

    A claim may have a list of verdicts, each of which is as good.

    Raises:
        UserError: if it can't be read, or holds something else.
    """
    content = read_toml(path, MOST_BYTES, "--expect")
    expected: dict[str, Sequence[Verdict]] = {}
    for study, claims in content.items():
        if not isinstance(claims, dict):
            raise UserError(
                f"--expect {path}: {shortened(study)}: write a table for each study, [STUDY], with "
                "lines CLAIM = 'VERDICT'."
            )
        for claim, verdicts in claims.items():
            expected[f"{study}/{claim}"] = _verdicts(verdicts, f"--expect {path}: {claim}")
    return expected


def _verdicts(found: Any, place: str) -> list[Verdict]:
    """One verdict, or several."""
    several = found if isinstance(found, list) and found else [found]
    for one in several:
        if one not in tuple(VERDICTS):  # it may be a list
            raise UserError(f"{place} = {shortened(str(one))}: it takes {', '.join(VERDICTS)}.")
    return several


def compare(
    judged: Sequence[Judged], expected: Expected, asked: Sequence[Judged] | None = None
) -> Comparison:
    """Hold verdicts to the expected ones.

    Args:
        judged: every claim.
        expected: the verdicts that are expected.
        asked: those of the claims that the report is about; None for all.
    """
    compared, unexpected = judged if asked is None else asked, dict[str, str]()
    for one in compared:
        verdict, wanted = one.measurement.verdict, expected.get(one.address)
        if wanted is None:
            unexpected[one.address] = f"{verdict}, and no verdict is expected"
        elif verdict not in wanted:
            unexpected[one.address] = f"{verdict}, expected {' or '.join(wanted)}"
    left_out = len(judged) - len(compared)
    unknown = _unknown(judged, expected, whole=asked is None)
    return Comparison(unexpected, unknown, left_out, len(compared))


def _unknown(judged: Sequence[Judged], expected: Expected, *, whole: bool) -> dict[str, str]:
    """The claims that nobody makes, each with the nearest that somebody does.

    A report on some runs doesn't know the claims of functions whose runs are others.
    """
    known, studies = {one.address for one in judged}, {one.study for one in judged}
    return {
        claim: _meant(claim, known)
        for claim in sorted(expected.keys() - known)
        if whole or claim.partition("/")[0] in studies
    }


def _meant(claim: str, known: Collection[str]) -> str:
    """The claim of the same study whose name is the most like, or the same claim of another."""
    study, _, name = claim.partition("/")
    split = [one.partition("/") for one in known]
    close = most_alike(name, [other for of, _, other in split if of == study], cutoff=_CLOSE)
    if close:
        return f"{study}/{close}"
    return next(("/".join((of, other)) for of, _, other in split if other == name), "")


_CLOSE = 0.6
"""How alike the names of two claims are of which one is meant."""


def as_expected(judged: Sequence[Judged]) -> str:
    """Return the verdicts as a file of expected ones."""
    found: dict[str, dict[str, list[Verdict]]] = {}
    for one in judged:  # a claim may be judged on several runs
        verdicts = found.setdefault(one.study, {}).setdefault(one.claim.name, [])
        verdicts += [one.measurement.verdict] * (one.measurement.verdict not in verdicts)
    lines = []
    for study, claims in found.items():
        lines += ["", f"[{_key(study)}]"]
        lines += [
            f"{_key(name)} = {json.dumps(several if len(several) > 1 else several[0])}"
            for name, several in claims.items()
        ]
    return "\n".join(lines[1:]) + "\n"


def _key(name: str) -> str:
    """A key in TOML: bare where it can be."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)
