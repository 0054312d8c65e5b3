"""`PILAEImageClassifier`: from images to classes, with nothing to choose."""

import math
import time
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin

from .._arrays import Array, Space, dtype_name, namespace, space_for, take_rows, to_numpy
from .._base.progress import CallbackSupportMixin, Progress, peak_megabytes, with_callbacks
from .._base.refused import Refused
from .._base.saveable import saveable
from .._base.scalars import is_integer, seed_of
from .._data.check import check_answer, check_pixels
from .._data.targets import read_labels
from .._network.branches import Images
from .._network.compared import compare_with_all, compare_with_some, moves
from .._network.patches import Shape
from .._search.angles import AnglePlan, AngleSearch, AngleSpec, build_kernel
from ..export import OnnxMixin
from ..save import SaveMixin
from . import parameters
from .fitted import LeftOut, attribute
from .image_input import TakesImages, sample_of
from .image_model import FittedImageModel
from .image_room import anchors_among, checked_shift, filters_for

SEARCH_IMAGES = {False: 2000, True: 8000}
SEARCH_FILTERS = {False: 128, True: 512}
"""How many images and filters candidates are compared with, on a processor and on a GPU."""

SEARCH_BYTES, LEAST_SEARCHED = 2**29, 300
"""What these images may take as floats, and so many of them whatever they take."""

COPIES = {False: 8000, True: 40_000}
"""Images and their moved copies, so many at most, where it is left to the search whether there are any."""

A_FEW_MORE = 1.25
"""A structure that was judged on images all compared with one another stays of that kind for so many times as many."""

MOST_MOVES = 5
"""An image and its copies."""

NO_SUMS = (
    "images are compared with one another, and there are no sums that rows could be added to. Fit it again, or use "
    "make_pipeline(ConvPILAE(), PILAEClassifier(depth=0, head='ridge')), whose output layer has them."
)


@saveable
class PILAEImageClassifier(
    ClassifierMixin, OnnxMixin, SaveMixin, CallbackSupportMixin, TakesImages[FittedImageModel], onnx="refused"
):
    """Classes of images: filters from patches, compared by angles, one output layer. No training, nothing to choose.

    Filters are those of a pseudoinverse autoencoder of patches (`ConvPILAE`), their responses pooled over a grid. Two
    images are compared by the angles between their responses, cell by cell and then as a whole, which is what two
    hidden layers of infinite width would do; the output layer is a ridge on what an image has in common with those it
    was fitted on, solved by one Cholesky factor that also gives exact leave-one-out. What is "auto" is found by
    leave-one-out on some of the images.

    Parameters
    ----------
    patch : "auto", int or list of int, default="auto"
        Side of the patches in pixels. A list gives several sizes side by side.
    filters : "auto" or int, default="auto"
        Filters of each patch size. "auto": as many as there is room for, at most 4,096 on a GPU, and 384
        elsewhere: fewer, but not below 96, where very many or large images would take long. There are never more than
        different patches; with mirror images they come in pairs, so that their number is even.
    pool : "auto" or int, default="auto"
        Cells of the grid along each side, at most as many as a patch has places.
    pooling : {"auto", "smooth", "average"}, default="auto"
        As in `ConvPILAE`: smooth cells reach into their neighbours.
    encoder_ridge : "auto" or float from 0 to infinity, default="auto"
        Relative to the mean square of pixels in patches. Small values whiten them.
    contrast : "auto", float or None, default="auto"
        Local contrast normalisation, as in `ConvPILAE`.
    threshold : "auto" or float, default="auto"
        Responses, of unit variance, count from here on.
    mirror : "auto" or bool, default="auto"
        Whether an image and its mirror image are the same: right for objects, wrong for digits. Each is compared with
        both, so that outputs are the same for the two, to rounding.
    shift : "auto" or int, default="auto"
        Every image is there with copies that are moved by so many pixels, up, down, left and right, which count as one
        image in leave-one-out; 0 for none. "auto" tries one and two pixels (of 28; more of larger images) where there
        is room for five times the images: 1,600 images on a processor, 8,000 on a GPU.
    anchors : "auto" or int, default="auto"
        Images to compare with. "auto": all, if memory allows it (a matrix of images x images; 8,000 images on a
        processor), else 20,000 on a GPU and 8,000 elsewhere: at most half of the images, and fewer, down to 4,000, of
        more than 80,000.
    ridge : "auto" or float, default="auto"
        Of the output layer. "auto" has the lowest squared leave-one-out error.
    image_shape : tuple of int, optional
        (height, width) or (height, width, channels) of images that come as rows of numbers.
    device, dtype, block_rows, random_state, verbose
        As in `ConvPILAE`.

    Attributes
    ----------
    classes_ : array
    loo_score_ : float
        Leave-one-out accuracy, on all images that others are not compared with; on all of them where others are
        compared with all, or where they are few. What of it is the luck of having been chosen is taken off (of few
        images some stays: test images say more).
    loo_predictions_ : (rows, predicted)
    search_ : list of dict
        Every candidate with its leave-one-out loss.
    anchors_ : array
        The images that others are compared with. They are in the model and in its files.
    kernel_ : AngleKernel
    patch_, pool_, pooling_, encoder_ridge_, contrast_, threshold_, mirror_, shift_, filters_, ridge_, image_shape_
        What was found or given.
    fit_stats_ : dict
    n_features_in_, feature_names_in_
        Numbers of an image, and their names where they have some.

    Notes
    -----
    A model holds images that it was fitted on, and predicting compares with all of them: files are as large as these,
    and whoever has the file has the images. There is no `partial_fit`, `forget`, `merge` or ONNX, and no
    `sample_weight` or `groups`: several images of one thing make scores too high. Where these are needed, use
    `make_pipeline(ConvPILAE(), PILAEClassifier(depth=0, head="ridge"))`, which is less accurate, or the two one after
    the other.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from pilae import PILAEImageClassifier
    >>> digits = load_digits()
    >>> model = PILAEImageClassifier(filters=32).fit(digits.images[:600], digits.target[:600])
    >>> model.score(digits.images[1200:], digits.target[1200:]) > 0.95
    True
    """

    classes_ = attribute("targets.classes")
    search_ = attribute("search")
    kernel_ = attribute("kernel")
    anchors_ = attribute("anchors")
    loo_score_ = attribute("loo_score")
    loo_predictions_ = attribute("loo_predictions")
    fit_stats_ = attribute("stats")
    image_shape_ = attribute("image_shape")
    patch_ = attribute("patch")
    pool_ = attribute("plan.pool")
    pooling_ = attribute("plan.pooling")
    encoder_ridge_ = attribute("plan.encoder_ridge")
    threshold_ = attribute("plan.threshold")
    mirror_ = attribute("plan.mirror")
    shift_ = attribute("plan.shift")
    filters_ = attribute("filters")
    ridge_ = attribute("head.output.ridge")

    @property
    def contrast_(self) -> float | None:
        """What was found or given."""
        return self._read().plan.contrast

    partial_fit, forget, merge = (Refused(NO_SUMS) for _ in range(3))

    def __init__(
        self,
        patch="auto",
        filters="auto",
        *,
        pool="auto",
        pooling="auto",
        encoder_ridge="auto",
        contrast="auto",
        threshold="auto",
        mirror="auto",
        shift="auto",
        anchors="auto",
        ridge="auto",
        image_shape=None,
        device=None,
        dtype=None,
        block_rows="auto",
        random_state=None,
        verbose=0,
    ):
        parameters.remember(self, locals())

    @with_callbacks
    def fit(self, X, y):
        """Find filters, what is "auto", and the output layer.

        Parameters
        ----------
        X : array of shape (n, height, width), (n, height, width, channels) or (n, numbers)
            Integers or floats.
        y : array-like of shape (n,)
            A class for each image.

        Returns
        -------
        self
        """
        parameters.check(self, parameters.IMAGE_CLASSIFIER)
        return self._refitted(partial(self._fitted_to, X, y, Progress(self.verbose)), X, y)

    def _fit_again(self, X: Any, y: Any) -> Self:
        """Fit what the search has found to other images, without searching again."""
        return self._refitted(partial(self._fitted_to, X, y, Progress(self.verbose), self._read()), X, y)

    def _fitted_to(self, X: Any, y: Any, progress: Progress, found: FittedImageModel | None = None) -> FittedImageModel:
        start = time.perf_counter()
        X, shape, columns = self._images(X, None)
        n, space, name = int(X.shape[0]), space_for(X, self.device), type(self).__name__
        if y is None:
            raise ValueError(
                f"{name} requires y to be passed, but the target y is None: give one class for each image."
            )
        targets, encoding = read_labels(y, n, None, name)
        if encoding.codes is None:
            raise ValueError(
                f"y has several columns, and {name} names one class for each image: give one column, or fit one model "
                "for each of them."
            )
        Z = np.eye(encoding.n_classes)[encoding.codes]
        progress.begin(self)
        dtype = self.dtype or ("float64" if dtype_name(X) == "float64" else "float32")
        spec, cuda = self._spec(shape, n, space), space.is_cuda
        spec = spec if found is None else replace(spec, plan=found.plan, free=frozenset())
        chosen = sample_of(X, spec.seed, n)
        most = max(LEAST_SEARCHED, space.budget(SEARCH_BYTES) // (8 * math.prod(shape)))
        some = take_rows(X, chosen[: min(SEARCH_IMAGES[cuda], most)])
        check_pixels(some, dtype, fit=True)
        images = space.xp.reshape(space.asarray(some, dtype), (int(some.shape[0]), *shape))
        few = min(SEARCH_FILTERS[cuda], spec.filters or SEARCH_FILTERS[cuda])
        search = AngleSearch(spec, images, Z[chosen[: int(some.shape[0])]], few, space, progress, targets.merits)
        plan, table, ridges = search.found(None if isinstance(self.ridge, str) else float(self.ridge), n)
        table = table if found is None else found.search
        progress.stage("filters")
        everything = Images(X, shape, space, dtype)
        same = found is not None and found.has_all and n <= A_FEW_MORE * found.stats["rows"] and not cuda
        at = None if same else self._anchor_rows(chosen, n, space)
        plan = plan if at is None else plan._replace(shift=0)  # found for fewer images
        held = n * len(moves(shape, plan.shift)) if at is None else len(at)
        kernel = build_kernel(plan, images, spec.filters or filters_for(plan, shape, n, held, space), spec.seed)
        plan = plan._replace(pool=max(max(branch.grid) for branch in kernel.branches))  # patches may have fewer places
        if at is None:
            head, cells = compare_with_all(kernel, everything, Z, ridges, self.block_rows, plan.shift, progress.stage)
        else:
            head, cells = compare_with_some(
                kernel, everything, encoding, at, self.ridge, self.block_rows, progress.stage
            )
        progress.close()
        assert head.output.loo is not None
        assert head.output.scored_rows is not None
        predicted, score = targets.judged(head.output.loo)
        # a copy: what becomes of the caller's array is no matter of the model
        anchors = np.array(to_numpy(X if at is None else take_rows(X, at)), order="C")
        luck, of = (search.luck, int(some.shape[0])) if found is None else (found.optimism, found.stats["rows"])
        luck *= min(1.0, of / np.count_nonzero(head.output.loo.judges))  # the other images had no part in the choice
        stats = {"rows": n, "seconds": time.perf_counter() - start, "peak_megabytes": peak_megabytes()}
        stats["optimism"] = luck
        progress.end()
        model = (
            kernel,
            anchors,
            head,
            targets,
            plan,
            table,
            max(0.0, score - luck),
            LeftOut(head.output.scored_rows, predicted),
            stats,
        )
        fitted = FittedImageModel(columns, shape, space, dtype, *model)
        fitted.keep(cells)
        return fitted

    def _anchor_rows(self, chosen: np.ndarray, n: int, space: Space) -> np.ndarray | None:
        """The images to compare with, in order; None for all."""
        asked = self._anchors(n, space)
        return None if asked >= n else np.sort(chosen[:asked])

    def _anchors(self, n: int, space: Space) -> int:
        """How many of them."""
        asked = parameters.unless_auto(self.anchors, int)
        return anchors_among(n, space) if asked is None else asked

    def _spec(self, shape: Shape, n: int, space: Space) -> AngleSpec:
        """The parameters as the search takes them: what is "auto" has a rule's value, and is free."""
        side = max(shape[:2])
        rules: dict[str, Any] = {
            "patch": min(max(3, side // 5), 8),
            "pool": max(1, min(4, side // 4)),
            "encoder_ridge": 0.1,
            "contrast": 0.1,
            "threshold": 1.0,
            "mirror": False,
            "shift": 0,
            "pooling": "smooth",
        }
        free = frozenset(name for name in rules if parameters.is_auto(getattr(self, name)))
        value = {name: rules[name] if name in free else getattr(self, name) for name in rules}
        patches = (value["patch"],) if is_integer(value["patch"]) else tuple(value["patch"])
        plan = AnglePlan(
            tuple(dict.fromkeys(min(int(p), side) for p in patches)),
            min(int(value["pool"]), side),
            float(value["encoder_ridge"]),
            value["contrast"],
            float(value["threshold"]),
            bool(value["mirror"]),
            shift=checked_shift(int(value["shift"]), shape, n, self._anchors(n, space), space),
            pooling=value["pooling"],
        )
        if self._anchors(n, space) < n or n * MOST_MOVES > COPIES[space.is_cuda]:
            free -= {"shift"}
        free |= {"inner", "outer"} if free else free
        return AngleSpec(
            plan, free, parameters.unless_auto(self.filters, int), self.block_rows, seed_of(self.random_state)
        )

    def _check_loaded(self) -> None:
        self._read().check()

    # ----------------------------------------------------------------------------------------------------- asking

    def _outputs(self, X: Any, method: str) -> tuple[FittedImageModel, Array]:
        fitted = self._read()
        images, home = self._to_ask(fitted, X, method)
        fitted.check_levels(images.X)
        outputs = fitted.outputs(images, self.block_rows)
        check_answer(outputs)
        return fitted, home.asarray(outputs)

    def predict(self, X):
        """The class of each image.

        Parameters
        ----------
        X : array of the shape and kind that `fit` got

        Returns
        -------
        array of shape (n,)
        """
        fitted, outputs = self._outputs(X, "predict")
        return fitted.targets.answer(outputs)

    def decision_function(self, X):
        """Outputs, one column for each class; of two classes their difference."""
        fitted, outputs = self._outputs(X, "decision_function")
        return fitted.targets.margin(outputs)

    def predict_proba(self, X):
        """Probabilities of the classes, calibrated on leave-one-out outputs."""
        return self._probabilities(X, "predict_proba")

    def _probabilities(self, X: Any, method: str) -> Array:
        fitted, outputs = self._outputs(X, method)
        calibration = fitted.head.calibrated(fitted.targets)
        assert calibration is not None
        return fitted.targets.probabilities(outputs, calibration)

    def predict_log_proba(self, X):
        """Logarithms of `predict_proba`."""
        P = self._probabilities(X, "predict_log_proba")
        return namespace(P).log(P)

    def to_onnx(self, path, *, dtype="float64"):
        """Refused: a graph would hold every image that others are compared with (see Notes)."""
        super().to_onnx(path, dtype=dtype)

    def report(self, X=None, y=None, *, title=None, files=None):
        """A page about the model; with test images how good it is, the classes it confuses and its surest mistakes.

        Parameters
        ----------
        X, y : images that it has not seen and their classes, optional
        title : str, optional
        files : sequence of str, optional
            Names of the images.

        Returns
        -------
        Report
            Shown in a notebook as it is; `save` writes HTML, Markdown or JSON.
        """
        from ..report import ImageClassifierReport, summarise_image_classifier

        summary, shown = summarise_image_classifier(self, X, y, files=files)
        return ImageClassifierReport(summary, title or "Report on a PILAEImageClassifier", shown)

    def score(self, X, y, sample_weight=None) -> float:
        """Accuracy."""
        return super().score(X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # rows of a few numbers are no images
        return tags
