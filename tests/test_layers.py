"""The library knows nothing of its command line: outside `cli/` options are names.

One module writes the words of commands, from the names of their options.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import overfit_cli

PACKAGE = Path(overfit_cli.__file__).parent


def options_in(tree: ast.AST, pattern: str) -> list[str]:
    """The texts with an option, by a pattern, or with `--` before a name that is put in."""
    documents = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    texts = [
        ast.unparse(each)
        for each in ast.walk(tree)
        if isinstance(each, ast.JoinedStr | ast.Constant) and id(each) not in documents
    ]
    return [text for text in texts if re.search(pattern, text)]


def test_no_text_outside_the_command_line_has_an_option() -> None:
    """Texts of papers may name one; of the machine, one module writes commands of overfit."""
    spelling = set[str]()
    for path in PACKAGE.rglob("*.py"):
        part = path.relative_to(PACKAGE)
        pattern = r"^f?['\"]--[a-zA-Z{]" if part.parts[0] == "studies" else r"(?<![\w-])--[a-zA-Z{]"
        if part.parts[0] != "cli" and options_in(ast.parse(path.read_text()), pattern):
            spelling.add(part.as_posix())
    commands_of_ray_and_git = {"sweeps/clusters.py", "sweeps/manifest.py"}
    assert spelling - commands_of_ray_and_git == {"core/text.py"}
