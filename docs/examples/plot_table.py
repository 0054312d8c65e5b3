"""
A table: leave-one-out and every width at once
==============================================

One fit with no argument compares networks by leave-one-out, and gives the error of every width of the last hidden layer
from one factorisation. No row is held out for any of it; here some are, to see whether it was right.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from pilae import PILAEClassifier
from pilae.plot import CalibrationDisplay, DepthDisplay, WidthPathDisplay

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
model = PILAEClassifier(random_state=0).fit(X_train, y_train)
print(f"leave-one-out accuracy  {model.loo_score_:.4f}  ({len(X_train)} rows)")
accuracy = model.score(X_test, y_test)
error = (accuracy * (1 - accuracy) / len(X_test)) ** 0.5
print(f"held-out accuracy       {accuracy:.4f}  ({len(X_test)} rows, standard error {error:.4f})")

# %%
# Every candidate is in ``search_``. The best ones of the round that decided:

keys = ("input_scaling", "depth", "neurons", "encoder_ridge", "activation", "direct", "loss")
print("".join(f"{key:<15}" for key in keys))
decided = max(row["round"] for row in model.search_)
candidates = [row for row in model.search_ if row["round"] == decided]
for row in sorted(candidates, key=lambda row: row["loss"])[:6]:
    cells = [f"{row[key]:.4g}" if isinstance(row[key], float) else str(row[key]) for key in keys]
    print("".join(f"{cell:<15}" for cell in cells) + ("<- chosen" if row["chosen"] else ""))

# %%
# Depth is a candidate like the others; here no autoencoder layer at all is best. Beside it, whether probabilities mean
# what they say.

figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
DepthDisplay.from_estimator(model, ax=axes[0])
CalibrationDisplay.from_estimator(model, X_test, y_test, ax=axes[1])

# %%
# The width path of a network with one hidden layer. Each curve is a ridge, each of its points the exact leave-one-out
# error of that many neurons; the dashed line is the width that was taken.

shallow = PILAEClassifier(depth=0, random_state=0).fit(X_train, y_train)
WidthPathDisplay.from_estimator(shallow)
plt.show()
