"""Parameters of the `kernel-pathfinder` study; the defaults are LRA's hard images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Literal

from overfit_cli.datasets.pathfinder.settings import AT_LEAST, LARGEST, PathfinderSettings
from overfit_cli.errors import UserError
from overfit_cli.parameters import parameter
from overfit_cli.studies.attention_kernel.classifier.parameters import ClassifierParameters


def _setting(name: str, meaning: str, unit: str = "") -> Any:
    """A parameter with the default and the bounds of the setting of that name."""
    default = getattr(PathfinderSettings, name)
    least = AT_LEAST.get(name)
    above = 0 if least is None else None
    return parameter(default, meaning, unit=unit, at_least=least, above=above, at_most=LARGEST)


class KernelPathfinderParameters(ClassifierParameters):
    """Whether a contour connects two discs: images drawn here, or LRA's; a token is a pixel."""

    source: Literal["generated", "lra"] = parameter(
        "generated", "images drawn here, or LRA's from --data"
    )
    grey_levels: int = parameter(
        256, "grey levels that are told apart: a token each", at_least=2, at_most=256
    )
    difficulty: Literal["easy", "intermediate", "hard"] = parameter(
        "hard", "which of LRA's directories, with source=lra"
    )
    size: int = _setting("size", "width and height of an image", "pixels")
    contour_length: int = _setting("contour_length", "paddles of each of the two contours")
    paddle_length: float = _setting("paddle_length", "length of a paddle", "pixels")
    paddle_thickness: float = _setting("paddle_thickness", "thickness of a paddle", "pixels")
    paddle_margin: float = _setting("paddle_margin", "room before and after a paddle", "pixels")
    continuity: float = _setting("continuity", "how straight contours are: larger is straighter")
    distractors: int = _setting("distractors", "short contours beside the two")
    distractor_length: int = _setting("distractor_length", "paddles of a distractor")
    marker_radius: float = _setting("marker_radius", "radius of the discs", "pixels")
    seed_distance: float = _setting("seed_distance", "distance between contours' seeds", "pixels")
    distance_tolerance: float = _setting(
        "distance_tolerance", "by how much distances between discs may differ by label", "pixels"
    )
    matched: Literal["distance", "places"] = parameter(
        "distance", "what tells nothing of the label: the discs' distance, or all of their places"
    )
    antialiasing: int = _setting("antialiasing", "points a pixel and axis at which ink is drawn")

    @property
    def settings(self) -> PathfinderSettings:
        """What the images are made of."""
        return PathfinderSettings(
            **{field.name: getattr(self, field.name) for field in fields(PathfinderSettings)}
        )

    def refusals(self) -> Iterator[str]:
        """Give sentences on images that LRA doesn't have, or that can't be drawn."""
        yield from super().refusals()
        if self.source == "generated" and self.difficulty != "hard":
            yield (
                f"--set difficulty {self.difficulty}: with source=generated, difficulty takes "
                "hard; easier images are drawn with a smaller contour_length."
            )
        if self.source == "generated":
            try:
                _ = self.settings
            except UserError as error:
                yield f"--set {error}"
