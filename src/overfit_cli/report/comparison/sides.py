"""The two sides of a comparison: the chosen cells of a run directory, or published points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from overfit_cli.analysis.pairs import as_place
from overfit_cli.errors import UserError
from overfit_cli.parameters import Value
from overfit_cli.report.comparison.published import read_published
from overfit_cli.study import AnyStudy
from overfit_cli.sweeps.loading import load_study_and_cells, parameters_in
from overfit_cli.sweeps.manifest import read_manifest
from overfit_cli.sweeps.selection import chosen_cells, read_selections
from overfit_cli.sweeps.store import RunDirectory


@dataclass(frozen=True)
class Side:
    """One side of a comparison.

    Attributes:
        letter: `A` or `B`.
        path: the run directory, or the CSV file.
        where: the conditions that choose cells of this side alone.
        shared: those that choose cells of both sides.
        study: whose cells they are; of published points, that of the other side.
        cells: one row per cell, done and failed; published points have a seed or none.
        parameters: the names of the parameters that the cells have a column of.
        version: the cells' numerical version; None of published points.
        refined: whether a sweep chose the cells one by one.
        data: fingerprints of the data that the cells were trained on, by name.
    """

    letter: str
    path: Path
    where: tuple[str, ...]
    shared: tuple[str, ...]
    study: AnyStudy
    cells: pd.DataFrame
    parameters: tuple[str, ...]
    version: int | None = None
    refined: bool = False
    data: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_published(self) -> bool:
        """Whether it is a file of published points, and no run."""
        return self.version is None

    @property
    def is_of_another_version(self) -> bool:
        """Whether the study here has another numerical version than the cells."""
        return self.version not in (None, self.study.version)

    def values(self, name: str) -> list[Value]:
        """Return the values that a parameter takes, in order; those of one place once."""
        found: list[Value] = self.cells[name].dropna().unique().tolist()
        return sorted({as_place(value): value for value in found}.values())


def load_run(path: Path, letter: str, where: Sequence[str], own: Sequence[str]) -> Side:
    """Return the side that a run directory is, of whatever version its cells are.

    Args:
        path: the run directory.
        letter: `A` or `B`.
        where: conditions that choose cells of both sides.
        own: conditions that choose cells of this one.

    Raises:
        UserError: if it holds no cells, or none that is chosen.
    """
    directory = RunDirectory(path, letter)
    study, cells = load_study_and_cells(directory, any_version=True)
    selections = read_selections(where, study)
    selections += read_selections(own, study, f"--where-{letter.lower()}")
    manifest = read_manifest(path)
    return Side(
        letter,
        path,
        tuple(own),
        tuple(where),
        study,
        chosen_cells(cells, selections).reset_index(drop=True),
        tuple(parameters_in(cells)),
        int(cells["version"].iloc[0]),
        manifest is not None and manifest.refined,
        {} if manifest is None else manifest.data,
    )


def load_points(path: Path, other: Side, where: Sequence[str], own: Sequence[str]) -> Side:
    """Return the side that a CSV file of published points is.

    Args:
        path: the file.
        other: the run that it is compared with, whose study has measured the same.
        where: conditions that choose cells of both sides; those on what the file doesn't have are
            about the run alone.
        own: conditions that choose points.

    Raises:
        UserError: if it can't be read (see `read_published`), or no point is chosen.
    """
    points = read_published(path, other.study)
    columns = list(points.columns)
    shared = [one for one in read_selections(where, other.study) if one.name in columns]
    shared += read_selections(own, other.study, "--where-b")
    chosen = chosen_cells(points, shared).reset_index(drop=True)
    names = [name for name in columns[: columns.index("status")] if name != "seed"]
    return Side("B", path, tuple(own), tuple(where), other.study, chosen, tuple(names))


def names_of(a: Side, b: Side) -> tuple[str, str]:
    """Return what two sides are called: by the last part of their paths, in full if they share it.

    The conditions on one side alone are part of its name.
    """
    whole = [one.path.resolve() for one in (a, b)]
    alike = whole[0].name == whole[1].name and whole[0] != whole[1]
    called = [str(one.path) if alike else one.path.resolve().name for one in (a, b)]
    first, second = (
        f"{name} ({', '.join(one.where)})" if one.where else name
        for name, one in zip(called, (a, b), strict=True)
    )
    return first, second


def shared_axes(a: Side, b: Side) -> list[str]:
    """Return the parameters that vary on either side, in whose values pairs agree.

    Raises:
        UserError: if a side doesn't have a parameter that varies on the other.
    """
    order = list(dict.fromkeys([*a.parameters, *b.parameters]))
    varying = [
        name
        for name in order
        if any(name in one.parameters and len(one.values(name)) > 1 for one in (a, b))
    ]
    for one, other in ((a, b), (b, a)):
        for name in varying:
            if name not in one.parameters:
                what = "it has no column" if one.is_published else "its cells have no parameter"
                of = ""
                if one.study.name != other.study.name:
                    of = f" A is of {a.study.name}, and B of {b.study.name}:"
                raise UserError(
                    f"{one.letter} {one.path}:{of} {what} {name}, which varies in {other.letter}; "
                    f"choose one value with --where-{other.letter.lower()} {name}=VALUE."
                )
    return varying


def different_settings(a: Side, b: Side) -> dict[str, tuple[Value, Value]]:
    """Return the parameters that have one value on each side, and not the same one."""
    found = {}
    for name in a.parameters:
        if name in b.parameters:
            first, second = a.values(name), b.values(name)
            if len(first) == len(second) == 1 and as_place(first[0]) != as_place(second[0]):
                found[name] = (first[0], second[0])
    return found
