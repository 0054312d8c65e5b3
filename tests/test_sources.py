"""Rows that do not fit in memory: every source gives the model of the array."""

import datetime
import threading

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
import scipy.sparse

from helpers import blobs, close, rounding, searched
from pilae import SHLN, PILAEClassifier, PILAERegressor, StackedPILAE, scan_blocks, scan_csv, scan_parquet
from pilae._data.stream import ahead

X, Y = blobs(900)
NAMES = [f"c{j}" for j in range(6)]
FRAME = pd.DataFrame(X, columns=NAMES).assign(label=np.array(["no", "yes", "other"])[Y], weight=1.0 + Y)
NETWORK = {"width": [5], "head": SHLN(width=20)}
IN_MEMORY = PILAEClassifier(**NETWORK).fit(X, FRAME["label"])
LAYERS = {"condition": 5 / 1e-3, "terms": 900}
"""Of the Gram of five features with a ridge of 1e-3 of their mean square."""


def write(folder, frame=FRAME, parts=3):
    for k, rows in enumerate(np.array_split(np.arange(len(frame)), parts)):
        table = pa.Table.from_pandas(frame.iloc[rows], preserve_index=False)
        pyarrow.parquet.write_table(table, folder / f"part{k}.parquet", row_group_size=100)
    return folder


def same(model, expected=IN_MEMORY):
    named = hasattr(model, "feature_names_in_")
    out, reference = model.decision_function(FRAME[NAMES] if named else X), expected.decision_function(X)
    close(out, reference, **rounding(expected))


def test_every_source_gives_the_model_of_the_array(tmp_path):
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    same(PILAEClassifier(**NETWORK, block_rows=70).fit(mapped, FRAME["label"]))

    (tmp_path / "p").mkdir()
    parquet = scan_parquet(write(tmp_path / "p"), "label", columns=NAMES)
    model = PILAEClassifier(**NETWORK, block_rows=64).fit(parquet)
    same(model)
    assert list(model.feature_names_in_) == NAMES
    assert model.classes_.tolist() == ["no", "other", "yes"]
    close(model.loo_score_, IN_MEMORY.loo_score_, terms=900)
    np.testing.assert_array_equal(model.predict(parquet), IN_MEMORY.predict(X))
    assert model.score(parquet) == IN_MEMORY.score(X, FRAME["label"])

    FRAME.to_csv(tmp_path / "t.csv", index=False)
    same(PILAEClassifier(**NETWORK).fit(scan_csv(tmp_path / "t.csv", "label", columns=NAMES)))

    parts = np.array_split(np.arange(900), 7)
    blocks = [(X[rows], FRAME["label"].to_numpy()[rows]) for rows in parts]
    same(PILAEClassifier(**NETWORK).fit(scan_blocks(blocks)))
    same(PILAEClassifier(**NETWORK).fit(scan_blocks(lambda: iter(blocks))))
    sparse = [(scipy.sparse.csr_array(a), b) for a, b in blocks]
    same(PILAEClassifier(**NETWORK).fit(scan_blocks(sparse)))


def test_the_automatic_search_sees_the_same_rows():
    blocks = [(X[rows], Y[rows]) for rows in np.array_split(np.arange(900), 5)]
    found, expected = PILAEClassifier().fit(scan_blocks(blocks)), PILAEClassifier().fit(X, Y)
    errors = [[row["error"] for row in model.search_] for model in (found, expected)]
    close(*errors, **searched(expected))
    same(found, expected)
    assert found.fit_stats_["rows"] == 900
    assert found.fit_stats_["passes"] == found.n_passes_ <= 15


def test_weights_class_weights_filters_and_regression(tmp_path):
    folder = write(tmp_path)
    weighted = PILAEClassifier(**NETWORK).fit(scan_parquet(folder, "label", columns=NAMES, weight="weight"))
    same(weighted, PILAEClassifier(**NETWORK).fit(X, FRAME["label"], sample_weight=FRAME["weight"]))
    balanced = {**NETWORK, "class_weight": "balanced"}
    imbalanced = FRAME.iloc[np.r_[0:900:3, 1:900:9]]
    source = scan_blocks([(imbalanced[NAMES].to_numpy(), imbalanced["label"].to_numpy())])
    expected = PILAEClassifier(**balanced).fit(imbalanced[NAMES].to_numpy(), imbalanced["label"])
    same(PILAEClassifier(**balanced).fit(source), expected)
    some = scan_parquet(folder, "label", columns=NAMES, filter=pyarrow.dataset.field("c0") > 1.0)
    kept = X[:, 0] > 1.0
    same(PILAEClassifier(**NETWORK).fit(some), PILAEClassifier(**NETWORK).fit(X[kept], FRAME["label"][kept]))
    regressor = PILAERegressor(**NETWORK).fit(scan_parquet(folder, "c5", columns=NAMES[:5]))
    expected = PILAERegressor(**NETWORK).fit(X[:, :5], X[:, 5])
    close(regressor.predict(FRAME[NAMES[:5]]), expected.predict(X[:, :5]), **rounding(expected))
    score = regressor.score(scan_parquet(folder, "c5", columns=NAMES[:5]))
    close(score, expected.score(X[:, :5], X[:, 5]), **rounding(expected))


def test_transformers_take_sources_too():
    blocks = scan_blocks([X[:300], X[300:]])
    stack, expected = StackedPILAE(width=[5, 4]).fit(blocks), StackedPILAE(width=[5, 4]).fit(X)
    close(stack.transform(blocks), expected.transform(X), **LAYERS)
    close(stack.score_samples(blocks), expected.score_samples(X), **LAYERS)


def test_a_transformer_on_parquet(tmp_path):
    stack = StackedPILAE(width=[5]).fit(scan_parquet(write(tmp_path, FRAME[NAMES])))
    close(stack.transform(FRAME[NAMES]), StackedPILAE(width=[5]).fit(X).transform(X), **LAYERS)


def test_streams_of_sources_update_a_model():
    halves = [scan_blocks([(X[a], Y[a])]) for a in (slice(0, 450), slice(450, 900))]
    fitted = PILAEClassifier(**NETWORK).fit(X, Y)
    model = fitted.fork()
    for half in halves:
        model.partial_fit(half)
    same(model, fitted)
    model.forget(halves[1])
    same(model, fitted.fork().partial_fit(X[:450], Y[:450]))


def generator():
    yield X, Y


def test_what_can_be_read_only_once_is_refused():
    for attempt in (lambda: scan_blocks(generator()), lambda: PILAEClassifier().fit(generator(), Y)):
        with pytest.raises(ValueError, match="read only once"):
            attempt()
    model = PILAEClassifier(**NETWORK).fit(scan_blocks(generator))
    same(model, PILAEClassifier(**NETWORK).fit(X, Y))


def test_a_source_that_fails_leaves_the_model_as_it_was():
    model = PILAEClassifier(**NETWORK).fit(X, Y)
    before = model.decision_function(X)
    calls = []

    def failing():
        calls.append(1)
        yield X[:400], Y[:400]
        if len(calls) > 3:
            raise OSError("the disk is gone")
        yield X[400:], Y[400:]

    with pytest.raises(OSError, match="the disk is gone"):
        model.fit(scan_blocks(failing))
    np.testing.assert_array_equal(model.decision_function(X), before)
    changing = iter([2, 2, 2, 1, 1, 1])
    shrinking = scan_blocks(lambda: [(X[:400], Y[:400]), (X[400:], Y[400:])][: next(changing)])
    with pytest.raises(ValueError, match="must give the same every time"):
        model.fit(shrinking)
    np.testing.assert_array_equal(model.decision_function(X), before)


def test_errors_name_the_file_and_the_row(tmp_path):
    hole = FRAME.copy()
    hole.loc[700, "c3"] = np.nan
    with pytest.raises(ValueError, match=r"part2\.parquet, row 100, column 'c3' is missing"):
        StackedPILAE().fit(scan_parquet(write(tmp_path, hole), columns=NAMES))
    hole.loc[700, "c3"] = np.inf
    with pytest.raises(ValueError, match=r"part2\.parquet, row 100, column 'c3' is infinite"):
        PILAEClassifier(**NETWORK).fit(scan_parquet(write(tmp_path, hole), "label", columns=NAMES))
    with pytest.raises(ValueError, match="has no column 'target'; it has c0"):
        scan_parquet(tmp_path, "target")
    with pytest.raises(ValueError, match="The columns of the source are not all numbers, and StackedPILAE takes"):
        StackedPILAE().fit(scan_parquet(tmp_path, columns=[*NAMES, "label"]))
    nested = tmp_path / "nested.parquet"
    pyarrow.parquet.write_table(pa.table({"a": [[1], [2]], "y": [1, 2]}), nested)
    with pytest.raises(ValueError, match=r"Column 'a' of .* holds list.*which nothing can be learnt from"):
        scan_parquet(nested, "y")
    other = tmp_path / "other"
    other.mkdir()
    write(other, FRAME, 2)
    pyarrow.parquet.write_table(pa.Table.from_pandas(FRAME.drop(columns="c2")), other / "part9.parquet")
    with pytest.raises(ValueError, match=r"part9\.parquet has no column 'c2'"):
        PILAEClassifier(**NETWORK).fit(scan_parquet(other, "label", columns=NAMES))
    unlabelled = FRAME.copy()
    unlabelled.loc[5, "label"] = None
    nowhere = tmp_path / "nowhere"
    nowhere.mkdir()
    with pytest.raises(ValueError, match=r"part0\.parquet, row 5: the target is missing"):
        PILAEClassifier(**NETWORK).fit(scan_parquet(write(nowhere, unlabelled), "label", columns=NAMES))
    with pytest.raises(ValueError, match="no targets"):
        PILAEClassifier(**NETWORK).fit(scan_blocks([X]))
    with pytest.raises(ValueError, match="brings its own targets"):
        PILAEClassifier(**NETWORK).fit(scan_blocks([(X, Y)]), Y)
    with pytest.raises(ValueError, match="Block 1 has 5 columns"):
        PILAEClassifier(**NETWORK).fit(scan_blocks([(X, Y), (X[:, :5], Y)]))
    with pytest.raises(ValueError, match="X has 5 features"):
        IN_MEMORY.predict(scan_blocks([X[:, :5]]))
    (tmp_path / "bad.parquet").write_bytes(b"not parquet")
    with pytest.raises(ValueError, match="Cannot read"):
        scan_parquet(tmp_path / "bad.parquet", "label")
    (tmp_path / "bad.csv").write_text("a,b\n" + "1,2\n" * 500_000 + "x,2\n")
    with pytest.raises(ValueError, match=r"bad\.csv: cannot be read after row"):
        PILAERegressor(**NETWORK).fit(scan_csv(tmp_path / "bad.csv", "b"))


def test_reading_ahead_overlaps_and_stops_with_its_reader():
    made = []

    def items():
        for k in range(100):
            made.append(k)
            yield k

    before = threading.active_count()
    reader = ahead(items())
    assert next(reader) == 0
    reader.close()
    assert threading.active_count() == before
    assert 1 <= len(made) <= 3
    assert list(ahead(iter(range(5)))) == list(range(5))


def test_frames_in_blocks_keep_their_names_and_weights_count_in_scores():
    frames = [(FRAME[NAMES].iloc[:400], Y[:400]), (FRAME[NAMES].iloc[400:], Y[400:])]
    model = PILAEClassifier(**NETWORK).fit(scan_blocks(frames))
    assert list(model.feature_names_in_) == NAMES
    with pytest.raises(ValueError, match="another order"):
        PILAEClassifier(**NETWORK).fit(scan_blocks([frames[0], (frames[1][0][NAMES[::-1]], frames[1][1])]))
    with pytest.raises(ValueError, match="another order or there are others"):
        model.predict(scan_blocks([FRAME[NAMES[::-1]]]))
    w = np.where(Y == 0, 5.0, 0.1)
    plain = PILAEClassifier(**NETWORK).fit(X, Y)
    close(plain.score(scan_blocks([(X, Y, w)])), plain.score(X, Y, sample_weight=w), terms=900)


def test_some_blocks_with_weights_and_fewer_rows_than_columns():
    wide = np.random.default_rng(0).standard_normal((40, 90))
    labels, w = np.arange(40) % 2, np.linspace(1, 2, 20)
    source = scan_blocks([(wide[:20], labels[:20]), (wide[20:], labels[20:], w)])
    expected = PILAEClassifier(depth=0, head=SHLN(width=9)).fit(wide, labels, sample_weight=np.r_[np.ones(20), w])
    model = PILAEClassifier(depth=0, head=SHLN(width=9)).fit(source)
    close(model.decision_function(wide), expected.decision_function(wide), **rounding(expected))


def test_blocks_that_do_not_agree_are_refused_in_a_sentence():
    for blocks, words in (
        ([(X, np.c_[Y, Y])], "one label a row"),
        ([(X[:9], Y[:9]), (X[9:], Y[9:].astype(str))], "of one kind"),
        ([(X, Y, np.zeros(900))], "zero on every row"),
    ):
        with pytest.raises(ValueError, match=words):
            PILAEClassifier(**NETWORK).fit(scan_blocks(blocks))
    with pytest.raises(ValueError, match="number of target columns changes"):
        PILAERegressor(**NETWORK).fit(scan_blocks([(X[:9], X[:9]), (X[9:], X[9:, :2])]))
    multilabel = PILAEClassifier(**NETWORK).fit(X, np.c_[Y > 0, Y > 1].astype(int))
    with pytest.raises(ValueError, match="takes arrays only"):
        multilabel.partial_fit(scan_blocks([(X, Y)]))


@pytest.mark.parametrize(
    "labels",
    [
        np.array([-100, 0, 100], np.int8),
        np.array([-30_000, 5, 30_000], np.int16),
        np.array([3, 4, 9], np.uint64),
        np.array([3, 4, 5], np.uint64),
        np.array([False, True, True]),
    ],
)
def test_labels_of_every_integer_type(labels):
    X, y = blobs(n=120)
    y = labels[y]
    params = {"depth": 0, "ridge": 1e-3, "head": SHLN(width=20)}
    source = scan_blocks([(X[:50], y[:50]), (X[50:], y[50:])])
    model, expected = PILAEClassifier(**params).fit(source), PILAEClassifier(**params).fit(X, y)
    assert model.classes_.tolist() == expected.classes_.tolist()
    close(model.decision_function(X), expected.decision_function(X), **rounding(expected))


def test_a_longer_label_is_not_cut_to_a_known_one():
    X, y = blobs(n=60)
    names = np.array(["cat", "dog", "owl"], dtype=object)[y]
    calls = []

    def blocks():
        calls.append(1)
        later = names.copy()
        if len(calls) > 2:  # the first looks at the columns, the second reads the labels
            later[7] = "cats"
        yield X, later

    with pytest.raises(ValueError, match="row 7: the label 'cats' was not there"):
        PILAEClassifier(depth=0, head=SHLN(width=10)).fit(scan_blocks(blocks))


def test_raw_rows_of_mixed_columns_are_refused_in_one_sentence(tmp_path):
    """Times of day, which NumPy would ask float() of."""
    times = [datetime.time(hour) for hour in range(20)]
    pyarrow.parquet.write_table(pa.table({"a": times, "y": list(range(20))}), tmp_path / "times.parquet")
    with pytest.raises(ValueError, match="call fit first"):
        list(scan_parquet(tmp_path / "times.parquet", "y").read())
