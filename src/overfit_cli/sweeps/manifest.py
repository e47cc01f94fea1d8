"""`manifest.json`: what was run into a directory. Anybody may have edited it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from overfit_cli.files import read_bounded, reason_of
from overfit_cli.functions.record import FunctionRecord
from overfit_cli.sweeps.grid import MOST_CELLS

MANIFEST = "manifest.json"
MOST_BYTES = 1 << 26

_Whole = Annotated[int, Field(ge=-(2**63), lt=2**63)]
_Real = Annotated[float, Field(allow_inf_nan=False)]
_Value = bool | _Whole | _Real | str


class Run(BaseModel):
    """One sweep or training into the directory that trained something.

    Attributes:
        values: for each parameter that was set, its values.
        axes: the parameters that took several.
        seeds: the seeds of every point.
        settings: how it was run (jobs, backend, device, ...).
        command: what was typed.
        started: when, in UTC, as ISO 8601.
        packages: the versions of what computes, stores and draws.
        python, platform, processor, cores: what it ran on.
        git_commit: the commit of the code, where it ran from a checkout.
        source: a digest of the code that trained, where that was a function's.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    values: Mapping[str, tuple[_Value, ...]]
    seeds: tuple[Annotated[int, Field(ge=0, lt=2**63)], ...]
    axes: tuple[str, ...] = ()
    settings: Mapping[str, _Value | None] = Field(default_factory=dict)
    command: tuple[str, ...] = ()
    started: str = ""
    packages: Mapping[str, str | None] = Field(default_factory=dict)
    python: str = ""
    platform: str = ""
    processor: str = ""
    cores: int | None = None
    git_commit: str | None = None
    source: str = ""

    @property
    def size(self) -> int:
        """The number of cells that it was to cover."""
        return math.prod(len(taken) for taken in self.values.values()) * len(self.seeds)

    @model_validator(mode="after")
    def _can_be_gone_through(self) -> Run:
        if self.size > MOST_CELLS:
            raise ValueError(f"it covers {self.size} cells, and a sweep takes up to {MOST_CELLS}")
        return self


class Manifest(BaseModel):
    """What `manifest.json` holds.

    Attributes:
        schema_version: of the file's own form.
        study, version: whose cells these are, and the numerical version that ran last.
        data: fingerprints of the collections that the cells were trained on, by name.
        runs: every run that trained something, the first one first.
        function: what is known of the study, where it is a function.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    schema_version: Literal[1] = Field(alias="schema")
    study: Annotated[str, Field(min_length=1)]
    version: _Whole
    data: Mapping[str, str] = Field(default_factory=dict)
    runs: tuple[Run, ...] = ()
    function: FunctionRecord | None = None

    @property
    def refined(self) -> bool:
        """Whether a sweep chose cells one by one, where the boundary was uncertain."""
        return any("refine" in run.settings for run in self.runs)


def read_manifest(directory: Path) -> Manifest | None:
    """Return the manifest; None where there is none, or, with a warning, none that can be read."""
    path = directory / MANIFEST
    try:
        return Manifest.model_validate_json(read_bounded(path, MOST_BYTES), strict=True)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        reason = reason_of(error)
    except ValidationError as error:
        reason = _in_words(error)
    warnings.warn(
        f"{path} can't be read ({reason}); the directory counts as one without a manifest.",
        UserWarning,
        stacklevel=2,
    )
    return None


def is_unreadable(directory: Path) -> bool:
    """Whether there is a manifest that can't be read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return (directory / MANIFEST).exists() and read_manifest(directory) is None


def _in_words(error: ValidationError) -> str:
    """The first thing that is wrong, with its place."""
    first: Any = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"][:4])
    said = str(first["msg"]).removeprefix("Value error, ")
    return f"{place}: {said}" if place else said
