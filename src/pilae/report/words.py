"""What stands below figures, and the words of a search for those who read of it for the first time."""

from typing import Any

CAPTIONS = {
    "shuffled": "What is lost when a column's values are dealt to other rows, mean and spread of five shuffles: "
    "nothing where the model does without the column, or finds the same in others.",
    "importances": "How much each column moves the outputs when it changes by its standard deviation: mean squares of "
    "the network's gradient, all columns together 1.",
    "predicted": "True against predicted; on the line the two are equal.",
    "residuals": "What is left: true minus predicted.",
    "coverage": "Coverage of intervals of several sizes.",
    "fifths": "Coverage of intervals of 90% from the lowest to the highest predictions.",
    "confusion": "Rows by true and predicted class.",
    "roc": "Rows of a class found against others taken for it, as the least probability that counts falls (ROC).",
    "calibration": "How often predictions are right, against the probability they were given.",
    "spectrum": "Singular values of the scaled test rows; below the line they count as zero.",
    "width_path": "Leave-one-out error of every width, from one factorisation; the band is one standard error.",
    "depth": "Candidates of the first round by depth, and the depth of the network that was chosen in the end.",
    "reconstruction": "Test rows above what each layer keeps of them.",
}
"""What is written below each figure."""

GLOSSARY = {
    "leave-one-out": "What the output layer would say of a training row had it been fitted without that row: exact, "
    "without fitting it again.",
    "loss": "What candidates are compared by, lower is better: the squared leave-one-out error for numbers, the "
    "log-loss for classes.",
    "depth": "How many autoencoder layers lie between the columns and the last hidden layer.",
    "width": "Columns that the output layer sees: hidden neurons, and the input itself where there are direct links.",
    "ridge": "How strongly weights are held back, so that they follow the rows and not their noise.",
    "input": "How columns are brought to one scale: as they are (none), to unit variance (standard), large values held "
    "back (asinh), or each in pieces between its quantiles, so that it may have a curve of its own (pieces).",
    "rows, pairs": "What a hidden neuron compares a row with: one training row, or the difference of two.",
    "laplace, gauss": "Hidden neurons that fire near one training row; the length says how far near is.",
    "direct links": "The output layer sees the columns themselves beside the neurons.",
    "metric": "Distances in which columns that matter count more, learnt from the labels in so many rounds.",
}


def candidate_words(row: dict[str, Any]) -> str:
    """A candidate of the search in a line."""
    words = [f"depth {row['depth']}", f"{row['input_scaling']} input"]
    if row["head"] == "ridge":
        words.append("no hidden neurons")
    elif row["length"] is not None:
        words.append(f"{row['activation']} of length {row['length']:g}")
    else:
        ridge = row["encoder_ridge"]
        words.append(
            f"{row['activation']} of {row['neurons']}, ridge {ridge if isinstance(ridge, str) else f'{ridge:g}'}"
        )
    if row["rounds"]:
        words.append(f"metric of {row['rounds']} round{'s' if row['rounds'] > 1 else ''}")
    words += [word for word, there in (("direct links", row["direct"]), ("all layers", row["skip"])) if there]
    if row["branches"] > 1:
        words.append(f"{row['branches']} stacks")
    return ", ".join(words)
