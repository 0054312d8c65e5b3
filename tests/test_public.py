"""What users see: names, versions, imports."""

import ast
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pilae
import public_api
from benchmarks import render

ROOT = Path(__file__).parents[1]


def test_every_public_name_is_listed_and_exists():
    for name in pilae.__all__:
        assert hasattr(pilae, name)
    estimators = {name for name in vars(pilae) if name[0].isupper()}
    assert estimators <= set(pilae.__all__)


def test_what_users_can_write_changes_on_purpose_alone():
    said, found = public_api.FILE.read_text().splitlines(), public_api.text().splitlines()
    gone, new = [line for line in said if line not in found], [line for line in found if line not in said]
    assert found == said, f"gone: {gone}, new: {new}; if that is meant, run python -m tests.public_api"


def test_the_file_of_what_users_can_write_sees_names_defaults_attributes_and_commands():
    lines = public_api.FILE.read_text().splitlines()
    assert {f"pilae.{name}" for name in pilae.__all__} <= {line.split("(")[0] for line in lines}
    for line in (
        "pilae.PILAERegressor.predict_interval(self, X, coverage=0.9)",
        "pilae.PILAEClassifier.loo_score_",
        "pilae.plot.DepthDisplay.from_estimator(model, *, ax=None)",
        "$ pilae fit --holdout: default 0.1",
    ):
        assert line in lines


def test_import_brings_no_extra():
    # scikit-learn imports pandas where it is installed, and pandas pyarrow: what counts is what pilae adds
    code = (
        "import sys, sklearn.linear_model; before = set(sys.modules); import pilae; extras = "
        "('torch', 'dask', 'pyarrow', 'skrub', 'matplotlib', 'jinja2', 'onnx'); "
        "print([m for m in extras if m in set(sys.modules) - before])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_readme_names_the_two_commands_and_contributing_is_short():
    readme = (ROOT / "README.md").read_text()
    assert "make demo" in readme
    assert "make test" in readme
    assert len((ROOT / "CONTRIBUTING.md").read_text().splitlines()) < 60


def test_extras_exist():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(extras) == {"torch", "dask", "parquet", "table", "save", "report", "onnx", "docs", "dev"}


def test_every_public_estimator_has_a_runnable_example():
    for name in pilae.__all__:
        if name[0].isupper():
            assert ">>>" in getattr(pilae, name).__doc__


def test_the_tables_are_those_of_the_results():
    for table in (render.no_argument, render.images):
        assert table() in (ROOT / "README.md").read_text()
    tables = (ROOT / "benchmarks/README.md").read_text()
    for table in render.TABLES:
        assert table() in tables, table.__name__


def test_the_federated_example_gives_the_pooled_model(capsys):
    runpy.run_path(str(ROOT / "examples/federated.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    merged, pooled = (float(line.split()[-1]) for line in lines[-3:-1])
    assert merged == pooled > 0.9


def test_imports_go_one_way():
    """CONTRIBUTING's list of files is the order of the imports."""
    lines = (ROOT / "CONTRIBUTING.md").read_text().splitlines()
    order = [line.split("`")[1].removesuffix(".py").rstrip("/") for line in lines if line.startswith("| `")]
    source = ROOT / "src/pilae"
    folders = [path.parent.name for path in source.glob("*/__init__.py")]
    assert sorted(order) == sorted([path.stem for path in source.glob("*.py") if path.stem != "__init__"] + folders)
    for k, name in enumerate(order):
        files = (source / name).glob("*.py") if name in folders else [source / f"{name}.py"]
        level = 2 if name in folders else 1  # how many dots lead to the package
        for node in (node for file in files for node in ast.walk(ast.parse(file.read_text()))):
            if isinstance(node, ast.ImportFrom) and node.level == level:
                used = [node.module] if node.module else [alias.name for alias in node.names]
                assert all(order.index(module) < k for module in used), (name, used)
