"""Texts in a PDF file's information dictionary, as far as it isn't compressed."""

from __future__ import annotations

import codecs
import re

_REFERENCE = re.compile(rb"/Info\s+(\d{1,10})\s+(\d{1,5})\s+R")
_STRING = rb"\s*(?:\(([^()\\]*+(?:\\.[^()\\]*+)*+)\)|<([0-9A-Fa-f\s]*+)>)"
_ESCAPE = re.compile(rb"\\(\r\n|[0-7]{1,3}|.)", re.DOTALL)
_CONTROLS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f"}
_CONTINUED = (b"\n", b"\r", b"\r\n")
_ENCODINGS = {codecs.BOM_UTF16_BE: "utf-16-be", codecs.BOM_UTF8: "utf-8"}


def info_text(content: bytes, name: str) -> str | None:
    """Return a text such as `Keywords`; None where there is none that can be found.

    Args:
        content: the file.
        name: what the dictionary calls it.
    """
    references = _REFERENCE.findall(content)
    if not references:
        return None
    number, generation = references[-1]  # a file that was added to has several; the last one holds
    objects = [*re.finditer(rb"(?<!\d)%s\s+%s\s+obj\b" % (number, generation), content)]
    if not objects:
        return None
    begin = objects[-1].end()
    end = content.find(b"endobj", begin)
    dictionary = content[begin : len(content) if end < 0 else end]
    found = re.search(rb"/%s%s" % (name.encode(), _STRING), dictionary, re.DOTALL)
    if found is None:
        return None
    return _decoded(_unescaped(found[1]) if found[1] is not None else _from_hex(found[2]))


def _unescaped(literal: bytes) -> bytes:
    return _ESCAPE.sub(lambda found: _meaning(found[1]), literal)


def _meaning(escaped: bytes) -> bytes:
    """What stands for itself after a backslash, or for something else."""
    if escaped in _CONTINUED:
        return b""
    if escaped.isdigit() and escaped < b"8":
        return bytes([int(escaped, 8) & 0xFF])
    return _CONTROLS.get(escaped, escaped)


def _from_hex(digits: bytes) -> bytes:
    text = re.sub(rb"\s", b"", digits).decode()
    return bytes.fromhex(text + "0" * (len(text) % 2))


def _decoded(text: bytes) -> str:
    for mark, encoding in _ENCODINGS.items():
        if text.startswith(mark):
            return text.removeprefix(mark).decode(encoding, errors="replace")
    return text.decode("latin-1")
