"""Verdicts that are expected, in a TOML file: what CI holds a report to."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from overfit_cli.claim import VERDICTS, Verdict
from overfit_cli.errors import UserError, shortened
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
        unknown: claims that the file names and nobody makes.
        left_out: how many claims weren't compared, because their preset isn't part of the report.
        compared: how many were.
    """

    unexpected: Mapping[str, str]
    unknown: Sequence[str]
    left_out: int
    compared: int

    @property
    def is_fulfilled(self) -> bool:
        """Whether every verdict is as expected."""
        return not self.unexpected and not self.unknown


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
    judged: Sequence[Judged], expected: Expected, presets: frozenset[str] | None = None
) -> Comparison:
    """Hold verdicts to the expected ones.

    Args:
        judged: every claim.
        expected: the verdicts that are expected.
        presets: the presets that the report is about: a claim of another that is `not run` isn't
            compared. None for all.
    """
    unexpected, left_out, seen = dict[str, str](), 0, set[str]()
    for one in judged:
        verdict, wanted = one.measurement.verdict, expected.get(one.address)
        seen.add(one.address)
        if presets is not None and verdict == "not run" and one.claim.preset not in presets:
            left_out += 1
        elif wanted is None:
            unexpected[one.address] = f"{verdict}, and no verdict is expected"
        elif verdict not in wanted:
            unexpected[one.address] = f"{verdict}, expected {' or '.join(wanted)}"
    unknown = sorted(set(expected) - seen) if presets is None else []
    return Comparison(unexpected, unknown, left_out, len(judged) - left_out)


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
