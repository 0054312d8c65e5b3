"""The house stays one that can be read: sizes of files and functions, and no parameter that may be anything."""

import ast
import io
import re
import statistics
import tokenize
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "pilae"
FILES = sorted(SOURCE.rglob("*.py"))

LONGEST_FILE, LONGEST_FUNCTION = 400, 40
MOST_LONG_FUNCTIONS = 8
SILENT = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


def code_lines(text):
    """Numbers of the lines that hold code: no blanks, comments or docstrings."""
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SILENT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        for part in body if isinstance(body, list) else ():
            if (
                isinstance(part, ast.Expr)
                and isinstance(part.value, ast.Constant)
                and isinstance(part.value.value, str)
            ):
                lines.difference_update(range(part.lineno, part.end_lineno + 1))
    return lines


def functions(text):
    lines = code_lines(text)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            yield node.name, len(lines & set(range(node.lineno, node.end_lineno + 1)))


def test_what_counts_as_code():
    text = (
        '"""Doc."""\n\n# why\nX = 1\n"""What X is."""\n\n\ndef f(a):\n    """Doc."""\n    return (\n        a\n    )\n'
    )
    assert code_lines(text) == {4, 8, 10, 11, 12}
    assert list(functions(text)) == [("f", 4)]


def test_files_are_short():
    sizes = {str(path.relative_to(SOURCE)): len(path.read_text().splitlines()) for path in FILES}
    assert len(sizes) > 50
    assert {name: size for name, size in sizes.items() if size > LONGEST_FILE} == {}
    assert statistics.median(sizes.values()) <= LONGEST_FILE / 2


def test_functions_are_short():
    long = [
        (path.name, *found) for path in FILES for found in functions(path.read_text()) if found[1] > LONGEST_FUNCTION
    ]
    assert len(long) <= MOST_LONG_FUNCTIONS, long


CLOCK = re.compile(
    r"\b(time\.(\*|(time|perf_counter|monotonic|process_time|thread_time|clock_gettime)(_ns)?)|timeit\.\S+"
    r"|(datetime|Timestamp)\.(now|utcnow|today)|date\.today|os\.times|signal\.(setitimer|alarm)"
    r"|measure\.(\*|seconds_of|times_of|beside_products|gemm_seconds|clock)|resource\.getrusage)(?!\w)"
)
LOOKS_AT_A_CLOCK = {
    "behaviour/__main__.py": "prints how long each case took",
    "test_house.py": "names clocks, to find them",
    "test_pictures.py": "getrusage, for its memory",
    "torture/cluster.py": "kills workers at moments of a fit; gives up on one that never comes back, a guard",
    "torture/faults.py": "kills and interrupts at moments of a save or a fit",
    "torture/files.py": "gives up on a file after 60 s of processor time, a guard",
    "torture/harness.py": "records how long a part took",
    "torture/load.py": "records the processor time of a call",
    "torture/numbers.py": "records how long the single large cases took",
    "torture/readers.py": "records the processor time of the slowest file; gives up on one after 60 s of it, a guard",
}
"""Files below tests/ that may, and what for. None of them asserts that something is fast: a guard is a hundred times
what it ends has ever taken, and without it what is never done with would not be told."""


def clocks_of(text):
    """The clocks that a file names: under any name it gives them, and in code that it has as text."""
    tree, given = ast.parse(text), {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            above = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            given |= {alias.asname or alias.name: above + alias.name for alias in node.names}

    def name_of(node):
        if isinstance(node, ast.Attribute):
            return f"{name_of(node.value)}.{node.attr}"
        if isinstance(node, ast.Call) and name_of(node.func) == "getattr" and len(node.args) > 1:
            of, name = node.args[:2]
            return f"{name_of(of)}.{name.value if isinstance(name, ast.Constant) else '*'}"
        return given.get(node.id, node.id) if isinstance(node, ast.Name) else ""

    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    words = [*given.values(), *map(name_of, ast.walk(tree)), *texts]
    return {found[0] for word in words for found in CLOCK.finditer(word)}


@pytest.mark.parametrize(
    "text",
    [
        "from time import perf_counter as now\nassert now() < 3",
        "import time as t\nassert t.monotonic_ns() < 3",
        "from time import *",
        "import datetime as d\nassert d.datetime.now() < end",
        "from datetime import datetime as d\nassert d.now() < end",
        "from timeit import default_timer as now",
        "import timeit\nassert timeit.timeit(f) < 3",
        "from pilae._base import progress\nassert progress.time.perf_counter() < 3",
        "code = 'import time; assert time.process_time() < 3'",
        "import time\nassert getattr(time, 'perf_counter')() < 3",
        "import time\nassert getattr(time, name)() < 3",
        "from studies.measure import seconds_of, times_of",
        "from studies import measure as m\nassert m.seconds_of(f)[0] < 3",
        "from resource import getrusage as used\nassert used(0).ru_utime < 3",
        "from signal import setitimer",
        "import signal\nsignal.alarm(3)",
    ],
)
def test_a_clock_is_found_under_any_name(text):
    assert clocks_of(text)


@pytest.mark.parametrize("text", ["import time\ntime.sleep(1)", "import datetime\ndatetime.time(3)", "time = 3"])
def test_what_is_no_clock(text):
    assert not clocks_of(text)


def test_no_test_asserts_how_long_something_takes():
    """Machines are busy, slow or emulated: what may be asserted is counted, and seconds belong to the studies.

    A time after which what hangs is given up (of a process, a barrier, a file) is no assertion about speed.
    """
    here = Path(__file__).parent
    found = {path.relative_to(here).as_posix() for path in here.rglob("*.py") if clocks_of(path.read_text())}
    assert found == set(LOOKS_AT_A_CLOCK)


@pytest.mark.parametrize("words", ["params: Any", "self: Any"])
def test_nothing_passes_for_anything(words):
    assert [path.name for path in FILES if words in path.read_text()] == []
