from pathlib import Path

import pytest
import torch
from learning import MODELS, small_model

from tkg_incremental.datasets import SyntheticTKG
from tkg_incremental.models import DE, StaticEncoder, TKGModel, TransE, load_model, save_model
from tkg_incremental.storage import CorruptFileError, save_verified

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
    save_verified({"model": "Nobody's"}, tmp_path / "other.pt")
    with pytest.raises(CorruptFileError, match='expected a model of the zoo .DE, HyTE, Static; got "Nobody\'s".'):
        load_model(tmp_path / "other.pt")
    save_verified([1, 2], tmp_path / "list.pt")
    with pytest.raises(CorruptFileError, match="got 'list'"):
        load_model(tmp_path / "list.pt")


def test_a_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    save_model(DE(5, 2, 3, 4), path)
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(CorruptFileError):
        load_model(path)


def test_what_could_not_be_loaded_is_not_saved(tmp_path: Path) -> None:
    model = TKGModel(StaticEncoder(5, 2, 3, 4), TransE())
    with pytest.raises(TypeError, match="model must be one of the zoo, DE, HyTE, Static .got TKGModel."):
        save_model(model, tmp_path / "own.pt")
    assert not list(tmp_path.iterdir())
