"""A live graph of world leaders: trained on 1950 to 2008, then updated year by year, and asked before and after."""

from __future__ import annotations

import argparse
import csv
import shutil
from collections.abc import Iterator
from pathlib import Path

from tkg_incremental.datasets import WorldLeaders
from tkg_incremental.live import LiveGraph, LiveSettings

QUESTIONS = [("president of", "United States"), ("chancellor of", "Germany"), ("prime minister of", "United Kingdom")]
SHOWN = (2009, 2017, 2021)


def named_facts(dataset: WorldLeaders) -> Iterator[tuple[str, str, str, int, int | None]]:
    """All facts with names: head, relation, tail, first year, last year (:obj:`None` if they hold at the end)."""
    first, steps = dataset.timeline.axis.first[0], dataset.num_steps
    for head, rel, tail, begin, end in dataset.timeline.truth.facts.tolist():
        names = dataset.entities[head], dataset.relations[rel], dataset.entities[tail]
        yield *names, first + begin, None if end == steps - 1 else first + end


def write_export(path: Path, facts: list[tuple[str, str, str, int, int | None]], year: int) -> None:
    """The facts known at the end of a year, as a company's database would export them."""
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["head", "relation", "tail", "start", "end"])
        for head, rel, tail, begin, end in facts:
            if begin <= year:
                table.writerow([head, rel, tail, begin, end if end is not None and end < year else ""])


def known_aliases(
    dataset: WorldLeaders, facts: list[tuple[str, str, str, int, int | None]], year: int
) -> dict[str, str]:
    """Further names, such as USA, of the entities known at the end of a year."""
    names = {name for fact in facts if fact[3] <= year for name in (fact[0], fact[2])}
    aliases = {alias: dataset.entities[dataset.entities.index(alias)] for alias in dataset.entities.aliases}
    return {alias: name for alias, name in aliases.items() if name in names}


def ask(graph: LiveGraph, year: int) -> None:
    """Prints the first three answers to each question."""
    for rel, place in QUESTIONS:
        answers = graph.query(None, rel, place, at=year, k=3)
        shown = ", ".join(
            f"{answer.name}{'' if answer.probability is None else f' {answer.probability:.0%}'}"
            f"{' (known)' if answer.known else ''}"
            for answer in answers
        )
        print(f"    {year} · {rel} {place}: {shown}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", type=Path, default=Path("graphs/leaders"), help="folder of the graph; replaced")
    parser.add_argument("--first", type=int, default=2008, help="last year of the first training")
    parser.add_argument("--last", type=int, default=2024, help="last year")
    parser.add_argument("--seed", type=int, default=0, help="seed of everything random")
    options = parser.parse_args()
    dataset = WorldLeaders()
    facts = list(named_facts(dataset))
    shutil.rmtree(options.graph, ignore_errors=True)
    options.graph.parent.mkdir(parents=True, exist_ok=True)
    export = options.graph.parent / "leaders.csv"
    write_export(export, facts, options.first)
    graph = LiveGraph.create(
        options.graph,
        export,
        unit="year",
        settings=LiveSettings(seed=options.seed),
        aliases=known_aliases(dataset, facts, options.first),
    )
    print(graph.train())
    for year in range(options.first + 1, options.last + 1):
        if year in SHOWN:
            print(f"  before the update of {year}:")
            ask(graph, year - 1)
        added = [fact[:3] for fact in facts if fact[3] == year]
        ended = [fact[:3] for fact in facts if fact[4] == year - 1]
        print(f"{year}: {graph.update(added=added, ended=ended, at=year)}")
        if year in SHOWN:
            print("  after it:")
            ask(graph, year)
    print("The last model, asked about the past:")
    for year in (1962, 1975, 1990, 2003, 2010, 2016, 2018, 2022):
        ask(graph, year)


if __name__ == "__main__":
    main()
