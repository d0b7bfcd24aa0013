from pathlib import Path

import pytest
import torch

from tkg_incremental.models import DE, ZOO, TKGModel, load_model, register_model, save_model

QUADS = torch.tensor([(0, 0, 1, 0), (3, 1, 3, 2)])


@pytest.mark.parametrize("name", ZOO)
def test_seeds(name: str) -> None:
    first, same, other = (ZOO[name](5, 2, 3, 8, seed=seed).eval()(QUADS) for seed in (1, 1, 2))  # type: ignore[call-arg]
    assert torch.equal(first, same)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("name", ZOO)
def test_round_trip(name: str, tmp_path: Path) -> None:
    model = ZOO[name](5, 2, 3, 8, seed=1).eval()  # type: ignore[call-arg]
    assert type(model).__name__ == name
    save_model(model, tmp_path / "model.pt")
    loaded = load_model(tmp_path / "model.pt")
    assert type(loaded) is type(model)
    assert loaded.options == model.options
    assert torch.equal(loaded(QUADS), model(QUADS))


def test_a_class_of_ones_own(tmp_path: Path) -> None:
    class Own(DE):
        pass

    try:
        assert register_model(Own) is Own
        assert register_model(Own) is Own  # again
        model = Own(5, 2, 3, 8)
        save_model(model, tmp_path / "model.pt")
        loaded = load_model(tmp_path / "model.pt")
        assert type(loaded) is Own
        assert torch.equal(loaded(QUADS), model(QUADS))
    finally:
        ZOO.pop("Own", None)


def test_names_are_unique() -> None:
    taken = type("DE", (TKGModel,), {})
    with pytest.raises(ValueError, match=r"model must have a name that is not in the zoo \(got 'DE'\)"):
        register_model(taken)
    assert ZOO["DE"] is DE
