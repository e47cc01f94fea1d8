"""Settings of all tests: one thread of computation each, the toy study, and how long one takes.

A quick test of `make test` takes half a second of processor time at most, its processes included,
on a machine that counts to ten million in half a second; on a slower one it has as much more time.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from overfit_cli.core import registry
from tests.command import TOY

# Before numerical libraries are imported: tests run side by side, one a core.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# A shell has what it starts in the background ignore Ctrl-C, and so would what the tests start.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The toy study is found in this process too, as a third party's is: by its entry point.
sys.path.insert(0, str(TOY))


LONGEST, UNIT, COUNTED = 0.5, 0.05, 1_000_000
"""Of a quick test the most seconds, where to count so far takes a unit of seconds."""

NOISE = {True: 4.0, False: 6.0}
"""By whether quick tests run alone: what a busy machine may add, and slow tests beside them."""


def _seconds(children: bool) -> float:
    """The processor time of this process, and of those that it has waited for."""
    times = os.times()
    return times.user + times.children_user * children


def _is_quick(config: pytest.Config) -> bool:
    """Whether quick tests run alone."""
    return str(config.option.markexpr).startswith("not slow")


def _slowness() -> float:
    """By how much this machine is slower than the one that the limit is for, just now."""
    began, total = time.thread_time(), 0
    for number in range(COUNTED):
        total += number
    return max(1.0, (time.thread_time() - began) / UNIT)


FIRST_USED = """
    torch._dynamo scipy.stats sklearn.ensemble matplotlib.pyplot matplotlib.backends.backend_pdf
"""
"""What a first training, claim or figure of a process imports beside."""


def pytest_sessionstart(session: pytest.Session) -> None:
    """Import what a first use loads, before one of many tests pays for it."""
    if hasattr(session.config, "workerinput"):
        for name in FIRST_USED.split():
            importlib.import_module(name)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a quick test that takes too long: mark it `slow`, or make it quick."""
    alone = _is_quick(item.config)
    began = _seconds(alone)  # a slow test's workers may end in another test
    yield
    taken = _seconds(alone) - began
    is_held = hasattr(item.config, "workerinput") and not item.get_closest_marker("slow")
    if taken > LONGEST and is_held:
        taken /= max(_slowness() for _ in range(3))
        if taken > NOISE[alone] * LONGEST:
            pytest.fail(f"it takes {taken:.2g} s, and a quick test {LONGEST:g} s: mark it slow")


CI = Path(__file__).parent / "ci"
"""Tests that need a browser, a cluster or the site's tools, or run the documents: slow ones all."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out, of a run without slow tests, what only CI runs: its packages needn't be there."""
    return True if collection_path == CI and _is_quick(config) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests of what only Unix has on other systems; mark most of many cases slow."""
    cases = Counter[str]()
    for item in items:
        if CI in item.path.parents:
            item.add_marker(pytest.mark.ci)
            item.add_marker(pytest.mark.slow)
        if os.name != "posix" and item.get_closest_marker("unix"):
            item.add_marker(pytest.mark.skip(reason="this system is not Unix"))
        if marker := item.get_closest_marker("one_in"):
            test, _, case = item.nodeid.partition("[")
            # By its name, so that a further row leaves the others where they are.
            if cases[test] and zlib.crc32(case.encode()) % marker.args[0]:
                item.add_marker(pytest.mark.slow)
            cases[test] += 1


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    """Forget the studies that a test has given, and what its functions made NumPy raise."""
    with mock.patch.dict(registry._added), np.errstate():
        yield


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache: a folder that isn't there yet."""
    monkeypatch.setenv("OVERFIT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Install modules and the studies in them, for this process and those in its folder."""

    def install(studies: Mapping[str, str], **modules: str) -> None:
        info = tmp_path / "added-0.1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: added\nVersion: 0.1\n")
        points = [f"{name} = {where}" for name, where in studies.items()]
        (info / "entry_points.txt").write_text("\n".join(["[overfit.studies]", *points]))
        for name, code in modules.items():
            (tmp_path / f"{name}.py").write_text(code)

    monkeypatch.syspath_prepend(tmp_path)
    registry._entry_points.cache_clear()
    yield install
    registry._entry_points.cache_clear()
