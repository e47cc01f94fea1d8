"""Errors that a user reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from overfit_cli.core.text import shorten

if TYPE_CHECKING:
    from pydantic import ValidationError


class UserError(Exception):
    """A sentence for the user: the given value, and the accepted ones.

    The command line prints it and exits with `exit_code`: 2 for bad input, 1 when something failed.
    """

    def __init__(self, sentence: str, *, exit_code: int = 2) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


class BadValue(UserError):
    """A value that its parameter or option does not accept, with what it takes.

    Python shows `name='value': …`, and the command line `--name value: …`.
    """

    def __init__(self, name: str, value: object, accepts: str, *, exit_code: int = 2) -> None:
        start = name if value is None else f"{name}={value!r}"
        super().__init__(f"{start}: {accepts}", exit_code=exit_code)
        self.name, self.value, self.accepts = name, value, accepts


def first_problem(error: ValidationError) -> str:
    """Return what pydantic refuses first, with its place: `runs.0.seeds: Field required`."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return ": ".join(filter(None, [shorten(".".join(map(str, first["loc"][:4]))), first["msg"]]))


class MissingError(UserError):
    """Data or an optional package that a study needs and that isn't here."""


class MissingValue(BadValue, MissingError):
    """A value that names data which isn't there."""
