"""The published package: the wheel, its metadata and README, and the archive it is built of."""

from __future__ import annotations

import email
import importlib.metadata
import re
import tarfile
import tomllib
import zipfile
from email.message import Message
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import overfit_cli
from hatch_build import with_whole_links
from tests.command import python

ROOT = Path(__file__).parents[1]
LOCK = (ROOT / "requirements-lock.txt").read_text(encoding="utf-8")
ENTRY = re.compile(r"^([a-z][^\n]*?)((?: \\\n +--hash=sha256:[0-9a-f]{64})*)$", re.MULTILINE)
BUILD = """
import os, sys
from hatchling.build import build_sdist, build_wheel
os.chdir(sys.argv[1])
print({"sdist": build_sdist, "wheel": build_wheel}[sys.argv[2]](sys.argv[3]))
"""


def build(kind: str, project: Path, out: Path) -> Path:
    """Build a project's wheel or source archive as an installer does, without a network."""
    return out / python("-c", BUILD, project, kind, out).stdout.split()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that the source archive builds."""
    folder = tmp_path_factory.mktemp("package")
    with tarfile.open(build("sdist", ROOT, folder)) as packed:
        packed.extractall(folder, filter="data")
    [unpacked] = [path for path in folder.iterdir() if path.is_dir()]
    return build("wheel", unpacked, folder)


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as packed:
        [name] = [name for name in packed.namelist() if name.endswith(".dist-info/METADATA")]
        return email.message_from_bytes(packed.read(name))


def test_the_wheel_has_the_packages_files_and_the_presets(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
    package = ROOT / "src"
    sources = {path.relative_to(package).as_posix() for path in package.rglob("*.py")}
    presets = {f"overfit_cli/experiments/{path.name}" for path in ROOT.glob("experiments/*")}
    assert sources | presets | {"overfit_cli/py.typed"} <= names
    assert not [name for name in names if name.startswith(("tests", "docs", "hatch_build"))]


def test_the_metadata_names_the_version_the_addresses_and_the_keywords(metadata: Message) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    address = project["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"]
    assert metadata["Name"] == "overfit-cli"
    assert metadata["Version"] == overfit_cli.__version__
    assert metadata["License-Expression"] == "MIT"
    urls = dict(url.split(", ") for url in metadata.get_all("Project-URL", []))
    assert set(urls) == {"Repository", "Documentation", "Changelog", "Issues"}
    assert all(url.startswith(address) for url in urls.values())
    assert "attention" in metadata["Keywords"].split(",")


def test_every_link_and_picture_of_the_published_readme_is_whole(metadata: Message) -> None:
    content = metadata.get_payload(decode=True)
    assert isinstance(content, bytes)
    text = content.decode()
    links = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'\b(?:src|href)="([^"]+)"', text)
    pictures = re.findall(r'<img src="([^"]+)"', text)
    assert len(links) > 20 > len(pictures) > 0
    assert all(link.startswith("https://") for link in links)
    assert all("/raw/" in picture for picture in pictures)


LINKS = {
    "[start](docs/start.md)": "[start](https://x/y/blob/v1/docs/start.md)",
    "[how](docs/start.md#a-b)": "[how](https://x/y/blob/v1/docs/start.md#a-b)",
    "![map](docs/a.png)": "![map](https://x/y/raw/v1/docs/a.png)",
    '<a href="a.html">x</a>': '<a href="https://x/y/blob/v1/a.html">x</a>',
    '<img src="b.svg">': '<img src="https://x/y/raw/v1/b.svg">',
}
WHOLE = ("[paper](https://arxiv.org/abs/1)", "[below](#install)", "[mail](mailto:a@b.c)")


def test_links_are_made_whole() -> None:
    for text, published in (*LINKS.items(), *zip(WHOLE, WHOLE, strict=True)):
        assert with_whole_links(text, "https://x/y", "v1") == published


def here(requirements: list[str]) -> list[Requirement]:
    """Those of some requirements that count on this system; the package itself is none."""
    every = [one for one in map(Requirement, requirements) if one.name != "overfit-cli"]
    return [one for one in every if one.marker is None or one.marker.evaluate({"extra": ""})]


def not_locked(requirements: list[Requirement]) -> list[str]:
    """Those that the lock lacks, or has at another version than they allow."""
    lock = {one.name: one for one in here([entry[1] for entry in ENTRY.finditer(LOCK)])}
    versions = {name: str(one.specifier).removeprefix("==") for name, one in lock.items()}
    found = [(one, versions.get(canonicalize_name(one.name))) for one in requirements]
    return [str(one) for one, version in found if not version or version not in one.specifier]


def test_the_lock_has_every_requirement_at_an_allowed_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"].values()
    every = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    assert not not_locked(here(sum(extras, every)))
    assert not_locked([Requirement("numpy<2"), Requirement("nowhere")]) == ["numpy<2", "nowhere"]


@pytest.mark.slow  # in an installation of all of them
def test_the_lock_has_what_its_packages_require() -> None:
    names = {one.name for one in here([entry[1] for entry in ENTRY.finditer(LOCK)])}
    required = {name: importlib.metadata.requires(name) or [] for name in names - {"torch"}}
    lacking = {name: not_locked(here(requires)) for name, requires in required.items()}
    assert not {name: requires for name, requires in lacking.items() if requires}


def test_every_line_of_the_lock_pins_a_version_with_hashes() -> None:
    entries = list(ENTRY.finditer(LOCK))
    assert len(entries) == len(re.findall("^[^#\\s-]", LOCK, re.MULTILINE)) > 100
    assert not [entry[1] for entry in entries if "==" not in entry[1] or not entry[2]]
