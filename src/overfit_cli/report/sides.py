"""The two sides of a comparison: the chosen cells of a run directory, or published points.

Two sides share the parameters that vary and the measured columns that both have numbers of.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from overfit_cli.core.arrays import finite_column
from overfit_cli.core.parameters import Value, describe
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import BadValue, UserError, nearest, plural
from overfit_cli.report.published import read_published
from overfit_cli.stats.pairs import (
    Pairs,
    setting_key,
)
from overfit_cli.sweeps.load import (
    chosen_cells,
    load_study_and_cells,
    parameters_in,
    read_selections,
)
from overfit_cli.sweeps.manifest import read_manifest
from overfit_cli.sweeps.store import RunDirectory


def asked_columns(a: Side, b: Side, values: Sequence[str]) -> list[str]:
    """Return the columns that the user names.

    Raises:
        UserError: if a name is unknown, or a side has no number of it.
    """
    known = [*_measured(a), "seconds"]
    for name in values:
        if name not in known:
            unknown = f"{a.study.name} measures no {name!r}; {nearest(name, known)}"
            raise BadValue("value", name, unknown)
        for side in (a, b):
            if not _has_numbers(side, name):
                lack = f"{side.letter} {side.path} has no number of it."
                raise BadValue("value", name, lack)
    return list(dict.fromkeys(values))


def shared_columns(a: Side, b: Side) -> list[str]:
    """Return the columns that both sides have numbers of, the headline first.

    Raises:
        UserError: if there is none.
    """
    of_a = [name for name in _measured(a) if _has_numbers(a, name)]
    shared = [name for name in of_a if _has_numbers(b, name) and not _counts_nothing(name, a, b)]
    if not of_a:
        raise UserError(f"A {a.path}: none of its {plural(len(a.cells), 'cell')} has a number.")
    if not shared:
        raise UserError(
            f"B {b.path}: it has no number of what A has numbers of: {', '.join(of_a)}."
        )
    return shared


def lonely_columns(one: Side, other: Side) -> list[str]:
    """Return the columns that one side has numbers of, and the other doesn't."""
    names = _measured(one)
    return [name for name in names if _has_numbers(one, name) and not _has_numbers(other, name)]


def _measured(side: Side) -> list[str]:
    """What a study measures, the headline first."""
    study = side.study
    names = [study.headline, *(column.name for column in study.columns), "steps"]
    return [name for name in dict.fromkeys(names) if name]


def _has_numbers(side: Side, name: str) -> bool:
    return name in side.cells and bool(finite_column(side.cells, name).notna().any())


def _counts_nothing(name: str, a: Side, b: Side) -> bool:
    """Whether these are the steps of a study that takes none."""
    return name == "steps" and not any(finite_column(one.cells, name).any() for one in (a, b))


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
        return sorted({setting_key(value): value for value in found}.values())


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
    selections += read_selections(own, study, f"where_{letter.lower()}")
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
    shared += read_selections(own, other.study, "where_b")
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
            if len(first) == len(second) == 1 and setting_key(first[0]) != setting_key(second[0]):
                found[name] = (first[0], second[0])
    return found


MOST_VALUES = 4
"""Of more values of a parameter, a sentence says the first and the last."""


def why_no_pair(a: Side, b: Side, names: Sequence[str], pairs: Pairs, *, interpolated: bool) -> str:
    """Return a sentence on why no cells are paired.

    Where both sides have no value of a parameter in common, it says which, and what to do.

    Args:
        a, b: the two sides.
        names: the parameters in whose values pairs agree.
        pairs: what was tried.
        interpolated: whether A was interpolated at B's points.
    """
    no_pair = f"B {b.path}: no {'point' if b.is_published else 'cell'} of it has"
    apart = [name for name in names if not _shared(a, b, name)]
    if not apart:
        seed = "the seed and " if pairs.by == "seed" else ""
        return f"{no_pair} {seed}the values of {', '.join(names)} of a cell of A."
    differs = "; ".join(
        f"{name} is {_listed(a.values(name))} in A and {_listed(b.values(name))} in B"
        for name in apart
    )
    chosen = "".join(word for name in apart for side in (a, b) for word in _choice(side, name))
    choose = f"choose one value on each side with{chosen}"
    between = not interpolated and all(_is_between(a, b, name) for name in apart)
    interpolate = "compare between A's values with --interpolate, or " if between else ""
    return f"{no_pair} a counterpart: {differs}; {interpolate}{choose}."


def _shared(a: Side, b: Side, name: str) -> bool:
    first, second = ({setting_key(value) for value in side.values(name)} for side in (a, b))
    return bool(first & second)


def _is_between(a: Side, b: Side, name: str) -> bool:
    """Whether some of B's values of a parameter lie between values of A."""
    info = describe(a.study.parameters).get(name)
    if info is None or info.kind not in ("int", "float"):
        return False
    own = [float(value) for value in a.values(name)]
    return any(own[0] < float(value) < own[-1] for value in b.values(name))


def _choice(side: Side, name: str) -> list[str]:
    """The option that leaves one value of a parameter on a side; none where it has one."""
    values = side.values(name)
    option = f" --where-{side.letter.lower()} {shlex.quote(f'{name}={values[0]}')}"
    return [option] if len(values) > 1 else []


def _listed(values: Sequence[Value]) -> str:
    """Values with commas; the first and the last of many."""
    texts = [f"{value:g}" if isinstance(value, float) else str(value) for value in values]
    if len(texts) > MOST_VALUES:
        return f"{texts[0]} to {texts[-1]}"
    return ", ".join(texts)
