"""`SHLN`: the output network, where somebody wants to say how it is built."""

from sklearn.base import BaseEstimator

from .._base.saveable import saveable
from .._network.radial import KERNELS
from .._search.spec import HeadSpec
from . import parameters


@saveable
class SHLN(BaseEstimator):
    """The single-hidden-layer network on top: parameters only, for the `head` of a classifier or a regressor.

    Its hidden neurons are rows of the training data (anchors) through the pseudoinverse, its output weights a ridge
    solution, eq (12). What is left at "auto" is found by leave-one-out.

    Parameters
    ----------
    width : "auto", "formula" or int, default="auto"
        Hidden neurons. "auto" takes the best of all widths by leave-one-out, up to half the rows and at most 1,000 plus
        one for every 15 rows; "formula" is eq (31), refitted.
    encoder_ridge : "auto" or float from 0 to infinity, default="auto"
        Ridge inside the pseudoinverse, relative to the mean of the diagonal; infinity takes the anchors themselves as
        weights. "auto" is found by the search, or without one 1e-6 on the features of layers and 1 on the input.
    anchors : {"auto", "rows", "pairs", "radial"}, default="auto"
        Whether a neuron is made from one row, from the difference of two, with its border midway between them, or is
        the distance to a row.
    direct_links : bool or "auto", default="auto"
        Whether the output layer sees the features themselves too, beside the neurons.
    activation : "auto" or str, default="auto"
        Of the hidden neurons: "relu", "relu2", "sigmoid", "tanh", "sin", "softplus", "swish", "gelu" or "linear";
        of radial ones "laplace", exp(-r / L), or "gauss", exp(-(r / L)^2).
    length : "auto" or float, default="auto"
        L of radial neurons, in median distances between anchors.
    metric : {"auto", "inputs", "labels", "diagonal"}, default="auto"
        What directions and distances are measured by: the inputs alone, or what the labels of one half of the rows say
        of the columns (average gradient outer products, full or with one number a column), judged on the other half.
        "auto" is found by the search; without one it is "inputs".
    networks : {"auto", 1}, default="auto"
        "auto": where a search is free to choose the whole output network, and has at most 20,000 distinct rows, a
        second network of another kind is fitted beside the best one and their outputs are averaged, if leave-one-out
        says that it helps. 1: one network, about half as large and up to twice as fast to ask.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pilae import PILAEClassifier, SHLN
    >>> X, y = load_iris(return_X_y=True)
    >>> PILAEClassifier(depth=0, head=SHLN(width=20, activation="relu")).fit(X, y).head_width_
    20
    """

    def __init__(
        self,
        width="auto",
        *,
        encoder_ridge="auto",
        anchors="auto",
        direct_links="auto",
        activation="auto",
        length="auto",
        metric="auto",
        networks="auto",
    ):
        self.width = width
        self.encoder_ridge = encoder_ridge
        self.anchors = anchors
        self.direct_links = direct_links
        self.activation = activation
        self.length = length
        self.metric = metric
        self.networks = networks

    def _spec(self) -> HeadSpec:
        parameters.check(self, parameters.SHLN_RULES)
        kernel = self.activation in KERNELS
        if self.activation != "auto" and self.anchors != "auto" and kernel != (self.anchors == "radial"):
            raise ValueError(
                f"activation={self.activation!r} does not go with anchors={self.anchors!r}: 'laplace' and 'gauss' are "
                "functions of a distance, and those of anchors='radial'."
            )
        if self.length != "auto" and (self.anchors in ("rows", "pairs") or self.activation not in ("auto", *KERNELS)):
            raise ValueError("'length' is that of radial neurons: use anchors='radial', or leave length='auto'.")
        return HeadSpec(
            "shln",
            width=None if isinstance(self.width, str) else int(self.width),
            formula=isinstance(self.width, str) and self.width == "formula",
            encoder_ridge=parameters.unless_auto(self.encoder_ridge, float),
            anchors="radial" if kernel else parameters.unless_auto(self.anchors, str),
            direct=parameters.unless_auto(self.direct_links, bool),
            activation=parameters.unless_auto(self.activation, str),
            length=parameters.unless_auto(self.length, float),
            metric=parameters.unless_auto(self.metric, str),
            networks=parameters.unless_auto(self.networks, int),
        )
