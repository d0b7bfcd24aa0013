"""Every public name is described on a page of the API."""

from __future__ import annotations

import importlib
import pkgutil
import shutil
from io import StringIO
from pathlib import Path

import pytest
from sphinx.application import Sphinx

import tkg_incremental

DOCS = Path(__file__).parents[2] / "docs"
# Also documented, though no package exports them: what pages and recipes use.
BESIDES = {
    "tkg_incremental.cli.main",
    "tkg_incremental.data.catalog.Catalog",
    "tkg_incremental.datasets.base.Graph",
    "tkg_incremental.datasets.download.download",
    "tkg_incremental.datasets.options.ReadOptions",
    "tkg_incremental.live.graph.LiveGraph",
    "tkg_incremental.ops.memory.keep_freed_memory",
    "tkg_incremental.storage.load_verified",
}


def public_names() -> set[str]:
    """The names that packages export."""
    packages = [
        found.name for found in pkgutil.walk_packages(tkg_incremental.__path__, "tkg_incremental.") if found.ispkg
    ]
    loaded = [importlib.import_module(name) for name in ["tkg_incremental", *packages]]
    return {f"{module.__name__}.{name}" for module in loaded for name in getattr(module, "__all__", [])}


@pytest.fixture(scope="module")
def documented(tmp_path_factory: pytest.TempPathFactory) -> tuple[set[str], str]:
    """What the pages of the API describe, and the warnings of Sphinx."""
    source = tmp_path_factory.mktemp("api")
    shutil.copytree(DOCS / "api", source, dirs_exist_ok=True)
    warnings = StringIO()
    # Links to other pages and projects are not tested here: `make docs` does.
    overrides = {"intersphinx_mapping": {}, "suppress_warnings": ["myst.xref_missing"]}
    app = Sphinx(source, DOCS, source / "out", source / "trees", "dummy", overrides, status=None, warning=warnings)
    app.build()
    return set(app.env.domains["py"].objects), warnings.getvalue()


def test_every_public_name_is_there(documented: tuple[set[str], str]) -> None:
    names, _ = documented
    assert public_names() | BESIDES <= names, sorted((public_names() | BESIDES) - names)


def test_every_package_has_a_page() -> None:
    pages = {path.stem for path in (DOCS / "api").glob("*.md")}
    packages = {name.split(".")[1] for name in public_names() if name.count(".") > 1}
    assert packages <= pages, sorted(packages - pages)


def test_docstrings_are_well_formed(documented: tuple[set[str], str]) -> None:
    assert documented[1] == ""
