"""Figures drawn again from their records, by the code that drew them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from overfit_cli.cli.difference import draw_difference
from overfit_cli.cli.finding import Found, FoundFile, find_file, unusable
from overfit_cli.cli.look import checked_colour_map, look_of_record
from overfit_cli.drawing import Request, draw_parts, figure_and_data
from overfit_cli.errors import UserError
from overfit_cli.recording import run_record

if TYPE_CHECKING:
    from overfit_cli.figures.picture import Picture
    from overfit_cli.figures.provenance import ComparisonRecord, Provenance


class Plotted:
    """A figure of `overfit plot`.

    Args:
        record: its own.
    """

    points: FoundFile | str | None = None

    def __init__(self, record: Provenance) -> None:
        self.record = record

    def load(self, path: Path) -> list[Found | str]:
        """Return the directory at `path`: every run of the figure would be read in the same way."""
        from overfit_cli.sweeps.store import RunDirectory

        record, directory = self.record, RunDirectory(path)
        found: Found | str
        try:
            figure, data = figure_and_data(record.figure, directory, record.where)
        except UserError as error:
            found = unusable(path, directory.flag, error)
        else:
            found = Found(path, data, run_record(directory, data, figure, record.options))
        return [found] * len(record.sources)

    def draw(self, found: Sequence[Found]) -> Picture:
        """Draw the figure.

        Raises:
            UserError: as `draw_parts` does, and for a look or colours that nothing can have.
        """
        from overfit_cli.registry import figures_of
        from overfit_cli.sweeps.store import RunDirectory

        record = self.record
        checked_colour_map(record.options.cmap)
        directories = [RunDirectory(one.path) for one in found]
        names = [run.name for run in record.sources]
        request = Request(
            record.figure,
            directories[: len(record.runs)],
            record.options,
            record.where,
            directories[-1] if record.minus is not None else None,
            look_of_record(record.look),
            record.command,
            names=names if len(names) > 1 else (),
        )
        parts = [one.held for one in found]
        return draw_parts(request, figures_of(parts[0].study)[record.figure], parts)


class Compared:
    """A figure of `overfit compare`.

    Args:
        record: its own.
        compared: the part of it that says how.
        file: the figure.
        named: what the user named, among which its file of published numbers may be.
    """

    def __init__(
        self, record: Provenance, compared: ComparisonRecord, file: Path, named: Sequence[Path]
    ) -> None:
        self.record, self.compared = record, compared
        self.points: FoundFile | str | None = None
        if compared.published is not None:
            self.points = find_file(compared.published, file, named)

    def load(self, path: Path) -> list[Found | str]:
        """Return the directory at `path` as A, and as B if that is a run too."""
        own = (self.compared.where_a, self.compared.where_b)
        return [
            self._side(path, letter, where)
            for letter, where, _ in zip("AB", own, self.record.runs, strict=False)
        ]

    def _side(self, path: Path, letter: str, own: Sequence[str]) -> Found | str:
        from overfit_cli.report.comparison.recorded import record_of_side
        from overfit_cli.report.comparison.sides import load_run

        try:
            side = load_run(path, letter, self.record.where, own)
        except UserError as error:
            return unusable(path, letter, error)
        return Found(path, side, record_of_side(side, self.compared.columns[0]))

    def draw(self, found: Sequence[Found]) -> Picture:
        """Compare the sides, and draw the difference.

        Raises:
            UserError: as `compare_sides` and `draw_difference` do.
        """
        from overfit_cli.report.comparison.compare import compare_loaded
        from overfit_cli.report.comparison.sides import load_points

        compared, sides = self.compared, [one.held for one in found]
        names = [run.name for run in self.record.runs]
        if compared.published is not None and isinstance(self.points, FoundFile):
            where = self.record.where
            sides.append(load_points(self.points.path, sides[0], where, compared.where_b))
            names.append(compared.published.name)
        a, b = sides
        comparison = compare_loaded(a, b, compared.columns, interpolated=compared.interpolate)
        return draw_difference(comparison, self.record.command, names=names)
