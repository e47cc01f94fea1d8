"""Files of verdicts: a report's `claims.json`, which is read again, and expected verdicts.

CI compares a report with the expected verdicts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import AliasChoices, AliasPath, BaseModel, Field

from overfit_cli.core.claim import VERDICTS, Kind, Verdict
from overfit_cli.core.errors import BadValue
from overfit_cli.core.files import error_text, json_text, read_bounded, read_toml
from overfit_cli.core.text import most_alike, shorten
from overfit_cli.report.contents import Entry, repetition
from overfit_cli.report.judge import Judged

SCHEMA = 7


CLOSE = 0.8
"""The least similarity of the addresses of an unknown claim and the nearest one."""

Expected = Mapping[str, Sequence[Verdict]]
"""The expected verdicts of each claim, by `study/claim`: usually one."""


# What is written


def claims_json(papers: Sequence[Entry]) -> str:
    """Return every claim with its measurement, and every run with its parameters, as JSON."""
    claims = [
        {"paper": paper["key"], **_json_of_claim(claim)}
        for paper in papers
        for claim in paper["judged"]
    ]
    studies = [study for paper in papers for study in paper["studies"]]
    runs = [_json_of_run(run) for study in studies for run in study["runs"]]
    return json_text({"schema": SCHEMA, "claims": claims, "runs": runs})


def judged_json(judged: Sequence[Judged]) -> str:
    """Return claims with their measurements as JSON, as `claims_json` does."""
    return json_text({"schema": SCHEMA, "claims": [_json_of_claim(claim) for claim in judged]})


def _json_of_claim(judged: Judged) -> Entry:
    claim, measurement, repeat = judged.claim, judged.measurement, repetition(judged.claim)
    interval, margin = measurement.interval, measurement.margin
    return {
        "study": judged.study,
        "claim": claim.name,
        "kind": claim.kind,
        "statement": claim.statement,
        "hypotheses": claim.hypotheses or None,
        "source": claim.source,
        "holds_where": claim.holds_where,
        "figure": claim.figure or None,
        "preset": claim.preset or None,
        "verdict": judged.headline,
        "by_itself": measurement.verdict,
        "contradicts": judged.contradiction or None,
        "value": measurement.value,
        "interval": interval and asdict(interval),
        "margin": margin and {"least": margin[0], "most": margin[1]},
        "details": dict(measurement.details),
        "note": measurement.note,
        "family": {"claims": judged.family, "verdict": judged.headline} if judged.family else None,
        "decided_after_selection": judged.decided_after_selection,
        "directory": str(judged.directory) if judged.directory else None,
        "again": repeat
        and {name: repeat[name] or None for name in ("command", "minutes", "needs")},
    }


def _json_of_run(run: Entry) -> Entry:
    named = ("reasons", "stand_ins", "seeds", "axes", "parameters")
    return {
        "directory": str(run["path"]),
        "study": run["study"].name,
        "version": run["study"].version,
        "cells": {"done": run["done"], "failed": sum(run["reasons"].values())},
        **{name: run[name] for name in named},
        "sweeps": [
            sweep.model_dump(include={"command", "started", "packages", "python", "platform"})
            | {"git_commit": sweep.commit or None}
            for sweep in run["sweeps"]
        ],
    }


# What a report kept


class KeptVerdict(BaseModel):
    """The verdict of a claim in a report that was written, at the level of all together.

    Up to schema 6 that verdict stands in the claim's family.
    """

    study: str
    claim: str
    kind: Kind
    verdict: Verdict = Field(
        validation_alias=AliasChoices(AliasPath("family", "verdict"), "verdict")
    )
    directory: Path | None


class _KeptReport(BaseModel):
    claims: list[KeptVerdict]

    @classmethod
    def read(cls, path: Path) -> list[KeptVerdict]:
        return cls.model_validate_json(read_bounded(path)).claims


# What is expected


@dataclass(frozen=True)
class VerdictCheck:
    """The differences between the verdicts of a report and the expected ones.

    Attributes:
        unexpected: the difference of a claim's verdict in words, by `study/claim`.
        unknown: the claims of the file that no study has, with the nearest claim or an empty text.
        left_out: the number of claims of the report's studies that were not compared.
    """

    unexpected: Mapping[str, str]
    unknown: Mapping[str, str]
    left_out: int
    compared: int

    @property
    def is_fulfilled(self) -> bool:
        """Whether verdicts were compared, and all are as expected."""
        return self.compared > 0 and not self.unexpected and not self.unknown


def read_expected(path: Path) -> Expected:
    """Read expected verdicts: a report's `claims.json`, or TOML with a table for each study.

    In TOML a claim may have a list of verdicts, each of which is accepted.
    """
    expected: dict[str, Sequence[Verdict]] = {}
    if path.suffix == ".json":
        try:
            kept = _KeptReport.read(path)
        except OSError as error:
            accepts = f"it can't be read ({error_text(error)})."
            raise BadValue("expect", str(path), accepts) from None
        except ValueError:
            accepts = "it is no claims.json that `overfit report` wrote."
            raise BadValue("expect", str(path), accepts) from None
        for each in kept:
            address = f"{each.study}/{each.claim}"
            expected[address] = [*expected.get(address, ()), each.verdict]
        return expected
    for study, claims in read_toml(path, "expect").items():
        if not isinstance(claims, dict):
            accepts = "write a table for each study, [STUDY], with lines CLAIM = 'VERDICT'."
            raise BadValue("expect", str(path), f"{shorten(study)}: {accepts}")
        for claim, value in claims.items():
            verdicts = value if isinstance(value, list) and value else [value]
            for verdict in verdicts:
                if verdict not in tuple(VERDICTS):  # it may be a list
                    accepts = f"{shorten(str(verdict))}: it takes {', '.join(VERDICTS)}."
                    raise BadValue("expect", str(path), f"{claim} = {accepts}")
            expected[f"{study}/{claim}"] = verdicts
    return expected


def check_verdicts(
    judged: Sequence[Judged], expected: Expected, reported: Sequence[Judged] | None = None
) -> VerdictCheck:
    """Compare verdicts, each at the level of all together, with the expected ones."""
    compared = judged if reported is None else reported
    here, known = {claim.study for claim in judged}, {claim.address for claim in judged}
    unexpected = dict[str, str]()
    for claim in compared:
        accepted = expected.get(claim.address)
        if accepted is None:
            unexpected[claim.address] = f"{claim.headline}, and no verdict is expected"
        elif claim.headline not in accepted:
            unexpected[claim.address] = f"{claim.headline}, expected {' or '.join(accepted)}"
    unknown = {
        address: most_alike(address, known, cutoff=CLOSE)
        for address in sorted(expected.keys() - known)
        if reported is None or address.partition("/")[0] in here
    }
    studies = {claim.study for claim in compared}
    left_out = sum(claim.study in studies for claim in judged) - len(compared)
    return VerdictCheck(unexpected, unknown, left_out, len(compared))
