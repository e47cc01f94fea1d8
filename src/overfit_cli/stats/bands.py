"""Means and medians over seeds, with bands: 95 % intervals, standard deviations, quartiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np

from overfit_cli.core.arrays import LARGEST, Floats
from overfit_cli.core.errors import BadValue
from overfit_cli.core.values import Band, Mean, valid_choice
from overfit_cli.stats.intervals import FEWEST_FOR_MEDIAN, median_estimate, t_half_width

MEANS = {"arithmetic": "mean", "geometric": "geometric mean", "median": "median"}
BANDS = {
    "interval": "95 % interval",
    "sd": "one standard deviation",
    "quartiles": "the middle half",
    "seeds": "a thin line for each seed",
}


@dataclass(frozen=True)
class Averaging:
    """The statistic over seeds that a figure shows, and its band.

    Attributes:
        mean: the statistic.
        band: the band around it; `seeds` is a line for each seed in its place.

    Raises:
        UserError: for another name, or a median with a standard deviation.
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

        Raises:
            UserError: for a geometric mean of numbers that are not all positive.
        """
        if self.mean == "geometric":
            if (values <= 0).any():
                count = int((values <= 0).sum())
                accepts = f"{count} of the numbers are not positive; take arithmetic or median."
                raise BadValue("mean", "geometric", accepts)
            values = np.log(values)
        missing = np.isnan(values) if self.mean == "median" else ~np.isfinite(values)
        samples = [row[~hidden] for row, hidden in zip(values, missing, strict=True)]
        rows = [self._summarise_row(sample) for sample in samples]
        summary = np.array(rows, dtype=np.float64).reshape(-1, 3)
        if self.mean == "geometric":
            summary = np.exp(np.clip(summary, -np.log(LARGEST), np.log(LARGEST)))
        middle, low, high = summary.T
        return middle, np.clip(low, *bounds), np.clip(high, *bounds)

    def _summarise_row(self, sample: Floats) -> tuple[float, float, float]:
        """The statistic of one sample, and both ends of its band."""
        if sample.size == 0:
            return np.nan, np.nan, np.nan
        middle = float(np.median(sample) if self.mean == "median" else sample.mean())
        if self.band == "quartiles":
            low, high = _quartiles(sample)
            return middle, low, high
        if self.mean == "median":
            estimate = median_estimate(sample, 0.95)
            if estimate.bounded:
                return middle, estimate.low, estimate.high
            return middle, float(sample.min()), float(sample.max())
        if sample.size < 2:
            return middle, np.nan, np.nan
        deviation = float(sample.std(ddof=1))
        half = deviation if self.band == "sd" else float(t_half_width(deviation, sample.size, 0.95))
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


def _quartiles(sample: Floats) -> tuple[float, float]:
    """The quartiles of a sample; infinite where one lies among infinite values, or beside one."""
    ends = np.quantile(np.minimum(sample, LARGEST), [0.25, 0.75])
    beyond = np.quantile(np.isinf(sample).astype(np.float64), [0.25, 0.75]) > 0
    low, high = np.where(beyond, np.inf, ends).tolist()
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


MIDDLE_HALF = Averaging("median", "quartiles")
"""The median with its quartiles."""
