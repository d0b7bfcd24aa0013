import pytest
import torch

from tkg_incremental.data import TimeAxis, Vocabulary
from tkg_incremental.data.catalog import Catalog


@pytest.mark.parametrize(
    ("axis", "kind"),
    [
        (TimeAxis.from_range("2020-01-01", "2024-12-31", "day"), range),
        (TimeAxis.from_instants([2001, 2002, 2003]), range),
        (TimeAxis((2001, 2003), (2002, 2003), "year"), tuple),
        (TimeAxis((5,), (5,), "index"), range),
    ],
)
def test_round_trip(axis: TimeAxis, kind: type) -> None:
    entities = Vocabulary(["France", "United States"], "entity", {"USA": "United States"})
    facts = torch.tensor([[0, 0, 1, 0, 0]], dtype=torch.int32)
    catalog = Catalog(
        entities, Vocabulary(["likes"], "relation"), axis, torch.tensor([0, 0]), facts, 0, {"known": None}
    )
    found = Catalog.from_state(catalog.state())
    assert found.axis == axis
    assert type(found.axis.first) is kind
    assert found.entities.index("USA") == 1
    assert found.relations.names == ["likes"]
    assert torch.equal(found.facts, facts)
    assert found.facts.dtype == torch.int32
    assert (found.last_step, found.calibration) == (0, {"known": None})


def test_a_range_takes_no_room() -> None:
    axis = TimeAxis.from_range("1990-01-01", "2024-12-31", "day")
    names = Vocabulary(["a"])
    state = Catalog(names, names, axis, torch.zeros(1), torch.empty(0, 5, dtype=torch.int32)).state()
    assert state["axis"]["first"] == {"start": axis.first[0], "stop": axis.first[-1] + 1}
