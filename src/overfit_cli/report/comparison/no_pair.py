"""Why no cell of B has a counterpart in A, and which option pairs them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from overfit_cli.analysis.pairs import Pairs, as_place
from overfit_cli.parameters import Value, describe
from overfit_cli.report.comparison.sides import Side

MOST_VALUES = 4
"""Of more values of a parameter, a sentence says the first and the last."""


def why_no_pair(a: Side, b: Side, names: Sequence[str], pairs: Pairs, *, interpolated: bool) -> str:
    """Return a sentence on why no cells are paired.

    Where both sides have no value of a parameter in common, it says which, and what to do.

    Args:
        a, b: the two sides.
        names: the parameters in whose values pairs agree.
        pairs: what was tried.
        interpolated: whether A was interpolated at B's points.
    """
    no_pair = f"B {b.path}: no {'point' if b.is_published else 'cell'} of it has"
    apart = [name for name in names if not _shared(a, b, name)]
    if not apart:
        seed = "the seed and " if pairs.by == "seed" else ""
        return f"{no_pair} {seed}the values of {', '.join(names)} of a cell of A."
    differs = "; ".join(
        f"{name} is {_listed(a.values(name))} in A and {_listed(b.values(name))} in B"
        for name in apart
    )
    chosen = " ".join(word for name in apart for side in (a, b) for word in _choice(side, name))
    choose = f"choose one value on each side with {chosen}"
    between = not interpolated and all(_is_between(a, b, name) for name in apart)
    interpolate = "compare between A's values with --interpolate, or " if between else ""
    return f"{no_pair} a counterpart: {differs}; {interpolate}{choose}."


def _shared(a: Side, b: Side, name: str) -> bool:
    first, second = ({as_place(value) for value in side.values(name)} for side in (a, b))
    return bool(first & second)


def _is_between(a: Side, b: Side, name: str) -> bool:
    """Whether some of B's values of a parameter lie between values of A."""
    info = describe(a.study.parameters).get(name)
    if info is None or info.kind not in ("int", "float"):
        return False
    own = [float(value) for value in a.values(name)]
    return any(own[0] < float(value) < own[-1] for value in b.values(name))


def _choice(side: Side, name: str) -> list[str]:
    """The option that leaves one value of a parameter on a side; none where it has one."""
    values = side.values(name)
    option = f"--where-{side.letter.lower()} {shlex.quote(f'{name}={values[0]}')}"
    return [option] if len(values) > 1 else []


def _listed(values: Sequence[Value]) -> str:
    """Values with commas; the first and the last of many."""
    texts = [f"{value:g}" if isinstance(value, float) else str(value) for value in values]
    if len(texts) > MOST_VALUES:
        return f"{texts[0]} to {texts[-1]}"
    return ", ".join(texts)
