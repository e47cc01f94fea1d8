"""A run directory that somebody sent can't have its own code executed."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import overfit_cli
from overfit_cli.core.errors import UserError
from overfit_cli.functions.function_study import study_of_record
from overfit_cli.functions.references import refuse_sent_code
from overfit_cli.sweeps.manifest import read_manifest
from tests.command import call

MINE = """
from overfit_cli import experiment

@experiment(claims=["loss < 5"])
def train(n: int = 2, seed: int = 0):
    return {"loss": n + seed}
"""
SENT = f"""
from pathlib import Path
Path(__file__).with_name("executed").touch()
{MINE}
"""
READERS = (
    ("report", "run", "--out=page"),
    ("judge", "run"),
    ("runs", "run"),
    ("runs", "run", "--failed"),
    ("compare", "run", "run"),
    ("plot", "lines", "--from=run", "--x=n"),
    ("export", "run"),
)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with `outside.py`, and the run directory `run` of it with a file `sent.py`."""
    (tmp_path / "outside.py").write_text(MINE)
    search_path, loaded = list(sys.path), set(sys.modules)
    call("sweep", "outside.py", "--n=1:3", "--jobs=1", "--out=run", cwd=tmp_path)
    (tmp_path / "run" / "sent.py").write_text(SENT)
    with contextlib.chdir(tmp_path):
        yield tmp_path
    sys.path[:] = search_path
    for name in set(sys.modules) - loaded:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def record(folder: Path, reference: str) -> None:
    """Let the manifest name another function than the one that was swept."""
    manifest = folder / "run" / "manifest.json"
    content = json.loads(manifest.read_bytes())
    assert content["function"]["reference"] == f"{folder.resolve() / 'outside.py'}:train"
    content["function"]["reference"] = reference
    manifest.write_text(json.dumps(content), encoding="utf-8")


@pytest.mark.parametrize("command", READERS, ids=" ".join)
def test_no_command_that_reads_a_run_executes_a_file_inside_it(
    folder: Path, command: tuple[str, ...]
) -> None:
    record(folder, f"{folder / 'run' / 'sent.py'}:train")
    call(*command, cwd=folder)
    assert not (folder / "run" / "executed").exists()


@pytest.mark.slow
def test_the_report_says_why_in_a_sentence_and_judges_what_the_run_keeps_of_its_claims(
    folder: Path,
) -> None:
    record(folder, f"{folder / 'run' / 'sent.py'}:train")
    done = call("report", "run", "--out=page", cwd=folder)
    assert "it lies in the run directory" in done.stderr
    assert done.stderr.count("\n") == 1
    assert "loss-lt-5" in done.stdout


def test_python_refuses_it_too(folder: Path) -> None:
    record(folder, f"{folder / 'run' / 'sent.py'}:train")
    with pytest.warns(UserWarning, match="it lies in the run directory"):
        overfit_cli.judge(folder / "run")
    assert not (folder / "run" / "executed").exists()


@pytest.mark.unix
@pytest.mark.parametrize(
    "inside",
    ["sent.py", "deeper/sent.py", "elsewhere/../sent.py", "../link.py", "../linked/sent.py"],
)
def test_links_and_longer_paths_into_a_run_directory_are_refused(folder: Path, inside: str) -> None:
    run = folder / "run"
    for made in ("deeper", "elsewhere"):
        (run / made).mkdir()
    (run / "deeper" / "sent.py").write_text(SENT)
    (folder / "link.py").symlink_to(run / "sent.py")
    (folder / "linked").symlink_to(run)
    assert (run / inside).is_file()
    with pytest.raises(UserError, match="it lies in the run directory"):
        refuse_sent_code(f"{run / inside}:train")


@pytest.mark.unix
def test_a_link_in_a_run_directory_is_refused_wherever_it_leads(folder: Path) -> None:
    (folder / "run" / "link.py").symlink_to(folder / "outside.py")
    with pytest.raises(UserError, match="it lies in the run directory"):
        refuse_sent_code(f"{folder / 'run' / 'link.py'}:train")


def test_a_recorded_path_that_is_not_whole_is_refused(folder: Path) -> None:
    record(folder, "outside.py:train")
    manifest = read_manifest(folder / "run")
    assert manifest
    assert manifest.function is not None
    with pytest.raises(UserError, match="without its folder"):
        study_of_record(manifest.function)


@pytest.mark.parametrize("package", ["run.sent", "run.deeper.sent", "run.deeper"])
@pytest.mark.one_in(3)
def test_a_module_inside_a_run_directory_is_refused_before_its_package_runs(
    folder: Path, package: str
) -> None:
    deeper = folder / "run" / "deeper"
    deeper.mkdir()
    for name in ("__init__.py", "sent.py"):
        (deeper / name).write_text(SENT)
    record(folder, f"{package}:train")
    done = call("report", "run", "--out=page", cwd=folder)
    assert "it lies in the run directory" in done.stderr
    assert not list(folder.rglob("executed"))


@pytest.mark.unix
def test_a_merge_copies_no_file_that_a_link_among_the_sources_leads_to(folder: Path) -> None:
    (folder / "secret").write_text("secret")
    [kept] = (folder / "run" / "source").iterdir()
    (kept / "linked.py").symlink_to(folder / "secret")
    call("sweep", "outside.py", "--n=4:5", "--jobs=1", "--out=other", cwd=folder)
    call("merge", "run", "other", "--out=merged", cwd=folder)
    assert [path.name for path in (folder / "merged" / "source").rglob("*.py")] == ["outside.py"]


def test_the_file_that_was_swept_outside_is_loaded(folder: Path) -> None:
    manifest = read_manifest(folder / "run")
    assert manifest
    assert manifest.function is not None
    [claim] = study_of_record(manifest.function).claims()
    assert claim.name == "loss-lt-5"


def test_a_module_of_the_working_folder_is_loaded(folder: Path) -> None:
    record(folder, "outside:train")
    manifest = read_manifest(folder / "run")
    assert manifest
    assert manifest.function is not None
    assert study_of_record(manifest.function).claims()


def test_a_file_in_a_run_directory_is_swept_by_its_name(folder: Path) -> None:
    file = os.path.join("run", "sent.py")  # noqa: PTH118 - as it is typed
    call("sweep", file, "--n=1:2", "--jobs=1", "--out=swept", cwd=folder)
    assert (folder / "run" / "executed").exists()
    assert len(overfit_cli.load(folder / "swept")) == 6
