"""The paper's own numbers: Tables I, II (accuracies in per cent, as printed) and III."""

from typing import NamedTuple


class Row(NamedTuple):
    """A data set of Tables I and II; None where the paper prints a dash."""

    name: str
    rows: int
    features: int
    rank: int
    predicted: int
    """Width by eq (31) with this set left out."""
    best: int
    """Width by brute force."""
    accuracy: float | None
    """At the predicted width: PIL, and back-propagation."""
    accuracy_bp: float | None
    accuracy_best: float
    """PIL at the best width."""
    seconds: float | None
    seconds_bp: float | None


TABLES = (
    Row("Bupa", 250, 6, 6, -1064, 161, None, None, 81.16, None, None),
    Row("Segment", 1700, 19, 19, -52, 1352, None, None, 95.67, None, None),
    Row("Mfeat", 1400, 649, 646, 1921, 1265, 98.75, 97.50, 98.75, 0.60, 47.35),
    Row("Prior", 2500, 785, 621, 2416, 1979, 89.32, 91.20, 90.19, 1.23, 59.33),
    Row("Har 1", 3000, 562, 540, 2627, 1557, 97.67, 97.33, 97.83, 0.99, 146.90),
    Row("Advertisement", 3279, 1558, 727, 2497, 2556, 95.42, 97.56, 95.42, 2.56, 171.79),
    Row("Gina_agnostic", 3468, 970, 970, 5339, 2197, 84.70, 86.29, 84.99, 5.14, 237.48),
    Row("Spambase", 4601, 57, 57, 3510, 586, 91.09, 92.80, 90.65, 1.70, 24.57),
    Row("Isolet", 7797, 617, 617, 2949, 4062, 92.69, 47.27, 93.39, 2.49, 210.99),
    Row("Har 2", 7352, 562, 540, 2603, 4657, 98.03, 98.16, 99.05, 1.82, 289.51),
    Row("Sylva", 10000, 216, 204, 5893, 1322, 98.61, 94.03, 98.85, 9.41, 34.51),
)

TABLE_3 = {  # back-propagation and PILAE, each with a softmax and an SHLN head
    "MNIST": {"bp": {"softmax": 0.9771, "SHLN": 0.9727}, "pilae": {"softmax": 0.9611, "SHLN": 0.9751}},
    "Fashion-MNIST": {"bp": {"softmax": 0.8843, "SHLN": 0.8795}, "pilae": {"softmax": 0.8621, "SHLN": 0.8819}},
    "NORB": {"bp": {"softmax": 0.8723, "SHLN": 0.8676}, "pilae": {"softmax": 0.8913, "SHLN": 0.9023}},
    "SVHN": {"bp": {"softmax": 0.7762, "SHLN": 0.7807}, "pilae": {"softmax": 0.7716, "SHLN": 0.7785}},
}

DATA = {
    "Bupa": "bupa",
    "Segment": "segment",
    "Mfeat": "mfeat",
    "Prior": "prior",
    "Har 1": "har",
    "Advertisement": "advertisement",
    "Gina_agnostic": "gina_agnostic",
    "Spambase": "spambase",
    "Isolet": "isolet",
    "Har 2": "har",
    "Sylva": "sylva",
    "MNIST": "mnist",
    "Fashion-MNIST": "fashion_mnist",
    "NORB": "norb",
    "SVHN": "svhn",
}
"""What the paper calls a set, and what `pilae.datasets` does."""

PARTS = {
    "sylva": "sylva_agnostic_train",
    "isolet": "isolet_subset",
    "har": "har_subset735",
    "svhn": "svhn_gray",
}
"""Parts or other versions of a set, shown under their own name beside it; never in its place."""
