"""How many images are compared with, by how many filters: as there is room and time for."""

import math

from .._arrays import Space
from .._network.compared import moves
from .._network.patches import Shape
from .._search.angles import AnglePlan, step_of

MOST_FILTERS = {False: 384, True: 4096}
"""Of each patch size, where their number is not given."""

ALIGNED = 32
"""On a GPU products of vectors whose length is no multiple of 64 take three times as long; both signs count."""

MOST_PRODUCTS, LEAST_FILTERS = 1.5e13, 96
"""Products that all images may take on a processor (about five minutes of two cores), and so many filters anyway."""

SOLVED, SOLVED_SHARE = 1.7, 0.6
"""Products for an image and any two anchors, and the most that these may take of all. Twice as many anchors are worth
more than twice as many filters."""

ANCHORS = {False: (4000, 8000), True: (20_000, 20_000)}
"""Images that others are compared with where there is no room, or no time, for all: at least and at most."""

MOST_ALL = 8000
"""Images up to which all are compared with one another on a processor."""

CELLS_BYTES = 2**31
"""Most that unit vectors of all images may take on a processor, and sixteen times that on a GPU."""


def all_fit(n: int, space: Space) -> bool:
    """Whether so many images can all be compared with one another."""
    # K, its copy with the ridge and their factor, in float64, at the same time
    return space.holds(6 * n * n) if space.is_cuda else n <= MOST_ALL


def filters_for(plan: AnglePlan, shape: Shape, n: int, held: int, space: Space) -> int:
    """Filters of each patch size, by the memory of `held` images and, on a processor, by the time of all `n`."""
    each = 4 * plan.pool**2 * len(plan.patch) * held * (1 if space.is_cuda else 2)  # both signs, in halves
    room = min(MOST_FILTERS[space.is_cuda], space.budget(CELLS_BYTES) // each)
    if not space.is_cuda:
        height, width, channels = shape
        steps = {p: step_of(shape, p, plan.mirror) for p in plan.patch}
        places = {p: max(1, (height - p) // s + 1) * max(1, (width - p) // s + 1) for p, s in steps.items()}
        seen = sum(places[p] * p * p * channels for p in plan.patch)
        compared = 2 * plan.pool**2 * len(plan.patch) * held
        products = n * (seen + compared) * (2 if plan.mirror else 1)
        left = MOST_PRODUCTS - (SOLVED * n * held**2 if held < n else 0.0)
        room = min(room, max(LEAST_FILTERS, int(left // products)))
    return int(max(8, room // ALIGNED * ALIGNED if space.is_cuda else room))


def anchors_among(n: int, space: Space) -> int:
    """How many of n images others are compared with: all, or as many as there is time for."""
    if all_fit(n, space):
        return n
    least, most = ANCHORS[space.is_cuda]
    in_time = math.isqrt(int(SOLVED_SHARE * MOST_PRODUCTS / (SOLVED * n)))
    return min(max(least, in_time), most, n // 2)  # those are scored that are no anchors


def checked_shift(shift: int, shape: Shape, n: int, anchors: int, space: Space) -> int:
    """The shift that was given for n images, or an error where it is for others than these."""
    copies = len(moves(shape, shift))
    if shift and copies == 1:
        raise ValueError(
            f"shift={shift} is half of an image of {shape[0]} x {shape[1]} pixels, or more: give at most "
            f"{(max(shape[:2]) - 1) // 2}."
        )
    if copies > 1 and anchors < n and all_fit(n, space):
        raise ValueError(
            f"shift={shift} is for images that are all compared with one another, and anchors={anchors} are some of "
            "them: leave one of the two 'auto'."
        )
    if copies > 1 and not all_fit(n * copies, space):
        raise ValueError(
            f"shift={shift} makes {copies} rows of each of the {n:,} images, and these are too many to compare all "
            "with one another: leave shift='auto', or give fewer images."
        )
    return shift
