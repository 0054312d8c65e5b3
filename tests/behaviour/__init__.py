"""The behaviour guard: small models, and what they said when their answers were recorded."""

import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # before SciPy is imported: the array API of scikit-learn asks for it
