"""Location of a user's data: `--data DIR`, or the variable OVERFIT_DATA."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overfit_cli.errors import MissingError, UserError

if TYPE_CHECKING:
    from numpy.typing import NDArray

VARIABLE = "OVERFIT_DATA"


def set_data_folder(path: Path) -> None:
    """Make `path` the data folder of this process and of those that it starts.

    Raises:
        UserError: if there is nothing there.
    """
    if not path.exists():
        raise UserError(f"--data {path}: there is no such folder or file.")
    os.environ[VARIABLE] = str(path.resolve())


def data_folder(asked_by: str) -> Path:
    """Return the data folder.

    Args:
        asked_by: what needs data, for the message, such as `--set source=imdb`.

    Raises:
        MissingError: if none was named.
    """
    given = os.environ.get(VARIABLE)
    if not given:
        raise MissingError(
            f"{asked_by} needs data: name its folder in the variable {VARIABLE}, or with "
            "--data DIR where a command takes it."
        )
    return Path(given)


@contextlib.contextmanager
def naming_data(folder: Path) -> Iterator[None]:
    """Have what is said of missing or malformed data in here name the flag and its value.

    Raises:
        UserError: what was raised inside, of the same kind, beginning with `--data`.
    """
    try:
        yield
    except UserError as error:
        said = str(error)
        named = said if said.startswith(f"{folder}:") else f"{folder}: {said}"
        raise type(error)(f"--data {named}", exit_code=error.exit_code) from error


def fingerprint(*arrays: NDArray[Any]) -> str:
    """Return a name for what the arrays hold: the same for the same numbers."""
    import numpy as np

    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()[:24]
