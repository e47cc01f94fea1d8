"""The commands and their options are these; each further one is a decision."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from overfit_cli.cli.app import app
from tests.command import call

OPTIONS = {
    "sweep": "set together only seeds profile out data jobs backend address shard device "
    "trajectories dry-run fresh retry-failed fail-fast time-limit refine threshold claim",
    "train": "set seed out data device",
    "plot": "from out x y value by where threshold law theory log mean band minus size style",
    "judge": "where strict json out",
    "report": "out where only strict expect details",
    "compare": "value where where-a where-b tolerance out json",
    "reproduce": "profile jobs backend address device data strict expect dry-run",
    "export": "to out means columns where trajectories",
    "runs": "json failed",
    "list": "",
    "merge": "out",
    "compact": "",
    "verify": "from redraw",
}


def test_there_are_these_commands() -> None:
    commands = [each for each in app.registered_commands if each.callback]
    names = [each.name or each.callback.__name__ for each in commands if each.callback]
    assert sorted(names) == sorted(OPTIONS)


@pytest.mark.parametrize("command", OPTIONS)
def test_a_command_has_these_options(command: str, tmp_path: Path) -> None:
    shown = call(command, "--help", cwd=tmp_path).stdout.split("Parameters of")[0]
    options = re.findall(r"^  (?:-\w, )?--([\w-]+)", shown, re.MULTILINE)
    assert sorted({*options} - {"help"}) == sorted(OPTIONS[command].split())
