"""Small IMDb folders and archives for tests."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

REVIEWS: Mapping[str, bytes] = {
    "train/neg/0_3.txt": b"Dull.",
    "train/neg/2_1.txt": b"Never again",
    "train/neg/10_4.txt": bytes([0, 254, 255]),
    "train/pos/0_9.txt": "Très bon".encode(),
    "train/pos/1_7.txt": b"I laughed, I cried, I stayed for the credits.",
    "test/neg/0_2.txt": b"No",
    "test/pos/0_10.txt": b"Yes",
    "test/pos/3_8.txt": b"Yes again",
}
"""Reviews by their place in `aclImdb`."""

OTHERS: Mapping[str, bytes] = {
    "README": b"Large Movie Review Dataset",
    "train/unsup/0_0.txt": b"Nobody labelled this",
    "train/pos/._0_9.txt": b"A file manager's note",
    "train/labeledBow.feat": b"9 0:1",
}
"""What else is published with them, or gets in by itself."""


def without(*names: str) -> dict[str, bytes]:
    """Return the reviews but those of these names."""
    return {name: content for name, content in REVIEWS.items() if name not in names}


def write_folder(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write `files` into `folder`."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def write_archive(path: Path, files: Mapping[str, bytes], prefix: str = "aclImdb/") -> Path:
    """Write `files` into the archive `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(prefix + name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    path.write_bytes(gzip.compress(content.getvalue(), mtime=0))
    return path
