"""How each table of the page of results is laid out, as in the paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from paper_results import METRICS, Key

# They learn from many times the data, or from the future, and are not compared with the others.
SKYLINES = ("FB", "FB_future", "FB Adagrad")
BEST_REPLAY = {"Wikidata12k": "frequency", "YAGO11k": "inverse"}


class Layout(NamedTuple):
    """The title of a table, the columns that name a row, and the metrics that it shows."""

    title: str
    columns: tuple[str, ...]
    name: Callable[[Key], tuple[str, ...]]
    metrics: Sequence[str] = METRICS


def by_strategy(key: Key) -> tuple[str, ...]:
    return (f"{key.dataset}, {key.model}", key.cell)


def _by_replay(key: Key) -> tuple[str, ...]:
    return (key.dataset, _sampling(key.cell))


def _by_deletion(key: Key) -> tuple[str, ...]:
    is_tie = key.cell.startswith("TIE")
    return (
        key.dataset,
        "✓" * (is_tie and "no replay" not in key.cell),
        "✓" * (is_tie and "no deletion" not in key.cell),
    )


def _by_facts(key: Key) -> tuple[str, ...]:
    strategy, _, facts = key.cell.partition(" ")
    return (key.dataset, strategy, facts or "added")


def _by_size(key: Key) -> tuple[str, ...]:
    words = key.cell.split()
    return (f"{int(words[2]):,}", words[4]) if "of" in words else ("10,000", "10")


def _by_projection(key: Key) -> tuple[str, ...]:
    return (key.dataset, _sampling(key.cell), "✓" * key.cell.startswith("A-GEM"))


def _sampling(cell: str) -> str:
    return "none" if cell.endswith("no replay") else cell.split()[1]


TABLES = {
    2: Layout("Table 2: main comparison", ("dataset, model", "strategy"), by_strategy),
    3: Layout("Table 3: replay sampling of TIE, DE", ("dataset", "replay"), _by_replay),
    4: Layout("Table 4: replay and deleted facts, DE", ("dataset", "replay", "deleted"), _by_deletion),
    5: Layout("Table 5: added or all facts, DE", ("dataset", "strategy", "facts"), _by_facts, ("C@10", "RRD", "A@10")),
    6: Layout("Table 6: number of replayed quads, Wikidata12k, DE", ("quads", "steps"), _by_size),
    7: Layout("Table 7: length of the window, Wikidata12k, DE", ("quads", "steps"), _by_size),
    8: Layout("Table 8: A-GEM, DE", ("dataset", "replay", "A-GEM"), _by_projection),
}
BEYOND = Layout("Beyond the paper", ("dataset, model", "strategy"), by_strategy)

# Rows of the table in README.
MAIN_ROWS = [
    Key(dataset, "DE", cell)
    for dataset, replay in BEST_REPLAY.items()
    for cell in ("FT", "TR", f"TIE {replay}", f"TIE {replay} warm-up", "Supersede", "FB", "FB_future")
]
# Rows that the paper does not have.
BEYOND_ROWS = [
    Key(dataset, "DE", cell)
    for dataset, replay in BEST_REPLAY.items()
    for cell in (
        *("nothing learnt", "FT warm-up", "TR warm-up", f"TIE {replay} warm-up", "FT rowwise", "TR rowwise"),
        *("FT 1-vs-all", "FT shared negatives", "FT pool of 1000", f"TIE {replay} pool of 1000"),
        *("Supersede", "Supersede contrast 4", "Supersede contrast 4 without warm-up"),
        "Supersede contrast 6 without warm-up",
    )
]
# The same strategies with the settings of models of product form.
ADAGRAD_ROWS = [
    Key(dataset, model, f"{cell} Adagrad")
    for dataset in BEST_REPLAY
    for model in ("DE", "HyTE")
    for cell in ("FT", "TR", "TIE", "Supersede", "FB")
]
# The same strategies from base models that differ in their seed only.
BASES = {
    Key(dataset, "DE", cell): [
        Key(dataset, "DE", f"{cell}{suffix}") for suffix in ("", " from base model 1", " from base model 2")
    ]
    for dataset, replay in BEST_REPLAY.items()
    for cell in ("nothing learnt", "FT", "TR", f"TIE {replay}", "Supersede")
}
