"""Expected verdicts, which CI compares a report with; and those that a report kept."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from overfit_cli.core.claim import KINDS, VERDICTS, Kind, Verdict
from overfit_cli.core.errors import BadValue
from overfit_cli.core.files import error_text, read_bounded, read_toml
from overfit_cli.core.text import most_alike, shorten
from overfit_cli.report.judge import Judged

MOST_BYTES = 1 << 20
MOST_BYTES_KEPT = 1 << 26


Expected = Mapping[str, Sequence[Verdict]]
"""The expected verdicts of each claim, by `study/claim`: usually one."""


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
    content = _of_report(path) if path.suffix == ".json" else read_toml(path, MOST_BYTES, "expect")
    expected: dict[str, Sequence[Verdict]] = {}
    for study, claims in content.items():
        if not isinstance(claims, dict):
            raise BadValue(
                "expect",
                str(path),
                f"{shorten(study)}: write a table for each study, [STUDY], with lines "
                "CLAIM = 'VERDICT'.",
            )
        for claim, value in claims.items():
            verdicts = value if isinstance(value, list) and value else [value]
            for verdict in verdicts:
                if verdict not in tuple(VERDICTS):  # it may be a list
                    accepts = f"it takes {', '.join(VERDICTS)}."
                    raise BadValue(
                        "expect", str(path), f"{claim} = {shorten(str(verdict))}: {accepts}"
                    )
            expected[f"{study}/{claim}"] = verdicts
    return expected


def _of_report(path: Path) -> dict[str, Any]:
    verdicts: dict[str, dict[str, list[str]]] = {}
    try:
        for claim in json.loads(read_bounded(path, MOST_BYTES_KEPT))["claims"]:
            of_study = verdicts.setdefault(claim["study"], {})
            of_study.setdefault(claim["claim"], []).append(claim["verdict"])
    except OSError as error:
        raise BadValue("expect", str(path), f"it can't be read ({error_text(error)}).") from None
    except (ValueError, KeyError, TypeError):
        accepts = "it is no claims.json that `overfit report` wrote."
        raise BadValue("expect", str(path), accepts) from None
    return verdicts


def check_verdicts(
    judged: Sequence[Judged], expected: Expected, reported: Sequence[Judged] | None = None
) -> VerdictCheck:
    """Compare verdicts with the expected ones."""
    compared, unexpected = judged if reported is None else reported, dict[str, str]()
    for claim in compared:
        verdict, accepted = claim.measurement.verdict, expected.get(claim.address)
        if accepted is None:
            unexpected[claim.address] = f"{verdict}, and no verdict is expected"
        elif verdict not in accepted:
            unexpected[claim.address] = f"{verdict}, expected {' or '.join(accepted)}"
    studies = {claim.study for claim in compared}
    left_out = sum(claim.study in studies for claim in judged) - len(compared)
    unknown = _unknown_claims(judged, expected, all_reported=reported is None)
    return VerdictCheck(unexpected, unknown, left_out, len(compared))


def _unknown_claims(
    judged: Sequence[Judged], expected: Expected, *, all_reported: bool
) -> dict[str, str]:
    """The expected claims that no study has, each with the nearest claim."""
    addresses, studies = {claim.address for claim in judged}, {claim.study for claim in judged}
    return {
        claim: _closest_claim(claim, addresses)
        for claim in sorted(expected.keys() - addresses)
        if all_reported or claim.partition("/")[0] in studies
    }


def _closest_claim(claim: str, addresses: Collection[str]) -> str:
    study, _, name = claim.partition("/")
    split = [address.partition("/") for address in addresses]
    similar = most_alike(
        name, [claim_name for owner, _, claim_name in split if owner == study], cutoff=_CLOSE
    )
    if similar:
        return f"{study}/{similar}"
    return next(
        ("/".join((owner, claim_name)) for owner, _, claim_name in split if claim_name == name), ""
    )


_CLOSE = 0.6
"""The least similarity of the names of an unknown claim and the nearest one."""


@dataclass(frozen=True)
class KeptVerdict:
    """The verdict of a claim in a report that was written.

    Attributes:
        verdict: that which counts: see `Judged.headline`.
    """

    study: str
    claim: str
    kind: Kind
    verdict: Verdict
    directory: Path | None


def kept_verdicts(folder: Path) -> list[KeptVerdict]:
    """Return the verdicts in a report's `claims.json`; none where it can't be read as such."""
    try:
        content = json.loads(read_bounded(folder / "claims.json", MOST_BYTES_KEPT))
        return [_kept_verdict(claim) for claim in content["claims"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _kept_verdict(claim: Mapping[str, Any]) -> KeptVerdict:
    verdict = (claim["family"] or claim)["verdict"]
    if verdict not in VERDICTS or claim["kind"] not in KINDS:
        raise ValueError
    directory = Path(claim["directory"]) if claim["directory"] else None
    return KeptVerdict(claim["study"], claim["claim"], claim["kind"], verdict, directory)
