import math

import pytest

from tkg_incremental.datasets import SyntheticTKG
from tkg_incremental.metrics import Evaluator
from tkg_incremental.models import TComplEx
from tkg_incremental.training.final_metrics import add_final_metrics
from tkg_incremental.training.result import Result


@pytest.fixture(scope="module")
def dataset() -> SyntheticTKG:
    return SyntheticTKG(num_entities=12, num_relations=2, num_steps=6, facts_per_step=12, added_per_step=3)


@pytest.mark.parametrize("named", [True, False])
def test_what_is_added(dataset: SyntheticTKG, named: bool) -> None:
    """Without names there are no answers, and so no probabilities."""
    model, result = TComplEx.from_dataset(dataset, 8), Result("d", "m", "s", 0, 6)
    if not named:
        model.catalog = None
    add_final_metrics(result, model, Evaluator(dataset.timeline), 5, seed=0)
    assert result.time_prediction.keys() >= {"time MRR", "aeIOU", "MRR open left"}
    assert bool(result.calibration) == bool(result.type_constrained) == named
    assert math.isfinite(result.known_ranked_first) == named
    if named:
        assert model.catalog is not None
        assert model.catalog.calibration is not None


def test_sharded_tables_have_none(dataset: SyntheticTKG) -> None:
    model, result = TComplEx.from_dataset(dataset, 8), Result("d", "m", "s", 0, 6)
    model.is_sharded = True
    add_final_metrics(result, model, Evaluator(dataset.timeline), 5, seed=0)
    assert not result.time_prediction
    assert not result.calibration
