"""Text from outside (names of files, reasons of failures) made safe to show."""

from __future__ import annotations

import re

_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # control characters: escape sequences and line breaks
    "\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069"  # marks that reorder or break a line
    "\ud800-\udfff]"  # bytes of a name that are no text
)
_EMPHASIS = re.compile(r"(?<!\w)_|_(?!\w)")
_MARKDOWN = {"&": "&amp;", "<": "&lt;", ">": "&gt;"} | {mark: f"\\{mark}" for mark in "\\`*|~$"}


def visible(text: str) -> str:
    r"""Return `text` in one line, with what a terminal would obey written as an escape: `\\x1b`."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def is_text(name: str) -> bool:
    """Whether a name is text: a file's name may hold bytes that are none."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def in_markdown(text: str) -> str:
    """Return `text` so that Markdown shows it as it is: no markup, no HTML, no links, one line."""
    escaped = "".join(_MARKDOWN.get(character, character) for character in visible(text))
    return _EMPHASIS.sub(r"\\_", escaped).replace("](", "]\\(")
