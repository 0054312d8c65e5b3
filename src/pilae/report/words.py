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
    "width": "Columns that the output layer sees: hidden neurons, and the input itself where there are direct links. "
    "In the search as many as were tried; those of the network that was made in the end are chosen once more.",
    "ridge": "How strongly weights are held back, so that they follow the rows and not their noise.",
    "input": "How columns are brought to one scale: not at all (as it is), to unit variance (standard), large values "
    "held back (asinh), or each in pieces between its quantiles, so that it may have a curve of its own (in pieces).",
    "relu, sigmoid": "What a hidden neuron makes of its sum: nothing below zero, or a curve from 0 to 1; relu2 is the "
    "square of relu.",
    "rows, pairs": "What a hidden neuron compares a row with: one training row, or the difference of two.",
    "laplace, gauss": "Hidden neurons that fire near one training row; the length says how far near is.",
    "direct links": "The output layer sees the columns themselves beside the neurons.",
    "metric": "Distances in which columns that matter count more, learnt from the targets in so many rounds: each "
    "column with a weight of its own (diagonal), or directions between columns too; a higher power makes differences "
    "larger.",
}

STRUCTURE = ("neurons", "encoder_ridge", "activation", "length", "power", "taught", "skip", "branches", "width")
"""What may tell candidates apart beside what they are called."""

INPUTS = {"none": "input as it is", "standard": "standard input", "asinh": "asinh input", "pieces": "input in pieces"}


def candidate_names(rows: list[dict[str, Any]]) -> list[str]:
    """Candidates in a line each; where two would be called the same, with what tells them apart."""
    names = [candidate_words(row) for row in rows]
    for name in {name for name in names if names.count(name) > 1}:
        alike = [k for k, each in enumerate(names) if each == name]
        differing = [key for key in STRUCTURE if len({repr(rows[k].get(key)) for k in alike}) > 1]
        for k in alike:
            more = [f"{key.replace('_', ' ')} {rows[k][key]}" for key in differing]
            names[k] = ", ".join([name, *more])
    return names


def candidate_words(row: dict[str, Any]) -> str:
    """A candidate of the search in a line."""
    words = [f"depth {row['depth']}", INPUTS[row["input_scaling"]]]
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
        kind, rounds = "diagonal metric" if row["diagonal"] else "metric", row["rounds"]
        words.append(f"{kind} of {rounds} round{'s' if rounds > 1 else ''}, power {row['power']:g}")
    words += [word for word, there in (("direct links", row["direct"]), ("all layers", row["skip"])) if there]
    if row["branches"] > 1:
        words.append(f"{row['branches']} stacks")
    return ", ".join(words)
