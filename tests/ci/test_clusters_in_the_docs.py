"""The scripts in the documents that run a sweep on several machines do so.

SLURM is played by `tests/ci/slurm`: shell scripts that run the tasks of an array on this machine.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from tests.command import ended, environment, run, wait_for
from tests.toy_runs import parts_in, rows

DOCS = Path(__file__).parents[2] / "docs" / "clusters"
SLURM = Path(__file__).parent / "slurm"
GRID = ("--n", "1:6", "--snr", "1:2:3", "--seeds", "2")


def with_slurm(**extra: str) -> dict[str, str]:
    """The environment of a login node: it has `sbatch` and `overfit`."""
    folders = [str(SLURM), str(Path(sys.executable).parent), os.environ["PATH"]]
    return environment(PATH=os.pathsep.join(folders), **extra)


def sbatch(*arguments: str, cwd: Path, expect: int = 0) -> None:
    """Hand in a script and wait for its tasks, each with one core."""
    command = ["sbatch", "--wait", "--cpus-per-task=1", *arguments]
    done = subprocess.run(
        command, cwd=cwd, env=with_slurm(), capture_output=True, text=True, check=False
    )
    assert done.returncode == expect, done.stderr
    assert re.fullmatch(r"Submitted batch job \d+\n", done.stdout)


def test_the_script_for_slurm_runs_a_sweep_as_an_array(tmp_path: Path) -> None:
    script = str(DOCS / "sweep.sbatch")
    sbatch(script, "toy", *GRID, "--out", "out", cwd=tmp_path)
    logs = [path.read_text() for path in tmp_path.glob("overfit-*-*.log")]
    shards = sorted(shard for log in logs for shard in re.findall(r"shard (\d)/8", log))
    assert shards == list("12345678")
    run("sweep", "toy", *GRID, "--jobs=1", "--out", "whole", cwd=tmp_path)
    pd.testing.assert_frame_equal(rows(tmp_path / "out"), rows(tmp_path / "whole"))
    failing = ("toy", *GRID, "--set", "mood=raises", "--out", "failed")
    sbatch("--array=2", script, *failing, cwd=tmp_path, expect=1)


@pytest.mark.unix
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_the_end_of_a_tasks_time_keeps_what_is_finished(tmp_path: Path, jobs: str) -> None:
    """SLURM sends SIGTERM a minute before."""
    grid = ("toy", "--n", "1:80", "--snr", "1", "--seeds", "1", "--set", "pause=0.1")
    process = subprocess.Popen(
        ["bash", str(DOCS / "sweep.sbatch"), *grid, "--out", "out"],
        cwd=tmp_path,
        env=with_slurm(SLURM_ARRAY_TASK_ID="1", SLURM_CPUS_PER_TASK=jobs),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: len(parts_in(tmp_path / "out" / "cells")) >= 3)
    process.send_signal(signal.SIGTERM)
    assert "Interrupted after" in ended(process, 130)
    assert 3 <= len(rows(tmp_path / "out")) < 10


def test_dask_workers_come_as_slurm_jobs(tmp_path: Path) -> None:
    text = (DOCS / "slurm_cluster.py").read_text()
    assert "scale(jobs=20)" in text
    (tmp_path / "two_jobs.py").write_text(text.replace("scale(jobs=20)", "scale(jobs=2)"))
    process = subprocess.Popen(
        [sys.executable, "two_jobs.py"],
        cwd=tmp_path,
        env=with_slurm(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    options = shlex.split(process.stdout.readline())
    assert options[:3] == ["--backend", "dask", "--address"], options
    done = run("sweep", "toy", *GRID, *options, "--out", "out", cwd=tmp_path)
    output, _ = process.communicate("\n", timeout=60)
    assert "Done: 36 trained" in done.stdout
    assert process.returncode == 0, output
    assert len(list(tmp_path.glob("slurm-*.out"))) == 2


def test_the_workflow_runs_each_shard_and_judges_them_together(tmp_path: Path) -> None:
    jobs = yaml.safe_load((DOCS / "sweep-matrix.yml").read_text())["jobs"]
    shards = [{"matrix.shard": str(n)} for n in jobs["shard"]["strategy"]["matrix"]["shard"]]
    for job, known in [*(("shard", shard) for shard in shards), ("merge", {})]:
        for step in jobs[job]["steps"]:
            if "overfit " in step.get("run", ""):
                play(step, known, cwd=tmp_path)
    assert len(shards) == 4
    assert len(rows(tmp_path / "results" / "whole")) == 3 * 4 * 3
    for file in ("results/whole/figures/heatmap.png", "report/index.html"):
        assert (tmp_path / file).stat().st_size > 0


def play(step: Mapping[str, Any], known: Mapping[str, str], cwd: Path) -> None:
    """Run a step as GitHub does, of the toy study over fewer cells."""
    env = with_slurm(
        **{name: known[one.strip("${ }")] for name, one in step.get("env", {}).items()}
    )
    text = step["run"].replace("sweep --n 2:20 --snr 0.1:16", "sweep toy --n 2,5,10 --snr 2:14:4")
    subprocess.run(["bash", "-e", "-o", "pipefail", "-c", text], cwd=cwd, env=env, check=True)
