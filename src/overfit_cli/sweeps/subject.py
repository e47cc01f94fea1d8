"""Subject of a command: the study, preset or function that the user names, and its directory."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.files import check_data_variable, set_data_folder
from overfit_cli.core.parameters import Value, describe
from overfit_cli.core.registry import figures_of, find_study, study_names
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import brief, is_text, most_alike, suggestion
from overfit_cli.functions.function_study import study_of_reference
from overfit_cli.functions.references import is_reference, split_reference
from overfit_cli.sweeps.grid import Given, Grid, make_grid
from overfit_cli.sweeps.presets import MEASURED_ON, Preset, find_preset, preset_names, preset_texts
from overfit_cli.sweeps.ranges import parse_seeds

DEFAULT_STUDY = "benign-vit"
DEFAULT_PROFILE = "quick"
DEFAULT_SEEDS = "3"

LONGEST = 120
"""The most letters of a run directory's name."""

_NOT_IN_NAMES = '/\\:<>"|?*'
"""Characters of a text that no file's name may have on some system."""


@dataclass(frozen=True)
class Subject:
    """The subject of a command: a study, with a preset or a file."""

    study: AnyStudy
    typed: str
    preset: Preset | None = None
    profile: str = DEFAULT_PROFILE
    texts: Mapping[str, str] = field(default_factory=dict)
    seeds: str = DEFAULT_SEEDS
    together: tuple[str, ...] = ()
    only: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its name in the names of run directories."""
        if self.preset is not None:
            return self.preset.name
        function = self.study.identity.function
        return self.study.name if function is None else function.label

    @property
    def cell_seconds(self) -> float | None:
        """The seconds that a cell of its preset took in one job; None where that isn't known."""
        minutes = None if self.preset is None else self.preset.profile(self.profile).minutes
        if minutes is None:
            return None
        return 60 * minutes * MEASURED_ON / self.grid().size

    def grid(self) -> Grid:
        """Return its grid where the user changes nothing."""
        seeds = parse_seeds(self.seeds)
        return make_grid(self.study, self.texts, seeds, self.together, self.only)

    @property
    def sentences(self) -> Mapping[str, str]:
        """The claims that its preset states, by name."""
        return {} if self.preset is None else self.preset.content.claims

    @property
    def trajectories(self) -> bool:
        """Whether its preset logs every step."""
        return self.preset is not None and self.preset.content.trajectories

    @property
    def run_name(self) -> str:
        """The name of the run directory where nothing is changed."""
        return self.name if self.preset is None else self.preset.run_name(self.profile)


def find_subject(typed: str, profile: str | None = None) -> Subject:
    """Return what the user named: a study, a preset or its file, or a function.

    Args:
        typed: `benign-vit`, `fig1`, `mine.toml`, `FILE.py`, `FILE.py:NAME` or `module:NAME`.
    """
    if not is_text(typed):
        raise UserError(f"{typed}: the name isn't text; it takes a path in UTF-8.")
    installed = typed in study_names()
    preset = None if installed else find_preset(typed)
    if preset is not None:
        return _of_preset(preset, typed, profile or DEFAULT_PROFILE)
    if installed:
        _refuse_profile(profile, find_study(typed), typed)
        return Subject(find_study(typed), typed)
    if is_reference(typed):
        study = study_of_reference(typed)
        if study.name in study_names():
            raise UserError(f"{typed}: a study {study.name!r} is installed; give it another name.")
        _refuse_profile(profile, study, typed)
        return Subject(study, typed, seeds=DEFAULT_SEEDS if study.seeded else "1")
    near = most_alike(typed, [*study_names(), *preset_names()])
    near = f"{typed}.py" if Path(f"{typed}.py").is_file() else near
    hint = f"did you mean {near!r}?" if near else "`overfit list` names those that are installed."
    raise UserError(f"{typed!r} is neither a study nor a preset nor a file FILE.py; {hint}")


def _refuse_profile(profile: str | None, study: AnyStudy, typed: str) -> None:
    if profile is None:
        return
    named = "profile" in study.parameters.model_fields
    hint = "; the parameter profile is given by --set profile=VALUE" if named else ""
    raise BadValue(
        "profile", profile, f"{typed} is not a preset; only presets have profiles{hint}."
    )


def _of_preset(preset: Preset, typed: str, profile: str) -> Subject:
    content, chosen = preset.content, preset.profile(profile)
    study = _study_of(preset)
    figures = figures_of(study) if content.figures else {}
    for figure in content.figures:
        if figure not in figures:
            hint = suggestion(figure, figures)
            raise UserError(f"{preset.path.name}: {study.name} has no figure {figure!r}; {hint}")
    check_claims_of_preset(preset)
    texts = preset_texts(preset, profile)
    seeds = str(chosen.seeds) if study.seeded or "seeds" in chosen.model_fields_set else "1"
    try:
        make_grid(study, texts, (0,), chosen.together, chosen.only).check()
    except BadValue as error:  # the preset's own value: the user has given none of that name yet
        raise UserError(f"{preset.path.name}: {error}") from error
    return Subject(study, typed, preset, profile, texts, seeds, chosen.together, chosen.only)


def check_claims_of_preset(preset: Preset) -> None:
    """Refuse a preset whose claims are no sentences."""
    if not preset.content.claims:
        return
    from overfit_cli.claims.grammar import read

    for name, text in preset.content.claims.items():
        try:
            read(text)
        except BadValue as error:
            raise UserError(f"{preset.path.name}: claims.{name}: {error.accepts}") from error


def _study_of(preset: Preset) -> AnyStudy:
    """The study that a preset names, or the function: of a file beside the preset's own."""
    name = preset.content.study
    if name in study_names():
        return find_study(name)
    if not is_reference(name):
        hint = suggestion(name, study_names())
        raise UserError(
            f"{preset.path.name}: {name!r} is neither a study nor a file FILE.py; {hint}"
        )
    try:
        is_file = split_reference(name)[0].endswith(".py")
        return study_of_reference(str(preset.path.parent / name) if is_file else name)
    except UserError as error:
        raise UserError(f"{preset.path.name}: {error}") from error


def take_data_folder(study: AnyStudy, folder: Path | None) -> None:
    """Let a study read its data in a folder that the user names; None for that of the variable."""
    is_function = study.identity.function is not None
    if folder is None:
        if not is_function:
            check_data_variable()
        return
    if is_function:
        raise BadValue(
            "data",
            str(folder),
            f"{study.name} is a function, which opens its files by itself; name them in "
            '@experiment(data=["FILE"]), and a run directory accepts only their present content.',
        )
    set_data_folder(folder)


def sweep_name(chosen: Subject, grid: Grid) -> str:
    """Return the name of a sweep's run directory: its study or preset, and what differs from it."""
    defaults: dict[str, Sequence[Given | None]] = {
        name: [info.default] for name, info in describe(chosen.study.parameters).items()
    }
    defaults.update(make_grid(chosen.study, chosen.texts, (0,)).given)
    differing = {
        name: grid.values[name] if name in grid.derived else cast("tuple[Value, ...]", taken)
        for name, taken in grid.given.items()
        if set(taken) != set(defaults[name])
    }
    return named_after(chosen.run_name, differing)


def named_after(base: str, values: Mapping[str, Sequence[Value]]) -> str:
    """Return `base` with what sets a run apart: `benign-vit-n20-snr`.

    Of an axis the name alone is told: it may grow, and its cells are then reused.
    """
    parts = [
        name if len(taken) > 1 else f"{name}{brief(taken[0], 12)}" for name, taken in values.items()
    ]
    name = "-".join([base, *parts])
    name = "".join("_" if letter in _NOT_IN_NAMES else letter for letter in name)
    if len(name) <= LONGEST:
        return name
    mark = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: LONGEST - len(mark) - 1]}-{mark}"
