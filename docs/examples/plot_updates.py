"""
Deletion and merging: sums that come and go
===========================================

The output layer of a fitted network is a function of sums over rows. So rows can be taken out, and models that were
filled at different places merged, with the result of having fitted that layer on exactly these rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from pilae import PILAEClassifier

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, stratify=y, random_state=0)
model = PILAEClassifier(random_state=0).fit(X, y)
print(f"all rows:                        {model.score(X_test, y_test):.4f}")

# %%
# Some labels turn out to be wrong. They are added, found, and taken out again.

before = model.decision_function(X_test)
wrong = (y[:200] + 1) % 10
model.partial_fit(X[:200], wrong)
print(f"with 200 wrong labels beside:    {model.score(X_test, y_test):.4f}")
model.forget(X[:200], wrong)
print(f"without them again:              {model.score(X_test, y_test):.4f}")
print(f"largest difference from before:  {np.abs(model.decision_function(X_test) - before).max():.0e}")

# %%
# Three sites with different digits. Each gets a fork, the network with no rows in it, and adds its own rows. Only sums
# come back.

sites = np.array_split(np.argsort(y, kind="stable"), 3)
forks = [model.fork().partial_fit(X[rows], y[rows]) for rows in sites]
scores = {f"site {k + 1}": fork.score(X_test, y_test) for k, fork in enumerate(forks)}
merged = forks[0].merge(*forks[1:])
pooled = model.fork().partial_fit(X, y)
scores |= {"merged": merged.score(X_test, y_test), "pooled rows": pooled.score(X_test, y_test)}
difference = np.abs(merged.decision_function(X_test) - pooled.decision_function(X_test)).max()
print(f"merged sums against pooled rows: {difference:.0e}")

figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.barh(list(scores), list(scores.values()), color=["#9aa5b1"] * 3 + ["#1b7f5c"] * 2)
ax.invert_yaxis()
ax.set(xlabel="test accuracy", xlim=(0, 1))

# %%
# Leave-one-out is not a sum: it is stale until rows are read again.

print("stale:", merged.loo_is_stale_)
merged.recalibrate(X, y)
print(f"leave-one-out accuracy of the merged model: {merged.loo_score_:.4f}")
plt.show()
