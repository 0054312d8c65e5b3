"""`SHLN`: the output network, where somebody wants to say how it is built."""

from sklearn.base import BaseEstimator

from .._base.saveable import saveable
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
    anchors : {"auto", "rows", "pairs"}, default="auto"
        Whether a neuron is made from one row, or from the difference of two, with its border midway between them.
    direct_links : bool or "auto", default="auto"
        Whether the output layer sees the features themselves too, beside the neurons.
    activation : "auto" or str, default="auto"
        Of the hidden neurons: "relu", "relu2", "sigmoid", "tanh", "sin", "softplus", "swish", "gelu" or "linear".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pilae import PILAEClassifier, SHLN
    >>> X, y = load_iris(return_X_y=True)
    >>> PILAEClassifier(depth=0, head=SHLN(width=20, activation="relu")).fit(X, y).head_width_
    20
    """

    def __init__(self, width="auto", *, encoder_ridge="auto", anchors="auto", direct_links="auto", activation="auto"):
        self.width = width
        self.encoder_ridge = encoder_ridge
        self.anchors = anchors
        self.direct_links = direct_links
        self.activation = activation

    def _spec(self) -> HeadSpec:
        parameters.check(self, parameters.SHLN_RULES)
        return HeadSpec(
            "shln",
            width=None if isinstance(self.width, str) else int(self.width),
            formula=isinstance(self.width, str) and self.width == "formula",
            encoder_ridge=parameters.unless_auto(self.encoder_ridge, float),
            anchors=parameters.unless_auto(self.anchors, str),
            direct=parameters.unless_auto(self.direct_links, bool),
            activation=parameters.unless_auto(self.activation, str),
        )
