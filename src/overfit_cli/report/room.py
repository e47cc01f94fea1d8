"""Room on the page: how many bytes may still be written."""

from __future__ import annotations


class Room:
    """Bytes that are left.

    Attributes:
        is_full: whether something found no room; nothing else does after that.
    """

    def __init__(self, size: int) -> None:
        self._left = size
        self.is_full = False

    def holds(self, text: str) -> bool:
        """Take the room of a text and a line's end; say whether there was so much."""
        size = len(text.encode()) + 1
        self.is_full = self.is_full or size > self._left
        if not self.is_full:
            self._left -= size
        return not self.is_full
