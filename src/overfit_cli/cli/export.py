"""The command `export`: cells, means over seeds or logged steps, in files of other tools."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import typer

from overfit_cli.cli import completion
from overfit_cli.cli.options import WHERE, argument, flag, option
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.files import write_user_file
from overfit_cli.core.options import alternatives
from overfit_cli.core.text import VERSION, console, plural, suggestion, typed_command, visible

if TYPE_CHECKING:
    import pandas as pd

    from overfit_cli.core.cells import Cells
    from overfit_cli.core.study import AnyStudy
    from overfit_cli.sweeps.store import RunDirectory


Format = Literal["csv", "parquet", "latex"]
ENDINGS: Mapping[str, Format] = {".csv": "csv", ".parquet": "parquet", ".tex": "latex"}


def file_format(to: Format | None, out: Path | None) -> Format:
    """Return the format that is asked for, in words or by the file's ending."""
    form = to or ("csv" if out is None else ENDINGS.get(out.suffix.lower()))
    if form is None:
        formats, endings = alternatives(get_args(Format)), alternatives(ENDINGS)
        raise UserError(f"--out {out}: add --to {formats}, or end the name in {endings}.")
    if out is None and form == "parquet":
        raise UserError("--to parquet: it needs a file; add --out FILE.parquet.")
    return form


def print_content(content: bytes) -> None:
    """Put a file's content on standard output; on a terminal, where nothing in it is obeyed."""
    text = content.decode()
    if sys.stdout.isatty():
        text = "\n".join(visible(line) for line in text.split("\n"))
    elif hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8")
    typer.echo(text, nl=False)


def write_json(path: Path, content: str) -> bool:
    """Write JSON to a file, or for `-` to standard output; whether it is there."""
    is_shown = path == Path("-")
    if is_shown:
        print_content(content.encode())
    else:
        write_user_file(path, content.encode(), "json_file")
    return is_shown


def export(
    directory: Path = argument("DIR", "Run directory.", completion.run_directories),
    to: Format | None = option(
        "csv|parquet|latex", "Format.  [default: by the name after --out, else csv]"
    ),
    out: Path | None = option("FILE", "File to write.  [default: standard output]"),
    means: bool = flag("Means over seeds with intervals, as LaTeX has them.", "--means"),
    columns: str | None = option(
        "A,B,...",
        "Measured columns, and constant parameters; every row has the parameters that "
        "vary.  [default: all; in LaTeX the study's main column]",
    ),
    where: list[str] | None = WHERE,
    trajectories: bool = flag("Logged steps instead of cells.", "--trajectories"),
) -> int:
    """Write the numbers of a run as CSV, parquet or LaTeX."""
    from overfit_cli.sweeps.load import load_run
    from overfit_cli.sweeps.manifest import warn_of_sources
    from overfit_cli.sweeps.store import RunDirectory

    form = file_format(to, out)
    if trajectories and (means or form == "latex"):
        flag = "--means" if means else "--to latex"
        raise UserError(f"{flag}: it applies to cells; leave out --trajectories.")
    run = RunDirectory(directory, "directory")
    data = load_run(run)
    data = data.without_plan().where(*(where or ())).in_order()
    warn_of_sources(run.path, data.run.sources, data.frame)
    if means or form == "latex":
        rows, measured = _means(data, run, columns, form)
    else:
        rows, measured = _rows(data, run, columns, trajectories=trajectories), []
    if form == "parquet":
        content = rows.to_parquet(index=False)
    elif form == "latex":
        content = _in_latex(data, rows, measured).encode()
    else:
        content = rows.to_csv(index=False, lineterminator="\n").encode()
    if out is None:
        print_content(content)
    else:
        write_user_file(out, content, "out")
        console().print(f"Written: {out}")
    return 0


def _means(
    data: Cells, run: RunDirectory, columns: str | None, form: Format
) -> tuple[pd.DataFrame, list[str]]:
    from overfit_cli.sweeps.load import means_over_seeds

    study, numbers = data.study, data.measured
    settings = list(study.parameters.model_fields)
    chosen = _read_columns(columns, study, [*settings, *numbers, "seeds", "failed"])
    main = [name for name in numbers if name == study.headline and form == "latex"]
    measured = [name for name in chosen if name in numbers] or main or numbers
    if run.manifest.refined:
        warnings.warn(
            f"{run.path}: a sweep with --refine chose its cells, so that rows have different "
            "numbers of seeds (column seeds); a mean over few seeds may mislead.",
            UserWarning,
            stacklevel=2,
        )
    parameters = [name for name in chosen if name in settings]
    return means_over_seeds(data, parameters, measured), measured


def _rows(
    data: Cells, run: RunDirectory, columns: str | None, *, trajectories: bool
) -> pd.DataFrame:
    from overfit_cli.sweeps.load import logged_steps

    rows = data.frame
    if trajectories:
        steps = logged_steps(run, rows).sort_values("step", kind="stable")
        rows = rows[["key"]].merge(steps, on="key")  # in the order of the cells
    chosen = _read_columns(columns, data.study, [str(name) for name in rows.columns])
    if not chosen:
        return rows
    # What tells rows apart comes with every choice of columns.
    told_by = [*data.varying(), "seed", *["step"] * trajectories]
    return rows[[*(name for name in told_by if name not in chosen), *chosen]]


def _read_columns(text: str | None, study: AnyStudy, known: Collection[str]) -> list[str]:
    from overfit_cli.core.expressions import split
    from overfit_cli.core.parameters import parameter_named

    names = list[str]()
    for part in () if text is None else split(text, ",")[::2]:
        written = part.strip()
        bare = written.strip("`")
        name = bare if bare in known else parameter_named(study.parameters, written)
        if not name:
            raise BadValue("columns", text, "write names separated by commas.")
        if name not in known:
            hint = suggestion(name, known)
            raise BadValue("columns", written, f"there is no column {name!r} here; {hint}")
        names.append(name)
    return [*dict.fromkeys(names)]


# LaTeX


def _in_latex(data: Cells, rows: pd.DataFrame, measured: Sequence[str]) -> str:
    r"""Means over seeds as a table of booktabs, each as `$0.693 \pm 0.012$`.

    The numbers of seeds and of failed cells have columns where they tell something.
    """
    schema, study, cells = data.schema, data.study, data.frame
    counts = f"{plural(len(cells), 'cell')}, {plural(cells['seed'].nunique(), 'seed')}"
    notes = [
        r"\usepackage{booktabs}",
        f"{study.name}, version {study.version}: {counts}",
        f"{typed_command()}  (overfit {VERSION})",
        r"a \pm b: the mean over seeds, and half of its 95 % t interval",
    ]
    shown = list(rows.columns[: list(rows.columns).index("seeds")])
    shown += ["seeds"] if rows["seeds"].nunique() > 1 else []
    shown += ["failed"] if rows["failed"].any() else []
    table = rows[shown].map(_value)
    for name in measured:
        halves = rows[f"{name}_high"] - rows[name]
        table[name] = [estimate(*each) for each in zip(rows[name], halves, strict=True)]
    sides = ["l" if rows[name].dtype.kind not in "iuf" else "r" for name in table]
    table.columns = [_head(schema[str(name)]) if name in schema.names else name for name in table]
    styled = table.style.hide(axis="index").format(escape="latex-math")
    styled = styled.format_index(escape="latex-math", axis=1)
    comments = "".join(f"% {visible(note)}\n" for note in notes)
    return comments + str(styled.to_latex(hrules=True, column_format="".join(sides)))


def _head(field: Any) -> str:
    """The symbol of a number that is set, else words and symbol."""
    symbol = f"${field.symbol}$" if field.symbol else ""
    if field.role == "parameter" and symbol and field.is_number:
        return symbol
    return f"{field.label or field.name} {symbol}".strip()


def _value(given: Any, digits: int = 6) -> str:
    """A value as a formula; a text and a truth value stand as they are."""
    if isinstance(given, str | bool):
        return str(given)
    if isinstance(given, float) and math.isnan(given):
        return "--"
    number = f"{given + 0.0:.{digits}g}" if isinstance(given, float) else str(given)
    mantissa, _, exponent = number.replace("inf", r"\infty").partition("e")
    return rf"${mantissa} \cdot 10^{{{int(exponent)}}}$" if exponent else f"${mantissa}$"


_NEGLIGIBLE = 1e-6
"""Beside a mean this much larger, an interval is rounding."""


def estimate(mean: float, half: float) -> str:
    r"""Return a mean with half its interval, `$0.693 \pm 0.012$`: the half in two digits.

    Where there is no interval, or nothing but rounding in it, the mean stands alone.
    """
    if not math.isfinite(mean + half) or half <= _NEGLIGIBLE * abs(mean):
        return _value(float(mean), digits=4)
    power = math.floor(math.log10(max(abs(mean), half)))
    power = 0 if -4 < power < 5 else power
    digits = 1 + power - int(f"{half:.1e}".partition("e")[2])
    written = [
        f"{round(number / 10.0**power, digits) + 0.0:.{max(digits, 0)}f}" for number in (mean, half)
    ]
    both = r" \pm ".join(written)  # the sum with 0.0 above turns -0.0 into 0
    return rf"$({both}) \cdot 10^{{{power}}}$" if power else f"${both}$"
