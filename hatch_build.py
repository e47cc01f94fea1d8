"""Metadata that the build makes: the project's addresses, and a README that is read elsewhere.

`repository` in pyproject.toml is the one address. On the package index, the README's relative links
would lead nowhere; they become links to the repository at the tag of the version.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(
    r"""(?P<before>(?P<picture>!\[[^\]]*)?\]\(|\b(?P<attribute>src|href)=")"""
    r"""(?![a-z][a-z+.-]*:|\#|/)(?P<path>[^)"\s]+)"""
)


class Metadata(MetadataHookInterface):
    """The addresses and the README of the built package."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add `urls` and `readme` to the project's metadata, which has its version already."""
        repository, tag = self.config["repository"], f"v{metadata['version']}"
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": with_whole_links(text, repository, tag),
        }
        metadata["urls"] = {
            "Repository": repository,
            "Documentation": f"{repository}/tree/{tag}/docs",
            "Changelog": f"{repository}/blob/{tag}/CHANGELOG.md",
            "Issues": f"{repository}/issues",
        }


def with_whole_links(text: str, repository: str, tag: str) -> str:
    """Return a Markdown text whose relative links lead to files of the repository at a tag.

    Pictures lead to their bytes, everything else to the page that shows the file.
    """

    def whole(link: re.Match[str]) -> str:
        is_picture = link["picture"] or link["attribute"] == "src"
        kind = "raw" if is_picture else "blob"
        return f"{link['before']}{repository}/{kind}/{tag}/{link['path']}"

    return _LINK.sub(whole, text)
