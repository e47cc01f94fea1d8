"""A run directory that somebody sent can't have its own code executed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import overfit_cli
from overfit_cli.core.errors import UserError
from overfit_cli.functions.experiment import FunctionRecord
from overfit_cli.functions.function_study import study_of_record
from overfit_cli.functions.references import refuse_sent_code
from overfit_cli.sweeps.manifest import read_manifest
from tests.command import call
from tests.functions.mine import edit, written

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
INSIDE = "it lies in a run directory"


@pytest.fixture
def sent(folder: Path) -> Iterator[Path]:
    """The run directory `run` of `outside.py`, with a file `sent.py`."""
    written(folder, MINE, "outside.py")
    call("sweep", "outside.py", "--n=1:3", "--jobs=1", "--out=run", cwd=folder)
    written(folder / "run", SENT, "sent.py")
    with contextlib.chdir(folder):
        yield folder / "run"


def recorded(sent: Path, reference: str = "") -> FunctionRecord:
    """The manifest's function, which may be another one than was swept."""
    if reference:
        swept = f"{sent.parent.resolve() / 'outside.py'}:train"
        edit(sent / "manifest.json", f'"reference": "{swept}"', f'"reference": "{reference}"')
    record = read_manifest(sent).function
    assert record is not None
    return record


@pytest.mark.parametrize(
    "command",
    [
        "report run --out=page",
        "judge run",
        "runs run",
        "runs run --failed",
        "compare run run",
        "plot lines --from=run --x=n",
        "export run",
    ],
)
def test_no_command_that_reads_a_run_executes_a_file_inside_it(sent: Path, command: str) -> None:
    recorded(sent, f"{sent / 'sent.py'}:train")
    done = call(*command.split(), cwd=sent.parent)
    with pytest.warns(UserWarning, match=INSIDE):
        overfit_cli.judge(sent)
    assert not (sent / "executed").exists()
    if command.startswith("report"):
        assert INSIDE in done.stderr
        assert done.stderr.count("\n") == 1
        assert "loss-lt-5" in done.stdout, "it is judged as the run keeps it"


@pytest.mark.unix
@pytest.mark.parametrize(
    "inside",
    [
        "sent.py",
        "deeper/sent.py",
        "elsewhere/../sent.py",
        "../link.py",
        "../linked/sent.py",
        "outward.py",
    ],
)
def test_links_and_longer_paths_into_a_run_directory_are_refused(sent: Path, inside: str) -> None:
    """A link in it is refused wherever it leads."""
    for made in ("deeper", "elsewhere"):
        (sent / made).mkdir()
    written(sent / "deeper", SENT, "sent.py")
    (sent.parent / "link.py").symlink_to(sent / "sent.py")
    (sent.parent / "linked").symlink_to(sent)
    (sent / "outward.py").symlink_to(sent.parent / "outside.py")
    assert (sent / inside).is_file()
    with pytest.raises(UserError, match=INSIDE):
        refuse_sent_code(f"{sent / inside}:train")


def test_a_recorded_path_that_is_not_whole_is_refused(sent: Path) -> None:
    with pytest.raises(UserError, match="without its folder"):
        study_of_record(recorded(sent, "outside.py:train"))


@pytest.mark.parametrize("package", ["run.sent", "run.deeper.sent", "run.deeper"])
@pytest.mark.one_in(3)
def test_a_module_inside_a_run_directory_is_refused_before_its_package_runs(
    sent: Path, package: str
) -> None:
    (sent / "deeper").mkdir()
    for name in ("__init__.py", "sent.py"):
        written(sent / "deeper", SENT, name)
    recorded(sent, f"{package}:train")
    assert INSIDE in call("report", "run", "--out=page", cwd=sent.parent).stderr
    assert not list(sent.parent.rglob("executed"))


@pytest.mark.unix
def test_a_merge_copies_no_file_that_a_link_among_the_sources_leads_to(sent: Path) -> None:
    folder = sent.parent
    [kept] = (sent / "source").iterdir()
    (kept / "linked.py").symlink_to(written(folder, "secret", "secret"))
    call("sweep", "outside.py", "--n=4:5", "--jobs=1", "--out=other", cwd=folder)
    call("merge", "run", "other", "--out=merged", cwd=folder)
    assert [path.name for path in (folder / "merged" / "source").rglob("*.py")] == ["outside.py"]


@pytest.mark.parametrize("reference", ["", "outside:train"])
def test_the_file_that_was_swept_outside_is_loaded(sent: Path, reference: str) -> None:
    """And a module of the working folder."""
    [claim] = study_of_record(recorded(sent, reference)).claims()
    assert claim.name == "loss-lt-5"


def test_a_file_in_a_run_directory_is_swept_by_its_name(sent: Path) -> None:
    file = os.path.join("run", "sent.py")  # noqa: PTH118 - as it is typed
    call("sweep", file, "--n=1:2", "--jobs=1", "--out=swept", cwd=sent.parent)
    assert (sent / "executed").exists()
    assert len(overfit_cli.load(sent.parent / "swept")) == 6
