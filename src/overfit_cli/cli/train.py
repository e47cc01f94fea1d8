"""`overfit train`: train one cell and show it learning."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from overfit_cli.cli.common import (
    DEFAULT_STUDY,
    RESULTS,
    DataFolder,
    DeviceName,
    Subject,
    console,
    duration,
    find_subject,
    next_lines,
    read_path,
    read_settings,
    read_whole,
    use_data,
)
from overfit_cli.cli.naming import named_after
from overfit_cli.errors import UserError

if TYPE_CHECKING:
    from rich.console import Console

    from overfit_cli.parameters import Value
    from overfit_cli.study import Study
    from overfit_cli.sweep.grid import Grid


def train(
    subject: Annotated[
        str,
        typer.Argument(metavar="STUDY|PRESET", help="What to train; `overfit list` names them."),
    ] = DEFAULT_STUDY,
    n: Annotated[str | None, typer.Option(metavar="VALUE", help="Short for --set n=VALUE.")] = None,
    snr: Annotated[
        str | None, typer.Option(metavar="VALUE", help="Short for --set snr=VALUE.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter's value."),
    ] = None,
    seed: Annotated[str, typer.Option(metavar="SEED", help="The cell's seed.")] = "0",
    out: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Run directory.  [default: results/NAME-SETTINGS]"),
    ] = None,
    data: DataFolder = None,
    device: Annotated[DeviceName, typer.Option(help="Where the cell trains.")] = DeviceName.AUTO,
) -> int:
    """Train one cell, show every step, and keep its trajectory."""
    from overfit_cli.device import resolve_device
    from overfit_cli.files import reason_of
    from overfit_cli.study import Execution
    from overfit_cli.sweep.grid import make_grid
    from overfit_cli.sweep.interrupts import answering_interrupts
    from overfit_cli.sweep.plan import make_plan
    from overfit_cli.sweep.presets import preset_texts
    from overfit_cli.sweep.provenance import check_data, record_run
    from overfit_cli.sweep.store import RunDirectory
    from overfit_cli.sweep.worker import storable, train_all

    use_data(data)
    chosen = find_subject(subject)
    texts, flags = read_settings(settings or [], {"n": n, "snr": snr})
    given = list(texts)
    if chosen.preset is not None:
        preset_values, places = preset_texts(chosen.preset, "quick")
        texts, flags = preset_values | texts, places | flags
    chosen_seed = read_whole("--seed", seed, 0)
    grid = make_grid(chosen.study, texts, (chosen_seed,), flags)
    _check_one_cell(grid)
    output = console()
    named = read_path("--out", out)
    directory = RunDirectory(named or RESULTS / _name(chosen, given, grid), "--out")
    where = resolve_device(device.value)
    cell = make_plan(grid, directory, where).cells[0]
    data_read = chosen.study.prepare([cell])
    check_data(directory.path, data_read)
    for sentence in directory.prepare():
        output.print(sentence)
    watch = Watch(output, chosen.study)
    execution = Execution(device=where, trajectories=True, on_step=watch.add)
    with answering_interrupts():
        [result] = train_all(chosen.study, [cell], execution)
        result = storable(chosen.study, result)
    watch.finish()
    try:
        record_run(directory.path, grid, {"jobs": 1, "device": where}, data_read)
        written = directory.write(chosen.study, [result])
        directory.finish(written, replaced=True)
    except OSError as error:
        raise UserError(
            f"{directory.path} can't be written to ({reason_of(error)}).", exit_code=1
        ) from error
    if not result.measurements:
        raise UserError(f"The cell failed: {result.reason}.", exit_code=1)
    for line in chosen.study.conclusion(result).splitlines():
        output.print(line)
    of_steps = [one.name for one in chosen.study.figures().values() if one.reads == "trajectories"]
    command = ["plot", of_steps[0]] if result.trajectory and of_steps else ["report"]
    following = next_lines([*command, "--from", str(directory.path)])
    output.print(" ".join([f"Took {duration(result.seconds)}.", *following]))
    return 0 if result.status == "done" else 1


class Watch:
    """Prints logged steps as they come: all of the first ones, then ever fewer, and the last.

    Args:
        output: where to.
        study: whose `watched` columns are shown.
    """

    def __init__(self, output: Console, study: Study) -> None:
        self._output = output
        self._columns = study.watched
        self._next = 0
        self._held: Mapping[str, float] | None = None
        self._headed = False

    def add(self, row: Mapping[str, float]) -> None:
        """Take in a logged step."""
        if row["step"] < self._next:
            self._held = row
            return
        if not self._headed:
            self._headed = True
            for line in _headings(self._columns):
                self._output.print(line)
        self._next = max(int(row["step"]) + 1, math.ceil(row["step"] * _THINNING))
        self._held = None
        numbers = [_number(row.get(name)).rjust(_WIDTH) for name in self._columns]
        self._output.print("  ".join([f"{int(row['step']):6d}", *numbers]))

    def finish(self) -> None:
        """Print the last step, if it was passed over."""
        if self._held is not None:
            self._next = 0
            self.add(self._held)


_WIDTH = 12
_THINNING = 1.1


def _headings(columns: Sequence[str]) -> list[str]:
    """The columns' names over their numbers, a part of the name a line."""
    parts = [["step"], *(name.split("_") for name in columns)]
    height = max(len(name) for name in parts)
    stacked = [[""] * (height - len(name)) + name for name in parts]
    return [
        "  ".join([line[0].rjust(6), *(part.rjust(_WIDTH) for part in line[1:])])
        for line in zip(*stacked, strict=True)
    ]


def _number(value: float | None) -> str:
    """A logged number in a few digits; a dash where none was logged."""
    return "–" if value is None else f"{value:.4g}"


def _name(chosen: Subject, given: Sequence[str], grid: Grid) -> str:
    """What the training's directory is called: the study or preset, and what was given."""
    if chosen.preset is not None and chosen.preset.content.directory and not given:
        return chosen.preset.run_name("quick")
    [seed] = grid.seeds
    values: dict[str, Sequence[Value]] = {name: grid.values[name] for name in given}
    return named_after(chosen.name, values | ({"seed": (seed,)} if seed else {}))


def _check_one_cell(grid: Grid) -> None:
    for name, values in grid.axes.items():
        flag = grid.flags.get(name, f"--set {name}")
        raise UserError(
            f"{flag}: a training takes one value of {name}, not {len(values)}; "
            "several are an axis of `overfit sweep`."
        )
