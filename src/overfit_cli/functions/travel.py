"""A function's study on its way to a machine that has none of the user's files."""

from __future__ import annotations

import atexit
import functools
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from overfit_cli.errors import UserError
from overfit_cli.functions.own_files import OwnFile, with_imported
from overfit_cli.functions.record import FunctionRecord
from overfit_cli.functions.source import forget, parts_of
from overfit_cli.functions.study import FunctionStudy, study_loaded_from


@dataclass(frozen=True)
class Luggage:
    """A function's study with the user's files that it needs.

    Attributes:
        record, source_digest: of the study.
        place: the function's file among the files; empty for a module, which has its name.
        files: each file's content, by its path from the folder that imports find it in.
    """

    record: FunctionRecord
    source_digest: str
    place: str
    files: tuple[tuple[str, bytes], ...]

    def import_from(self) -> None:
        """Find imports among these files, and no more among those of other luggage."""
        _import_from(_folder(self))

    def unpacked(self) -> FunctionStudy:
        """Return the study, made of these files; with a problem where they can't be used here.

        Imports must be found among them.
        """
        return _unpacked(self)


def packed(study: FunctionStudy) -> Luggage | FunctionStudy:
    """Return a study as it travels: with its files, or as it is where it comes from none.

    Raises:
        UserError: if a file can't be read.
    """
    if study.function is None or not study.record.reference:
        return study
    where, _ = parts_of(study.record.reference)
    module = sys.modules.get(study.function.__module__ or "")
    file = Path(where if where.endswith(".py") else getattr(module, "__file__", None) or "")
    if not file.is_file():
        return study  # of an installed package: a worker has it, or says that it hasn't
    package = "" if where.endswith(".py") else getattr(module, "__package__", None) or ""
    try:
        files = tuple(
            (_path_in_root(one).as_posix(), one.path.read_bytes())
            for one in with_imported(OwnFile(file.resolve(), package))
            if one.path.is_file()
        )
    except OSError as error:
        raise UserError(f"{error.filename}: it can't be read ({error.strerror}).") from error
    place = file.name if where.endswith(".py") else ""
    return Luggage(study.record, study.source_digest, place, files)


def _path_in_root(file: OwnFile) -> Path:
    """The path of a file from the folder that imports find it in: its package's own parent."""
    depth = len(file.package.split(".")) if file.package else 0
    return file.path.relative_to(file.path.parents[depth])


@functools.cache
def _folder(luggage: Luggage) -> Path:
    """A folder of this process with the files."""
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name, content in luggage.files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


@functools.lru_cache(maxsize=16)
def _unpacked(luggage: Luggage) -> FunctionStudy:
    folder = _folder(luggage)
    where, name = parts_of(luggage.record.reference)
    reference = f"{folder / luggage.place if luggage.place else where}:{name}"
    study = FunctionStudy(luggage.record, source_digest=luggage.source_digest)
    try:
        found = study_loaded_from(reference)
    except UserError as error:
        study.problem = f"{luggage.record.name} can't be loaded on a worker: {error}"
        return study
    study.function = found.function
    if found.source_digest != luggage.source_digest:
        study.problem = f"{luggage.record.name}: its source isn't the same on a worker."
    return study


def _import_from(folder: Path) -> None:
    earlier = [path for path in sys.path if Path(path).name.startswith(_PREFIX)]
    forget({str(file) for path in earlier for file in Path(path).rglob("*.py")})
    sys.path[:] = [*(path for path in sys.path if path not in earlier), str(folder)]


_PREFIX = "overfit-luggage-"
