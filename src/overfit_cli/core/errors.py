"""Errors that a user reads: a sentence, and its exit code."""

from __future__ import annotations


class UserError(Exception):
    """A sentence for the user: the given value, and the accepted ones.

    The command line catches it in one place, prints the sentence and exits with `exit_code`:
    2 for bad input, 1 when something ran and failed.
    """

    def __init__(self, sentence: str, *, exit_code: int = 2) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


class BadValue(UserError):
    """A value that its parameter or option does not accept.

    Python shows `name='value': …`, and the command line `--name value: …`.

    Args:
        name: the name of the parameter or the argument, as Python spells it: `retry_failed`.
        value: the given value; None to show no value.
        accepts: the error and the accepted values: `it takes a number above 0.`
    """

    def __init__(self, name: str, value: object, accepts: str, *, exit_code: int = 2) -> None:
        start = name if value is None else f"{name}={value!r}"
        super().__init__(f"{start}: {accepts}", exit_code=exit_code)
        self.name, self.value, self.accepts = name, value, accepts


class MissingError(UserError):
    """Data or an optional package that a study needs and that isn't here."""


class MissingValue(BadValue, MissingError):
    """A value that names data which isn't there."""
