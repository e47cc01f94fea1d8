"""The library knows nothing of its command line: outside `cli/` options are names.

One module writes the words of commands, from the names of their options.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import overfit_cli

PACKAGE = Path(overfit_cli.__file__).parent


def has_option(path: Path, pattern: str) -> bool:
    """Whether a text has an option, by a pattern, or `--` before a name that is put in."""
    nodes = [*ast.walk(ast.parse(path.read_text()))]
    documents = [each.value for each in nodes if isinstance(each, ast.Expr)]
    texts = (each for each in nodes if isinstance(each, ast.JoinedStr | ast.Constant))
    return any(re.search(pattern, ast.unparse(one)) for one in texts if one not in documents)


def test_no_text_outside_the_command_line_has_an_option() -> None:
    """Texts of papers may name one; of the machine, one module writes commands of overfit."""
    spelling = set[str]()
    for path in PACKAGE.rglob("*.py"):
        part = path.relative_to(PACKAGE)
        pattern = r"^f?['\"]--[a-zA-Z{]" if part.parts[0] == "studies" else r"(?<![\w-])--[a-zA-Z{]"
        if part.parts[0] != "cli" and has_option(path, pattern):
            spelling.add(part.as_posix())
    of_other_programs = {"sweeps/clusters.py", "sweeps/manifest.py", "functions/program.py"}
    assert spelling - of_other_programs == {"core/text.py"}
