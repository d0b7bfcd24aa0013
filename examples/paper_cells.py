"""The cells that can be run: those of the paper's Tables 2 to 8, which `results/tables.csv` names, and our own."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from paper_results import Key, read_tables

from tkg_incremental.strategies import (
    AGEM,
    FB,
    FT,
    TIE,
    TR,
    Contrast,
    Deleted,
    FBFuture,
    ReplayOptions,
    Strategy,
    Supersede,
    UnlikelihoodLoss,
)
from tkg_incremental.training.settings import NewEntities

Maker = Callable[[], Strategy]

# The replay sampling of Table 2.
BEST_REPLAY = {"Wikidata12k": "frequency", "YAGO11k": "inverse"}
# Negatives per query of cells with Adagrad, and what they replay: quads of all facts of the past.
NEGATIVES = 200
WHOLE_PAST = ReplayOptions("fact", size=8000, window="all", negatives=NEGATIVES)
# The released code also takes the mean of the distillation over the 51 candidates of a query.
DISTILL = 1 / 51


def published_tie(sampling: str | None, size: int | None = None, **options: Any) -> TIE:
    """TIE with the published weight of the distillation; :obj:`None` for no replay."""
    replay = None if sampling is None else ReplayOptions(sampling, size, distill=DISTILL)  # type: ignore[arg-type]
    return TIE(replay=replay, **options)


@dataclass(frozen=True)
class Cell:
    """One row of a table.

    Args:
        dataset: Name of the dataset.
        model: Name of the base model.
        name: Name of the row.
        strategy: Makes the strategy.
        tables: Numbers of the paper's tables that show the row; none for a row that the paper does not have.
        optimizer: ``"published"``, ``"rowwise"``, or ``"adagrad"``, with which the other settings differ, too: those
            of the models of product form, see `paper_protocol.py`.
        base_seed: Seed of the base model, which is shared by all cells and seeds that name it.
        negative_pool: Number of entities to draw the negatives of a step from; all by default.
        new_entities: Values of entities that appear after the base model; by default as in the released code.
    """

    dataset: str
    model: str
    name: str
    strategy: Maker
    tables: tuple[int, ...] = ()
    optimizer: str = "published"
    base_seed: int = 0
    negative_pool: int | None = None
    new_entities: NewEntities = "keep"

    @property
    def base_patience(self) -> int:
        """Epochs without a better one that end the base model's training. The released code's base models were trained
        for all of their 100 epochs: HyTE gets better for as long, DE does not."""
        return 100 if self.model == "HyTE" else 20

    @property
    def key(self) -> str:
        """Name of the run; several tables may show it."""
        return f"{self.dataset}-{self.model}-{self.name}".replace(" ", "_").replace("/", "_")

    @property
    def base_key(self) -> str:
        """Name of the base model, which cells share."""
        scope = "future" if self.strategy().sees_future else "base"
        kind = "-adagrad" if self.optimizer == "adagrad" else ""
        return f"{scope}-{self.dataset}-{self.model}-{self.base_seed}{kind}"


STRATEGIES: dict[str, Maker] = {
    "FT": FT,
    "FT all": lambda: FT("all"),
    "TR": TR,
    "TR all": lambda: TR("all"),
    "FB": FB,
    "FB_future": FBFuture,
    "TIE no replay": partial(published_tie, None),
    **{f"TIE {replay}": partial(published_tie, replay) for replay in ("uniform", "frequency", "inverse")},
    **{f"TIE {replay} no deletion": partial(published_tie, replay, deletion=0.0) for replay in BEST_REPLAY.values()},
    **{
        f"A-GEM {replay}": partial(AGEM, replay=ReplayOptions(replay)) for replay in ("uniform", "frequency", "inverse")
    },
}
#: Strategies of the cells with Adagrad.
ADAGRAD: dict[str, Maker] = {
    "FT": partial(FT, negatives=NEGATIVES),
    "TR": partial(TR, negatives=NEGATIVES, regularization=0.1),
    "TIE": partial(TIE, negatives=NEGATIVES, replay=WHOLE_PAST, regularization=0.1),
    "Supersede": partial(
        Supersede,
        negatives=NEGATIVES,
        current_negatives=NEGATIVES,
        current_limit=2000,
        repeats=2,
        replay=WHOLE_PAST,
        contrast=4.0,
        unlikelihood=UnlikelihoodLoss(Deleted(10), NEGATIVES, weight=3.0, open_only=False),
        regularization=0.0,
    ),
    "FB": partial(FB, negatives=NEGATIVES),
}
SIZED = re.compile(r"TIE frequency (\d+) of (\d+) steps")


def strategy_of(name: str) -> Maker:
    """The strategy of a row of the paper. Tables 6 and 7 name how much is replayed, and from how many steps."""
    if found := SIZED.fullmatch(name):
        return partial(published_tie, "frequency", int(found[1]), window=int(found[2]))
    return STRATEGIES[name]


def _published() -> list[Cell]:
    """The rows of the paper's tables, each once."""
    tables: dict[Key, list[int]] = {}
    for row in read_tables():
        tables.setdefault(row.key, []).append(row.table)
    return [Cell(*key, strategy_of(key.cell), tuple(numbers)) for key, numbers in tables.items()]


def _ours() -> list[Cell]:
    """Cells that the paper does not have: no learning, other base models, new entities with a warm-up, other
    optimizers, other negatives, our own strategy with its ablation."""
    cells = []
    for dataset, best_replay in BEST_REPLAY.items():
        papers = [(name, STRATEGIES[name]) for name in ("FT", "TR", f"TIE {best_replay}")]
        nothing = partial(Strategy, [], "nothing")
        cells.append(Cell(dataset, "DE", "nothing learnt", nothing))
        for seed in (1, 2):
            suffix = f"from base model {seed}"
            cells.append(Cell(dataset, "DE", f"nothing learnt {suffix}", nothing, base_seed=seed))
            cells += [Cell(dataset, "DE", f"{name} {suffix}", make, base_seed=seed) for name, make in papers]
            ours = Cell(dataset, "DE", f"Supersede {suffix}", Supersede, base_seed=seed, new_entities="warm_up")
            cells.append(ours)
            cells.append(Cell(dataset, "DE", f"FB_future {suffix}", FBFuture, base_seed=seed))
        cells += [Cell(dataset, "DE", f"{name} warm-up", make, new_entities="warm_up") for name, make in papers]
        cells += [
            Cell(dataset, "DE", "FT shared negatives", lambda: FT(shared=True)),
            Cell(dataset, "DE", "FT 1-vs-all", lambda: FT(negatives="all")),
        ]
        cells += [
            Cell(dataset, "DE", f"{name} pool of 1000", make, negative_pool=1000)
            for name, make in papers
            if name != "TR"
        ]
        cells += [Cell(dataset, "DE", f"{name} rowwise", make, optimizer="rowwise") for name, make in papers]
        ours_rowwise = Cell(dataset, "DE", "Supersede rowwise", Supersede, optimizer="rowwise", new_entities="warm_up")
        cells.append(ours_rowwise)
        variants: list[tuple[str, NewEntities, dict[str, Any]]] = [
            ("Supersede", "warm_up", {}),
            ("Supersede contrast 4", "warm_up", {"contrast": 4.0}),
            ("Supersede one rival", "warm_up", {"contrast": Contrast(rivals=1, weight=8.0)}),
            ("Supersede without current facts", "warm_up", {"current_negatives": 0}),
            ("Supersede unlikelihood 2", "warm_up", {"unlikelihood": 2.0}),
            ("Supersede replay weight 4", "warm_up", {"replay": ReplayOptions(weight=4.0)}),
            ("Supersede without warm-up", "keep", {}),
            ("Supersede contrast 6 without warm-up", "keep", {"contrast": 6.0}),
            ("Supersede contrast 4 without warm-up", "keep", {"contrast": 4.0}),
        ]
        cells += [
            Cell(dataset, "DE", name, partial(Supersede, **options), new_entities=start)
            for name, start, options in variants
        ]
        best_name, make_best = papers[-1]
        cells += [
            Cell(dataset, "HyTE", "nothing learnt", nothing),
            Cell(dataset, "HyTE", f"{best_name} warm-up", make_best, new_entities="warm_up"),
            Cell(dataset, "HyTE", "Supersede", Supersede, new_entities="warm_up"),
        ]
        cells += [
            Cell(dataset, model, f"{name} Adagrad", make, optimizer="adagrad", new_entities="warm_up")
            for model in ("DE", "HyTE")
            for name, make in ADAGRAD.items()
        ]
    return cells


CELLS = [*_published(), *_ours()]
