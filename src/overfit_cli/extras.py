"""Packages that only some studies need: the optional extras of this package."""

from __future__ import annotations

import importlib.util

from overfit_cli.errors import MissingError


def require_extra(package: str, extra: str, asked_by: str) -> None:
    """Say what to install where a package isn't there; nothing is imported.

    Args:
        package: the one that is needed.
        extra: the extra of this package that has it.
        asked_by: what needs it, for the message.

    Raises:
        MissingError: if it isn't installed.
    """
    try:
        installed = importlib.util.find_spec(package) is not None
    except ValueError:  # something else was put in its place
        installed = False
    if not installed:
        raise MissingError(
            f"{asked_by} needs the package {package}, which isn't installed: "
            f"`pip install 'overfit-cli[{extra}]'` installs it."
        )
