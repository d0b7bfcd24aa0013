"""Calibrations, judged by plain Python."""

import itertools
import math
import random

import pytest
import torch

from tkg_incremental.metrics.calibration import (
    AnswerCalibration,
    Calibration,
    brier_score,
    expected_calibration_error,
    interpolate,
    isotonic_knots,
    isotonic_regression,
    logistic_regression,
    reliability,
)


def drawn(seed: int, size: int = 200) -> tuple[list[float], list[int]]:
    rng = random.Random(seed)
    return [rng.random() for _ in range(size)], [rng.randrange(2) for _ in range(size)]


@pytest.mark.parametrize("seed", range(3))
def test_brier_score(seed: int) -> None:
    p, y = drawn(seed)
    expected = sum((a - b) ** 2 for a, b in zip(p, y, strict=True)) / len(p)
    assert brier_score(torch.tensor(p, dtype=torch.double), torch.tensor(y)) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bins", [1, 5, 10])
def test_expected_calibration_error(seed: int, bins: int) -> None:
    p, y = drawn(seed)
    p[0], p[1] = 0.0, 1.0
    expected = 0.0
    for number in range(bins):
        inside = [i for i, value in enumerate(p) if min(int(value * bins), bins - 1) == number]
        if inside:
            mean, share = sum(p[i] for i in inside) / len(inside), sum(y[i] for i in inside) / len(inside)
            expected += len(inside) / len(p) * abs(mean - share)
    values = torch.tensor(p, dtype=torch.double), torch.tensor(y)
    assert expected_calibration_error(*values, bins) == pytest.approx(expected, abs=1e-5)
    assert sum(count for _, _, count in reliability(*values, bins)) == len(p)


def brute_force_isotonic(values: list[float]) -> list[float]:
    """The best ascending sequence: the means of some cut into runs."""
    n, best = len(values), (float("inf"), [])
    for cuts in itertools.product([False, True], repeat=n - 1):
        ends = [i + 1 for i, cut in enumerate(cuts) if cut] + [n]
        fitted: list[float] = []
        for begin, end in zip([0, *ends], ends, strict=False):
            fitted += [sum(values[begin:end]) / (end - begin)] * (end - begin)
        if all(a <= b + 1e-12 for a, b in itertools.pairwise(fitted)):
            best = min(best, (sum((a - b) ** 2 for a, b in zip(values, fitted, strict=True)), fitted))
    return best[1]


@pytest.mark.parametrize("seed", range(20))
def test_isotonic_regression(seed: int) -> None:
    rng = random.Random(seed)
    values = [float(rng.randrange(4)) for _ in range(rng.randrange(1, 9))]
    runs = isotonic_regression(values)
    fitted = [mean for mean, length in runs for _ in range(length)]
    assert fitted == pytest.approx(brute_force_isotonic(values))
    assert all(a < b for (a, _), (b, _) in itertools.pairwise(runs))


def test_knots_ascend_and_are_never_certain() -> None:
    outputs = torch.linspace(0, 1, 300, dtype=torch.double)
    knots = isotonic_knots(outputs, (outputs > 0.5).double())
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in itertools.pairwise(knots))
    assert 0 < knots[0][1] < 0.05
    assert 0.95 < knots[-1][1] < 1


def test_interpolation() -> None:
    knots = [(0.2, 0.1), (0.4, 0.5), (0.8, 0.6)]
    values = torch.tensor([0.0, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0])
    assert interpolate(values, knots).tolist() == pytest.approx([0.1, 0.1, 0.3, 0.5, 0.55, 0.6, 0.6])
    assert interpolate(values, [(0.3, 0.7)]).tolist() == pytest.approx([0.7] * 7)


@pytest.mark.parametrize("isotonic", [False, True])
def test_a_fit_finds_the_probabilities(isotonic: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(6000, 2, generator=generator, dtype=torch.double)
    p = torch.sigmoid(2 * features[:, 0] - features[:, 1] - 1)
    labels = (torch.rand(6000, generator=generator) < p).double()
    fitted = Calibration.fit(features[:4000], labels[:4000], isotonic=isotonic)
    assert (fitted(features[4000:]) - p[4000:]).abs().mean() < 0.04
    assert expected_calibration_error(fitted(features[4000:]), labels[4000:]) < 0.04


@pytest.mark.parametrize("separable", [False, True])
def test_logistic_regression_finds_the_minimum(separable: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(300, 3, generator=generator, dtype=torch.double)
    y = (x[:, 0] + (0 if separable else 1) * torch.randn(300, generator=generator) > 0.3).double()
    found = logistic_regression(x, y, 1e-4)
    found.requires_grad_(True)
    loss = torch.nn.functional.binary_cross_entropy_with_logits(x @ found[:-1] + found[-1], y)
    (gradient,) = torch.autograd.grad(loss + 1e-4 * found[:-1].square().sum(), found)
    assert gradient.abs().max() < 1e-8
    assert found.abs().max() < (100 if separable else 5)


def test_features_without_variance_do_not_matter() -> None:
    features = torch.tensor([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [3.0, 1.0]])
    fitted = Calibration.fit(features, torch.tensor([0, 0, 1, 1]), isotonic=False)
    p = fitted(features)
    assert torch.isfinite(p).all()
    assert (p.diff() > 0).all()


def test_labels_of_one_kind_cannot_be_fitted() -> None:
    with pytest.raises(ValueError, match="labels must contain facts that hold and facts that do not"):
        Calibration.fit(torch.zeros(3, 1), torch.zeros(3))


def test_round_trip() -> None:
    part = Calibration((1.0, -2.0), 0.5, ((0.1, 0.2), (0.6, 0.7)))
    for both in (AnswerCalibration(), AnswerCalibration(part), AnswerCalibration(part, Calibration((1.0,), 0.0))):
        assert AnswerCalibration.from_dict(both.to_dict()) == both


def test_predictions_do_not_exceed_their_limits() -> None:
    features, limits = torch.tensor([[-1.0], [1.0], [3.0]]), torch.tensor([0.5, 0.5, torch.inf], dtype=torch.double)
    found = AnswerCalibration(Calibration((1.0,), 0.0)).predict(features, limits)
    assert found.tolist() == pytest.approx([1 / (1 + math.e), 0.5, 1 / (1 + math.exp(-3))], abs=1e-6)
    assert AnswerCalibration().predict(features, limits).isnan().all()


def test_the_mean_of_a_logistic_regression_is_that_of_the_labels() -> None:
    """Of a fit with a bias, by maximum likelihood."""
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(500, 2, generator=generator, dtype=torch.double) * torch.tensor([1.0, 9.0]) + 5
    labels = (torch.rand(500, generator=generator) < torch.sigmoid(2 * features[:, 0] - 7)).long()
    fitted = Calibration.fit(features, labels, isotonic=False)
    assert float(fitted(features).mean()) == pytest.approx(float(labels.double().mean()), abs=1e-4)


def test_reliability_has_ten_bins_and_six_digits() -> None:
    probabilities = torch.tensor([0.61, 0.615, 0.62, 0.705], dtype=torch.double)
    rows = reliability(probabilities, torch.tensor([0, 1, 1, 1]))
    assert rows == [(0.615, pytest.approx(2 / 3), 3), (0.705, 1.0, 1)]
    thirds = reliability(torch.tensor([0.1, 0.1, 0.12], dtype=torch.double), torch.tensor([0, 1, 1]))
    assert thirds[0][0] == 0.106667
    # In eleven bins 0.905 and 0.915 are apart.
    close = torch.tensor([0.905, 0.915], dtype=torch.double)
    assert expected_calibration_error(close, torch.tensor([1, 0])) == pytest.approx(abs(0.91 - 0.5))
