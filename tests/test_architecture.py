"""Which packages may import which, no cycles between modules, and a test file for each module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = "tkg_incremental"

#: For each package, the packages and top-level modules that it may import besides itself; `cli` may import all.
ALLOWED: dict[str, set[str]] = {
    "communicator": set(),
    "seeding": set(),
    "progress": set(),
    "storage": set(),
    "run_file": {"storage"},
    "text": set(),
    "tables": {"text"},
    "ops": set(),
    "data": {"ops"},
    "datasets": {"data", "ops", "progress", "storage"},
    "loader": {"data", "ops", "seeding"},
    "optim": {"ops"},
    "metrics": {"communicator", "data", "ops"},
    "models": {"data", "loader", "ops", "optim", "seeding", "storage"},
    "answers": {"data", "metrics", "models", "ops", "seeding", "tables"},
    "strategies": {"data", "loader", "metrics", "models", "ops"},
    "distributed": {"communicator", "metrics", "models", "ops", "optim", "strategies"},
    "report": {"data", "models", "ops", "run_file", "storage", "tables", "text", "training"},
}
ALLOWED["training"] = {
    *("answers", "communicator", "data", "datasets", "distributed", "loader", "metrics", "models", "ops", "optim"),
    *("progress", "seeding", "storage", "strategies", "tables"),
}
ALLOWED["live"] = {
    *("answers", "data", "datasets", "loader", "metrics", "models", "ops", "progress", "seeding", "storage"),
    *("strategies", "text", "training"),
}
#: Imports inside functions, for convenience: `model.query()` is a short form of an answer engine.
LAZY = {"tkg_incremental.models.base": {"answers"}}
#: The only modules outside of `distributed` and `cli` that may import `distributed`.
USERS_OF_DISTRIBUTED = {"tkg_incremental.training.trainer"}
#: Packages of which each module has a test file of the same name.
MIRRORED = ("distributed", "loader", "optim", "strategies", "training")
#: Modules without a test file of their own.
WITHOUT_MIRROR: set[str] = set()


def modules() -> dict[str, Path]:
    """All modules of the package by name."""
    found = {}
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def imports(path: Path, inside_functions: bool) -> Iterator[str]:
    """Modules of the package that a module imports when it is loaded, and, if wanted, when functions are called.
    Imports for type checking do not count."""

    def visit(nodes: list[ast.stmt]) -> Iterator[str]:
        for node in nodes:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path} has a relative import"
                for alias in node.names:
                    full = f"{node.module}.{alias.name}"
                    yield full if full in MODULES else node.module or ""
            elif isinstance(node, ast.If) and is_type_checking(node.test):
                yield from visit(node.orelse)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                if inside_functions:
                    yield from visit(node.body)
            else:
                for name in ("body", "orelse", "finalbody"):
                    yield from visit([child for child in getattr(node, name, []) if isinstance(child, ast.stmt)])
                for handler in getattr(node, "handlers", []):
                    yield from visit(handler.body)

    for name in visit(ast.parse(path.read_text(encoding="utf-8")).body):
        if name == PACKAGE or name.startswith(f"{PACKAGE}."):
            yield name


def package_of(module: str) -> str:
    """The sub-package or top-level module that a module belongs to; the package itself for its `__init__`."""
    return [*module.split("."), ""][1]


@pytest.mark.parametrize("module", MODULES)
def test_allowed_imports(module: str) -> None:
    package = package_of(module)
    if package not in ALLOWED:
        assert package in ("", "__main__", "cli", "registry"), f"ALLOWED must have an entry for {package}"
        return
    for inside_functions, lazy in ((False, set[str]()), (True, LAZY.get(module, set()))):
        for name in imports(MODULES[module], inside_functions):
            allowed = ALLOWED[package] | lazy | {package, ""}
            assert package_of(name) in allowed, f"{module} must not import {name}"


@pytest.mark.parametrize("module", MODULES)
def test_distributed_is_on_top(module: str) -> None:
    if package_of(module) in ("cli", "distributed") or module in USERS_OF_DISTRIBUTED:
        return
    found = [name for name in imports(MODULES[module], inside_functions=True) if package_of(name) == "distributed"]
    assert not found, f"{module} must not import {found}"


def test_no_cycles() -> None:
    """Modules can be loaded in some order: no module needs itself, directly or by others."""
    needs: dict[str, set[str]] = {}
    for module, path in MODULES.items():
        # Python loads the package itself before any module; modules may import it for its version.
        found = {name for name in imports(path, inside_functions=False) if name in MODULES}
        needs[module] = found - {module, PACKAGE}
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, f"cycle of imports: {' → '.join([*path[path.index(module) :], module])}"
        if module in done:
            return
        for other in sorted(needs[module]):
            visit(other, (*path, module))
        done.add(module)

    for module in MODULES:
        visit(module, ())


def test_no_cycles_between_packages() -> None:
    """Of two packages, at most one imports the other. `distributed` and `training` meet in the trainer alone."""
    edges = {
        (package_of(module), package_of(name))
        for module, path in MODULES.items()
        if module not in USERS_OF_DISTRIBUTED
        for name in imports(path, inside_functions=False)
    }
    both = sorted((a, b) for a, b in edges if a < b and "" not in (a, b) and (b, a) in edges)
    assert both == []


@pytest.mark.parametrize(
    "module",
    [name for name in MODULES if package_of(name) in MIRRORED and MODULES[name].name != "__init__.py"],
)
def test_every_module_has_a_test_file(module: str) -> None:
    if module in WITHOUT_MIRROR:
        return
    *folders, name = module.split(".")[1:]
    mirror = Path(__file__).parent.joinpath(*folders, f"test_{name}.py")
    assert mirror.exists(), f"{module} has no {mirror.relative_to(ROOT)}"


def test_test_files_have_a_module() -> None:
    """No test file is left over from a module that is gone: others are about several modules, and listed."""
    several = {"test_autocast.py", "test_equality.py", "test_ingredients.py", "test_lost_process.py", "test_resume.py"}
    for package in MIRRORED:
        for path in (Path(__file__).parent / package).glob("test_*.py"):
            module = f"{PACKAGE}.{package}.{path.stem.removeprefix('test_')}"
            assert module in MODULES or path.name in several, f"{path.name} tests no module of {package}"
