"""Settings of all tests: one thread of computation each, and the toy study."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from unittest import mock

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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests of what only Unix has on other systems; mark most of many cases slow."""
    cases = Counter[str]()
    for item in items:
        if os.name != "posix" and item.get_closest_marker("unix"):
            item.add_marker(pytest.mark.skip(reason="this system is not Unix"))
        if marker := item.get_closest_marker("one_in"):
            test = item.nodeid.partition("[")[0]
            if cases[test] % marker.args[0]:
                item.add_marker(pytest.mark.slow)
            cases[test] += 1


@pytest.fixture(autouse=True)
def no_added_study_stays() -> Iterator[None]:
    """Forget the studies that a test has given, which others would list."""
    with mock.patch.dict(registry._added):
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
