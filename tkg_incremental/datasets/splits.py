"""Setting facts aside for validation and test: fact by fact, never row by row.

The rows of one fact are nearly the same question: one of them in train would answer the others in test.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch
from torch import Tensor

from tkg_incremental.data.timeline import SPLITS
from tkg_incremental.datasets.options import Holdout


def random_split(group: Tensor, holdout: Holdout) -> dict[str, Tensor]:
    """Draws groups of rows for validation and test.

    Args:
        group: ``[N]`` the group of each row, ``0 … G - 1``. A group is never divided.
        holdout: The shares of groups for validation and test, and the seed of the draw.

    Returns:
        For each split a mask ``[N]``.
    """
    groups = int(group.max()) + 1 if len(group) else 0
    num_val, num_test = round(groups * holdout.val), round(groups * holdout.test)
    split = torch.zeros(groups, dtype=torch.long)
    drawn = torch.randperm(groups, generator=torch.Generator().manual_seed(holdout.seed))
    split[drawn[:num_val]] = 1
    split[drawn[num_val : num_val + num_test]] = 2
    return {name: split[group] == index for index, name in enumerate(SPLITS)}


def supported_split(
    facts: Sequence[tuple[int, int, int, int, int]],
    movable: Sequence[bool],
    num_steps: int,
    val: float,
    test: float,
    seed: int,
) -> list[str]:
    """Draws facts for validation and test that the facts left in train support.

    Supported means: at every step of the fact, its head and its tail each occur in a train row of that step,
    and its relation in a train row of that step or an earlier one. Facts are tried in a random order, and
    moved if they are supported without themselves.

    Args:
        facts: Head, relation, tail, first and last step of each fact.
        movable: Which of them may leave train.
        num_steps: Number of steps.
        val: The share of facts for validation.
        test: The share of facts for test.
        seed: Seed of the order.

    Returns:
        The split of each fact.
    """
    num_entities = 1 + max((max(head, tail) for head, _, tail, _, _ in facts), default=-1)
    support = torch.zeros(num_entities, num_steps, dtype=torch.long)  # train facts of an entity at a step
    starts: dict[int, list[int]] = {}  # of the train facts of a relation
    for head, rel, tail, start, end in facts:
        for entity in {head, tail}:
            support[entity, start : end + 1] += 1
        starts.setdefault(rel, []).append(start)

    wanted = ["val"] * round(len(facts) * val) + ["test"] * round(len(facts) * test)
    splits = ["train"] * len(facts)
    order = [index for index in range(len(facts)) if movable[index]]
    draw = random.Random(seed)
    draw.shuffle(order)
    draw.shuffle(wanted)
    for index in order:
        if not wanted:
            break
        head, rel, tail, start, end = facts[index]
        span = slice(start, end + 1)
        rows = [support[entity, span] for entity in {head, tail}]
        # One more than itself everywhere: so what was set aside before is still supported, too.
        if end < start or any(int(row.min()) < 2 for row in rows):
            continue
        # The first fact of a relation stays, for the same reason.
        if min(starts[rel]) == start and starts[rel].count(start) == 1:
            continue
        for row in rows:
            row -= 1
        starts[rel].remove(start)
        splits[index] = wanted.pop()
    return splits
