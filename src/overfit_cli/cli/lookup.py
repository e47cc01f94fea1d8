"""Quick looks at studies, files and run directories, for the completion of a command line.

They read no numbers but those of a manifest, and run no code of the user's. What they raise is not
for people: see `completion`.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from overfit_cli.cli.common import RESULTS
from overfit_cli.cli.subject import DEFAULT_STUDY

if TYPE_CHECKING:
    from overfit_cli.parameters import ParameterInfo
    from overfit_cli.study import AnyStudy

MOST_BYTES = 1 << 24
"""The largest file that is read while somebody waits for a word to be completed."""


def parameters_of(subject: str) -> Mapping[str, ParameterInfo]:
    """Return the parameters of a study, of a preset's study, or of a function in a file.

    Args:
        subject: how the user named it; empty for the study that is meant then.
    """
    from overfit_cli.registry import find_study, study_names
    from overfit_cli.sweeps.presets import find_preset

    subject = subject or DEFAULT_STUDY
    preset = None if subject in study_names() else find_preset(subject)
    study = subject if preset is None else preset.content.study
    if study in study_names():
        return described(find_study(study))
    return _arguments(subject)


def described(study: AnyStudy) -> Mapping[str, ParameterInfo]:
    """Return a study's parameters by name."""
    from overfit_cli.parameters import describe

    return describe(study.parameters)


def _arguments(reference: str) -> dict[str, ParameterInfo]:
    """The arguments of a function `FILE.py` or `FILE.py:NAME` by name, as its text tells them."""
    from overfit_cli.files import read_bounded
    from overfit_cli.functions.signature import SEED
    from overfit_cli.functions.source import PREFERRED
    from overfit_cli.parameters import ParameterInfo

    stem, _, name = f"{reference}:".partition(".py:")
    tree = ast.parse(read_bounded(Path(f"{stem}.py"), MOST_BYTES))
    functions = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}
    public = [one for one in functions if one[0] != "_"]
    name = name.rstrip(":") or (PREFERRED if PREFERRED in public else public[0])
    arguments = functions[name].args
    names = [one.arg for one in (*arguments.args, *arguments.kwonlyargs) if one.arg != SEED]
    return {one: ParameterInfo(one, "text", None, "", "", "", (), "") for one in names}


def choices(info: ParameterInfo) -> list[str]:
    """Return the values of a parameter that has few; else none."""
    return ["true", "false"] if info.kind == "bool" else list(info.choices)


def newest_run() -> Path:
    """Return the run directory in `results/` that was written last."""
    return max(RESULTS.glob("*/cells"), key=lambda folder: folder.stat().st_mtime).parent


def study_of_run(run: Path) -> AnyStudy:
    """Return the study of a run directory; of a function, what the directory remembers of it."""
    from overfit_cli.registry import find_study

    manifest = _manifest(run)
    if manifest.get("function") is None:
        return find_study(manifest["study"])
    from overfit_cli.functions.record import FunctionRecord
    from overfit_cli.functions.study import FunctionStudy

    return FunctionStudy(FunctionRecord.model_validate(manifest["function"]))


def values_in(run: Path) -> dict[str, list[str]]:
    """Return the values that a run directory has of each parameter and of `seed`, as texts."""
    found = dict[str, dict[str, None]]()
    for one in _manifest(run)["runs"]:
        for name, values in {**one["values"], "seed": one["seeds"]}.items():
            texts = (given if isinstance(given, str) else json.dumps(given) for given in values)
            found.setdefault(name, {}).update(dict.fromkeys(texts))
    return {name: list(texts) for name, texts in found.items()}


def _manifest(run: Path) -> Any:
    from overfit_cli.files import read_bounded

    return json.loads(read_bounded(run / "manifest.json", MOST_BYTES))


def numbers_of(
    study: AnyStudy, run: Path, kind: Literal["cells", "trajectories"]
) -> list[tuple[str, str]]:
    """Return the measured or the logged columns of a run, each with its meaning.

    What a function returned is known from the files alone.
    """
    if study.open_columns:
        import pyarrow.parquet as pq

        names = pq.read_schema(next((run / kind).glob("*.parquet"))).names
        first = names.index("steps") if kind == "cells" else 2
        return [(name, "") for name in names[first:]]
    if kind == "trajectories":
        return [(one.name, one.meaning) for one in study.trajectory_columns]
    common = [("steps", study.step), ("seconds", "time")]
    return [*((one.name, one.meaning) for one in study.columns), *common]
