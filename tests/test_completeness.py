"""Every public name of the learning core is tested and documented; models and strategies say where they come from."""

import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

from tkg_incremental import metrics, models, sampling, strategies, training
from tkg_incremental.strategies import View

PACKAGES: list[ModuleType] = [metrics, models, sampling, strategies, training]
EVERYTHING = [(package, name) for package in PACKAGES for name in package.__all__]

# Where something is from: a paper, a formula of one, or a class that says so itself.
CITATION = re.compile(r"<https?://|:math:|\.\. math::|:class:`~?tkg_incremental\.")
# What others are built from, and views, which pick rows and compute nothing.
BASES = {"Answer", "Decoder", "Encoder", "Step", "Strategy", "Term"}
CITED = [
    kind
    for package in (models, strategies)
    for name in package.__all__
    if inspect.isclass(kind := getattr(package, name)) and name not in BASES and not issubclass(kind, View)
]


@pytest.mark.parametrize(("package", "name"), EVERYTHING, ids=[name for _, name in EVERYTHING])
def test_it_is_tested(package: ModuleType, name: str) -> None:
    folder = Path(__file__).parent / package.__name__.rpartition(".")[2]
    texts = (path.read_text(encoding="utf-8") for path in folder.glob("test_*.py"))
    assert any(re.search(rf"\b{name}\b", text) for text in texts), f"{name} has no test in {folder.name}/"


@pytest.mark.parametrize(("package", "name"), EVERYTHING, ids=[name for _, name in EVERYTHING])
def test_it_is_documented(package: ModuleType, name: str) -> None:
    item = getattr(package, name)
    if inspect.isclass(item) or inspect.isfunction(item):
        assert item.__doc__, f"{name} has no docstring"
        # What dataclasses write when there is none.
        assert not item.__doc__.startswith(f"{name}("), f"{name} has no docstring"


@pytest.mark.parametrize("kind", CITED, ids=lambda kind: kind.__name__)
def test_it_says_where_it_comes_from(kind: type) -> None:
    assert CITATION.search(kind.__doc__ or ""), f"the docstring of {kind.__name__} cites no paper and gives no formula"
