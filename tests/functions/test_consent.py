"""Nothing that a run directory or a figure names is executed, unless its reader has named it.

Each reference here was an attack: an import of it acts, or finds code that came with the run.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import marshal
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import overfit_cli
from overfit_cli.functions import function_study
from tests.command import call, few, run
from tests.functions.mine import edit, written

OUTSIDE = """
from overfit_cli import experiment

@experiment(claims=["loss < 5"])
def train(n: int = 2, seed: int = 0):
    return {"loss": n + seed / 100}
"""
EVIL = f"""
from pathlib import Path
Path(__file__).with_name("executed").touch()
{OUTSIDE}
"""
HOW = ("--n=1:3", "--seeds=1", "--jobs=1", "--out=run")
SWEEP = ("sweep", "outside.py", *HOW)
RECORDED = "its claims are judged as they were recorded"


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run directories `run` and `other` of `outside.py`, two figures, and code in and beside.

    The code in and beside the run acts as soon as it is imported.
    """
    folder, path = tmp_path_factory.mktemp("packed"), [*sys.path]
    written(folder, OUTSIDE, "outside.py")
    call(*SWEEP, cwd=folder)
    call("plot", "lines", "--from=run", "--out=plot.png", cwd=folder)
    call("judge", "run", "--out=judge.png", cwd=folder)
    shutil.copytree(folder / "run", folder / "other")
    for name in ("evil.py", "run/evil.py", "run/__init__.py", "run/deep/__init__.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        written(folder, EVIL, name)
    (folder / "link.py").symlink_to(Path("run", "evil.py"))
    written(folder, 'title = "Sent"\nstudy = "evil.py"\nclaims.low = "loss < 9"\n', "run/sent.toml")
    sys.path[:] = path
    return folder


@pytest.fixture
def sent(packed: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The run directory `run`, sent to another user, who works in the folder where it lies."""
    shutil.copytree(packed, folder, symlinks=True, dirs_exist_ok=True)
    monkeypatch.setenv("OVERFIT_CACHE", str(folder / "cache-of-another-user"))
    forget()
    with contextlib.chdir(folder):
        yield folder / "run"


@pytest.fixture(autouse=True)
def nothing_is_loaded() -> Iterator[None]:
    """Each test begins as a new process."""
    yield
    forget()


@pytest.fixture
def mine(folder: Path) -> Path:
    """A folder with `outside.py`, what it imports, and its sweep `run`, of this user."""
    written(folder, '"""Helps."""', "helper.py")
    written(folder, f"import helper\n{OUTSIDE}", "outside.py")
    call(*SWEEP, cwd=folder)
    return folder


def said_as_recorded(folder: Path) -> str:
    """What a new process says of `run`, whose wordings it judges without executing anything."""
    forget()
    done = call("judge", "run", cwd=folder)
    assert "loss-lt-5" in done.stdout
    assert RECORDED in done.stderr
    assert not [*folder.rglob("executed")]
    return done.stderr


OWN = {"outside", "evil", "helper", "lab", "overfit_file_outside"}


def forget() -> None:
    """Make this process a new one: it was given no function, and has loaded none."""
    function_study._given.clear()
    function_study._named.clear()
    function_study._study_of_files.cache_clear()
    for name in [name for name in sys.modules if name.split(".")[0] in OWN]:
        del sys.modules[name]


def record(run: Path, **changed: object) -> None:
    """Change what the manifest says of the function."""
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["function"] |= changed
    manifest["presets"] = [str(run / "sent.toml")]
    (run / "manifest.json").write_text(json.dumps(manifest))


GADGETS = (
    *("unittest.__main__:main", "venv.__main__:main", "test.__main__:main", "antigravity:fly"),
    *("evil:train", "run.evil:train", "run.deep:train", "evil.py:train", "run/evil.py:train"),
    *("/proc/self/cwd/evil.py:train", "{folder}/evil.py:train", "{folder}/link.py:train"),
    *("{folder}/run/evil.py:train", "{folder}/outside.py:train", "{folder}/no.py:train", "x", ":"),
)
COMMANDS = (
    *("judge run", "judge run loss<9", "report run --out=page", "runs run", "runs run --failed"),
    *("runs .", "plot lines --from=run --x=n --out=p.png", "plot lines --from=run --out=p.csv"),
    *("export run --out=a.csv", "export run --to=parquet --out=a.parquet"),
    "export run --means --to=latex --out=a.tex",
    *("compare run other", "merge run other --out=merged", "compact run", "verify plot.png"),
    *("verify plot.png --redraw", "verify judge.png --redraw", "list", "list claims"),
    *("reproduce --dry-run", "sweep toy --n=2 --snr=1 --jobs=1 --out=run"),
    "sweep toy --n=2 --snr=1 --dry-run --out=run",
)


def files_in(folder: Path) -> set[str]:
    made = ("page", "p.", "a.", "merged", "run/", "other/", "cache")
    names = (path.relative_to(folder).as_posix() for path in folder.rglob("*"))
    return {name for name in names if not name.startswith(made) or "executed" in name}


@pytest.mark.unix
@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_imports_what_a_manifest_names(sent: Path, command: str) -> None:
    """Each command meets a few references, and each reference a few commands; a search all."""
    folder = sent.parent
    for gadget in few(GADGETS, 6, COMMANDS.index(command)):
        record(sent, reference=gadget.format(folder=folder))
        record(folder / "other", reference=gadget.format(folder=folder))
        forget()
        before, loaded = files_in(folder), {*sys.modules}
        call(*command.split(), cwd=folder, expect={0, 1, 2} if "sweep" in command else {0, 1})
        assert files_in(folder) == before, gadget
        named = gadget.partition(":")[0].partition(".")[0]
        assert not {name for name in {*sys.modules} - loaded if name.split(".")[0] == named}


@pytest.mark.unix
@pytest.mark.slow
@pytest.mark.parametrize("command", ["judge", "runs"])
def test_a_module_that_reads_the_command_line_imports_no_code_in_a_run(
    sent: Path, command: str
) -> None:
    """The working folder is on the path, so that `run` is a package that could be imported."""
    record(sent, reference="unittest.__main__:main")
    before = files_in(sent.parent)
    run(command, "run", cwd=sent.parent, apart=True)
    assert files_in(sent.parent) == before


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("outside.py:train", "`overfit judge run --study FILE.py` loads it"),
        ("lab.outside:train", "--study MODULE:FUNCTION` loads"),
        ("", "study=FUNCTION)` loads"),
    ],
)
def test_the_recorded_wordings_are_judged_and_a_sentence_says_how_to_load_the_function(
    sent: Path, reference: str, said: str
) -> None:
    record(sent, reference=reference)
    assert said in said_as_recorded(sent.parent)


def test_a_file_that_the_user_names_is_loaded_and_its_claims_are_judged_as_they_are_now(
    sent: Path,
) -> None:
    refused = call("judge", "run", "--study=evil.py", cwd=sent.parent, expect=2).stderr
    assert "--study evil:train: no run here is of this function" in refused
    assert "here is outside:train." in refused
    written(sent.parent, OUTSIDE.replace("loss < 5", "loss < 50"), "outside.py")
    done = call("judge", "run", "--study=outside.py", cwd=sent.parent)
    assert "loss-lt-50" in done.stdout
    assert done.stderr == ""
    forget()
    judged = overfit_cli.judge(sent, study="outside.py")
    assert [one.name for one in judged] == ["loss-lt-50", "loss-lt-5"], "the sealed one too"


@pytest.mark.unix
@pytest.mark.parametrize("reference", ["run.deep.outside:train", "/proc/self/cwd/outside.py:train"])
def test_a_link_in_a_run_does_not_borrow_what_its_reader_swept(mine: Path, reference: str) -> None:
    (mine / "run" / "deep").mkdir()
    (mine / "run" / "deep" / "outside.py").symlink_to(mine / "outside.py")
    written(mine, EVIL, "run/__init__.py")
    record(mine / "run", reference=reference)
    said_as_recorded(mine)


def test_a_file_that_fails_now_ends_no_report(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", "1")
    written(folder, f"import os\nos.environ['MINE']\n{OUTSIDE}", "outside.py")
    call(*SWEEP, cwd=folder)
    monkeypatch.delenv("MINE")
    said_as_recorded(folder)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("outside.py", "experiment\n", "experiment\n\nif __name__ != 'mine':\n    import evil\n"),
        ("outside.py", "experiment\n", "experiment\nimport overfit_cli, evil\n"),
        ("outside.py", "n: int", "n: __import__('evil').int"),
        ("outside.py", "[", "[__import__('evil').TEXT, "),
        ("helper.py", '"""Helps."""', "import evil"),
    ],
)
def test_what_the_digest_of_code_leaves_out_is_consented_to_too(
    mine: Path, name: str, old: str, new: str
) -> None:
    """The digest tells cells of two codes apart; a condition on a name is none of them."""
    written(mine, f"TEXT = 'loss < 9'\nint = int\n{EVIL}", "evil.py")
    edit(mine / name, old, new)
    said_as_recorded(mine)
    call("judge", "run", "--study=outside.py", cwd=mine, expect={0, 2})
    assert (mine / "executed").exists(), "it would have been"


def test_a_package_that_has_changed_is_not_imported_to_compare_its_code(folder: Path) -> None:
    (folder / "lab").mkdir()
    written(folder, "", "lab/__init__.py")
    written(folder, "", "lab/helper.py")
    written(folder, f"import lab.helper\n{OUTSIDE}", "lab/outside.py")
    call("sweep", "lab.outside:train", *HOW, cwd=folder)
    written(folder, "from pathlib import Path\nPath('executed').touch()", "lab/__init__.py")
    said_as_recorded(folder)
    forget()
    call("runs", "run", cwd=folder)
    assert not (folder / "executed").exists()


def test_byte_code_beside_an_unchanged_module_is_not_executed(folder: Path) -> None:
    """An archive may hold it: Python compares unchecked byte code with no source."""
    (folder / "lab").mkdir()
    for name in ("__init__", "outside"):
        file = written(folder, OUTSIDE if name == "outside" else "", f"lab/{name}.py")
        code = compile(f"open('executed', 'w')\n{file.read_text()}", str(file), "exec")
        compiled = Path(importlib.util.cache_from_source(str(file)))
        compiled.parent.mkdir(exist_ok=True)
        header = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8)
        compiled.write_bytes(header + marshal.dumps(code))
    call("sweep", "lab.outside:train", *HOW, cwd=folder)
    assert (folder / "executed").exists(), "a module that is named is imported as Python does"
    (folder / "executed").unlink()
    forget()
    assert call("judge", "run", cwd=folder).stderr == ""
    assert not (folder / "executed").exists()


@pytest.mark.slow
def test_each_run_of_a_function_is_judged_once_by_what_it_recorded_and_its_preset_says(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(folder, 'title = "Own"\nstudy = "outside.py"\nclaims.low = "loss < 9"\n', "own.toml")
    for name, loss in (("a", 5), ("b", 50)):
        written(folder, OUTSIDE.replace("loss < 5", f"loss < {loss}"), "outside.py")
        call("sweep", "own.toml", "--n=1", "--seeds=1", "--jobs=1", f"--out={name}", cwd=folder)
    monkeypatch.setenv("OVERFIT_CACHE", str(folder / "cache-of-another-user"))
    forget()
    with pytest.warns(UserWarning, match=RECORDED):
        judged = overfit_cli.judge(folder / "a", folder / "b")
    names = [(one.name, one.run.directory.path.name) for one in judged if one.run]
    recorded = [("loss-lt-5", "a"), ("loss-lt-50", "b")]
    assert sorted(names) == [*recorded, ("low", "a"), ("low", "b")]
    assert not [one.measurement.note for one in judged if "after the first" in one.measurement.note]


def test_a_cache_at_no_whole_path_holds_no_consent(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may lie in a folder that somebody sent."""
    monkeypatch.setenv("OVERFIT_CACHE", "cache-here")
    written(folder, OUTSIDE, "outside.py")
    call(*SWEEP, cwd=folder)
    said_as_recorded(folder)
    assert not (folder / "cache-here").exists()


@pytest.mark.parametrize("swept", ["outside.py", "outside:train"])
def test_the_very_file_that_this_user_swept_is_loaded_as_long_as_its_code_stays(
    folder: Path, swept: str
) -> None:
    """Its claims may change; with other code it is not the function of the run any more."""
    written(folder, OUTSIDE, "outside.py")
    call("sweep", swept, *HOW, cwd=folder)
    written(folder, OUTSIDE.replace("loss < 5", "loss < 50"), "outside.py")
    forget()
    done = call("judge", "run", cwd=folder)
    assert "loss-lt-50" in done.stdout
    assert done.stderr == ""
    written(folder, OUTSIDE.replace("n + seed", "n - seed"), "outside.py")
    said_as_recorded(folder)


@pytest.mark.unix
def test_a_merge_copies_no_file_that_a_link_among_the_sources_leads_to(sent: Path) -> None:
    folder = sent.parent
    [kept] = (sent / "source").iterdir()
    (kept / "linked.py").symlink_to(written(folder, "secret", "secret"))
    call("sweep", "outside.py", "--n=4:5", "--jobs=1", "--out=other", cwd=folder)
    call("merge", "run", "other", "--out=merged", cwd=folder)
    assert [path.name for path in (folder / "merged" / "source").rglob("*.py")] == ["outside.py"]


def test_a_file_in_a_run_directory_or_in_a_folder_with_a_colon_is_swept_by_its_name(
    sent: Path,
) -> None:
    (sent / "a:b").mkdir()
    shutil.copy(sent / "evil.py", sent / "a:b")
    for folder in (sent, sent / "a:b"):
        file = os.path.relpath(folder / "evil.py", sent.parent)
        call("sweep", file, "--n=1:2", "--jobs=1", "--fresh", "--out=swept", cwd=sent.parent)
        assert (folder / "executed").exists()
