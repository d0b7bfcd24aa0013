"""HTML templates. Every value is escaped, and control characters of names are written as escapes."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tkg_incremental.text import printable


def load_script(name: str) -> dict[str, str]:
    """A script inside of a page, and the digest by which the page allows it and no other."""
    text = (files("tkg_incremental.report") / name).read_text(encoding="utf-8")
    return {"text": text, "digest": "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}


def render(template: str, **values: Any) -> str:
    """A page from one of the templates, with the style sheet in it.

    Args:
        template: Name of the file.
        values: The variables of the template.
    """
    style = (files("tkg_incremental.report") / "style.css").read_text(encoding="utf-8")
    return _environment().get_template(template).render(style=style, tips=load_script("tips.js"), **values)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("tkg_incremental.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        finalize=_finalize,
        keep_trailing_newline=True,
    )


def _finalize(value: Any) -> Any:
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value
