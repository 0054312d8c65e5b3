"""
Images: what layers keep, and which rows are unusual
====================================================

A stack of autoencoders is fitted without labels. Held-out digits are rebuilt from each layer, and the reconstruction
error of a row says how much it is like the rows the stack has seen.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from pilae import StackedPILAE

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0)
stack = StackedPILAE(width=[48, 32, 16]).fit(X_train)

figure, axes = plt.subplots(4, 10, figsize=(9, 4), layout="constrained")
shown = [int(np.flatnonzero(y_test == digit)[0]) for digit in range(10)]
for layer, line in enumerate(axes):  # layer 0 is the input
    images = stack.inverse_transform(stack.transform(X_test, layer=layer), layer=layer)
    for image, ax in zip(images[shown], line, strict=True):
        ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        ax.set(xticks=[], yticks=[])
    name = f"{stack.layers_[layer - 1].width} neurons" if layer else "held out"
    line[0].set_ylabel(name, rotation=0, ha="right", va="center")

# %%
# Anomalies. One narrow layer is fitted on the digits 0 to 4 alone, then asked about all of them: those it has not seen
# are rebuilt worse, though not all of them, since a 7 is not far from a 1.

few = StackedPILAE(width=[20]).fit(X_train[y_train < 5])
figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
bins = np.linspace(0, 0.08, 60)
ax.hist(-few.score_samples(X_test[y_test < 5]), bins, alpha=0.7, label="digits 0 to 4, held out")
ax.hist(-few.score_samples(X_test[y_test >= 5]), bins, alpha=0.7, label="digits 5 to 9, never seen")
ax.set(xlabel="reconstruction error of a row", yticks=[])
ax.legend(frameon=False)

# %%
# As a rule: what is below the lowest hundredth of the training rows' scores is unusual. Rows that were trained on are
# rebuilt a little better than new ones, so of those somewhat more fall below it.

limit = np.quantile(few.score_samples(X_train[y_train < 5]), 0.01)
for name, rows in (("0 to 4", X_test[y_test < 5]), ("5 to 9", X_test[y_test >= 5])):
    print(f"digits {name}: {np.mean(few.score_samples(rows) < limit):.0%} are called unusual")
plt.show()
