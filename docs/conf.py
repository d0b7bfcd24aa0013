"""Configuration of Sphinx."""

from __future__ import annotations

import configparser
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import requests

_setup = configparser.ConfigParser()
_setup.read(Path(__file__).parents[1] / "setup.cfg", encoding="utf-8")

project = "tkg_incremental"
author = "The tkg_incremental authors"
copyright = f"2026, {author}"
release = version = _setup["metadata"]["version"]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"{project} {release}"

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_default_options = {"members": True, "show-inheritance": True}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_preprocess_types = True

# Only the prompt is left out of what is copied, not the output.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def _is_reachable(url: str) -> bool:
    try:
        return requests.head(f"{url}objects.inv", timeout=3, allow_redirects=True).ok
    except requests.RequestException:
        return False


# Sphinx warns about an inventory it cannot fetch, and a build without internet access is no reason for an
# error. The names of other projects are then plain text.
_projects = {
    "python": "https://docs.python.org/3/",
    "torch": "https://docs.pytorch.org/docs/stable/",
    "torch_geometric": "https://pytorch-geometric.readthedocs.io/en/latest/",
}
with ThreadPoolExecutor() as _pool:
    _reachable = list(_pool.map(_is_reachable, _projects.values()))
intersphinx_mapping = {name: (url, None) for (name, url), ok in zip(_projects.items(), _reachable, strict=True) if ok}
intersphinx_timeout = 10
