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


def test_no_test_asserts_how_long_something_takes():
    """Machines are busy, slow or emulated: what may be asserted is counted, and seconds belong to the studies."""
    clocks = re.compile(r"\b(?:perf_counter|process_time|thread_time|monotonic|time|default_timer)(?:_ns)?\(\)")
    tests = [path for path in Path(__file__).parent.glob("*.py") if path != Path(__file__)]
    assert len(tests) > 50
    assert [path.name for path in tests if clocks.search(path.read_text())] == []


@pytest.mark.parametrize("words", ["params: Any", "self: Any"])
def test_nothing_passes_for_anything(words):
    assert [path.name for path in FILES if words in path.read_text()] == []
