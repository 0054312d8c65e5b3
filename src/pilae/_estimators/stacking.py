"""Stacked generalisation: networks that learn from the outputs of other networks.

The outputs a network learns from must be those for rows that the network below has not seen. Leave-one-out outputs
would be cheap, and wrong: each is made from all other rows, so that together with them it gives its own row's target
away. Here they are out-of-fold, by scikit-learn's own stacking.
"""

from typing import Any

from sklearn.base import BaseEstimator, is_classifier, is_regressor


def stacked(*levels: Any, cv: Any = 5) -> Any:
    """A network that sees the input and the out-of-fold outputs of the network below it, and so on.

    Parameters
    ----------
    *levels : estimators, two or more
        From the bottom up: all classifiers or all regressors.
    cv : int or splitter, default=5
        How rows are split for the outputs that the next level learns from.

    Returns
    -------
    StackingClassifier or StackingRegressor
        Not fitted. Its score is honest on rows that it was not fitted on: use `cross_val_score`, not `loo_score_`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from pilae import PILAEClassifier, stacked
    >>> X, y = load_wine(return_X_y=True)
    >>> model = stacked(PILAEClassifier(random_state=0), PILAEClassifier(depth=0, head="ridge")).fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.9
    True
    """
    if len(levels) < 2:
        raise ValueError(f"stacked needs two estimators or more, from the bottom up, and got {len(levels)}.")
    if isinstance(cv, str):
        raise ValueError("stacked fits its networks itself: cv must be a number of folds or a splitter, not 'prefit'.")
    if not all(isinstance(level, BaseEstimator) for level in levels):
        raise ValueError("stacked takes estimators, one after another, from the bottom up.")
    kinds = {"classifier" if is_classifier(level) else "regressor" if is_regressor(level) else "" for level in levels}
    if len(kinds) > 1 or "" in kinds:
        raise ValueError("stacked needs estimators that are all classifiers or all regressors.")
    from sklearn.ensemble import StackingClassifier, StackingRegressor  # slow to import, and rarely needed

    [kind] = kinds
    below, *above = levels
    last = above[0] if len(above) == 1 else stacked(*above, cv=cv)
    make = StackingClassifier if kind == "classifier" else StackingRegressor
    return make([("below", below)], final_estimator=last, cv=cv, passthrough=True)
