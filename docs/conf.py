"""Configuration of Sphinx."""

from __future__ import annotations

import configparser
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import requests
from sphinx.application import Sphinx

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
exclude_patterns = ["_build", "generated"]

html_theme = "furo"
html_title = f"{project} {release}"
html_static_path = ["_static"]
html_css_files = ["tables.css"]
# The help of commands is as wide as the page.
html_theme_options = {"light_css_variables": {"code-font-size": "74%"}}

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_default_options = {"members": True, "show-inheritance": True}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_preprocess_types = True

# The examples in docstrings run with the tests, which provide the names of their modules.
doctest_test_doctest_blocks = ""

# Copied text has no prompts.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def _is_reachable(url: str) -> bool:
    try:
        return requests.head(f"{url}objects.inv", timeout=3, allow_redirects=True).ok
    except requests.RequestException:
        return False


# Sphinx warns about an inventory that it cannot fetch, and warnings are errors. Without internet access, the names of
# other projects are plain text.
_projects = {
    "python": "https://docs.python.org/3/",
    "torch": "https://docs.pytorch.org/docs/stable/",
    "torch_geometric": "https://pytorch-geometric.readthedocs.io/en/latest/",
}
with ThreadPoolExecutor() as _pool:
    _reachable = list(_pool.map(_is_reachable, _projects.values()))
intersphinx_mapping = {name: (url, None) for (name, url), ok in zip(_projects.items(), _reachable, strict=True) if ok}
intersphinx_timeout = 10


def write_help(app: Sphinx) -> None:
    """Writes the help of all commands as a page, for the reference of the command line."""
    os.environ["COLUMNS"] = "100"  # argparse breaks its lines there
    from tkg_incremental.cli import make_parser

    parser = make_parser()
    commands = next(action.choices for action in parser._actions if action.dest == "==SUPPRESS==" and action.choices)
    parts = [("All commands", parser.format_help())]
    parts += [(name, command.format_help()) for name, command in commands.items()]
    folder = Path(app.srcdir) / "generated"
    folder.mkdir(exist_ok=True)
    text = "\n".join(f"## {name}\n\n```none\n{help_text}```\n" for name, help_text in parts)
    (folder / "commands.md").write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> None:
    app.connect("builder-inited", write_help)
