"""Every public name has its place on the page of the API."""

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
# Also documented, though no `__all__` names them: what pages and recipes use.
BESIDES = {
    "tkg_incremental.cli.main",
    "tkg_incremental.data.catalog.Catalog",
    "tkg_incremental.datasets.base.Graph",
    "tkg_incremental.ops.memory.keep_freed_memory",
}


def public_names() -> set[str]:
    modules = [module.name for module in pkgutil.walk_packages(tkg_incremental.__path__, "tkg_incremental.")]
    loaded = [importlib.import_module(name) for name in ["tkg_incremental", *modules] if "__main__" not in name]
    return {f"{module.__name__}.{name}" for module in loaded for name in getattr(module, "__all__", [])}


@pytest.fixture(scope="module")
def documented(tmp_path_factory: pytest.TempPathFactory) -> tuple[set[str], str]:
    """What the page of the API describes, and what Sphinx has to say about it."""
    source = tmp_path_factory.mktemp("api")
    shutil.copy(DOCS / "api.md", source / "index.md")
    said = StringIO()
    # Names of other projects are looked up on the web, which is not what is tested here.
    overrides = {"intersphinx_mapping": {}}
    app = Sphinx(source, DOCS, source / "out", source / "trees", "dummy", overrides, status=None, warning=said)
    app.build()
    return set(app.env.domains["py"].objects), said.getvalue()


def test_every_public_name_is_there(documented: tuple[set[str], str]) -> None:
    names, _ = documented
    assert public_names() | BESIDES <= names, sorted((public_names() | BESIDES) - names)


def test_docstrings_are_well_formed(documented: tuple[set[str], str]) -> None:
    assert documented[1] == ""
