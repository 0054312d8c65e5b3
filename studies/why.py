"""The README's table: what people would use instead, what it costs and what it gives, from results of three studies."""

from studies.render import number, table
from studies.speed.pages import peer_fits
from studies.store import read, results_of
from studies.tables.peer_pages import OWN, compare, kind_of, ranked, results, seconds

BOOSTING = ("CatBoost", "HistGradientBoosting", "LightGBM")


def why() -> str:
    """Three questions, the figures of both sides, and what the other does not do at any price."""
    return table(
        "why not | pilae | the other | what the other does not do",
        [_boosting(), _nystroem(), _embeddings()],
    )


def _boosting() -> list[str]:
    said = results()
    found = compare(said, None)
    ranks, measured = ranked(found), kind_of(said, None)

    def figure(name: str) -> str:
        return f"rank {ranks[name]:.2f}, {number(sum(seconds(measured, name)))} s"

    others = "; ".join(f"{name} {figure(name)}" for name in BOOSTING if name in ranks)
    return [
        f"[gradient boosting](studies/tables/PEERS.md)? {len(found.tables)} public tables, mean rank among "
        f"{len(found.models)} models, seconds for a fold of every table",
        f"**{figure(OWN)}**",
        others,
        "exact leave-one-out, rows added and taken out again exactly, models merged, intervals",
    ]


def _nystroem() -> list[str]:
    fits = peer_fits()
    other, own = fits["Nystroem 5,000 + RidgeClassifier"], fits["pilae: no argument"]
    return [
        "[`make_pipeline(Nystroem(5000), RidgeClassifier())`](docs/choose.md#why-not-pipelinenystroem-ridge)? MNIST, "
        "test accuracy, seconds",
        f"**{own['test_accuracy']:.4f}**, {number(own['seconds'])} s, the search included",
        f"{other['test_accuracy']:.4f}, {number(other['seconds'])} s, with gamma and ridge already known, and "
        f"{other['peak_megabytes'] / own['peak_megabytes']:.1f} times the memory",
        "find its width, kernel and ridge; probabilities; rows that do not fit into memory",
    ]


def _embeddings() -> list[str]:
    found = read(results_of("continual", "tasks"))["cases"]["cifar10_embeddings"]["all"]
    own, other = found["pilae, no argument"], found["LogisticRegression"]
    return [
        "[a pre-trained network and logistic regression](docs/embeddings.md)? CIFAR-10 embeddings, test accuracy, "
        "processor seconds",
        f"**{own['accuracy']:.4f}**, {number(own['seconds'])} s",
        f"{other['accuracy']:.4f}, {number(other['seconds'])} s: nearly as good, far quicker",
        "classes that come later, clients that share no rows, rows deleted on request: all exactly",
    ]
