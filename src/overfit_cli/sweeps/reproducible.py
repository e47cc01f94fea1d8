"""What can be reproduced, by name: papers, their figures, and presets."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from overfit_cli.errors import UserError, most_alike, shortened
from overfit_cli.paper import Paper
from overfit_cli.registry import find_study
from overfit_cli.sweeps.presets import Preset, all_presets
from overfit_cli.words import as_numbered


@dataclass(frozen=True)
class Reproducible:
    """A preset with its paper.

    Attributes:
        preset: what is run.
        paper: whose experiment it is; None where it is nobody's.
        asked: whether the user named it, or its figure.
    """

    preset: Preset
    paper: Paper | None
    asked: bool = False

    @property
    def address(self) -> str:
        """The figure of the paper that it stands for: `jiang2024/fig1`."""
        return f"{self.paper.key if self.paper else 'own'}/{self.preset.reproduces}"


def everything() -> list[Reproducible]:
    """Return every preset, by paper and figure."""
    found = [Reproducible(one, find_study(one.content.study).paper) for one in all_presets()]
    return sorted(found, key=lambda one: (as_numbered(one.address), one.preset.name))


def reproducible(names: Sequence[str]) -> list[Reproducible]:
    """Return the presets that some names stand for, each once, by paper and figure.

    Args:
        names: papers (`jiang2024`), figures (`jiang2024/fig1`) and presets (`fig1`); none for all.

    Raises:
        UserError: for a name that is none of them.
    """
    every = everything()
    if not names:
        return every
    of_name: dict[str, list[Reproducible]] = {}
    for one in every:
        exact = Reproducible(one.preset, one.paper, asked=True)
        if one.paper:
            of_name.setdefault(one.paper.key, []).append(one)
            of_name.setdefault(one.address, []).append(exact)
            of_name.setdefault(f"{one.paper.key}/{one.preset.name}", [exact])
        of_name[one.preset.name] = [exact]
    for name in names:
        if name not in of_name:
            raise UserError(_unknown(name, of_name, [one.paper.key for one in every if one.paper]))
    wanted = {one.preset.name: one for name in names for one in of_name[name]}
    wanted |= {one.preset.name: one for name in names for one in of_name[name] if one.asked}
    return [wanted[one.preset.name] for one in every if one.preset.name in wanted]


def _unknown(name: str, known: Collection[str], papers: Sequence[str]) -> str:
    """The sentence about a name that nothing has, with the nearest, or with the papers."""
    close = most_alike(name, known)
    takes = f"it takes a paper ({', '.join(sorted(set(papers)))}), a figure of one or a preset"
    hint = f"did you mean {close!r}?" if close else f"{takes}: `reproduce --dry-run` lists all."
    return f"{shortened(name)!r} is neither a paper nor one of its figures; {hint}"
