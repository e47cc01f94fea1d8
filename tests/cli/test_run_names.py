"""Two questions never land in one run directory by accident."""

from __future__ import annotations

from pathlib import Path

import pytest

from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.presets import LONGEST, find_subject, named_after
from tests.command import call


def name_of(subject: str, **texts: str) -> str:
    """The directory that a sweep with these settings goes into."""
    chosen = find_subject(subject)
    return chosen.sweep_name(Grid.read(chosen.study, {**chosen.profile.texts, **texts}, (0,)))


@pytest.mark.parametrize(
    ("subject", "texts", "expected"),
    [
        ("toy", {}, "toy"),
        ("toy", {"n": "4"}, "toy"),  # its default
        ("toy", {"n": "5"}, "toy-n5"),
        ("toy", {"n": "2:9", "snr": "1:2:5"}, "toy-n-snr"),
        ("toy", {"n": "2:20", "snr": "1:2:5"}, "toy-n-snr"),  # a grid that grew
        ("toy", {"n": "2:9", "mood": "nan"}, "toy-n-moodnan"),
        ("toy", {"snr": "0.123456789"}, "toy-snr0.123456789"),
        ("fig1", {}, "fig1-quick"),
        ("fig1", {"d": "1024"}, "fig1-quick"),  # the preset's own value
        ("fig1", {"d": "64"}, "fig1-quick-d64"),
        ("fig1", {"n": "2,3"}, "fig1-quick-n"),
        ("fig1", {"n": "3"}, "fig1-quick-n3"),
        ("dynamics-benign", {}, "dynamics-quick"),
        ("dynamics-benign", {"tokens": "5"}, "dynamics-quick-tokens5"),
    ],
)
def test_a_directory_is_named_after_what_differs(
    subject: str, texts: dict[str, str], expected: str
) -> None:
    assert name_of(subject, **texts) == expected


def test_a_name_is_never_longer_than_a_disk_takes() -> None:
    values = {f"parameter_{number}": (number,) for number in range(40)}
    names = {named_after("toy", values), named_after("toy", {**values, "parameter_39": (0,)})}
    assert len(names) == 2
    assert all(len(name) <= LONGEST for name in names)


def test_a_sweep_and_a_training_of_other_values_are_kept_apart(tmp_path: Path) -> None:
    for values in (("--n=2",), ("--n=3",), ("--n=2,3",), ("--n=2", "--snr=3")):
        call("sweep", "toy", *values, "--seeds=1", "--jobs=1", cwd=tmp_path)
    call("train", "toy", "--n=2", "--seed=1", cwd=tmp_path)
    found = {path.name for path in (tmp_path / "results").iterdir()}
    assert found == {"toy-n2", "toy-n3", "toy-n", "toy-n2-snr3", "toy-n2-seed1"}
