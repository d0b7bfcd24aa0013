"""The kernels in C give what the same functions in torch give, which the oracles judge."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tkg_incremental.datasets import SyntheticTKG
from tkg_incremental.loader import NegativeSampler
from tkg_incremental.models import DE, HyTE
from tkg_incremental.ops import native
from tkg_incremental.ops.one_vs_all import masked_softmax
from tkg_incremental.ops.ranking import RankedAnswers, count_ranks
from tkg_incremental.ops.rows import pull_back, rows_not_zero
from tkg_incremental.ops.scores import Similarity, all_scores, sampled_scores
from tkg_incremental.optim import DenseAdam, RowAdam

needs_kernels = pytest.mark.skipif(not native.is_available(), reason="the kernels were not compiled")
SIZES = st.integers(1, 37)
few = settings(max_examples=25)


def test_the_kernels_were_compiled() -> None:
    if os.environ.get("CI") is None and not native.is_available():
        pytest.skip("no compiler was there when the package was installed")
    assert native.is_available()


@needs_kernels
def test_kernels_of_other_sources_are_not_used(tmp_path: Path) -> None:
    kernels, folder = native._KERNELS, Path(native.__file__).parent
    assert kernels is not None
    assert native._fits(kernels, tmp_path)  # an installation has no sources
    for path in folder.glob("*.[ch]"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    assert native._fits(kernels, tmp_path)
    (tmp_path / "rows.c").write_bytes(b"/* a change */")
    assert not native._fits(kernels, tmp_path)


@pytest.fixture(scope="module", params=[1, 3], ids=["one thread", "three threads"])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def in_torch(work: Callable[[], Any]) -> Any:
    """What ``work`` gives without the kernels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "_KERNELS", None)
        return work()


def draw_vectors(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@needs_kernels
@pytest.mark.parametrize("similarity", ["dot", "l1"])
@few
@given(queries=SIZES, samples=SIZES, rows=st.integers(1, 9), width=SIZES, seed=st.integers(0, 5))
def test_sampled_scores(
    threads: int, similarity: Similarity, queries: int, samples: int, rows: int, width: int, seed: int
) -> None:
    query = draw_vectors(queries, width, seed=seed).requires_grad_()
    table = draw_vectors(rows, width, seed=seed + 1)
    table[0] = query[0].detach()  # a distance of 0, which has the gradient 0
    table.requires_grad_()
    index = torch.randint(rows, (queries, samples), generator=torch.Generator().manual_seed(seed))
    weights = draw_vectors(queries, samples, seed=seed + 2)

    def work() -> tuple[Tensor, ...]:
        scores = sampled_scores(query, table, index, similarity)
        return scores, *torch.autograd.grad((scores * weights).sum(), (query, table))

    for found, wanted in zip(work(), in_torch(work), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-4)


@needs_kernels
def test_a_score_has_the_same_bits_wherever_it_stands(threads: int) -> None:
    query, table = draw_vectors(5, 30), draw_vectors(3, 30)
    for kind in ("dot", "l1"):
        scores = sampled_scores(query, table, torch.ones(5, 2, dtype=torch.long), kind)  # type: ignore[arg-type]
        assert (scores == scores[:, :1]).all()
    distances = all_scores(query, table[[1, 0, 1, 2, 1, 1, 0, 1]], "l1")
    assert (distances[:, [0, 2, 4, 5, 7]] == distances[:, :1]).all()


@needs_kernels
@few
@given(queries=st.integers(0, 150), rows=st.integers(1, 2100), width=st.integers(1, 19))
def test_distances(threads: int, queries: int, rows: int, width: int) -> None:
    query, table = draw_vectors(queries, width), draw_vectors(rows, width, seed=1)
    expected = in_torch(lambda: all_scores(query, table, "l1"))
    torch.testing.assert_close(all_scores(query, table, "l1"), expected, rtol=1e-5, atol=1e-4)


@needs_kernels
@pytest.mark.parametrize("scale", [1, 500], ids=["small angles", "angles past the polynomial"])
@few
@given(channels=st.integers(1, 70), share=st.floats(0.2, 1), sizes=st.lists(st.integers(1, 11), min_size=1, max_size=4))
def test_diachronic_vectors(threads: int, scale: int, channels: int, share: float, sizes: list[int]) -> None:
    share = max(share, 1 / channels)
    generator = torch.Generator().manual_seed(channels)
    encoder = DE(13, 2, 90, channels, "distmult", share, seed=channels)
    with torch.no_grad():
        # So few bits that an angle is exact, in whichever way it is taken.
        encoder.frequency.mul_(64).round_().mul_(scale / 64)
        encoder.phase.mul_(64).round_().div_(64)
    order = torch.randperm(13, generator=generator)
    steps = list(range(60, 60 + len(sizes)))
    weights = draw_vectors(sum(sizes), channels)

    def work() -> tuple[Tensor, ...]:
        vectors = encoder.encode_known(order, steps, sizes)
        tables = [encoder.get_parameter(name) for name in ("entity_vectors", "frequency", "phase")]
        return vectors, *torch.autograd.grad((vectors * weights).sum(), tables)

    for found, wanted in zip(work(), in_torch(work), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-4)


@needs_kernels
@few
@given(width=SIZES, sizes=st.lists(st.integers(1, 11), min_size=1, max_size=4))
def test_hyperplanes(threads: int, width: int, sizes: list[int]) -> None:
    generator = torch.Generator().manual_seed(width)
    width = max(width, 2)  # the hyperplane of a line is a point
    encoder = HyTE(13, 2, 9, width, seed=width)
    order = torch.randperm(13, generator=generator)
    weights = draw_vectors(sum(sizes), width)

    def work() -> tuple[Tensor, ...]:
        vectors = encoder.encode_known(order, list(range(3, 3 + len(sizes))), sizes)
        tables = encoder.entity_vectors, encoder.normals
        return vectors, *torch.autograd.grad((vectors * weights).sum(), tables)

    for found, wanted in zip(work(), in_torch(work), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-4)


@needs_kernels
def test_sines_are_exact_to_the_last_bits(threads: int) -> None:
    encoder = DE(4096, 1, 1, 1, "distmult", 1.0)
    with torch.no_grad():
        encoder.entity_vectors.fill_(1)
        encoder.frequency.fill_(0)
        encoder.phase[:, 0] = torch.linspace(-4000, 4000, 4096)
        found = encoder.encode_known(torch.arange(4096), [0], [4096])
    assert (found.double() - encoder.phase.detach().double().sin()).abs().max() < 3e-7


@needs_kernels
def test_negatives_are_the_same_to_the_number(threads: int) -> None:
    line = SyntheticTKG(num_entities=40, num_relations=2, num_steps=8).timeline
    sampler, quads = NegativeSampler(line), line.observed.quads()

    def work() -> Tensor:
        return sampler.draw(quads, 60, torch.Generator().manual_seed(1)).entities

    assert torch.equal(work(), in_torch(work))


@needs_kernels
@few
@given(queries=st.integers(1, 6), rows=st.integers(1, 40), answers=st.integers(0, 12), seed=st.integers(0, 9))
def test_counts(threads: int, queries: int, rows: int, answers: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    query = torch.randint(-2, 3, (queries, 3), generator=generator).float()  # many ties
    table = torch.randint(-2, 3, (rows, 3), generator=generator).float()
    table[torch.rand(rows, generator=generator) < 0.2] *= torch.inf  # infinite scores, and some that are no numbers
    owner = torch.randint(queries, (answers,), generator=generator).sort().values
    column = torch.randint(rows, (answers,), generator=generator)
    ignored = torch.arange(answers), torch.randint(rows, (answers,), generator=generator)

    def work() -> Any:
        return count_ranks(RankedAnswers(query, owner, column, ignored), table, "dot")

    assert torch.equal(work(), in_torch(work))


@needs_kernels
@few
@given(rows=st.integers(0, 50), width=SIZES, seed=st.integers(0, 9))
def test_rows_that_are_not_zero(threads: int, rows: int, width: int, seed: int) -> None:
    matrix = draw_vectors(rows, width, seed=seed) * (draw_vectors(rows, width, seed=seed + 1) > 1.5)
    matrix.flatten()[:1] = torch.nan
    found = rows_not_zero(matrix)
    assert torch.equal(found, in_torch(lambda: rows_not_zero(matrix)))


@needs_kernels
@few
@given(rows=SIZES, width=SIZES, seed=st.integers(0, 99))
def test_rows_are_pulled_back(threads: int, rows: int, width: int, seed: int) -> None:
    table, former, gradient = (draw_vectors(rows, width, seed=seed + i) for i in range(3))
    index = torch.arange(0, rows, 2)

    def work() -> Tensor:
        pull_back(pulled := gradient.clone(), table, former, index, 1.5)
        return pulled

    torch.testing.assert_close(work(), in_torch(work))
    assert torch.equal(work()[1::2], gradient[1::2])


@needs_kernels
@pytest.mark.parametrize("options", [{}, {"weight_decay": 0.1, "anchor_weight": 2.0, "max_norm": 1e9}], ids=str)
def test_rows_are_moved(threads: int, options: dict[str, float]) -> None:
    def work() -> dict[str, Tensor]:
        model = DE(20, 2, 5, 12)
        model.reset_parameters(1)
        optimizer, generator = RowAdam(model.tables(), **options), torch.Generator().manual_seed(2)
        for touched in (20, 6, 9, 20):  # all rows, which are then in the order of their slots, or some
            optimizer.zero_grad()
            for table in model.tables().values():
                some = torch.randperm(len(table), generator=generator)[:touched]
                table.grad = torch.zeros_like(table)
                table.grad[some] = torch.randn(len(some), table.size(1), generator=generator)
            optimizer.step()
        return {name: table.detach() for name, table in model.tables().items()}

    found, wanted = work(), in_torch(work)
    for name, table in found.items():
        torch.testing.assert_close(table, wanted[name], rtol=1e-4, atol=1e-6)


@needs_kernels
@pytest.mark.parametrize("options", [{}, {"weight_decay": 0.1, "anchor_weight": 2.0, "max_norm": 1e9}], ids=str)
def test_tables_are_moved(threads: int, options: dict[str, float]) -> None:
    def work() -> dict[str, Tensor]:
        model = DE(900, 2, 5, 12)  # several stretches of a thread
        model.reset_parameters(1)
        anchors = {name: (torch.arange(0, len(t), 2), t.detach().clone()) for name, t in model.tables().items()}
        optimizer = DenseAdam(model.tables(), anchors=anchors, **options)
        generator = torch.Generator().manual_seed(2)
        for _ in range(4):
            for table in model.parameters():
                table.grad = torch.randn(table.shape, generator=generator)
            optimizer.step()
        return {name: table.detach() for name, table in model.tables().items()}

    found, wanted = work(), in_torch(work)
    for name, table in found.items():
        torch.testing.assert_close(table, wanted[name], rtol=1e-4, atol=1e-6)


@needs_kernels
def test_what_has_decayed_is_zero(threads: int) -> None:
    model = DE(900, 2, 5, 12)
    for table in model.parameters():
        table.data.fill_(1e-37)
    optimizer, tiny = DenseAdam(model.tables()), torch.finfo(torch.float).tiny
    for _ in range(60):
        optimizer.zero_grad()
        optimizer.step()
    for table in model.parameters():
        state = optimizer.state[table]
        for numbers in (table.detach(), state["exp_avg"], state["exp_avg_sq"]):
            assert ((numbers == 0) | (numbers.abs() >= tiny)).all()
    assert torch.tensor(1e-39) * 1 > 0  # elsewhere such numbers count as before


def test_tensors_of_other_kinds_go_to_torch() -> None:
    assert not native.takes(torch.zeros(1, dtype=torch.double))
    assert not native.takes(torch.zeros(1), torch.zeros(1, device="meta"))


@needs_kernels
@few
@given(rows=SIZES, width=SIZES, spread=st.sampled_from([1.0, 30.0, 1000.0]), data=st.data())
def test_masked_softmax(threads: int, rows: int, width: int, spread: float, data: st.DataObject) -> None:
    places = data.draw(st.lists(st.integers(0, rows * width - 1), unique=True))
    masked = torch.tensor(sorted(places), dtype=torch.long)
    scores, true = draw_vectors(rows, width, seed=width) * spread, draw_vectors(rows, seed=rows) * spread
    ours, theirs = scores.clone(), scores.clone()
    peak, total = masked_softmax(ours, true, masked)
    wanted_peak, wanted_total = in_torch(lambda: masked_softmax(theirs, true, masked))
    assert torch.equal(peak, wanted_peak)
    assert not ours.view(-1)[masked].any()
    torch.testing.assert_close(total, wanted_total)
    torch.testing.assert_close(ours, theirs, atol=1e-30, rtol=1e-5)
