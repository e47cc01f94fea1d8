"""A run directory under kills, flipped bits, mixed and misplaced parts, hostile manifests.

`python -m benchmarks.storm [ROUNDS]` prints what was done to it, how often, and what became of the
rows. Every count of rows lost, doubled, wrong or of tracebacks must be 0.
"""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pandas as pd
import pyarrow.parquet as pq

import overfit_cli
from overfit_cli.core.errors import UserError
from overfit_cli.core.files import MANIFEST
from overfit_cli.core.options import SweepOptions
from overfit_cli.core.registry import find_study
from overfit_cli.core.training import Execution
from overfit_cli.sweeps.executors import Local, Run
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.part import CELLS, STEPS, NotAPartError, Part, read_part
from overfit_cli.sweeps.plan import make_plan
from overfit_cli.sweeps.store import RunDirectory
from overfit_cli.sweeps.worker import Work

SMALL = {"d": "30", "d_h": "20", "d_v": "6", "tokens": "4", "test_samples": "10", "sigma_p": "1"}
TEXTS = {"n": "2:7", "snr": "0.5:4:4", "init_divisor": "4", "epsilon": "0.1", **SMALL}
SEEDS = (0, 1)
MANY = {**TEXTS, "n": "2:20", "snr": "0.5:4:8"}
MANY_SEEDS = (0, 1, 2)
"""456 cells in 114 batches: a sweep that is killed on its way."""

PYTHON = [sys.executable, "-m"]
OVERFIT = [*PYTHON, "overfit_cli"]
FLIPS_PER_ROUND = 100
CELLS_PER_PART = 4
OTHER = ("kernel-regression", {"training_steps": "2", "learning_rate": "0.1,0.2"})


def main() -> None:
    """Run every kind of storm and print what it counted."""
    match sys.argv[1:]:
        case ["sweep", path, *how]:  # what the kills kill
            many = Grid.read(find_study("benign-vit"), MANY, MANY_SEEDS)
            sweep(many, Path(path), jobs=2, fresh="fresh" in how)
            return
        case [number]:
            rounds = int(number)
        case _:
            rounds = 20
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        storm = Storm(Path(folder), random.Random(0))
        for name in ("kills", "flips", "misplaced", "readers", "manifests"):
            began = time.monotonic()
            counts: Counter[str] = getattr(storm, name)(rounds)
            words = ", ".join(f"{count} {what}" for what, count in counts.items())
            print(f"{name}: {words} ({time.monotonic() - began:.0f} s)")


class Storm:
    """Directories of a small grid, and what is done to them."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder, self.chance = folder, chance
        self.grid = Grid.read(find_study("benign-vit"), TEXTS, SEEDS)
        sweep(self.grid, folder / "whole")
        sweep(Grid.read(find_study(OTHER[0]), OTHER[1], (0,)), folder / "other")
        self.cells, self.steps = rows(folder / "whole")

    def kills(self, rounds: int) -> Counter[str]:
        """Kill sweeps, fresh ones and compactions at random moments; then resume."""
        path, whole = self.folder / "killed", self.folder / "undisturbed"
        sweep(Grid.read(self.grid.study, MANY, MANY_SEEDS), whole)
        again = [*PYTHON, "benchmarks.storm", "sweep", str(path)]
        commands = [again, [*again, "fresh"], [*OVERFIT, "compact", str(path)]]
        counts = Counter(kills=0, lost=0, doubled=0, wrong=0, leftovers=0)
        for number in range(rounds):
            process = start(commands[number % 3])
            time.sleep(self.chance.uniform(1, 8) if number % 3 < 2 else self.chance.uniform(0.7, 2))
            process.kill()
            counts["kills"] += process.wait() < 0
            for kind in (CELLS, STEPS):
                for part in (path / kind).glob("*.parquet"):
                    counts["wrong"] += whole_part(part, kind) is None
        assert start(again).wait() == 0
        counts["leftovers"] += len(list(path.glob("**/.part-*")))
        counts.update(compared(path, *rows(whole)))
        return counts

    def flips(self, rounds: int) -> Counter[str]:
        """Flip one bit of a part at a time; count which pass as data, and which checksums miss."""
        counts = Counter(flips=0, passed=0)
        counts["other values by page checksums alone"] = 0
        for kind in (CELLS, STEPS):
            parts = sorted((self.folder / "whole" / kind).glob("*.parquet"))
            whole = {part: pq.read_table(part) for part in parts}
            for _ in range(rounds * FLIPS_PER_ROUND // 2):
                part = self.chance.choice(parts)
                content = part.read_bytes()
                flipped, bit = bytearray(content), self.chance.randrange(8 * len(content))
                flipped[bit // 8] ^= 1 << bit % 8
                torn = self.folder / part.name
                torn.write_bytes(flipped)
                counts["flips"] += 1
                counts["passed"] += whole_part(torn, kind) is not None
                with contextlib.suppress(Exception):
                    table = pq.read_table(torn, page_checksum_verification=True)
                    counts["other values by page checksums alone"] += not table.equals(whole[part])
                torn.unlink()
        return counts

    def misplaced(self, rounds: int) -> Counter[str]:
        """Copy, move, cut, flip, rename and mix part files, then read; then sweep, and compare."""
        counts = Counter(misdeeds=0, lost=0, doubled=0, wrong=0)
        for number in range(rounds):
            path = self.folder / f"misplaced-{number}"
            shutil.copytree(self.folder / "whole", path)
            untouched = self._mistreat(path, counts)
            cells, steps = rows(path)
            # What is read before the mending is right, and nothing whole is missing.
            counts["wrong"] += not same(cells, self.cells[self.cells["key"].isin(cells["key"])])
            counts["wrong"] += not same(steps, self.steps[self.steps["key"].isin(steps["key"])])
            counts["lost"] += len(untouched - set(cells["key"]))
            sweep(self.grid, path)
            counts.update(compared(path, self.cells, self.steps))
        return counts

    def readers(self, rounds: int) -> Counter[str]:
        """Load beside a sweep that replaces every part, over and over."""
        counts = Counter(loads=0, short=0)
        path = self.folder / "read"
        shutil.copytree(self.folder / "whole", path)
        for _ in range(max(1, rounds // 4)):
            words = [f"--set={name}={text}" for name, text in TEXTS.items()]
            how = ["--trajectories", "--fresh", "--jobs=1", f"--seeds={len(SEEDS)}", "--out", path]
            process = start([*OVERFIT, "sweep", *words, *map(str, how)])
            while process.poll() is None:
                cells, steps = rows(path)
                counts["loads"] += 1
                counts["short"] += len(cells) < len(self.cells) or len(steps) < len(self.steps)
        return counts

    def manifests(self, rounds: int) -> Counter[str]:
        """Read manifests in which something was replaced, at random, by something hostile."""
        counts = Counter(manifests=0, read=0, refused=0, crashes=0)
        whole = json.loads((self.folder / "whole" / MANIFEST).read_text())
        path = self.folder / "manifest"
        path.mkdir()
        for _ in range(rounds * 20):
            content = json.dumps(self._spoilt(whole))
            if self.chance.random() < 0.2:
                content = content[: self.chance.randrange(len(content))]
            (path / MANIFEST).write_text(content)
            counts["manifests"] += 1
            try:
                planned = RunDirectory(path).manifest.planned(self.grid.study)
                counts["read" if len(planned) else "refused"] += 1
            except UserError:
                counts["refused"] += 1
            except Exception as error:
                print(f"  {type(error).__name__}: {content[:200]}")
                counts["crashes"] += 1
        return counts

    def _mistreat(self, path: Path, counts: Counter[str]) -> set[str]:
        """Do a few things to a directory; return the keys of the parts that were left whole."""
        parts = sorted((path / "cells").glob("*.parquet"))
        hit = set[Path]()
        for part in self.chance.sample(parts, min(5, len(parts))):
            deed = self.chance.choice(DEEDS)
            counts["misdeeds"] += 1
            if deed(part, self.folder / "other"):
                hit.add(part)
        others = sorted((path / "trajectories").glob("*.parquet"))
        for part in self.chance.sample(others, min(3, len(others))):
            counts["misdeeds"] += 1
            self.chance.choice(DEEDS)(part, self.folder / "other")
        whole = [whole_part(part, CELLS) for part in parts if part not in hit]
        return {key for part in whole if part for key in part.rows["key"].to_pylist()}

    def _spoilt(self, value: object) -> object:
        """A copy in which one place holds something else."""
        if self.chance.random() < 0.15 or not isinstance(value, (dict, list)) or not value:
            return self.chance.choice(HOSTILE)
        spoilt = value.copy()
        place = self.chance.choice(list(value) if isinstance(value, dict) else range(len(value)))
        spoilt[place] = self._spoilt(spoilt[place])
        return spoilt


def compared(path: Path, cells: pd.DataFrame, steps: pd.DataFrame) -> Counter[str]:
    """What differs from the undisturbed rows when parts are joined."""
    RunDirectory(path).compact()
    found_cells, found_steps = rows(path)
    study = cells["study"].iloc[0]
    stored = [
        key
        for part in (path / "cells").glob("*.parquet")
        if (whole := whole_part(part, CELLS)) is not None and whole.study == study
        for key in whole.rows["key"].to_pylist()
    ]
    return Counter(
        lost=len(set(cells["key"]) - set(found_cells["key"])),
        doubled=len(stored) - len(set(stored)),
        wrong=int(not same(found_cells, cells)) + int(not same(found_steps, steps)),
    )


def whole_part(path: Path, kind: str) -> Part | None:
    """A part; None where the file is none."""
    with contextlib.suppress(NotAPartError):
        return read_part(path, kind)
    return None


def copy_across(part: Path, other: Path) -> bool:
    """Put a copy among the parts of the other kind."""
    aside = {"cells": "trajectories", "trajectories": "cells"}[part.parent.name]
    shutil.copy(part, part.parents[1] / aside / part.name)
    return False


def move_across(part: Path, other: Path) -> bool:
    """Put it among the parts of the other kind."""
    copy_across(part, other)
    part.unlink()
    return True


def mix_in(part: Path, other: Path) -> bool:
    """Put a part of another study beside it."""
    for foreign in (other / part.parent.name).glob("*.parquet"):
        shutil.copy(foreign, part.parent / f"0{foreign.name}")
    return False


def double(part: Path, other: Path) -> bool:
    """Put a copy beside it, as a merge of two machines does."""
    shutil.copy(part, part.with_name(f"again-{part.name}"))
    return False


def rename(part: Path, other: Path) -> bool:
    """Give it a name of somebody's own."""
    part.rename(part.with_name(f"mine-{part.name[:20]}.parquet"))
    return True


def cut(part: Path, other: Path) -> bool:
    """Cut its end off."""
    part.write_bytes(part.read_bytes()[: -random.Random(part.name).randrange(1, 500)])
    return True


def flip(part: Path, other: Path) -> bool:
    """Flip a bit."""
    content = bytearray(part.read_bytes())
    content[random.Random(part.name).randrange(len(content))] ^= 8
    part.write_bytes(content)
    return True


def empty(part: Path, other: Path) -> bool:
    """Leave nothing of it but its name."""
    part.write_bytes(b"")
    return True


Deed = Callable[[Path, Path], bool]
DEEDS: list[Deed] = [copy_across, move_across, mix_in, double, rename, cut, flip, empty]
HOSTILE: list[object] = [
    *(None, True, -1, 2**70, 1e300, float("nan"), float("inf"), "", "x" * 1000, "\udcff"),
    *([], {}, [None], {"a": None}, [[[[[[]]]]]], [*range(2000)]),
    {name: [*range(2, 102)] for name in ("n", "d", "d_h", "d_v", "tokens")},
]


def sweep(grid: Grid, path: Path, jobs: int = 1, *, fresh: bool = False) -> None:
    """Run what is missing, or everything again, into many small parts."""
    directory = RunDirectory(path, "out")
    plan = make_plan(grid, directory, "cpu", SweepOptions(trajectories=True, fresh=fresh))
    cells = [cell for batch in plan.batches for cell in batch]
    cut = [cells[at : at + CELLS_PER_PART] for at in range(0, len(cells), CELLS_PER_PART)]
    plan = replace(plan, batches=cut)
    directory.prepare()
    if plan.batches:
        directory.record(grid, {})
        with mock.patch.object(RunDirectory, "compact"):
            Run(
                plan, directory, Work(grid.study, Execution(trajectories=True)), Local(jobs)
            ).execute()


def start(command: list[str]) -> subprocess.Popen[bytes]:
    """Start a command in silence."""
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def rows(path: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The cells without their times, and the logged steps in order."""
    cells = overfit_cli.load(path).drop(columns="seconds")
    steps = RunDirectory(path).load_trajectories()
    return cells, steps.sort_values(["key", "step"], ignore_index=True)


def same(frame: pd.DataFrame, expected: pd.DataFrame) -> bool:
    """Whether two frames hold the same rows."""
    return frame.reset_index(drop=True).equals(expected.reset_index(drop=True))


if __name__ == "__main__":
    main()
