"""The source of a function: what counts as a change of it, and what a sweep says then."""

from __future__ import annotations

import functools
import importlib
import linecache
import os
import py_compile
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from overfit_cli.functions.function_study import study_of_function, study_of_reference
from overfit_cli.sweeps.store import RunDirectory
from tests.command import python, run
from tests.functions.mine import Scaled, edit, scaled, written

MINE = '''
import lib.scales as scales
from near import offset
from overfit_cli import Parameter, experiment, load
import near as np, overfit_cli

FACTOR = 2.0
OTHER = np.float64(2)
LOADED = lambda: np.load(1)
UNUSED = 1

def used(n):
    """Documentation."""
    return FACTOR * n + offset() + OTHER * ELSE + (0 if True else LOADED())

def unused(n):
    return n

class Model:
    def loss(self, n):
        return used(n)

@experiment(headline="loss")
def train(n: int = 10, snr: float = 1.0) -> dict[str, float]:
    """A loss."""
    from lib.late import shift
    # a comment
    return {"loss": Model().loss(n) + shift() + scales.SCALE * snr}

if __name__ == "__main__":
    print(1)
else:
    ELSE = 1
'''
FILES = {
    "mine.py": MINE,
    "near.py": "import far\n\nfloat64 = float\n\n\ndef offset():\n    return far.ZERO\n",
    "far.py": "ZERO = 0\n",
    "claims.py": "CLAIMS = ['loss < 3']\n",
    "lib/__init__.py": "",
    "lib/scales.py": "from . import more\n\nSCALE = more.HALF\n\n\ndef set():\n    pass\n",
    "lib/more.py": "HALF = 0.5\n",
    "lib/late.py": "def shift():\n    return 1\n",
}


@pytest.fixture
def folder(folder: Path) -> Path:
    """A folder with a study of several files."""
    (folder / "lib").mkdir()
    for name, text in FILES.items():
        written(folder, text, name)
    return folder


def digest(folder: Path) -> str:
    return study_of_reference(str(folder / "mine.py:train")).identity.source


CHANGES = {
    "the function itself": ("mine.py", "* snr", "* snr**2"),
    "a function that it uses": ("mine.py", "FACTOR * n", "FACTOR + n"),
    "a constant of its module": ("mine.py", "FACTOR = 2.0", "FACTOR = 3.0"),
    "a statement of its module": ("mine.py", "FACTOR = 2.0", "FACTOR = 2.0\nscales.set()"),
    "what has the name of one of ours": ("mine.py", "np.load(1)", "np.load(2)"),
    "what isn't run as a script": ("mine.py", "ELSE = 1", "ELSE = 2"),
    "a file beside it": ("near.py", "far.ZERO", "far.ZERO + 1"),
    "what that imports": ("far.py", "0", "1"),
    "what that imports from its package": ("lib/more.py", "0.5", "0.25"),
    "what is imported inside of it": ("lib/late.py", "1", "2"),
    "a function that it doesn't use": ("mine.py", "    return n\n", "    return -n\n"),
    "a default": ("mine.py", "n: int = 10", "n: int = 20"),
    "a constant that it doesn't use": ("mine.py", "UNUSED = 1", "UNUSED = 2"),
    "the package itself": ("lib/__init__.py", "", "import math\n"),
}
NO_CHANGES = {
    "a comment": ("mine.py", "# a comment", "# another"),
    "documentation": ("mine.py", "A loss.", "The loss."),
    "layout": ("mine.py", "def unused", "\n\ndef unused"),
    "what the decorator says": ("mine.py", 'headline="loss"', 'headline="loss", threshold=1'),
    "what a script does": ("mine.py", "print(1)", "print(2)"),
    "another import of ours": ("mine.py", "import Parameter,", "import Claim, Parameter,"),
}


@pytest.mark.parametrize("change", CHANGES | NO_CHANGES)
def test_a_change_of_what_a_function_runs_is_noticed(folder: Path, change: str) -> None:
    name, old, new = (CHANGES | NO_CHANGES)[change]
    before, text = digest(folder), (folder / name).read_text()
    edit(folder / name, old, new)
    assert (digest(folder) != before) == (change in CHANGES)
    written(folder, text, name)
    assert digest(folder) == before, "taken back, it is the source of before"


CLAIM = '''
from typing import Annotated
from claims import CLAIMS
from overfit_cli import Claim
from overfit_cli.claims.rules import Margin
from overfit_cli.core.training import named_rng

SAID = dict.fromkeys(("name", "source", "statement", "holds_where"), "small")
TITLE = "A loss"
Count = Parameter("samples")
SMALL: Margin = Margin(most=1.0, because="small")


def measure(cells):
    """It may use what the training uses, and the function itself."""
    return SMALL, used(1), train, named_rng


@experiment(headline="loss", title=TITLE, claims=[*CLAIMS, Claim(**SAID, measure=measure)])
'''


DESCRIBED = MINE.replace('@experiment(headline="loss")\n', CLAIM)
DESCRIBED = DESCRIBED.replace("n: int = 10", "n: Annotated[int, Count] = 10")


def test_a_changed_claim_or_label_stales_nothing(folder: Path) -> None:
    digests = {digest(folder)}
    for old, new in (
        ("", ""),
        ("most=1.0", "most=2.0"),
        ('"A loss"', '"The loss"'),
        ('"samples"', '"samples", symbol="n", at_least=1'),
        ("return SMALL, used(1)", "return SMALL, used(2)"),
    ):
        edit(written(folder, DESCRIBED), old, new)
        digests.add(digest(folder))
    written(folder, "CLAIMS = ['loss < 4']\n", "claims.py")
    digests.add(digest(folder))
    assert len(digests) == 1
    for more in ("print(SMALL)", "def other():\n    return SMALL", "import math"):
        written(folder, f"{DESCRIBED}\n\n{more}\n")
        assert digest(folder) not in digests, more


def test_a_module_has_the_names_and_the_source_of_its_file(folder: Path) -> None:
    """The same study, whether it is named on the command line or given from Python."""
    sys.path.insert(0, str(folder))
    for file in ("run1.v2.py", "lib/mine.py"):
        written(folder, "def train(n: int = 1):\n    return {'a': n}\n", file)
    files = {"mine": f"{folder}/mine.py", "run1.v2": f"{folder}/run1.v2.py"}
    for name, reference in {**files, "lib.mine": "lib.mine:train"}.items():
        study = study_of_reference(reference)
        assert (study.name, study.record.label) == (f"{name}:train", name)
        if name != "run1.v2":
            given = study_of_function(importlib.import_module(name).train)
            assert given.record == study.record
            assert given.identity.source == study.identity.source


# Functions that stand in no file


def made(factor: Any) -> Callable[..., dict[str, float]]:
    def train(n: int = 1, seed: int = 0) -> dict[str, float]:
        return {"loss": float(np.sum(factor)) * n}

    return train


MAKERS: dict[str, Callable[[float], Callable[..., Any]]] = {
    "a closure over an array": lambda factor: made(np.array([factor, 1.0])),
    "an object that is called": Scaled,
    "a partial function": lambda factor: functools.partial(scaled, factor),
    "a function of a closure": lambda factor: made(made(factor)),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_the_values_that_a_function_was_made_with_are_part_of_it(kind: str) -> None:
    first, same, second = (study_of_function(MAKERS[kind](factor)) for factor in (1.0, 1.0, 2.0))
    assert first.identity.source == same.identity.source != second.identity.source
    assert list(first.parameters.model_fields) == ["n"]


NOTEBOOK = """
import functools
from typing import Annotated
import numpy as np
from overfit_cli import Parameter, experiment
FACTOR = 1
UNUSED = 1
NAMES = {"a", "b", "c"}
WEIGHTS = np.ones(3)
ACTIVATIONS = {"identity": lambda x: x, "bounded": np.tanh}
table = [FACTOR]
table.append(table)
class Model:
    def loss(self, n):
        return n + WEIGHTS.sum()
@functools.cache
def cached(n):
    return len(NAMES) + n
def helper(n, scale=1.0):
    return table[0] * ACTIVATIONS["identity"](n) * scale
def train(n: int = 1, seed: int = 0):
    return {"loss": helper(cached(n)) * Model().loss(n)}
"""


def typed_in(notebook: str) -> str:
    """The digest of a function that is typed into a session, which keeps its text."""
    cell = f"<cell {hash(notebook)}>"
    linecache.cache[cell] = len(notebook), None, notebook.splitlines(keepends=True), cell
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(notebook, cell, "exec"), names)
    return study_of_function(names["train"]).identity.source


STALING = {
    "cached(n))": "cached(n) + 1)",
    "FACTOR = 1": "FACTOR = 2",
    '"b", "c"': '"b"',
    "np.ones(3)": "np.array([1.0, 1.0, 2.0])",
    "lambda x: x": "lambda x: -x",
    "return n + WEIGHTS": "return n - WEIGHTS",
    "(n) * scale": "(n) / scale",
}
NOT_STALING = {
    "UNUSED = 1": "UNUSED = 2",
    "return len(NAMES)": "# names\n    return len( NAMES )",
    "def train(": "@experiment(claims=['loss < 3'])\ndef train(",
    "n: int = 1": "n: Annotated[int, Parameter('samples')] = 1",
}


@pytest.mark.parametrize("old", STALING | NOT_STALING)
def test_a_change_in_a_notebook_stales_its_cells(old: str) -> None:
    changed = NOTEBOOK.replace(old, (STALING | NOT_STALING)[old], 1)
    assert (typed_in(changed) != typed_in(NOTEBOOK)) == (old in STALING)


@pytest.mark.slow
def test_a_notebooks_function_is_the_same_in_each_process(folder: Path) -> None:
    script = f"""
import near
{NOTEBOOK.replace("FACTOR = 1", "FACTOR = near.offset")}
from overfit_cli.functions.function_study import study_of_function
print(study_of_function(train).identity.source)
"""
    first = python("-c", script, cwd=folder).stdout
    assert python("-c", script, cwd=folder).stdout == first
    written(folder, "ZERO = 1\n", "far.py")
    assert python("-c", script, cwd=folder).stdout != first, "a file that it imports has changed"


# What a sweep says


GRID = ("--n", "2:5", "--snr", "0.5:2:2", "--jobs=1")


def said_by(folder: Path, *options: str, expect: int = 0) -> str:
    done = run("sweep", "mine.py", *GRID, *options, cwd=folder, expect=expect)
    return done.stdout + done.stderr


def test_a_plan_counts_the_cells_of_another_source_and_says_what_to_type(folder: Path) -> None:
    run("sweep", "mine.py", "--n", "2:3", *GRID[2:], "--out=a", cwd=folder)
    edit(folder / "mine.py", "* snr", "* snr**2")
    earlier = "4 cells were trained by an earlier version of the code of mine"
    output = said_by(folder, "--out=a")
    assert output.count(earlier) == 1 and "--fresh" in output
    RunDirectory(folder / "a").compact()
    assert earlier in said_by(folder, "--out=a"), "compaction keeps it"
    written(folder, MINE)
    assert earlier in said_by(folder, "--out=a"), "the other half, taken back"
    said_by(folder, "--out=a", "--fresh")
    assert "has changed" not in said_by(folder, "--out=a")


def test_two_files_of_one_name_share_no_directory(folder: Path) -> None:
    out, other = f"--out={folder / 'a'}", folder / "other"
    said_by(folder, out)
    other.mkdir()
    written(other, "def train(n: int = 1, snr: float = 1.0): return {'a': 1.0}\n")
    refused = said_by(other, out, expect=2)
    assert f"it holds cells of another file, {folder / 'mine.py'}" in refused
    for name in ("mine.py", "near.py", "far.py", "lib"):
        (folder / name).rename(other / name)
    assert "8 there already; 0 to run" in said_by(other, out), "a file that was moved goes on"


def test_a_file_is_read_anew_whatever_byte_code_lies_there(tmp_path: Path) -> None:
    """Python tells byte code from its source by length and whole seconds; both may be the same."""
    for factor in (1, 2):
        file = written(tmp_path, f"def train(n: int = 1):\n    return {{'loss': {factor} * n}}\n")
        os.utime(file, (1_700_000_000, 1_700_000_000))
        if factor == 1:
            py_compile.compile(str(file))
    function = study_of_reference(str(file)).function
    assert function is not None and function() == {"loss": 2}
