"""How many threads a call takes, and that it leaves the pools as it found them. Times are measured by studies/speed."""

import linecache
import os
import subprocess
import sys
import threading
from functools import partial
from queue import SimpleQueue

import joblib
import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_info, threadpool_limits

from helpers import blobs, close
from pilae import SHLN, ConvPILAE, PILAEClassifier, PILAERegressor, PILClassifier, StackedPILAE
from pilae._arrays import NUMPY, cholesky, gram, matmul, solve_triangular, threads
from pilae._arrays.threads import PART, in_parts, in_turn, sharing
from pilae._data.rows import Rows
from pilae._engine.activations import ACTIVATIONS

X, Y = blobs(300)

HUNG = 600
"""Seconds after which a thread or process that never comes is given up: a guard, however slow the machine is."""


def pools():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.fixture
def two(monkeypatch):
    """As on a machine of two processors or more, whatever this one is."""
    monkeypatch.setattr(threads, "cpus", lambda: 2)
    with threadpool_limits(2, "blas"):
        yield


@pytest.fixture(autouse=True)
def nothing_is_left():
    before = pools()
    yield
    assert not threads._calls
    assert not threads._counts
    assert pools() == before


def test_small_work_has_one_thread_and_large_work_all_that_are_allowed(two):
    assert threads.threads(1e12) == 1  # outside a call nobody knows what is allowed
    with sharing():
        assert pools() == [1] * len(pools())
        assert threads.threads(PART) == 1
        assert threads.threads(2 * PART) == 2
        assert threads.threads(1e12) == 2
    with threadpool_limits(1, "blas"), sharing():
        assert threads.threads(1e12) == 1


def test_what_the_process_may_use_is_a_limit(two, monkeypatch):
    monkeypatch.setattr(threads, "cpus", lambda: 1)
    with sharing():
        assert threads.threads(1e12) == 1


def test_processors_are_those_of_affinity_quota_and_joblib(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(6)), raising=False)
    monkeypatch.setattr(threads, "quota", lambda: 4.0)
    monkeypatch.delenv("LOKY_MAX_CPU_COUNT", raising=False)
    assert threads.cpus() == 4
    monkeypatch.setattr(threads, "quota", lambda: float("inf"))
    assert threads.cpus() == 6
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "3")
    assert threads.cpus() == 3


@pytest.mark.parametrize(
    ("own", "files", "processors"),
    [
        ("0::/a/b\n", {"a/b/cpu.max": "150000 100000"}, 2),  # one and a half: two threads can use it
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000", "a/cpu.max": "100000 100000"}, 1),  # those above bind too
        ("0::/elsewhere\n", {"cpu.max": "400000 100000"}, 4),  # in a container its own group is the root
        ("0::/\n", {}, np.inf),
        ("5:cpu,cpuacct:/job\n", {"cpu,cpuacct/job/cpu.cfs_quota_us": "-1"}, np.inf),
        (
            "4:memory:/job\n5:cpu,cpuacct:/job\n",
            {"cpu,cpuacct/job/cpu.cfs_quota_us": "200000", "cpu,cpuacct/job/cpu.cfs_period_us": "100000"},
            2,
        ),
        ("", {"cpu.max": "100000 100000"}, np.inf),
    ],
)
def test_quotas_of_control_groups(tmp_path, own, files, processors):
    (tmp_path / "own").write_text(own)
    for name, text in files.items():
        path = tmp_path / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert threads.quota.__wrapped__(tmp_path / "groups", tmp_path / "own") == processors


def test_pools_are_as_they_were_after_an_error_and_an_interruption(two):
    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error), sharing():
            raise error
        assert pools() == [2] * len(pools())
    with pytest.raises(ValueError, match="infinity"):
        PILAEClassifier().fit(np.full((9, 2), np.inf), np.arange(9) % 2)
    assert pools() == [2] * len(pools())


def test_an_interruption_at_any_line_leaves_the_pools_as_they_were(two):
    """Ctrl-C at every line of a call, the first of `__exit__` among them, where no `try` can stand."""
    code = {f.__code__ for f in (sharing.__enter__, sharing.__exit__, threads._come, threads._leave)}
    last = sharing.__del__.__code__  # what is raised there Python shows and forgets
    line = 0
    while True:
        line, left = line + 1, [line + 1]

        def interrupt(frame, event, argument, left=left):
            above = frame.f_back
            if frame.f_code not in code or last in (above.f_code, above.f_back.f_code):
                return None
            # a signal is never handled between a lock's getting or giving back and the block: no line to try
            if event == "line" and "with _lock" not in linecache.getline(threads.__file__, frame.f_lineno):
                left[0] -= 1
                if left[0] == 0:
                    raise KeyboardInterrupt
            return interrupt

        sys.settrace(interrupt)
        try:
            with sharing():
                pass
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        assert not threads._calls
        assert pools() == [2] * len(pools())
        if left[0] > 0:  # all lines were tried
            break
    assert line > 10


CALLS = {
    "fit": lambda: PILAEClassifier(depth=1, head=SHLN(width=9)).fit(X, Y),
    "predict": lambda: FITTED.predict(X),
    "predict_proba": lambda: FITTED.predict_proba(X),
    "decision_function": lambda: FITTED.decision_function(X),
    "transform": lambda: FITTED.transform(X),
    "partial_fit": lambda: PILAEClassifier(depth=1, head=SHLN(width=9)).fit(X, Y).partial_fit(X, Y),
    "score_samples": lambda: StackedPILAE(width=[4]).fit(X).score_samples(X),
    "basic": lambda: PILClassifier(max_depth=2).fit(X[:40], Y[:40]).predict(X),
    "images": lambda: ConvPILAE(patch=2, filters=3, pool=1).fit(X[:, :4]).transform(X[:, :4]),
}
FITTED = PILAEClassifier(depth=1, head=SHLN(width=9)).fit(X, Y)


@pytest.mark.parametrize("call", CALLS)
def test_every_public_method_computes_with_one_thread_in_the_blas(two, monkeypatch, call):
    seen = []
    for name in list(ACTIVATIONS):

        def noted(x, f=ACTIVATIONS[name]):
            seen.append(pools())
            return f(x)

        monkeypatch.setitem(ACTIVATIONS, name, noted)
    CALLS[call]()
    assert seen
    assert all(found == [1] * len(found) for found in seen)


def test_where_no_thread_can_be_started_the_caller_works_alone(two, monkeypatch):
    def never(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "_team", [])
    monkeypatch.setattr(threads, "_asked", SimpleQueue())
    monkeypatch.setattr(threading.Thread, "start", never)
    met = []
    with sharing():
        in_parts(met.append, 10, 1e12)
    assert sorted(k for part in met for k in range(part.start, part.stop)) == list(range(10))


def test_calls_within_calls_and_beside_calls(two):
    with sharing():
        with sharing():
            assert pools() == [1] * len(pools())
        assert pools() == [1] * len(pools())
        inside, leave = threading.Event(), threading.Event()

        def other():
            with sharing():
                assert threads.threads(1e12) == 2
                inside.set()
                leave.wait(HUNG)

        thread = threading.Thread(target=other)
        thread.start()
        assert inside.wait(HUNG)
        assert threads._share(2) == 1  # two calls on two processors: one each
        leave.set()
        thread.join()
        assert threads._share(2) == 2
        assert pools() == [1] * len(pools())
    assert pools() == [2] * len(pools())


def test_parts_make_up_the_whole_and_are_worked_on_by_several_threads(two):
    met, barrier = [], threading.Barrier(2, timeout=HUNG)

    def f(part):
        if threading.current_thread() not in {thread for thread, _ in met}:
            barrier.wait()  # nobody goes on before there are two
        met.append((threading.current_thread(), part))

    with sharing():
        in_parts(f, 10, 1e12)
    assert sorted(k for _, part in met for k in range(part.start, part.stop)) == list(range(10))
    assert len({thread for thread, _ in met}) == 2


def test_a_part_is_not_cut_again(two):
    cut = []

    def f(part):
        in_parts(lambda whole: cut.append((whole.start, whole.stop)), 7, 1e12)

    with sharing():
        in_parts(f, 8, 1e12)
        assert set(cut) == {(0, 7)}
        cut.clear()
        f(slice(0, 1))
        assert len(cut) > 1  # and after it, again


def test_an_error_in_a_part_is_raised_and_numpys_settings_reach_every_part(two):
    def f(part):
        assert np.geterr()["over"] == "raise"
        raise ZeroDivisionError(part)

    with pytest.raises(ZeroDivisionError), np.errstate(over="raise"), sharing():
        in_parts(f, 8, 1e12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("n", "p"), [(700, 1300), (20_000, 90)])
def test_products_in_parts_are_the_products(two, monkeypatch, dtype, n, p):
    monkeypatch.setattr(threads, "PART", 1e5)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((n, p)).astype(dtype), rng.standard_normal((p, 40)).astype(dtype)
    with sharing():
        assert threads.threads(2.0 * n * p * 40) == 2
        G, ab = gram(a), matmul(a, b)
    assert G.dtype == ab.dtype == dtype
    np.testing.assert_array_equal(G, G.T)
    close(G, a.astype("float64").T @ a.astype("float64"), dtype, terms=n)
    close(ab, a.astype("float64") @ b.astype("float64"), dtype, terms=p)


def test_factors_and_triangles_in_parts(two, monkeypatch):
    monkeypatch.setattr(threads, "PART", 1e5)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((900, 700))
    G, B = A.T @ A / 900 + np.eye(700), rng.standard_normal((700, 30))
    with sharing():
        L = cholesky(G.copy())
        Y = solve_triangular(L, B)
        Z = solve_triangular(L, Y, transposed=True)
        assert cholesky(G - 2 * np.eye(700)) is None
    condition = np.linalg.cond(G)
    close(L @ L.T, G, terms=700)
    np.testing.assert_array_equal(L, np.tril(L))
    close(G @ Z, B, condition=condition, terms=700)


def test_answers_do_not_depend_on_who_else_computes(two, monkeypatch):
    monkeypatch.setattr(threads, "PART", 1e4)
    model = PILAEClassifier(depth=1, random_state=0, head=SHLN(width=60)).fit(X, Y)
    alone = model.predict_proba(X)
    with joblib.parallel_config("threading", n_jobs=4):
        answers = joblib.Parallel()(joblib.delayed(model.predict_proba)(X) for _ in range(8))
    for answer in answers:
        np.testing.assert_array_equal(answer, alone)


def test_many_blocks_are_answered_by_several_threads_as_by_one(two, monkeypatch):
    """Each its own block; the first, and answers of text, one after another."""
    X, asked = np.random.default_rng(0).standard_normal((50_000, 3)), []

    def noted(X, meet=None):
        new = threading.current_thread() not in asked[1:]
        asked.append(threading.current_thread())
        if meet is not None and len(asked) > 1 and new:
            meet.wait()  # nobody goes on before a second thread is there
        return X @ np.arange(3.0)

    monkeypatch.setattr(threads, "PART", 1e4)
    rows, both = Rows(X, NUMPY, block_rows=1000), threading.Barrier(2, timeout=HUNG)
    np.testing.assert_array_equal(rows.map(noted, 3), X @ np.arange(3.0))
    assert set(asked) == {threading.current_thread()}
    asked.clear()
    np.testing.assert_array_equal(rows.map(partial(noted, meet=both), 3, at_once=True), X @ np.arange(3.0))
    assert len(asked) == 50
    assert len(set(asked)) == 2
    words = rows.map(lambda X: np.array(["a" * (k % 7) for k in range(len(X))]), 3, at_once=True)
    assert words.tolist() == ["a" * (k % 1000 % 7) for k in range(50_000)]
    with pytest.raises(ValueError, match="overflows"):
        rows.map(lambda X: np.where(X < 4.0, X, np.inf), 3, at_once=True)


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_fits_side_by_side_are_those_one_after_another(backend):
    def fitted(seed):
        return PILAERegressor(depth=0, random_state=seed, head=SHLN(width=30)).fit(X, X[:, 0] * X[:, 1]).predict(X)

    together = joblib.Parallel(4, backend=backend)(joblib.delayed(fitted)(seed) for seed in range(4))
    with threadpool_limits(1, "blas"):  # workers of loky have one
        for seed, found in enumerate(together):
            close(found, fitted(seed), condition=1e4, terms=len(X))


@pytest.mark.parametrize(("numbers", "most"), [(threads.SMALL_TABLE - 1, 1), (threads.SMALL_TABLE, 2)])
def test_small_searches_take_turns_and_large_ones_do_not(numbers, most):
    inside, met, seen = [], threading.Barrier(2), []

    def search():
        with in_turn(numbers), in_turn(numbers):  # a search within a search waits for nobody
            inside.append(1)
            if most > 1:
                met.wait(HUNG)  # both are here, or this breaks
            seen.append(len(inside))
            inside.pop()

    joblib.Parallel(4, backend="threading")(joblib.delayed(search)() for _ in range(4))
    assert len(seen) == 4
    assert (max(seen) == 1) == (most == 1)


def test_a_turn_that_nobody_ends_is_waited_for_but_not_for_ever(monkeypatch):
    monkeypatch.setattr(threads, "PATIENCE", 0.01)
    held, done = threading.Event(), threading.Event()

    def stuck():
        with in_turn(1):
            held.set()
            done.wait(HUNG)

    other = threading.Thread(target=stuck)
    other.start()
    held.wait(HUNG)
    try:
        assert PILAEClassifier(random_state=0).fit(X[:60], Y[:60]).score(X, Y) > 0.8
    finally:
        done.set()
        other.join()


def test_tensors_take_torchs_threads_and_give_them_back():
    before = torch.get_num_threads()
    with sharing(torch.zeros(10)):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
    with sharing(np.zeros(10)):
        assert torch.get_num_threads() == before  # not ours to change


def test_a_head_of_somebody_elses_has_the_pools_as_they_were(two, monkeypatch):
    monkeypatch.setattr(threads, "MANY_NUMBERS", 1)
    seen = []

    class Head(LogisticRegression):
        def fit(self, X, y):
            seen.append(pools())
            return super().fit(X, y)

    PILAEClassifier(depth=0, head=Head(max_iter=500)).fit(X, Y)
    assert seen == [[2] * len(pools())]


def test_a_forked_child_has_the_pools_of_its_own(two):
    if not hasattr(os, "fork"):
        pytest.skip("this system does not fork")
    code = (
        "import os, sys, threading\n"
        "from pilae._arrays import threads\n"
        "import numpy\n"
        "before = [p.get() for p in threads._pools()]\n"
        "ready, done = threading.Event(), threading.Event()\n"
        "def other():\n"
        "    with threads.sharing():\n"
        "        ready.set(); done.wait()\n"
        "t = threading.Thread(target=other); t.start(); ready.wait()\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    left = threads._calls or threads._counts or [p.get() for p in threads._pools()] != before\n"
        "    os._exit(int(bool(left)))\n"
        "done.set(); t.join()\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


def test_a_fit_goes_on_while_the_interpreter_waits_for_its_thread():
    code = (
        "import threading, numpy as np\n"
        "from pilae._arrays import threads, matmul\n"
        "threads.cpus, threads.PART = lambda: 2, 1.0\n"
        "threads._allowed = lambda: 2\n"
        "def late():\n"
        "    threading.main_thread().join()\n"
        "    with threads.sharing():\n"
        "        matmul(np.ones((9, 9)), np.ones((9, 9)))\n"
        "    print('done')\n"
        "threading.Thread(target=late).start()\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=HUNG)
    assert (out.stdout, out.stderr) == ("done\n", "")


def test_a_blas_that_is_not_known_is_left_alone(monkeypatch):
    monkeypatch.setattr(threads, "_pools", lambda: ())
    with sharing():
        assert threads.threads(1e12) == 1
        close(matmul(X.T, X), X.T @ X, terms=len(X))


def test_importing_does_not_look_for_pools():
    code = "import sys, pilae; from pilae._arrays import threads; sys.exit(threads._pools.cache_info().currsize)"
    subprocess.run([sys.executable, "-c", code], check=True)
