"""Nothing heavy at start-up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.command import python, said

SCRIPT = """
import sys
from overfit_cli.cli.app import main
for arguments in {commands!r}:
    sys.argv = ["overfit", *arguments.split()]
    try:
        main()
    except SystemExit as ended:
        assert ended.code in (0, None), (arguments, ended.code)
loaded = [name for name in {heavy!r} if name in sys.modules]
assert not loaded, loaded
"""


def check_imports(commands: Sequence[str], heavy: Sequence[str], cwd: Path) -> None:
    """Run the commands in one process, which loads nothing heavy."""
    python("-c", SCRIPT.format(commands=commands, heavy=heavy), cwd=cwd)


TOY = "sweep toy --jobs=1 --n=1:3 --snr=1:2:3 --out=out"
VIT = "sweep benign-vit --n=2 --snr=5 --seeds=2 --set=test_samples=2 --jobs=1 --out=out"
READING = ["list", "list claims multihead-sst2", "export out --to latex", "compare out out"]
DRAWING = ["plot heatmap --from out", "compare out out --out out/same.png", "report out"]
VERIFYING = ["verify out/figures/heatmap.png", "verify out/same.png"]
ALL = "torch pandas matplotlib numpy scipy joblib pyarrow"
LIGHT = {
    "help": ("", ["--help", "--version", "plot --help", "compare --help", "runs -h"], ALL),
    "draws runs": (TOY, [*DRAWING, *VERIFYING], "torch"),
    "lists and compares": (TOY, [*READING, "sweep toy --help"], "torch matplotlib transformers"),
    "plans, and names the next command: a report": (VIT, [VIT], "torch scipy matplotlib sklearn"),
}


@pytest.mark.parametrize("what", LIGHT)
@pytest.mark.one_in(4)
def test_a_command_imports_nothing_that_it_has_no_use_for(what: str, tmp_path: Path) -> None:
    first, commands, heavy = LIGHT[what]
    if first:
        assert ("overfit report" in said(first, tmp_path)) == (first == VIT)
    check_imports(commands, heavy.split(), tmp_path)


def test_the_help_of_a_sweep_lists_the_studys_parameters(tmp_path: Path) -> None:
    for study, words in (
        ("toy", ("--set NAME=RANGE", "Parameters of toy", "pause", "mood")),
        ("benign-vit", ("sigma_p_tilde", "σ̃_p", "> 0", "step size", "0.1")),
    ):
        shown = said(f"sweep {study} --help", tmp_path)
        assert not [word for word in words if word not in shown]


@pytest.mark.slow
def test_a_sweep_without_a_study_loads_the_default_one_alone(tmp_path: Path) -> None:
    sweeps = ["sweep --help", "sweep --dry-run --n=2 --snr=5 --set=test_samples=2 --jobs=1"]
    assert all("benign-vit" in said(sweep, tmp_path) for sweep in sweeps)
    studies = "overfit_cli.studies"
    others = ["attention_kernel", "benign_vit.cnn_study", "multihead", "softmax_network"]
    heavy = ["matplotlib", *(f"{studies}.{each}" for each in others)]
    check_imports(sweeps, heavy, tmp_path)
