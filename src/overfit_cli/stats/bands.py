"""Means and medians over seeds, with bands: 95 % intervals, standard deviations, quartiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike

from overfit_cli.core.arrays import LARGEST, Floats
from overfit_cli.core.errors import BadValue
from overfit_cli.core.options import Band, Mean, valid_choice
from overfit_cli.stats.intervals import FEWEST_FOR_MEDIAN, order_ends, t_half_width

MEANS = {"arithmetic": "mean", "geometric": "geometric mean", "median": "median"}
BANDS = {
    "interval": "95 % interval",
    "sd": "one standard deviation",
    "quartiles": "the middle half",
    "seeds": "a thin line for each seed",
}


def mean_of_seeds(seeds: ArrayLike, mean: Mean) -> str:
    """Write the number of seeds of means: `one seed`, `mean of 3 seeds`, `mean of 1 to 4 seeds`."""
    least, greatest = int(np.min(seeds)), int(np.max(seeds))
    if greatest == 1:
        return "one seed"
    return f"{MEANS[mean]} of {'' if least == greatest else f'{least} to '}{greatest} seeds"


@dataclass(frozen=True)
class Averaging:
    """The statistic over seeds that a figure shows, and its band.

    Attributes:
        band: the band around it; `seeds` is a line for each seed in its place.
    """

    mean: Mean = "arithmetic"
    band: Band = "interval"

    def __post_init__(self) -> None:
        """Check the names."""
        valid_choice("mean", self.mean, get_args(Mean))
        valid_choice("band", self.band, get_args(Band))
        if (self.mean, self.band) == ("median", "sd"):
            raise BadValue("band", "sd", "a median takes interval, quartiles or seeds.")

    def summarise(
        self, values: Floats, bounds: tuple[float, float]
    ) -> tuple[Floats, Floats, Floats]:
        """Return the statistic over seeds, and both ends of its band.

        Ends stay within bounds. An interval of a mean is
        Student's t interval, of the logarithms for a geometric mean; of a median, by order
        statistics, and with fewer than six seeds from the least to the greatest.

        Args:
            values: of shape (positions, seeds); nan where there is none, and infinite where a seed
                misses, which medians count as beyond every number and means leave out.
            bounds: the least and the largest that the numbers can be; see `natural_bounds`.

        Returns:
            Three arrays of shape (positions,); nan where there is no number, and where an
            interval of one seed has no ends. A median is infinite where half of the seeds miss.
        """
        if self.mean == "geometric":
            if (values <= 0).any():
                count = int((values <= 0).sum())
                accepts = f"{count} of the numbers are not positive; take arithmetic or median."
                raise BadValue("mean", "geometric", accepts)
            values = np.log(values)
        missing = np.isnan(values) if self.mean == "median" else ~np.isfinite(values)
        counts = (~missing).sum(axis=1)
        summary = np.full((len(values), 3), np.nan)
        for count in np.unique(counts[counts > 0]).tolist():
            rows = counts == count
            samples = values[rows][~missing[rows]].reshape(-1, count)
            summary[rows] = np.column_stack(self._summarise_samples(samples))
        if self.mean == "geometric":
            summary = np.exp(np.clip(summary, -np.log(LARGEST), np.log(LARGEST)))
        middle, low, high = summary.T
        clipped = np.clip([low, high], *bounds)
        if self.mean == "median":  # an end among seeds that miss lies beyond every bound
            clipped = np.where(np.isinf([low, high]), [low, high], clipped)
        return middle, clipped[0], clipped[1]

    def _summarise_samples(self, samples: Floats) -> tuple[Floats, Floats, Floats]:
        """The statistic of each sample, and both ends of its band; shape (samples, seeds)."""
        middle = np.median(samples, axis=1) if self.mean == "median" else samples.mean(axis=1)
        if self.band == "quartiles":
            return middle, *_quartiles(samples)
        seeds = samples.shape[1]
        if self.mean == "median":
            ordered = np.sort(samples, axis=1)
            if seeds < FEWEST_FOR_MEDIAN:
                return middle, ordered[:, 0], ordered[:, -1]
            return middle, *order_ends(ordered, ordered, 1 - 0.95)
        if seeds < 2:
            return middle, np.full_like(middle, np.nan), np.full_like(middle, np.nan)
        deviation = samples.std(axis=1, ddof=1)
        half = deviation if self.band == "sd" else t_half_width(deviation, seeds, 0.95)
        return middle, middle - half, middle + half

    def label(self, largest: int) -> str:
        """Return the statistic and its band, for an axis: `mean, 95 % interval`."""
        band = "" if self.band == "seeds" else f", {self.band_in_words(largest)}"
        return f"{MEANS[self.mean]}{band}".replace("95 %", "95\N{NO-BREAK SPACE}%")

    def band_in_words(self, largest: int) -> str:
        """Return what the band is, of at most so many seeds."""
        if (self.mean, self.band) == ("median", "interval") and largest < FEWEST_FOR_MEDIAN:
            return "least to greatest"
        return BANDS[self.band]


def _quartiles(samples: Floats) -> tuple[Floats, Floats]:
    """The quartiles of samples; infinite where one lies among infinite values, or beside one."""
    shares = [0.25, 0.75]
    ends = np.quantile(np.minimum(samples, LARGEST), shares, axis=1)
    beyond = np.quantile(np.isinf(samples).astype(np.float64), shares, axis=1) > 0
    low, high = np.where(beyond, np.inf, ends)
    return low, high


def natural_bounds(values: Floats) -> tuple[float, float]:
    """Return the bounds of what the numbers of a column can be, as far as they show it.

    Numbers of which none is negative stay above 0; if none is above 1 either, as in a share, up to
    1. Others have no bounds.
    """
    finite = values[np.isfinite(values)]
    if finite.size == 0 or finite.min() < 0:
        return -np.inf, np.inf
    return 0.0, 1.0 if finite.max() <= 1 else np.inf


MEAN = Averaging()
"""The arithmetic mean with its 95 % interval."""


MEDIAN = Averaging("median")
"""The median with its 95 % interval."""


MIDDLE_HALF = Averaging("median", "quartiles")
"""The median with its quartiles."""
