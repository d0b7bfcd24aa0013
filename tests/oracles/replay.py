"""Algorithm 1 of the TIE paper: how likely a fact of the past is replayed."""

from __future__ import annotations

import math

from oracles.facts import Row

# λ of every pattern: which of head, rel, tail are given.
WEIGHTS = {
    (True, True, True): 2.0,
    (True, False, True): 1.5,
    (True, True, False): 1.3,
    (False, True, True): 1.3,
    (True, False, False): 1.0,
    (False, False, True): 1.0,
    (False, True, False): 0.0,
}


def replay_rates(
    buffer: list[Row],
    current: list[Row],
    time: int,
    window: int,
    inverse: bool,
    decay: float = 10.0,
    discount: float = 0.5,
) -> list[float]:
    """The rate ψ of every row of the buffer, with the released code's 1 added to fp."""
    rates = []
    for row in buffer:
        fp = 1.0
        for given, weight in WEIGHTS.items():
            historical = sum(matches(other, row, given) for other in buffer)
            present = sum(matches(other, row, given) for other in current)
            fp += weight * (math.log(historical + 1) + discount * window * math.log(present + 1))
        tp = math.exp((row[3] - time) / decay)
        rates.append(tp / fp if inverse else tp * fp)
    return rates


def matches(row: Row, pattern: Row, given: tuple[bool, bool, bool]) -> bool:
    return all(row[column] == pattern[column] for column in range(3) if given[column])
