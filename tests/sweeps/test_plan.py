"""Plans of any size answer soon, and a probe is cut by the clock."""

from __future__ import annotations

import hashlib
import json
import re
import time
from pathlib import Path

import pytest

from overfit_cli.core.parameters import describe, parse_value
from overfit_cli.core.training import Execution
from overfit_cli.functions.function_study import study_of_reference
from overfit_cli.studies.benign_vit.vit.study import study as benign_vit
from overfit_cli.sweeps.grid import Grid, make_grid
from overfit_cli.sweeps.plan import make_plan
from overfit_cli.sweeps.speed import Speed, estimate, once_and_rate
from overfit_cli.sweeps.store import RunDirectory
from tests.command import call
from tests.toy_runs import TOY


def test_a_key_is_the_hash_of_the_cell_as_json() -> None:
    """The plain way beside the quick one, over every kind of value."""
    cells = [
        *make_grid(benign_vit, {"n": "2:9", "snr": "1e-5:1e8:7:log"}, (0, 7)).cells(),
        *make_grid(benign_vit, {"noise": "isotropic,orthogonal", "d": "64"}, (1,)).cells(),
        *make_grid(TOY, {"mood": "well,nan", "pause": "0,-0,1e-7"}, (2**40,)).cells(),
    ]
    for cell in cells:
        content = {
            "study": cell.study,
            "version": cell.version,
            "parameters": cell.parameters.model_dump(),
            "seed": cell.seed,
        }
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        assert cell.key == hashlib.sha256(text.encode()).hexdigest()[:20]
    assert len({cell.key for cell in cells}) == len(cells)
    assert str(parse_value(describe(TOY.parameters)["pause"], "-0")) == "0.0", "it has one name"


def grid_of(n: str, snr: str, seeds: int = 1, **texts: str) -> Grid:
    return make_grid(TOY, {"n": n, "snr": snr, **texts}, tuple(range(seeds)))


def test_a_thinned_grid_is_a_part_of_it() -> None:
    grid = grid_of("1:1000", "1:2:100", seeds=7)
    thin = grid.thinned(500)
    assert 100 < thin.size <= 500
    for name, values in thin.values.items():
        assert set(values) < set(grid.values[name])
        assert list(values) == sorted(values)
    assert grid.thinned(grid.size) == grid
    assert Grid(TOY, {}, tuple(range(9))).thinned(2).size <= 2


@pytest.mark.slow
def test_a_probe_that_takes_long_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("overfit_cli.sweeps.session.LONGEST_DRY_RUN", 1.0)
    began = time.monotonic()
    slow = ("--set=pause=60", "--n=2", "--seeds=1")
    done = call("sweep", "toy", *slow, "--dry-run", cwd=tmp_path)
    assert time.monotonic() - began < 30
    assert re.search(r"From a small probe, because a typical one took over [\d.]+ s", done.stdout)


@pytest.mark.slow
def test_many_jobs_take_no_less_than_the_longest_batch(tmp_path: Path) -> None:
    grid = ("--set=pause=0.02", "--n=1:8", "--snr=1:2:5", "--seeds=1")  # a batch is 0.1 s
    few, many = (
        call("sweep", "toy", *grid, "--dry-run", "--jobs", jobs, cwd=tmp_path)
        for jobs in ("4", "200")
    )
    assert " on 4 jobs, " in few.stdout
    assert " on 8 jobs, as long as the longest batch, " in many.stdout
    plan = make_plan(
        make_grid(TOY, {"n": "1:8", "pause": "0.02"}, (0,)), RunDirectory(tmp_path), "cpu"
    )
    one, four, two_hundred = (estimate(plan, jobs, Execution(), within=20) for jobs in (1, 4, 200))
    for likely, batches in ((one, 8), (four, 2), (two_hundred, 1)):
        assert likely.seconds is not None
        assert likely.longest is not None
        assert likely.seconds - likely.start == pytest.approx(batches * likely.longest)
        assert not likely.cut


def test_what_no_probe_tells_is_not_made_up(tmp_path: Path) -> None:
    plan = make_plan(grid_of("2", "1"), RunDirectory(tmp_path), "cpu")
    likely = estimate(plan, 1, Execution(), within=0.0)
    assert likely.seconds is None
    assert likely.disk is None
    assert likely.cut
    assert likely.memory is not None


@pytest.mark.slow
def test_where_costs_are_not_known_cells_all_over_the_grid_are_timed(tmp_path: Path) -> None:
    """All of a grid or an outline of it: the mean cell takes 0.05 s, and the last 0.1 s."""
    text = "import time\n\ndef train(n: int):\n    time.sleep(n / 400)\n    return {'loss': n}\n"
    (tmp_path / "mine.py").write_text(text)
    grid = make_grid(study_of_reference(str(tmp_path / "mine.py")), {"n": "1:40"}, (0,))
    plan = make_plan(grid, RunDirectory(tmp_path), "cpu")
    likely = estimate(plan, 1, Execution(), within=20.0)
    assert likely.probes == 3
    assert likely.seconds is not None
    assert likely.seconds - likely.start == pytest.approx(40 * 0.051, rel=0.2)
    many = estimate(plan, 100, Execution(), within=20.0)
    assert many.seconds is not None
    assert many.seconds - many.start == pytest.approx(34 / 400, rel=0.2)


def test_what_a_batch_takes_whatever_it_costs_is_told_from_its_cost() -> None:
    assert once_and_rate([Speed(10, 3.0), Speed(30, 5.0)]) == pytest.approx((2.0, 0.1))
    assert once_and_rate([Speed(10, 1.0), Speed(30, 5.0)]) == pytest.approx((0.0, 6 / 40))
    assert once_and_rate([Speed(10, 3.0), Speed(30, 1.0)]) == pytest.approx((0.0, 4 / 40))
    assert once_and_rate([Speed(10, 1.0)]) == pytest.approx((0.0, 0.1))


@pytest.mark.slow
def test_an_estimate_counts_logged_steps(tmp_path: Path) -> None:
    script = "def train(n: int = 1):\n    for _ in range(20_000):\n        yield {'a': 1.0}\n"
    (tmp_path / "mine.py").write_text(script)
    grid = make_grid(study_of_reference(str(tmp_path / "mine.py")), {"n": "1:4"}, (0,))
    plan = make_plan(grid, RunDirectory(tmp_path), "cpu")
    plain, logged = (
        estimate(plan, 1, Execution(trajectories=log), within=30.0) for log in (False, True)
    )
    assert plain.disk is not None
    assert logged.disk is not None
    assert logged.disk > plain.disk + 4 * 20_000 * 8
