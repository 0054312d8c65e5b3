"""
Embeddings: a classifier on features that are given
===================================================

Real embeddings come from a network that was trained elsewhere. This example has to run without one, so it uses a
stand-in and calls it that: images go through a *fixed random convolution*, a rectifier and pooling. The features know
nothing of digits, but they have the shape of embeddings: a few hundred columns with one scale.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from scipy.signal import convolve
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from pilae import PILAEClassifier
from pilae.plot import SpectrumDisplay


def stand_in(images, filters=40):
    """Not a trained network: random 3 x 3 filters, a rectifier, the mean of each quarter of the image."""
    bank = np.random.default_rng(0).standard_normal((filters, 1, 3, 3))
    maps = np.stack([np.maximum(convolve(images, each, mode="valid"), 0) for each in bank], axis=1)
    quarters = maps.reshape(len(images), filters, 2, 3, 2, 3).mean(axis=(3, 5))
    return quarters.reshape(len(images), -1).astype(np.float32)


digits = load_digits()
E = stand_in(digits.images / 16)
E_train, E_test, y_train, y_test = train_test_split(E, digits.target, stratify=digits.target, random_state=0)
print(E.shape)

# %%
# A fit with no argument, the linear probe it has among its candidates, and logistic regression:

models = {
    "PILAEClassifier()": PILAEClassifier(random_state=0),
    "the same, linear": PILAEClassifier(head="ridge", depth=0),
    "LogisticRegression": LogisticRegression(max_iter=2000),
}
for name, model in models.items():
    start = time.perf_counter()
    model.fit(E_train, y_train)
    seconds = time.perf_counter() - start
    print(f"{name:<20} test accuracy {model.score(E_test, y_test):.4f}  {seconds:.2f} s")
print("leave-one-out of the first:", round(models["PILAEClassifier()"].loo_score_, 4))

# %%
# How many directions the features have: the rank that (17) counts.

SpectrumDisplay.from_data(E_train)
plt.show()
