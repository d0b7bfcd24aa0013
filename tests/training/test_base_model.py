from typing import Any

import pytest
import torch

from tkg_incremental.data import TimeAxis
from tkg_incremental.datasets import TKGDataset
from tkg_incremental.datasets.base import Graph
from tkg_incremental.models import DE, TComplEx, TKGModel
from tkg_incremental.strategies import CrossEntropy, History
from tkg_incremental.training import BaseSettings, base_model
from tkg_incremental.training.base_model import base_strategy


class Long(TKGDataset):
    """Six facts that hold at sixty steps each."""

    def build(self) -> Graph:
        train = torch.tensor([(head, 0, (head + 1) % 6, 0, 59) for head in range(6)])
        splits = {"train": train, "val": train[:0], "test": train[:1]}
        return Graph(splits, list("abcdef"), ["r"], TimeAxis.from_instants(range(60), "index"))


def term_of(kind: type[TKGModel], **settings: Any) -> CrossEntropy:
    dataset = Long()
    (term,) = base_strategy(kind.from_dataset(dataset, 4), dataset.timeline, 41, BaseSettings(**settings)).terms
    assert isinstance(term, CrossEntropy)
    return term


@pytest.mark.parametrize(("visits", "per_fact"), [(None, 42), (2, 2), ("auto", 10)])
def test_visits(visits: Any, per_fact: int) -> None:
    view = term_of(DE, visits=visits).view
    assert isinstance(view, History)
    assert len(view.select(Long().timeline, 41, torch.Generator())) == 6 * per_fact


def test_visits_of_many_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    for quads, visits in ((25, 4), (3, 1)):
        monkeypatch.setattr(base_model, "_QUADS_PER_EPOCH", quads)
        assert term_of(DE).view == History(visits)


def test_negatives(monkeypatch: pytest.MonkeyPatch) -> None:
    assert term_of(DE).negatives == "all"
    assert term_of(DE, negatives=3, shared=True) == CrossEntropy(History(10), 3, True)
    monkeypatch.setattr(base_model, "_ONE_VS_ALL_PAIRS", 6)
    assert term_of(DE).negatives == 50
    assert term_of(TComplEx).negatives == "all"  # its entities do not depend on time
