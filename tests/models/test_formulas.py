"""The models with a file of their own: scores by their papers' formulas, and options that make them again."""

from __future__ import annotations

import pytest
import torch
from learning import stir
from oracles.complex_vectors import plus, rotated, times, to_complex

from tkg_incremental.models import TKGModel
from tkg_incremental.models.calendar_de import CalendarDE
from tkg_incremental.models.chronor import ChronoR
from tkg_incremental.models.tcomplex import TComplEx
from tkg_incremental.models.tero import TeRo
from tkg_incremental.models.tntcomplex import TNTComplEx
from tkg_incremental.models.ttranse import TTransE

MODELS: list[type[TKGModel]] = [CalendarDE, ChronoR, TComplEx, TNTComplEx, TTransE, TeRo]
ROWS = [(0, 1, 4, 2), (3, 0, 3, 6), (1, 1, 2, 0)]


def tables(model: TKGModel) -> dict[str, list[list[float]]]:
    return {name: table.tolist() for name, table in model.tables().items()}


def trilinear(head: list[float], rel: list[complex], tail: list[float]) -> float:
    product = times(times(to_complex(head), rel), [z.conjugate() for z in to_complex(tail)])
    return sum(product).real


def score(model: TKGModel, row: tuple[int, int, int, int]) -> float:
    given, (s, r, o, t) = tables(model), row
    head, tail = given["entity_vectors"][s], given["entity_vectors"][o]
    if isinstance(model, TTransE):
        rest = zip(head, given["relation_vectors"][r], given["time_vectors"][t], tail, strict=True)
        return -sum(abs(a + b + c - d) for a, b, c, d in rest)
    if isinstance(model, TeRo):
        head, tail = (rotated(vector, given["angles"][t]) for vector in (head, tail))
        parts = zip(*(map(to_complex, (head, given["relation_vectors"][r], tail))), strict=True)
        rest_ = [a + b - c.conjugate() for a, b, c in parts]
        return -sum(abs(z.real) + abs(z.imag) for z in rest_)
    rel, time = to_complex(given["relation_vectors"][r]), to_complex(given["time_vectors"][t])
    if isinstance(model, ChronoR):
        return trilinear(head, times(rel + time, to_complex(given["rotations"][r])), tail)
    rel = times(rel, time)
    if isinstance(model, TNTComplEx):
        rel = plus(rel, to_complex(given["static_relation_vectors"][r]))
    return trilinear(head, rel, tail)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (ChronoR, {"temporal_share": 0.25}),
        (ChronoR, {}),
        (TComplEx, {}),
        (TNTComplEx, {}),
        (TTransE, {}),
        (TeRo, {}),
    ],
)
def test_scores(kind: type[TKGModel], options: dict[str, float]) -> None:
    model = kind(5, 2, 7, 8, **options).double()  # type: ignore[call-arg, arg-type]
    stir(model, seed=2)
    rows = torch.tensor(ROWS)
    assert model(rows).tolist() == pytest.approx([score(model, row) for row in ROWS])
    for side, column in (("tail", 2), ("head", 0)):
        for row in rows:
            scores = model.score_all(row[None], side, model.candidate_vectors(torch.arange(5), int(row[3])))  # type: ignore[arg-type]
            torch.testing.assert_close(model.score_entities(row[None], side, torch.arange(5)), scores[0])  # type: ignore[arg-type]
            torch.testing.assert_close(scores[0, row[column]], model(row[None])[0])


@pytest.mark.parametrize("kind", MODELS)
def test_options_make_the_model_again(kind: type[TKGModel]) -> None:
    model = kind(5, 2, 7, hidden_channels=8, seed=3)  # type: ignore[call-arg, arg-type]
    again = kind(5, 2, 7, **model.options, seed=3)
    rows = torch.tensor(ROWS)
    assert torch.equal(again(rows), model(rows))
    other = kind(5, 2, 7, **model.options, seed=4)
    assert not torch.equal(other(rows), model(rows))
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(rows), model(rows))


def test_calendar_options() -> None:
    model = CalendarDE(5, 2, 7, 8, dropout=0.5, first_date="2014-01-01")
    assert CalendarDE(5, 2, 7, **model.options).options == model.options
    assert model.eval()(torch.tensor(ROWS)).shape == (3,)
    with pytest.raises(ValueError, match=r"decoder must be one of .* \(got 'rotate'\)"):
        CalendarDE(5, 2, 7, 8, decoder="rotate")


@pytest.mark.parametrize(
    ("kind", "options", "problem"),
    [
        (TComplEx, {"hidden_channels": 7}, r"hidden_channels must be even and at least 2 with ComplEx \(got 7\)"),
        (TNTComplEx, {"hidden_channels": 0}, r"hidden_channels must be even and at least 2 with ComplEx \(got 0\)"),
        (TeRo, {"hidden_channels": 3}, r"hidden_channels must be even .* with ConjugateTransE \(got 3\)"),
        (TeRo, {"max_angle": 0}, r"max_angle must be positive \(got 0\)"),
        (ChronoR, {"temporal_share": 0.0}, r"temporal_share must leave channels of 64 .* \(got 0.0\)"),
        (ChronoR, {"temporal_share": 1.0}, r"temporal_share must leave channels of 64 .* \(got 1.0\)"),
        (TTransE, {"p": 3}, r"p must be 1 or 2 \(got 3\)"),
    ],
)
def test_refused_options(kind: type[TKGModel], options: dict[str, float], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        kind(2, 2, 2, **options)  # type: ignore[arg-type]


def test_initial_angles() -> None:
    angles = TeRo(2, 2, 300, 8, max_angle=3.0).get_parameter("angles")
    assert 2.5 < angles.abs().max() <= 3.0
