"""Seals of a user's own claims: a file with their digests from before the cells are trained."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
from pydantic import BaseModel, ConfigDict, ValidationError

from overfit_cli.claims.seals import could_fail, digests, wording
from overfit_cli.core.claim import Claim
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.files import error_text, read_bounded, write_whole
from overfit_cli.core.registry import claims_of
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import plural
from overfit_cli.core.training import Execution, training_conditions
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.worker import train_all

MOST_BYTES = 1 << 20
SUFFIX = ".seal.json"


class SealedClaim(BaseModel):
    """A claim in a seal: its digest, when it was sealed in UTC, the seeds of its design, its text.

    Older seals have no text.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    digest: str
    sealed: str
    seeds: tuple[int, ...]
    wording: str = ""


class Seal(BaseModel):
    """The content of a seal: the function's name, and the claims by name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    study: str
    claims: Mapping[str, SealedClaim]


def seal_path(study: AnyStudy) -> Path | None:
    """Return the path of a function's seal, beside its file; None for another study."""
    paths = [file.path for file in study.source_files() if file.path is not None]
    return paths[0].with_name(_file_name(study)) if paths else None


def _file_name(study: AnyStudy) -> str:
    return f"{study.name.replace(':', '-')}{SUFFIX}"


def read_seal(path: Path | None) -> Seal | None:
    """Return a seal; None where there is none."""
    if path is None or not path.exists():
        return None
    try:
        return Seal.model_validate_json(read_bounded(path, MOST_BYTES), strict=True)
    except (OSError, ValidationError) as error:
        why = error_text(error) if isinstance(error, OSError) else "it holds no seal"
        raise BadValue("out", str(path), f"{why}.") from error


def sealed_in_words(study: AnyStudy) -> dict[str, str]:
    """Say of each sealed claim of a function when it was sealed, or that it changed since.

    Nothing is said where there is no seal, or none that can be read.
    """
    try:
        seal = read_seal(seal_path(study))
    except UserError:
        return {}
    if seal is None:
        return {}
    sentences = {}
    for name, digest in digests(claims_of(study), with_code=True).items():
        if entry := seal.claims.get(name):
            date = entry.sealed[:10]
            same = entry.digest == digest
            before = f" as '{entry.wording}'" if entry.wording else ""
            sentences[name] = (
                f"Sealed on {date}, for {plural(len(entry.seeds), 'seed')}."
                if same
                else f"This claim has changed since it was sealed on {date}{before}."
            )
    return sentences


def seal_claims(grid: Grid, out: Path | None) -> tuple[Path, list[str], dict[str, str]]:
    """Seal the claims of a function; claims that are sealed already keep their date.

    Args:
        grid: the design: the settings and the seeds.
        out: the file; None for the one beside the function's.

    Returns:
        The path, the names of the claims, and of those that were sealed before the date.
    """
    study = grid.study
    claims = claims_of(study)
    if not claims:
        raise UserError(f"{study.name}: it has no claims; name them in experiment(claims=[...]).")
    path = out or seal_path(study) or Path(_file_name(study))
    seal = read_seal(path)
    before = dict(seal.claims) if seal else {}
    current = digests(claims, with_code=True)
    for name, digest in current.items():
        if name in before and before[name].digest != digest:
            raise UserError(
                f"{name}: it was sealed on {before[name].sealed[:10]}, and has changed since; "
                "give the changed claim another name."
            )
    _check_can_fail([claim for claim in claims if claim.name not in before], grid)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    texts = {claim.name: wording(claim) for claim in claims}
    sealed = {
        name: before.get(name)
        or SealedClaim(digest=digest, sealed=now, seeds=grid.seeds, wording=texts[name])
        for name, digest in current.items()
    }
    text = Seal(study=study.name, claims={**before, **sealed}).model_dump_json(indent=2) + "\n"
    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise BadValue("out", str(path), f"{error_text(error)}.", exit_code=1) from error
    return path, list(current), {name: entry.sealed for name, entry in before.items()}


def _check_can_fail(claims: list[Claim], grid: Grid) -> None:
    """Refuse a claim that fails in none of the made-up worlds."""
    if not claims:
        return
    cells = grid.cells()
    grid.study.prepare(cells[:1])
    with training_conditions():
        (result,) = train_all(grid.study, cells[:1], Execution(trajectories=True))
    if result.reason:
        raise UserError(f"The first cell failed: {result.reason}.", exit_code=1)
    rows = [{**cell.parameters.model_dump(), "seed": cell.seed} for cell in cells]
    design = pd.DataFrame(rows).assign(study=grid.study.name, status="done", reason="", steps=100)
    steps = pd.DataFrame({"step": [1, 10, 100]})
    logged = design.assign(key=range(len(design))).merge(steps, how="cross")
    for claim in claims:
        reads_cells = claim.reads == "cells"
        columns = result.measurements if reads_cells else result.trajectory
        names = [name for name in columns if name != "step"]
        world = design if reads_cells else logged
        if could_fail(claim, world, names) is None:
            measured = claim.judge(world.assign(**dict.fromkeys(names, 1.0)))
            why = f" ({measured.note})" if measured.verdict in ("not run", "inconclusive") else ""
            raise UserError(
                f"{claim.name}: no number could make it fail. It fails in none of the simulated "
                f"worlds of {len(cells)} cells{why}; state a margin that can be missed, or name "
                "more values of parameters and more seeds."
            )
