"""scikit-learn estimators inside a model file: written and read by skops, their types checked by name."""

import io
import warnings
import zipfile

from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning

from .._arrays.npy import claimed_array
from .._base.extras import extra
from .archive import ModelFileError, bytes_of, check_archive, shortened

TRUSTED = ("numpy.dtype",)
"""Types inside estimators that are loaded beside those skops itself knows to be harmless."""

CRASHING = tuple(f'"{name}"'.encode() for name in ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"))
"""Classes that can bring down the interpreter if their arrays were forged."""


def estimator_bytes(estimator: BaseEstimator, place: str) -> bytes:
    skops = extra("skops.io", "save", f"saving {place}, a {type(estimator).__name__},")
    data = skops.dumps(estimator)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if any(word in archive.read("schema.json") for word in CRASHING):
            raise ValueError(
                f"{place} is or holds a support vector machine of libsvm, whose compiled code trusts the file it "
                "came from: use LinearSVC or LinearSVR, or pickle the model at your own risk."
            )
    if unknown := sorted(set(skops.get_untrusted_types(data=data)) - set(TRUSTED)):
        raise ValueError(
            f"{place} holds a {unknown[0]}, which is not among the types that are safe to load: use an estimator "
            "of scikit-learn that is made of arrays alone (no trees), or pickle the model at your own risk."
        )
    return data


def estimator_of(data: bytes, path: str) -> BaseEstimator:
    """The way back, from a member of the file at `path`."""
    skops = extra("skops.io", "save", repr(path))
    _check(data)
    types = set(skops.get_untrusted_types(data=data))
    if unknown := sorted(types - set(TRUSTED)):
        raise ModelFileError(
            f"{path!r} holds a {shortened(unknown[0])}, which is not among the types that are safe to load: nothing "
            "was loaded."
        )
    with warnings.catch_warnings():  # `load` says in one sentence what scikit-learn says for every part
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        return skops.loads(data, trusted=sorted(types))


def _check(data: bytes) -> None:
    """Raises on what skops would unpack or allocate beyond all bounds, and on compiled code that trusts its arrays."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        check_archive(archive, len(data))
        for name in archive.namelist():
            if name == "schema.json" and any(word in bytes_of(archive, name) for word in CRASHING):
                raise ValueError("support vector machines cannot be loaded safely")
            if name.endswith(".npy"):
                member = bytes_of(archive, name)
                claimed_array(io.BytesIO(member), len(member))
            elif name.endswith(".npz"):
                _check(bytes_of(archive, name))
