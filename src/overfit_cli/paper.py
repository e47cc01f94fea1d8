"""Papers: whose experiments studies are."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass


@dataclass(frozen=True)
class Paper:
    """A paper whose experiments studies run.

    Attributes:
        authors: as it is cited: `Jiang et al.`
        year: when it appeared.
        title: in full.
        url: where it is read; empty where it is nowhere.
    """

    authors: str
    year: int
    title: str
    url: str = ""

    @property
    def key(self) -> str:
        """Its name on the command line: the first author and the year, `jiang2024`."""
        plain = unicodedata.normalize("NFKD", self.authors).encode("ascii", "ignore").decode()
        first = re.match(r"[\w-]+", plain)
        return f"{first[0].lower() if first else 'paper'}{self.year}"

    def __str__(self) -> str:
        """As it is cited: `Jiang et al. 2024`."""
        return f"{self.authors} {self.year}"
