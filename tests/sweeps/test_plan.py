"""Plans of any size answer soon, and a probe is cut by the clock."""

from __future__ import annotations

import hashlib
import json
import re
import time
from pathlib import Path

import pytest

from overfit_cli.core.parameters import describe
from overfit_cli.core.training import Execution
from overfit_cli.functions.function_study import study_of_reference
from overfit_cli.studies.benign_vit.vit.study import study as benign_vit
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.plan import estimate, make_plan
from overfit_cli.sweeps.store import RunDirectory
from tests.command import call
from tests.toy_runs import TOY


def test_a_key_is_the_hash_of_the_cell_as_json() -> None:
    """The plain way beside the quick one, over every kind of value."""
    cells = [
        *Grid.read(benign_vit, {"n": "2:9", "snr": "1e-5:1e8:7:log"}, (0, 7)).cells(),
        *Grid.read(benign_vit, {"noise": "isotropic,orthogonal", "d": "64"}, (1,)).cells(),
        *Grid.read(TOY, {"mood": "well,nan", "pause": "0,-0,1e-7"}, (2**40,)).cells(),
    ]
    for cell in cells:
        content = {"study": cell.study, "version": cell.version, "seed": cell.seed}
        content["parameters"] = cell.parameters.model_dump()
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        assert cell.key == hashlib.sha256(text.encode()).hexdigest()[:20]
    assert len({cell.key for cell in cells}) == len(cells)
    assert str(describe(TOY.parameters)["pause"].parse("-0")) == "0.0", "it has one name"


@pytest.mark.slow
def test_a_batch_that_takes_long_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("overfit_cli.sweeps.run.LONGEST_DRY_RUN", 1.0)
    began = time.monotonic()
    slow = ("--set=pause=60", "--n=2", "--seeds=1")
    done = call("sweep", "toy", *slow, "--dry-run", cwd=tmp_path)
    assert time.monotonic() - began < 30
    assert re.search(r"No batch ended within [\d.]+ s: how long it takes isn't known", done.stdout)


@pytest.mark.slow
def test_many_jobs_take_no_less_than_the_longest_batch(tmp_path: Path) -> None:
    grid = Grid.read(TOY, {"n": "1:8", "pause": "0.1"}, (0,))
    plan = make_plan(grid, RunDirectory(tmp_path), "cpu")
    for jobs, batches in ((1, 8), (4, 2), (200, 1)):
        likely = estimate(plan, jobs, Execution(), within=20)
        assert likely.seconds == pytest.approx(0.1 * batches, rel=0.3)
    assert estimate(plan, 1, Execution(), within=0.0).seconds is None, "nothing is made up"


@pytest.mark.slow
def test_where_costs_are_not_known_a_cell_of_the_middle_is_timed(tmp_path: Path) -> None:
    """The mean cell takes 0.05 s, and the last 0.1 s."""
    text = "import time\n\ndef train(n: int):\n    time.sleep(n / 400)\n    return {'loss': n}\n"
    (tmp_path / "mine.py").write_text(text)
    grid = Grid.read(study_of_reference(str(tmp_path / "mine.py")), {"n": "1:40"}, (0,))
    plan = make_plan(grid, RunDirectory(tmp_path), "cpu")
    likely = estimate(plan, 1, Execution(), within=20.0)
    assert likely.seconds == pytest.approx(40 * 0.051, rel=0.2)
