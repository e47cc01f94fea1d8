"""The library knows nothing of its command line: outside `cli/` options are names.

One module writes the words of commands, from the names of their options.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import overfit_cli

PACKAGE = Path(overfit_cli.__file__).parent


def options_in(tree: ast.AST) -> list[str]:
    """The texts that begin with an option: `--snr`, or `--` before a name that is put in."""
    dashes = {
        id(parts.values[index])
        for parts in ast.walk(tree)
        if isinstance(parts, ast.JoinedStr)
        for index in range(len(parts.values) - 1)
        if isinstance(parts.values[index + 1], ast.FormattedValue)
    }
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and (re.match(r"--[a-zA-Z]", node.value) or (node.value == "--" and id(node) in dashes))
    ]


def test_no_text_outside_the_command_line_begins_with_an_option() -> None:
    spelling = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] != "cli" and options_in(ast.parse(path.read_text()))
    }
    assert spelling == {"core/console.py"}
