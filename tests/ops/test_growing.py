import torch

from tkg_incremental.ops.growing import Growing


def test_growing() -> None:
    values = Growing(torch.empty(0, 2))
    wanted = torch.empty(0, 2)
    for size in (3, 1, 40, 0, 2):
        more = torch.full((size, 2), float(size))
        values.append(more)
        wanted = torch.cat([wanted, more])
        assert torch.equal(values.values, wanted)
        assert len(values) == len(wanted)
    values.grow_to(50)
    assert torch.equal(values.values, torch.cat([wanted, torch.zeros(4, 2)]))
    values.grow_to(10)
    assert len(values) == 50
    rows = values[torch.tensor([1, 45])]
    values[torch.tensor([1, 45])] = rows + 1
    assert values.values[[1, 45]].tolist() == [[4, 4], [3, 3]]
    values[slice(None)] = values[slice(None)].add_(1)
    assert values.values[1].tolist() == [5, 5]
    values[slice(None)] = torch.ones(50, 2)
    assert bool((values.values == 1).all())


def test_growing_copies_its_initial_values() -> None:
    table = torch.arange(12.0).view(6, 2)
    values = Growing(table)
    table.zero_()
    assert values.values[5].tolist() == [10, 11]


def test_one_by_one() -> None:
    values = Growing(torch.arange(3))
    for number in range(3, 40):
        values.append(torch.tensor([number]))
    assert values.values.tolist() == list(range(40))
    assert len(values) == 40
