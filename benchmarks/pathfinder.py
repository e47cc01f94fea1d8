"""Pathfinder images at LRA's hard 32 × 32 settings: milliseconds an image, one thread.

Scenes are laid and images rendered in chunks, as a study does it. Beside the rendering stands the
loop over pixels, points and shapes that the tests compare it with, as one
would write it for one image.
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np

from benchmarks.timing import timed
from overfit_cli.studies.attention_kernel.classifier_parameters import PathfinderSettings
from overfit_cli.studies.attention_kernel.images import CHUNK, chunk_scenes, render, stream_of
from overfit_cli.studies.attention_kernel.scenes import Scenes
from tests.studies.attention_kernel import pathfinder_oracle as oracle

HARD = PathfinderSettings()
TRAIN = stream_of(1, "train")


def slowly(scenes: Scenes, image: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Render one image point by point."""
    shapes = (
        oracle.paddles_of(HARD, scenes, image),
        oracle.discs_of(HARD, scenes, image),
    )
    return oracle.pixels(HARD, *shapes, points=HARD.antialiasing)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=16, help=f"of {CHUNK} images")
    parser.add_argument("--slow", type=int, default=3, help="images for the loop over pixels")
    arguments = parser.parse_args()
    chunk_scenes(HARD, TRAIN, 0)  # Warm up.
    laying = rendering = 0.0
    for chunk in range(arguments.chunks):
        seconds, scenes = timed(partial(chunk_scenes, HARD, TRAIN, chunk))
        laying += seconds
        rendering += timed(partial(render, HARD, scenes))[0]
    images = CHUNK * arguments.chunks
    print(f"{images} images: {1e3 * (laying + rendering) / images:.2f} ms an image,")
    print(
        f"{1e3 * laying / images:.2f} ms to lay contours, {1e3 * rendering / images:.2f} to render"
    )
    scenes = chunk_scenes(HARD, TRAIN, 0)
    slow, pixels = timed(lambda: [slowly(scenes, image) for image in range(arguments.slow)])
    ratio = (slow / arguments.slow) / (rendering / images)
    difference = np.abs(np.array(pixels) - render(HARD, scenes)[: arguments.slow]).max()
    print(f"the loop over pixels renders one in {1e3 * slow / arguments.slow:.0f} ms: {ratio:.0f}")
    print(f"times as long, with grey levels within {difference:.2f} of 255")


if __name__ == "__main__":
    main()
