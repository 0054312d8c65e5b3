"""The README's picture: digits and what each layer of a stack keeps of them (needs matplotlib).

pip install 'pilae[report]' && python docs/examples/picture.py docs/reconstruction.svg
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from pilae import StackedPILAE

plt.rcParams["svg.hashsalt"] = "pilae"  # the same file every time


def main(path: str) -> None:
    X, y = load_digits(return_X_y=True)
    X_train, X_test, _, y_test = train_test_split(X / 16, y, random_state=0)
    stack = StackedPILAE(width=[60, 48, 36]).fit(X_train)
    shown = np.array([np.flatnonzero(y_test == digit)[0] for digit in range(10)])
    rows = {"held-out digits": X_test}
    for k, layer in enumerate(stack.layers_):
        back = stack.inverse_transform(stack.transform(X_test, layer=k + 1), layer=k + 1)
        rows[f"from layer {k + 1}\n({layer.width} neurons)"] = back
    noise = np.random.default_rng(0).permuted(X_test, axis=1)

    figure = plt.figure(figsize=(11, 3.1), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[2.1, 1])
    axes = left.subplots(len(rows), 10)
    for (label, images), line in zip(rows.items(), axes, strict=True):
        for image, ax in zip(images[shown], line, strict=True):
            ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
            ax.set(xticks=[], yticks=[])
            for side in ax.spines.values():
                side.set_visible(False)
        line[0].set_ylabel(label, rotation=0, ha="right", va="center", fontsize=9)
    ax = right.subplots()
    for label, data in (("held-out digits", X_test), ("the same pixels, shuffled", noise)):
        errors = -stack.score_samples(data)
        ax.hist(errors, bins=np.linspace(0, 0.3, 75), label=label, alpha=0.7)
    ax.set_xlabel("reconstruction error of a row")
    ax.set_yticks([])
    ax.legend(frameon=False, fontsize=9)
    for side in ("top", "left", "right"):
        ax.spines[side].set_visible(False)
    figure.savefig(path, metadata={"Date": None} if path.endswith("svg") else None, dpi=130)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "docs/reconstruction.svg")
