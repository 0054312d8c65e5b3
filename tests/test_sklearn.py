"""scikit-learn's own checks on every public estimator, and the contract around them."""

import inspect
import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import pilae

# These array libraries and devices need hardware (or packages for it) that a test machine does not have.
HARDWARE = ("cuda", "cupy", "mps", "xpu", "dpnp")


# Before 1.9 its check wanted classes_ in the library of X; since then labels may stay in NumPy, as they do here.
LABELS_FOLLOW_X = tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 9)


def checks(estimator):
    for _, check in estimator_checks_generator(estimator, legacy=True, mark=None):
        keywords = str(getattr(check, "keywords", {})).lower()
        if LABELS_FOLLOW_X and is_classifier(estimator) and check.func.__name__ == "check_array_api_input":
            continue
        if not any(word in keywords for word in HARDWARE):
            yield check


CLASSES = {name: getattr(pilae, name) for name in pilae.__all__ if name[0].isupper()}
ESTIMATORS = {name: cls() for name, cls in CLASSES.items() if hasattr(cls, "fit")}  # SHLN holds parameters alone
CASES = [(name, check) for name, estimator in ESTIMATORS.items() for check in checks(estimator)]


def _id(value):
    if isinstance(value, str):
        return value
    words = ",".join(f"{k}={v}" for k, v in value.keywords.items())
    return f"{value.func.__name__}({words})"


@pytest.mark.parametrize(("name", "check"), CASES, ids=_id)
def test_check(name, check):
    try:
        check(clone(ESTIMATORS[name]))
    except pytest.skip.Exception as skipped:  # a check that does not run proves nothing
        pytest.fail(f"skipped: {skipped}")
    except Exception as error:
        if type(error).__name__ == "SkipTest":
            pytest.fail(f"skipped: {error}")
        raise


def test_every_check_was_collected():
    count = {name: sum(n == name for n, _ in CASES) for name in ESTIMATORS}
    assert set(count) == {
        "ConvPILAE",
        "PILAEClassifier",
        "PILAEImageClassifier",
        "PILAERegressor",
        "PILAutoencoder",
        "PILClassifier",
        "PILRegressor",
        "StackedPILAE",
    }
    # numbers of scikit-learn 1.9; other releases have other checks, never none
    if sklearn.__version__.startswith("1.9."):
        assert count == EXPECTED
    assert min(count.values()) >= 40


EXPECTED = {
    "ConvPILAE": 53,
    "PILAEClassifier": 79,
    "PILAEImageClassifier": 61,
    "PILAERegressor": 72,
    "PILAutoencoder": 61,
    "PILClassifier": 61,
    "PILRegressor": 59,
    "StackedPILAE": 61,
}


def test_clone_keeps_every_parameter():
    model = pilae.PILAEClassifier(
        width=[3, 2], ridge=0.1, head=LogisticRegression(C=2.0), layer=pilae.PILAutoencoder(gain=None)
    )
    assert clone(model).get_params()["head__C"] == 2.0
    objects = ("head", "layer")
    again, given = clone(model).get_params(), model.get_params()
    assert {k: v for k, v in again.items() if k not in objects} == {k: v for k, v in given.items() if k not in objects}


def test_parameters_of_parts_are_set_on_objects_alone():
    model = pilae.PILAEClassifier(layer=pilae.PILAutoencoder(), head=pilae.SHLN())
    model.set_params(layer__activation="tanh", head__width=7)
    assert (model.layer.activation, model.head.width) == ("tanh", 7)
    assert pilae.PILAERegressor().set_params(head=pilae.SHLN(), head__width=7).head.width == 7
    with pytest.raises(
        ValueError, match=r"'layer__activation' cannot be set while layer is None: .*=PILAutoencoder\(\)"
    ):
        pilae.StackedPILAE().set_params(layer__activation="tanh")
    with pytest.raises(ValueError, match=r"'head__width' cannot be set while head is 'shln': .*head=SHLN\(\)"):
        pilae.PILAEClassifier().set_params(head__width=7)


def test_everything_after_depth_and_width_is_given_by_name():
    for kind in ESTIMATORS.values():
        parameters = inspect.signature(type(kind)).parameters.values()
        assert len(parameters) <= 20
        assert sum(p.kind is not p.KEYWORD_ONLY for p in parameters) <= 2


def test_pipeline_grid_search_and_cross_validation():
    X, y = load_iris(return_X_y=True)
    pipe = make_pipeline(StandardScaler(), pilae.PILAEClassifier(depth=0, head=pilae.SHLN()))
    search = GridSearchCV(pipe, {"pilaeclassifier__head__width": [5, 30]}, cv=3).fit(X, y)
    assert search.best_params_["pilaeclassifier__head__width"] == 30
    assert cross_val_score(pipe, X, y, cv=3).mean() > 0.9
    features = make_pipeline(pilae.StackedPILAE(width=[4, 3]), StandardScaler(), LogisticRegression()).fit(X, y)
    assert features.score(X, y) > 0.9


@pytest.mark.parametrize("estimator", [pilae.StackedPILAE(width=[3, 2]), pilae.PILAEClassifier(width=[3, 2])])
def test_set_output_and_feature_names(estimator):
    X, y = load_iris(return_X_y=True, as_frame=True)
    out = clone(estimator).set_output(transform="pandas").fit(X, y).transform(X)
    prefix = type(estimator).__name__.lower()
    assert list(out.columns) == [f"{prefix}0", f"{prefix}1"]
    assert list(clone(estimator).fit(X, y).feature_names_in_) == list(X.columns)
    with pytest.raises(ValueError, match="feature names should match"):
        clone(estimator).fit(X, y).transform(X.rename(columns={X.columns[0]: "other"}))


def test_pickle_predicts_the_same():
    X, y = load_iris(return_X_y=True)
    model = pilae.PILAEClassifier(width=[3]).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


class Weighted(LogisticRegression):
    """Remembers the weights it was given."""

    def fit(self, X, y, sample_weight=None):
        self.seen_weight_ = sample_weight
        return super().fit(X, y, sample_weight=sample_weight)


def test_weights_reach_a_head_that_takes_them():
    X, y = load_iris(return_X_y=True)
    w = np.linspace(0.5, 1.5, len(y))
    model = pilae.PILAEClassifier(head=Weighted(), width=[3]).fit(X, y, sample_weight=w)
    np.testing.assert_array_equal(model.head_.estimator.seen_weight_, w)
    pilae.PILAEClassifier(head=KNeighborsClassifier(), width=[3]).fit(X, y, sample_weight=w)


def test_metadata_routing():
    X, y = load_iris(return_X_y=True)
    w = np.linspace(0.5, 1.5, len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        plain = pilae.PILAEClassifier(depth=0).set_fit_request(sample_weight=True)
        pipe = make_pipeline(MinMaxScaler(), plain).fit(X, y, sample_weight=w)
        scaled = MinMaxScaler().fit_transform(X)
        direct = pilae.PILAEClassifier(depth=0).fit(scaled, y, sample_weight=w)
        np.testing.assert_array_equal(pipe.decision_function(X), direct.decision_function(scaled))
        head = Weighted().set_fit_request(sample_weight=True)
        model = pilae.PILAEClassifier(head=head, width=[3]).fit(X, y, sample_weight=w)
        np.testing.assert_array_equal(model.head_.estimator.seen_weight_, w)
        silent = Weighted().set_fit_request(sample_weight=False)
        model = pilae.PILAEClassifier(head=silent, width=[3]).fit(X, y, sample_weight=w)
        assert model.head_.estimator.seen_weight_ is None


def test_probabilities_only_where_the_head_has_them():
    from sklearn.svm import LinearSVC

    X, y = load_iris(return_X_y=True)
    model = pilae.PILAEClassifier(head=LinearSVC(), width=[3])
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model.fit(X, y), "predict_proba")
    assert model.decision_function(X).shape == (150, 3)
    assert hasattr(pilae.PILAEClassifier(head=KNeighborsClassifier()), "predict_proba")
    assert not hasattr(pilae.PILAEClassifier(head=KNeighborsClassifier()), "decision_function")


def test_dataframes_are_for_the_last_layer():
    X, _ = load_iris(return_X_y=True)
    stack = pilae.StackedPILAE(width=[3, 2]).set_output(transform="pandas").fit(X)
    assert stack.transform(X, layer=2).shape == (150, 2)
    with pytest.raises(ValueError, match="names the columns of the last layer"):
        stack.transform(X, layer=1)
    assert stack.set_output(transform="default").transform(X, layer=1).shape == (150, 3)


def test_class_weight_alone_does_not_upset_routing():
    X, y = load_iris(return_X_y=True)
    with sklearn.config_context(enable_metadata_routing=True):
        pilae.PILAEClassifier(width=[3], class_weight="balanced", head=LogisticRegression()).fit(X, y)
        head = Weighted().set_fit_request(sample_weight=True)
        model = pilae.PILAEClassifier(width=[3], class_weight={0: 2.0}, head=head).fit(X, y)
        np.testing.assert_array_equal(model.head_.estimator.seen_weight_, np.where(y == 0, 2.0, 1.0))
