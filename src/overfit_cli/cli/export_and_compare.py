"""The commands `export` and `compare`: numbers of a run in files, and beside others."""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import overfit_cli
from overfit_cli.cli import options as cli
from overfit_cli.core import text
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.files import json_text
from overfit_cli.core.options import alternatives

if TYPE_CHECKING:
    import pandas as pd

    from overfit_cli.core.cells import Cells
    from overfit_cli.core.study import AnyStudy
    from overfit_cli.report.judge import Judged
    from overfit_cli.sweeps.store import RunDirectory


Format = Literal["csv", "parquet", "latex"]
ENDINGS: Mapping[str, Format] = {".csv": "csv", ".parquet": "parquet", ".tex": "latex"}


def file_format(to: Format | None, out: Path | None) -> Format:
    """Return the format that is asked for, in words or by the file's ending."""
    form = to or ("csv" if out is None else ENDINGS.get(out.suffix.lower()))
    if form is None or (out is None and form == "parquet"):
        formats, endings = alternatives(get_args(Format)), alternatives(ENDINGS)
        takes = f"add --to {formats}, or a file that ends in {endings}."
        raise UserError(f"--out {out}: {takes}" if out else "--to parquet: add --out FILE.parquet.")
    return form


def export(
    directory: Path = cli.argument("DIR", "Run directory.", "runs"),
    to: Format | None = cli.option(
        "csv|parquet|latex", "Format.  [default: by the name after --out, else csv]"
    ),
    out: Path | None = cli.option("FILE", "File to write.  [default: standard output]"),
    means: bool = cli.flag("Means over seeds with intervals, as LaTeX has them.", "--means"),
    columns: str | None = cli.option(
        "A,B,...",
        "Measured columns, and constant parameters; every row has the parameters that "
        "vary.  [default: all; in LaTeX the study's main column]",
    ),
    where: list[str] = cli.WHERE,
    trajectories: bool = cli.flag("Logged steps instead of cells.", "--trajectories"),
) -> int:
    """Write the numbers of a run as CSV, parquet or LaTeX."""
    from overfit_cli.sweeps.load import load_run
    from overfit_cli.sweeps.manifest import warn_of_sources
    from overfit_cli.sweeps.store import RunDirectory

    out = None if out == Path("-") else out
    form = file_format(to, out)
    if trajectories and (means or form == "latex"):
        raise UserError("--trajectories: means and LaTeX are of cells; leave it out.")
    run = RunDirectory(directory, "directory")
    data = load_run(run)
    data = data.without_plan().where(*where).in_order()
    warn_of_sources(run.path, data.run.sources, data.frame)
    if means or form == "latex":
        rows = _means(data, columns, form)
    else:
        rows = _rows(data, run, columns, trajectories=trajectories)
    if form == "parquet":
        content = rows.to_parquet(index=False)
    elif form == "latex":
        content = _in_latex(data, rows).encode()
    else:
        content = rows.to_csv(index=False, lineterminator="\n").encode()
    cli.write_content(text.console(), out or Path("-"), content, "out")
    return 0


def _means(data: Cells, columns: str | None, form: Format) -> pd.DataFrame:
    from overfit_cli.sweeps.load import means_over_seeds

    study, numbers = data.study, data.measured
    settings = list(study.parameters.model_fields)
    chosen = _read_columns(columns, study, [*settings, *numbers, "seeds", "failed"])
    main = [name for name in numbers if name == study.headline and form == "latex"]
    measured = [name for name in chosen if name in numbers] or main or numbers
    return means_over_seeds(data, [name for name in chosen if name in settings], measured)


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


def _read_columns(given: str | None, study: AnyStudy, known: Collection[str]) -> list[str]:
    from overfit_cli.core.expressions import split
    from overfit_cli.core.parameters import parameter_named

    names = list[str]()
    for written in () if given is None else split(given, ",")[::2]:
        bare = written.strip("`")
        name = bare if bare in known else parameter_named(study.parameters, written)
        if name not in known:
            hint = text.suggestion(name, known)
            raise BadValue("columns", written, f"there is no column {name!r} here; {hint}")
        names.append(name)
    return [*dict.fromkeys(names)]


# LaTeX


def _in_latex(data: Cells, rows: pd.DataFrame) -> str:
    r"""Means over seeds as a table of booktabs, each as `$0.693 \pm 0.012$`.

    The numbers of seeds and of failed cells have columns where they tell something.
    """
    schema, study, cells = data.schema, data.study, data.frame
    counts = f"{text.plural(len(cells), 'cell')}, {text.plural(cells['seed'].nunique(), 'seed')}"
    notes = [
        r"\usepackage{booktabs}",
        f"{study.name}, version {study.version}: {counts}",
        f"{shlex.join(text.typed_command())}  (overfit {text.VERSION})",
        r"a \pm b: the mean over seeds, and half of its 95 % t interval",
    ]
    shown = list(rows.columns[: list(rows.columns).index("seeds")])
    shown += ["seeds"] if rows["seeds"].nunique() > 1 else []
    shown += ["failed"] if rows["failed"].any() else []
    shown += [n for n in map(str, rows) if n.removesuffix("_seeds") in {*rows} - {n}]
    table = rows[shown].map(_value)
    for name in (name for name in rows if f"{name}_high" in rows):
        halves = rows[f"{name}_high"] - rows[name]
        table[name] = [estimate(*each) for each in zip(rows[name], halves, strict=True)]
    sides = ["l" if rows[name].dtype.kind not in "iuf" else "r" for name in table]
    table.columns = [
        _head(schema[str(name)]) if name in schema.names else _escaped(str(name)) for name in table
    ]
    styled = table.rename(columns=str).style.hide(axis="index")
    comments = "".join(f"% {text.visible(note)}\n" for note in notes)
    return comments + str(styled.to_latex(hrules=True, column_format="".join(sides)))


def _head(field: Any) -> str:
    """The symbol of a number that is set, else words and symbol."""
    symbol = _escaped(f"${field.symbol}$") if field.symbol else ""
    if field.role == "parameter" and symbol.startswith("$") and field.is_number:
        return symbol
    words = _escaped(field.label or field.name)
    return f"{words} {symbol}".strip() if symbol.startswith("$") else words


def _escaped(words: str) -> str:
    """Words in LaTeX: formulas of a plain list between dollar signs stay, all else is escaped.

    A run directory that somebody sent may name a file to read, or a loop, as a formula.
    """
    from overfit_cli.core.parameters import is_plain

    pieces = re.split(r"(?<!\\)\$", text.visible(words))
    if len(pieces) % 2 == 0:  # a sign of money
        pieces = ["$".join(pieces)]
    for index, piece in enumerate(pieces):
        is_formula = index % 2 and is_plain(piece)
        as_words = f"${piece}$" if index % 2 else piece.replace(r"\$", "$")
        pieces[index] = f"${piece}$" if is_formula else as_words.translate(text.LATEX)
    # Behind a row's end a bracket or a star would be an argument of that.
    return re.sub(r"^(?=[\[*])", "{}", "".join(pieces))


def _value(given: Any, digits: int = 6) -> str:
    """A value as a formula; a text and a truth value as words."""
    if isinstance(given, str | bool):
        return _escaped(str(given))
    if isinstance(given, float) and math.isnan(given):
        return "--"
    number = f"{given + 0.0:.{digits}g}" if isinstance(given, float) else str(given)
    mantissa, _, exponent = number.replace("inf", r"\infty").partition("e")
    return rf"${mantissa} \cdot 10^{{{int(exponent)}}}$" if exponent else f"${mantissa}$"


def macros(judged: Sequence[Judged]) -> str:
    r"""Verdict, value and interval of claims as macros: `\claimEdgeVerdict`, of a claim `edge`."""
    lines, names = [f"% {text.visible(shlex.join(text.typed_command()))}"], Counter[str]()
    for each in judged:
        spoken = re.sub(r"(?<=-)-(?=\d)", " minus ", each.claim.name)
        spoken = re.sub(r"\d", lambda digit: f" {_DIGITS[int(digit[0])]} ", spoken)
        name = "".join(word.capitalize() for word in re.findall(r"[A-Za-z]+", spoken))
        names[name] += 1
        name += "Again" * (names[name] - 1)
        measured, interval = each.measurement, each.measurement.interval
        ends = [] if interval is None or interval.is_unknown else [interval.low, interval.high]
        value = math.nan if measured.value is None else float(measured.value)
        between = ", ".join(_value(float(end), digits=3).strip("$") for end in ends)
        told = {"Verdict": each.headline, "Value": _value(value, digits=3)}
        told["Interval"] = f"$[{between}]$" if between else "--"
        lines.append(f"% {text.visible(each.in_words())}")
        lines += [rf"\newcommand{{\claim{name}{what}}}{{{words}}}" for what, words in told.items()]
    return "\n".join(lines) + "\n"


_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
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
    scaled = [round(number / 10.0**power, digits) + 0.0 for number in (mean, half)]  # no -0.0
    both = r" \pm ".join(f"{number:.{max(digits, 0)}f}" for number in scaled)
    return rf"$({both}) \cdot 10^{{{power}}}$" if power else f"${both}$"


def compare(
    a: Path = cli.argument("A", "Run directory.", "runs"),
    b: Path = cli.argument(
        "B",
        "Another run directory, or a CSV or parquet file of published numbers with a "
        "column for each parameter that varies and for each measured column; or the name of a "
        "file that the study has, such as `published.csv`.",
        "runs",
    ),
    value: list[str] = cli.option(
        "COLUMN",
        "Measured column to compare, or an expression; may be repeated.  "
        "[default: all that both have]",
        default=[],
    ),
    where: list[str] = cli.WHERE,
    where_a: list[str] = cli.option("NAME=RANGE", "As --where, only for A.", default=[]),
    where_b: list[str] = cli.option("NAME=RANGE", "As --where, only for B.", default=[]),
    tolerance: str | None = cli.option(
        "P%|T",
        "Say by its interval whether each column is equivalent within 5% of the mean of B, or "
        "within 0.01 in its unit, differs, or is open. Exit with code 1 if one differs.",
    ),
    out: Path | None = cli.FIGURE_FILE,
    json_file: Path | None = cli.JSON_FILE,
) -> int:
    """Compare a run with another run, or with published numbers.

    Cells are paired by their parameters and seed; every difference is B − A.
    """
    how: Any = {"where": where, "where_a": where_a, "where_b": where_b, "tolerance": tolerance}
    comparison = overfit_cli.compare(a, b, value=value, out=out, **how)
    output = text.console(quiet=json_file == Path("-"))
    if out is not None:
        cli.say_drawn(output, out)
    cli.write_content(output, json_file, json_text(comparison.content).encode(), "json_file")
    for line in comparison.above():
        text.print_folded(output, line)
    output.print(text.text_table(comparison.rows(), ruled=True, right=("mean of A", "mean of B")))
    for line in comparison.below():
        text.print_folded(output, line)
    return int(tolerance is not None and comparison.differs)
