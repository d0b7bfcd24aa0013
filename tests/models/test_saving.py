from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from learning import MODELS, small_model

from tkg_incremental.datasets import SyntheticTKG
from tkg_incremental.models import DE, Static, TKGModel, load_model, save_model
from tkg_incremental.models.saving import can_save
from tkg_incremental.storage import CorruptFileError, load_verified, save_verified

ROWS = torch.tensor([(0, 0, 1, 0), (3, 1, 3, 2)])


@pytest.mark.parametrize("name", MODELS)
def test_round_trip(name: str, tmp_path: Path) -> None:
    model = small_model(name, 5, 2, 3).float()
    model.expand(num_entities=6)
    save_model(model, tmp_path / "model.pt")
    loaded = load_model(tmp_path / "model.pt")
    assert type(loaded) is type(model)
    assert str(loaded) == str(model)
    assert loaded.options == model.options
    assert loaded.catalog is None
    assert not loaded.training
    assert torch.equal(loaded(ROWS), model(ROWS))


def test_names_come_along(tmp_path: Path) -> None:
    dataset = SyntheticTKG(num_entities=20, num_relations=2, num_steps=3)
    model = DE.from_dataset(dataset, hidden_channels=4, temporal_share=0.25, max_frequency=0.5)
    save_model(model, tmp_path / "model.pt")
    loaded = load_model(tmp_path / "model.pt", device="cpu")
    assert loaded.options == model.options
    question = ("entity 3", "relation 1", None, 2)
    assert loaded.query(*question) == model.query(*question)
    assert len(loaded.query(*question)) == 10


def test_a_file_of_something_else(tmp_path: Path) -> None:
    for content in ({"model": "DE"}, [1, 2], None):
        save_verified(content, tmp_path / "other.pt")
        with pytest.raises(CorruptFileError, match="it is no saved model"):
            load_model(tmp_path / "other.pt")


def test_a_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    save_model(DE(5, 2, 3, 4), path)
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(CorruptFileError):
        load_model(path)


# Models that are not in the zoo ------------------------------------------------------------------------


def own_model(hidden_channels: int = 4) -> TKGModel:
    return type("Own", (Static,), {})(5, 2, 3, hidden_channels, "transe")


def test_a_model_of_ones_own(tmp_path: Path) -> None:
    model = own_model()
    assert can_save(DE(5, 2, 3, 4))
    assert not can_save(model)
    save_model(model, tmp_path / "own.pt")
    mine = own_model()
    mine.tables()["entity_vectors"].data.zero_()
    loaded = load_model(tmp_path / "own.pt", model=mine)
    assert loaded is mine
    assert not loaded.training
    assert torch.equal(loaded(ROWS), model(ROWS))
    with pytest.raises(TypeError, match=r"is a 'Own', which is not in the zoo \(.*\): construct one of the same"):
        load_model(tmp_path / "own.pt")


def test_a_model_of_other_sizes(tmp_path: Path) -> None:
    save_model(own_model(), tmp_path / "own.pt")
    with pytest.raises(CorruptFileError, match=r"entity_vectors must be torch.float32 \[5, 8\] \(got .* \[5, 4\]\)"):
        load_model(tmp_path / "own.pt", model=own_model(8))


def test_names_are_loaded_into_a_model_of_ones_own(tmp_path: Path) -> None:
    dataset = SyntheticTKG(num_entities=20, num_relations=2, num_steps=3)
    model = DE.from_dataset(dataset, hidden_channels=4)
    save_model(model, tmp_path / "model.pt")
    loaded = load_model(tmp_path / "model.pt", model=DE(20, 2, 3, 4, seed=9))
    assert loaded.query("entity 3", "relation 1", None, 2) == model.query("entity 3", "relation 1", None, 2)


# Damaged contents in whole files -----------------------------------------------------------------------


def wrong_contents() -> dict[str, Callable[[dict[str, Any]], None]]:
    name = "entity_vectors"

    def change(value: Callable[[torch.Tensor], Any]) -> Callable[[dict[str, Any]], None]:
        return lambda state: state["weights"].update({name: value(state["weights"][name])})

    return {
        "missing weight": lambda state: state["weights"].pop(name),
        "other weight": lambda state: state["weights"].update(more=torch.zeros(1)),
        "no weights": lambda state: state.update(weights=None),
        "list of weights": lambda state: state.update(weights=[1]),
        "shape": change(lambda table: table[:-1].clone()),
        "width": change(lambda table: table[:, :-1].clone()),
        "transposed": change(lambda table: table.t().contiguous()),
        "dtype": change(lambda table: table.double()),
        "integers": change(lambda table: table.long()),
        "strides": change(lambda table: table.t().contiguous().t()),
        "expanded": change(lambda table: table[:1, :1].expand(*table.shape)),
        "number": change(lambda table: 1.0),
        "sparse": change(lambda table: table.to_sparse()),
        "no sizes": lambda state: state.update(sizes={}),
        "sizes of text": lambda state: state.update(sizes=dict.fromkeys(("entity", "relation", "time"), "5")),
        "negative sizes": lambda state: state["sizes"].update(entity=-5),
        "huge sizes": lambda state: state["sizes"].update(entity=10**12),
        "wrong sizes": lambda state: state["sizes"].update(entity=6),
        "unknown option": lambda state: state["options"].update(colour="red"),
        "wrong option": lambda state: state["options"].update(decoder="rescal"),
        "no options": lambda state: state.update(options=None),
        "catalog": lambda state: state.update(catalog={"entities": 1}),
        "list as catalog": lambda state: state.update(catalog=[1]),
    }


@pytest.mark.parametrize("what", wrong_contents())
def test_wrong_contents(tmp_path: Path, what: str) -> None:
    path = tmp_path / "model.pt"
    save_model(DE(5, 2, 3, 4), path)
    state = load_verified(path)
    wrong_contents()[what](state)
    save_verified(state, path)
    with pytest.raises(CorruptFileError):
        load_model(path)


@pytest.mark.parametrize("what", [name for name in wrong_contents() if "size" not in name and "option" not in name])
def test_wrong_contents_for_a_model_of_ones_own(tmp_path: Path, what: str) -> None:
    path = tmp_path / "model.pt"
    save_model(DE(5, 2, 3, 4), path)
    state = load_verified(path)
    wrong_contents()[what](state)
    save_verified(state, path)
    mine = DE(5, 2, 3, 4, seed=1)
    before = mine(ROWS)
    with pytest.raises(CorruptFileError):
        load_model(path, model=mine)
    if "catalog" not in what:
        assert torch.equal(mine(ROWS), before)  # nothing was copied
