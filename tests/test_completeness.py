"""Every public name of the learning core has tests and documentation; models and strategies cite their sources."""

import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

from tkg_incremental import loader, metrics, models, optim, strategies, training
from tkg_incremental.strategies import View

PACKAGES: list[ModuleType] = [loader, metrics, models, optim, strategies, training]
EVERYTHING = [(package, name) for package in PACKAGES for name in package.__all__]

# A paper, a formula, or another class of the package that cites one.
CITATION = re.compile(r"<https?://|:math:|\.\. math::|:(?:class|func):`~?tkg_incremental\.")
# Base classes, options and views, which select quads and compute nothing.
BASES = {"Answer", "Decoder", "Encoder", "ReplayOptions", "Strategy", "Term", "TrainingContext"}


def is_view(item: object) -> bool:
    return inspect.isclass(item) and issubclass(item, View)


def is_model_or_strategy(item: object) -> bool:
    """Classes, and functions that make strategies."""
    return inspect.isclass(item) or (inspect.isfunction(item) and item.__annotations__["return"] == "Strategy")


CITED = [
    item
    for package in (models, strategies)
    for name in package.__all__
    if name not in BASES and not is_view(item := getattr(package, name)) and is_model_or_strategy(item)
]


@pytest.mark.parametrize(("package", "name"), EVERYTHING, ids=[name for _, name in EVERYTHING])
def test_it_is_tested(package: ModuleType, name: str) -> None:
    folder = Path(__file__).parent / package.__name__.rpartition(".")[2]
    texts = (path.read_text(encoding="utf-8") for path in folder.rglob("test_*.py"))
    assert any(re.search(rf"\b{name}\b", text) for text in texts), f"{name} has no test in {folder.name}/"


@pytest.mark.parametrize(("package", "name"), EVERYTHING, ids=[name for _, name in EVERYTHING])
def test_it_is_documented(package: ModuleType, name: str) -> None:
    item = getattr(package, name)
    if inspect.isclass(item) or inspect.isfunction(item):
        assert item.__doc__, f"{name} has no docstring"
        # The docstring that dataclasses write if there is none.
        assert not item.__doc__.startswith(f"{name}("), f"{name} has no docstring"


@pytest.mark.parametrize("kind", CITED, ids=lambda kind: kind.__name__)
def test_it_cites_its_source(kind: type) -> None:
    assert CITATION.search(kind.__doc__ or ""), f"the docstring of {kind.__name__} cites no paper and gives no formula"
