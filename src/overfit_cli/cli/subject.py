"""The subject of a command: a study, a preset, or a function in a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from overfit_cli.errors import UserError, nearest
from overfit_cli.plain_text import is_text

if TYPE_CHECKING:
    from overfit_cli.study import AnyStudy
    from overfit_cli.sweeps.presets import Preset

DEFAULT_STUDY = "benign-vit"
DEFAULT_PROFILE = "quick"
DEFAULT_SEEDS = "3"


@dataclass(frozen=True)
class Subject:
    """What a command is about.

    Attributes:
        study: what is trained.
        typed: how the user named it.
        preset: the preset that named the study, if one did.
        profile: how much of the preset is run.
        texts: the ranges that the preset sets, by parameter.
        places: where it sets them, for messages.
        seeds: the seeds to run if the user names none.
    """

    study: AnyStudy
    typed: str
    preset: Preset | None = None
    profile: str = DEFAULT_PROFILE
    texts: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)
    seeds: str = DEFAULT_SEEDS

    @property
    def name(self) -> str:
        """What it is called in the names of run directories."""
        return self.study.label if self.preset is None else self.preset.name

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
        profile: how much of a preset to run; None where none is asked for.

    Raises:
        UserError: if there is none of them, or it has no profiles.
    """
    from overfit_cli.functions.source import is_reference
    from overfit_cli.functions.study import FunctionStudy, study_of_reference
    from overfit_cli.registry import find_study, study_names
    from overfit_cli.sweeps.presets import find_preset, preset_names

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
        study: FunctionStudy = study_of_reference(typed)
        if study.name in study_names():
            raise UserError(f"{typed}: a study {study.name!r} is installed; give it another name.")
        _refuse_profile(profile, study, typed)
        return Subject(study, typed, seeds=DEFAULT_SEEDS if study.record.seeded else "1")
    known = [*study_names(), *preset_names()]
    raise UserError(
        f"{typed!r} is neither a study nor a preset nor a file FILE.py; {nearest(typed, known)}"
    )


def _refuse_profile(profile: str | None, study: AnyStudy, typed: str) -> None:
    if profile is None:
        return
    named = "profile" in study.parameters.model_fields
    own = "; write --set profile=VALUE for the parameter profile" if named else ""
    raise UserError(
        f"--profile {profile}: {typed} is not a preset; only presets have profiles{own}."
    )


def _of_preset(preset: Preset, typed: str, profile: str) -> Subject:
    """A preset with its study, if that has what the preset names."""
    from overfit_cli.registry import figures_of, find_study, study_names
    from overfit_cli.sweeps.presets import preset_texts

    content = preset.content
    if content.study not in study_names():
        hint = nearest(content.study, study_names())
        raise UserError(f"{preset.path.name}: {content.study!r} is not a study; {hint}")
    study = find_study(content.study)
    known = figures_of(study) if content.figures else {}
    for figure in content.figures:
        if figure not in known:
            hint = nearest(figure, known)
            raise UserError(f"{preset.path.name}: {study.name} has no figure {figure!r}; {hint}")
    texts, places = preset_texts(preset, profile)
    seeds = str(preset.profile(profile).seeds)
    return Subject(study, typed, preset, profile, texts, places, seeds)
