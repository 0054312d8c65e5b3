"""`python -m pilae.cli`."""

import sys

from . import main

sys.exit(main())
