"""The published package: the wheel, its metadata and README, and the archive it is built of."""

from __future__ import annotations

import contextlib
import email
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import overfit_cli
from docs import generate
from hatch_build import with_whole_links

ROOT = Path(__file__).parents[1]
BUILD = """
import os, sys
from hatchling.build import build_sdist, build_wheel
os.chdir(sys.argv[1])
print({"sdist": build_sdist, "wheel": build_wheel}[sys.argv[2]](sys.argv[3]))
"""


def build(kind: str, project: Path, out: Path) -> Path:
    """Build a project's wheel or source archive as an installer does, without a network."""
    command = [sys.executable, "-c", BUILD, str(project), kind, str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return out / done.stdout.split()[-1]


def metadata_of(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return email.message_from_bytes(archive.read(name))


def readme_of(metadata: Message) -> str:
    content = metadata.get_payload(decode=True)
    assert isinstance(content, bytes)
    return content.decode()


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source archive, unpacked."""
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(build("sdist", ROOT, folder)) as packed:
        packed.extractall(folder, filter="data")
    [unpacked] = [path for path in folder.iterdir() if path.is_dir()]
    return unpacked


@pytest.fixture(scope="module")
def wheel(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that the source archive builds."""
    return build("wheel", archive, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    return metadata_of(wheel)


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


def test_the_classifiers_are_the_pythons_that_are_tested(metadata: Message) -> None:
    classifiers = metadata.get_all("Classifier", [])
    text = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    [tested] = re.findall(r"python: \[(.*)\]", text)
    start = "Programming Language :: Python :: "
    minor = [name.removeprefix(start) for name in classifiers if re.search(r":: 3\.\d+$", name)]
    assert minor == [version.strip('"') for version in tested.split(", ")]
    assert metadata["Requires-Python"] == f">={minor[0]}"
    assert {"Typing :: Typed", "Operating System :: OS Independent"} <= set(classifiers)


def test_ray_is_asked_for_only_where_it_can_be_installed(metadata: Message) -> None:
    asked = [line for line in metadata.get_all("Requires-Dist", []) if line.startswith("ray")]
    assert len(asked) == 2
    assert all("python_version < '3.14'" in line for line in asked)


def test_every_link_and_picture_of_the_published_readme_is_whole(metadata: Message) -> None:
    text = readme_of(metadata)
    links = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'\b(?:src|href)="([^"]+)"', text)
    assert len(links) > 30
    assert not [link for link in links if not link.startswith("https://")]
    pictures = re.findall(r'<img src="([^"]+)"', text)
    assert pictures
    assert all("/raw/" in picture for picture in pictures)


def test_the_published_links_lead_to_files_that_the_repository_has(metadata: Message) -> None:
    at_tag = re.findall(
        rf"/(?:blob|raw)/v{re.escape(overfit_cli.__version__)}/([^)\"#\s]+)", readme_of(metadata)
    )
    assert len(at_tag) > 20
    assert not [path for path in at_tag if not (ROOT / path).exists()]


@pytest.mark.parametrize(
    ("text", "published"),
    [
        ("[tour](docs/tour.md)", "[tour](https://x/y/blob/v1/docs/tour.md)"),
        ("[how](docs/tour.md#a-b)", "[how](https://x/y/blob/v1/docs/tour.md#a-b)"),
        ("![map](docs/a.png)", "![map](https://x/y/raw/v1/docs/a.png)"),
        (
            '<a href="a.html"><img src="b.svg"></a>',
            '<a href="https://x/y/blob/v1/a.html"><img src="https://x/y/raw/v1/b.svg"></a>',
        ),
        ("[paper](https://arxiv.org/abs/1)", "[paper](https://arxiv.org/abs/1)"),
        ("[below](#install)", "[below](#install)"),
        ("[mail](mailto:a@b.c)", "[mail](mailto:a@b.c)"),
    ],
)
def test_links_are_made_whole(text: str, published: str) -> None:
    assert with_whole_links(text, "https://x/y", "v1") == published


def test_the_address_is_defined_once() -> None:
    """`make docs` copies it into the citation and the changelog; CONTRIBUTING says so."""
    names = subprocess.run(
        ["git", "grep", "-l", "github.example/"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split()
    assert set(names) - {"tests/test_packaging.py"} == {
        "pyproject.toml",
        "CHANGELOG.md",
        "CITATION.cff",
        "CONTRIBUTING.md",
    }
    text = generate.CITATION.read_text(encoding="utf-8")
    assert generate.cited(text.replace("github.example", "elsewhere.example")) == text


def installed_for(requirements: list[str]) -> set[str]:
    """The names of installed packages that requirements lead to, on this system and Python."""
    names: set[str] = set()
    queue = [Requirement(text) for text in requirements]
    seen: set[str] = set()
    while queue:
        requirement = queue.pop()
        if str(requirement) in seen:
            continue
        seen.add(str(requirement))
        with contextlib.suppress(PackageNotFoundError):
            needed = map(Requirement, requires(requirement.name) or ())
            names.add(canonicalize_name(requirement.name))
            extras = ("", *requirement.extras)
            queue += [
                each
                for each in needed
                if not each.marker or any(each.marker.evaluate({"extra": one}) for one in extras)
            ]
    return names


def test_every_package_that_the_development_tools_need_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = project["dependencies"] + project["optional-dependencies"]["dev"]
    needed = installed_for(asked)
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()[1:]
    pinned = {canonicalize_name(line.partition("==")[0]) for line in lines}
    assert {"certifi", "zizmor", "torch"} <= needed
    assert needed - pinned == set()


def test_what_builds_a_release_is_pinned() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    tools = re.findall(r"pipx run (?:--spec )?(\S+)", text)
    assert len(tools) == 2
    assert all(re.fullmatch(r"\w+==[\d.]+", tool) for tool in tools)


def test_pytorch_alone_comes_from_its_own_index() -> None:
    """What it needs has pins that only the usual index is sure to have."""
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert "--index-url" not in line or "--no-deps" in line, path


def test_the_source_archive_has_one_readme_beside_those_of_the_package(archive: Path) -> None:
    assert (archive / "README.md").is_file()
    assert not (archive / "results").exists()


def test_the_release_publishes_only_what_was_built_and_keeps_no_token() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    _, publishing = text.split("\n  publish:\n")
    assert "needs: build" in publishing
    assert "id-token: write" in publishing
    assert "secrets." not in text
    assert not re.findall(r"uses: \S+@(?![0-9a-f]{40}\b)", text)
