"""What users see: names, versions, imports."""

import ast
import graphlib
import inspect
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import pilae
import public_api

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


@pytest.mark.parametrize("name", [name for name in pilae.__all__ if hasattr(getattr(pilae, name), "get_params")])
def test_every_parameter_attribute_and_method_is_documented(name):
    kind = getattr(pilae, name)
    said = set(re.findall(r"\w+", inspect.getdoc(kind)))
    assert set(inspect.signature(kind).parameters) <= said
    # fitted_ is what all of them are read from
    assert {each for each in dir(kind) if each.endswith("_") and each[0] != "_"} - {"fitted_"} <= said
    for each, method in inspect.getmembers(kind, callable):
        assert each[0] == "_" or inspect.getdoc(method), each


def test_import_brings_no_extra():
    # scikit-learn imports pandas where it is installed, and pandas pyarrow: what counts is what pilae adds
    code = (
        "import sys, sklearn.linear_model; before = set(sys.modules); import pilae; pilae.load; extras = "
        "('torch', 'dask', 'pyarrow', 'skrub', 'matplotlib', 'jinja2', 'onnx', 'PIL'); "
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
    assert set(extras) == {"torch", "dask", "parquet", "table", "images", "save", "report", "onnx", "docs", "dev"}


def test_every_public_estimator_has_a_runnable_example():
    for name in pilae.__all__:
        if name[0].isupper():
            assert ">>>" in getattr(pilae, name).__doc__


def test_the_federated_example_gives_the_pooled_model(capsys):
    runpy.run_path(str(ROOT / "docs/examples/federated.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    merged, pooled = (float(line.split()[-1]) for line in lines[-3:-1])
    assert merged == pooled > 0.9


SOURCE = Path(pilae.__file__).parent


def listed_order():
    """CONTRIBUTING's table: the packages and public modules in the order of the imports."""
    lines = (ROOT / "CONTRIBUTING.md").read_text().splitlines()
    return [line.split("`")[1].removesuffix(".py").rstrip("/") for line in lines if line.startswith("| `")]


def imports_of(file):
    """The modules of pilae that a file imports, in functions too, as tuples of names from the top."""
    above = file.relative_to(SOURCE).parts[:-1]
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            assert node.level <= len(above) + 1, file
            base = above[: len(above) + 1 - node.level]
            if node.module:
                yield (*base, *node.module.split("."))
            else:
                yield from ((*base, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            names = [node.module] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            assert not any(name.split(".")[0] == "pilae" for name in names), (
                file,
                "imports of pilae's own are relative",
            )


def test_imports_go_one_way_from_package_to_package():
    order = listed_order()
    folders = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    modules = {path.stem for path in SOURCE.glob("*.py") if path.stem not in ("__init__", "__main__")}
    assert sorted(order) == sorted(folders | modules)
    met = 0
    for k, name in enumerate(order):
        for file in (SOURCE / name).rglob("*.py") if name in folders else [SOURCE / f"{name}.py"]:
            for used in imports_of(file):
                assert used[0] == name or order.index(used[0]) < k, (str(file), used)
                met += 1
    assert met > 100  # a test that reads no import would pass


def test_one_module_alone_is_imported_by_its_name_as_text():
    """The encoder of tables, which a file may hold and predicting from numbers does not need."""
    found = {
        node.value
        for file in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"pilae(\.\w+)+", node.value)
    }
    assert found == {"pilae._tables.file_columns"}


def imports_by_relative_text(tree):
    """Whether it calls `import_module`, under whatever name, with a package that the text is relative to."""
    names = {"import_module", "__import__"}
    names |= {
        alias.asname
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name in names and alias.asname
    }
    return any(
        isinstance(node, ast.Call)
        and ast.unparse(node.func).split(".")[-1] in names
        and len(node.args) + len(node.keywords) > 1
        for node in ast.walk(tree)
    )


def test_only_what_waits_to_be_asked_for_is_imported_by_relative_text():
    """The order of the packages does not see `import_module("..save", __package__)`: names of pilae and commands."""
    found = {file for file in SOURCE.rglob("*.py") if imports_by_relative_text(ast.parse(file.read_text()))}
    assert found == {SOURCE / "__init__.py", SOURCE / "cli" / "arguments.py"}


def test_no_two_modules_of_a_package_import_each_other():
    met = 0
    for package in (path.parent for path in SOURCE.glob("*/__init__.py")):
        graph = {
            file.stem: {used[1] for used in imports_of(file) if used[0] == package.name and len(used) > 1}
            for file in package.glob("*.py")
        }
        met += sum(len(used) for used in graph.values())
        tuple(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError
    assert met > 20


def test_only_the_arrays_package_names_torch_or_cupy():
    for file in SOURCE.rglob("*.py"):
        if file.parent.name != "_arrays":
            imported = {
                alias.name.split(".")[0]
                for node in ast.walk(ast.parse(file.read_text()))
                if isinstance(node, ast.Import)
                for alias in node.names
            } | {
                (node.module or "").split(".")[0]
                for node in ast.walk(ast.parse(file.read_text()))
                if isinstance(node, ast.ImportFrom) and not node.level
            }
            assert not imported & {"torch", "cupy", "cupyx", "array_api_compat"}, file
