"""Output layers on what an image has in common with others: with all that it is fitted on, or with some of them."""

from collections.abc import Callable

import numpy as np

from .._arrays import Array, Space, cholesky, namespace, plus_diagonal, solve_triangular, space_of, take_rows
from .._data.rows import Rows
from .._data.targets import Encoding
from .._engine.dual import solve_dual
from .angles import AngleKernel, Cells
from .branches import Images
from .fit_output import HeadInput, OutputSpec
from .head import LinearHead
from .network import FeatureCache, Network
from .output import Output
from .patches import Shape
from .solving import fit_output

JITTER = 1e-5
"""Added to the unit diagonal of what the anchors have in common, before it is factorised."""

KEPT_BYTES = {False: 2**30, True: 2**32}
"""What is compared of images stays in memory for predictions up to so many bytes, on a processor and on a GPU: made
anew it is seconds for a single image."""

ANSWERED_BYTES = 2**28
"""What is compared of the images of one block of predictions; sixteen times that on a GPU."""

BLOCK_NUMBERS = 2**25
"""Numbers compared of the images of one block on a CPU; a multiple of it on a GPU."""


Say = Callable[[str], None]
"""Whom to tell what is done now."""


def moves(shape: Shape, shift: int) -> list[tuple[int, int]]:
    """How far down and across the copies of an image are moved: it itself, then either way along each side that is long
    enough."""
    found = [(0, 0)]
    if shift and shape[0] > 2 * shift:
        found += [(shift, 0), (-shift, 0)]
    if shift and shape[1] > 2 * shift:
        found += [(0, shift), (0, -shift)]
    return found


def with_copies(images: Array, shift: int) -> Array:
    """Images n x h x w x c, each followed by its moved copies; what comes in at an edge is the edge."""
    space = space_of(images)
    xp, (n, *shape) = space.xp, (int(size) for size in images.shape)
    copies = []
    for move in moves(Shape(*shape), shift):
        moved = images
        for axis, step in enumerate(move, 1):
            places = np.clip(np.arange(shape[axis - 1]) - step, 0, shape[axis - 1] - 1)
            moved = xp.take(moved, space.asarray(places), axis=axis) if step else moved
        copies.append(moved)
    return images if len(copies) == 1 else xp.reshape(xp.stack(copies, axis=1), (n * len(copies), *shape))


def copied(images: Images, shift: int) -> Images:
    """The same of rows that are images."""
    X = namespace(images.X).reshape(images.X, images.shape)
    X = with_copies(X, shift)
    return Images(namespace(X).reshape(X, (int(X.shape[0]), -1)), images.image, images.space, images.dtype_name)


def are_few(cells: Cells, kernel: AngleKernel, space: Space) -> bool:
    """Whether they can be kept."""
    return 4 * int(cells.own.shape[0]) * kernel.numbers <= KEPT_BYTES[space.is_cuda]


def compare_with_all(
    kernel: AngleKernel,
    images: Images,
    Z: np.ndarray,
    ridges: list[float],
    block_rows: int | str,
    shift: int,
    say: Say,
) -> tuple[LinearHead, Cells | None]:
    """One factor of K, images x images, or their copies x copies. The output layer, and what is compared with if that
    can be kept: otherwise it makes room for the factor."""
    scale, copies, space = np.ones(Z.shape[1]), len(moves(images.image, shift)), images.space
    held = copies * len(Z)
    say(f"responses of {held:,} images")
    there = _answered(kernel.cells(copied(images, shift), space, block_rows))
    say(f"comparing {held:,} images with one another")
    K = kernel(there, there, space)
    cells = there if are_few(there, kernel, space) else None
    del there
    say(f"output layer, {held:,} images")
    found = solve_dual(K, Z, ridges, scale, copies)
    path = {found.ridge: found.loo.squared_error(scale)}
    return LinearHead(None, Output(found.a, found.b, found.ridge, "dual", found.loo, np.arange(len(Z)), path)), cells


def in_common(kernel: AngleKernel, images: Array | Images, space: Space, block_rows: int | str) -> Array:
    """K of all images."""
    cells = _answered(kernel.cells(images, space, block_rows))
    return kernel(cells, cells, space)


def _answered(cells: Cells) -> Cells:
    """These cells, unless there is nothing in them."""
    if not any(bool(namespace(unit).any(unit != 0)) for unit in cells.units):
        raise ValueError(
            "No filter answers anywhere in these images, they are too flat or the threshold is beyond all responses: "
            "give a smaller threshold, or leave it 'auto'."
        )
    return cells


def compare_with_some(
    kernel: AngleKernel,
    images: Images,
    encoding: Encoding,
    at: np.ndarray,
    ridge: float | str,
    block_rows: int | str,
    say: Say,
) -> tuple[LinearHead, Cells]:
    """What each image has in common with those in the rows `at`, as features that are independent there: with
    K = L L' of these k L'^-1, on which an output layer is solved like any other, but that one scale is that of all of
    them: in another order of the same images they are other coordinates of the same space. They are not scored
    themselves."""
    space, n = images.space, images.shape[0]
    anchors = Images(take_rows(images.X, at), images.image, space, images.dtype_name)
    say(f"responses of {len(at):,} images")
    there = _answered(kernel.cells(anchors, space, block_rows))
    xp = space.xp
    say(f"comparing {len(at):,} images with one another")
    K = kernel(there, there, space)
    L = cholesky(plus_diagonal(xp.astype(K, xp.float64), JITTER))
    if L is None:
        raise ValueError("The images to compare with are too much alike: give fewer of them as anchors.")
    F = xp.empty((n, len(at)), dtype=there.own.dtype, device=space.device)
    step = max(1, space.budget(BLOCK_NUMBERS) // max(kernel.numbers, len(at)))
    for part in (slice(start, min(start + step, n)) for start in range(0, n, step)):
        say(f"comparing images with {len(at):,}: {part.start:,} of {n:,}")
        k = kernel(kernel.cells(images[part, ...], space, block_rows), there, space)
        F[part, :] = independent(L, k)
    say(f"output layer, {n:,} images")
    rows = Rows(F, space, **encoding._asdict(), dtype=images.dtype_name)
    neurons = np.zeros(n, bool)
    neurons[at] = True
    head_input = HeadInput(rows, rows, FeatureCache(Network(space, rows.dtype)), rows.d)
    scale = np.ones(encoding.n_classes)
    head = fit_output(head_input, None, neurons, OutputSpec(ridge, scale, one_scale=True))
    output = head.output
    output.coef = solve_triangular(L, xp.astype(output.coef, xp.float64), transposed=True)
    output.intercept = xp.astype(output.intercept, xp.float64)
    output.scored_rows = np.arange(n)
    return head, there


def independent(L: Array, k: Array) -> Array:
    """k L'^-1, in the dtype of k."""
    xp = namespace(k)
    return xp.astype(solve_triangular(L, xp.astype(k, xp.float64).mT).mT, k.dtype)
