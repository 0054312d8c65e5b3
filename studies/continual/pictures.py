"""The picture of embeddings: a head on the features of a pre-trained network while classes come two by two."""

from typing import Any

from studies.continual.pages import STYLES
from studies.render import Picture
from studies.store import read, results_of

LINES = {
    "pilae, no argument": "pilae, added by partial_fit",
    "SGDClassifier": "SGDClassifier.partial_fit",
    "MLPClassifier": "MLPClassifier.partial_fit",
}


def embeddings(figure: Any) -> None:
    found = read(results_of("continual", "tasks"))["cases"]["cifar10_embeddings"]
    ax = figure.subplots()
    for name, label in LINES.items():
        accuracy = found["tasks"][name]["accuracy"]
        colour = STYLES["pilae" if name.startswith("pilae") else name]["color"]
        ax.plot([2 * k + 2 for k in range(len(accuracy))], accuracy, "o-", color=colour, label=label)
    both = [found["all"][name]["accuracy"] for name in ("pilae, no argument", "LogisticRegression")]
    label = "all classes at once: pilae {:.3f}, LogisticRegression {:.3f}".format(*both)
    for accuracy in both:
        ax.axhline(accuracy, color="#5b6670", ls=":", lw=1.2, label=label)
        label = None
    ax.set(xlabel="classes met so far", ylabel="accuracy on these", ylim=(0, 1.02), xticks=range(2, 11, 2))
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="lower left", fontsize=9)


PICTURES = {"studies/continual/embeddings.svg": Picture(embeddings, (7, 3.2), (results_of("continual", "tasks"),))}
