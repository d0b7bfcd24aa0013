"""The facts of ``world_leaders.tsv`` agree with each other.

The file is read here with plain Python, so these tests say something about the
data and nothing about the loader. Years are the state at 31 December.
"""

import unicodedata
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

PATH = Path(__file__).resolve().parents[2] / "tkg_incremental" / "datasets" / "world_leaders.tsv"
FIRST, LAST = 1900, 2024
PERSONAL = ("president of", "prime minister of", "chancellor of", "leader of")
OFFICES = (*PERSONAL, "monarch of")
SINGLE = (*OFFICES, "capital of", "ruling party of", "currency of")
RELATIONS = {*SINGLE, "member of", "member of party", "citizen of"}


class Fact(NamedTuple):
    head: str
    rel: str
    tail: str
    start: str
    end: str

    @property
    def years(self):
        return range(int(self.start or FIRST), int(self.end or LAST) + 1)


def read(path=PATH):
    text = path.read_bytes().decode("utf-8")
    assert text.endswith("\n")
    assert "\r" not in text
    header, *lines = text[:-1].split("\n")
    assert header == "head\trel\ttail\tstart\tend"
    return [Fact(*line.split("\t")) for line in lines]


@pytest.fixture(scope="module")
def facts():
    return read()


# Each check gives the list of what is wrong, so that it can itself be tested.


def bad_years(facts):
    return [
        f
        for f in facts
        if any(y and not (len(y) == 4 and y.isdigit() and FIRST <= int(y) <= LAST) for y in (f.start, f.end))
        or (f.start and f.end and f.start > f.end)
    ]


def bad_names(facts):
    return [
        name
        for f in facts
        for name in f[:3]
        if not name
        or name != name.strip()
        or name != unicodedata.normalize("NFC", name)
        or "\t" in name
        or "  " in name
    ]


def overlaps(facts):
    seen, found = defaultdict(set), []
    for f in facts:
        years = seen[f[:3]]
        if years.intersection(f.years):
            found.append(f)
        years.update(f.years)
    return found


def shared_offices(facts):
    holder, found = {}, []
    for f in facts:
        if f.rel in SINGLE:
            for year in f.years:
                other = holder.setdefault((f.rel, f.tail, year), f.head)
                if other != f.head:
                    found.append((f.rel, f.tail, year, other, f.head))
    return found


def years_of(facts, rel):
    years = defaultdict(set)
    for f in facts:
        if f.rel == rel:
            years[f.head, f.tail].update(f.years)
    return years


def without_party(facts):
    member = defaultdict(set)
    for (person, _), years in years_of(facts, "member of party").items():
        member[person] |= years
    return [(f, year) for f in facts if f.rel in PERSONAL for year in f.years if year not in member[f.head]]


def independent_and_in_a_party(facts):
    party = years_of(facts, "member of party")
    return [
        (person, name, year)
        for (person, name), years in party.items()
        if name != "independent"
        for year in years & party.get((person, "independent"), set())
    ]


def without_citizenship(facts):
    citizen = years_of(facts, "citizen of")
    return [(f, year) for f in facts if f.rel in PERSONAL for year in f.years if year not in citizen[f.head, f.tail]]


def unbacked_ruling(facts):
    member = years_of(facts, "member of party")
    parties = defaultdict(set)
    for (person, party), years in member.items():
        for year in years:
            parties[person, year].add(party)
    backed = {
        (party, f.tail, year) for f in facts if f.rel in PERSONAL for year in f.years for party in parties[f.head, year]
    }
    return [
        (f, year)
        for f in facts
        if f.rel == "ruling party of"
        for year in f.years
        if (f.head, f.tail, year) not in backed
    ]


def out_of_order(facts):
    keys = [(f.rel, f.tail, int(f.start or 0)) for f in facts]
    return [b for a, b in pairwise(keys) if a > b]


CHECKS = [
    bad_years,
    bad_names,
    overlaps,
    shared_offices,
    without_party,
    independent_and_in_a_party,
    without_citizenship,
    unbacked_ruling,
    out_of_order,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_nothing_is_wrong(facts, check):
    assert check(facts) == []


US = "United States"
BIDEN = Fact("Joe Biden", "president of", US, "2021", "")
DEMOCRATS = "Democratic Party (United States)"


@pytest.mark.parametrize(
    ("check", "wrong"),
    [
        (bad_years, Fact("X", "president of", US, "2001", "2000")),
        (bad_years, Fact("X", "president of", US, "1899", "2000")),
        (bad_years, Fact("X", "president of", US, "2000", "2025")),
        (bad_names, Fact("X ", "president of", US, "2000", "")),
        (bad_names, Fact("Jose\u0301", "president of", US, "2000", "")),
        (overlaps, BIDEN),
        (overlaps, BIDEN._replace(start="2024")),
        (shared_offices, Fact("X", "president of", US, "2024", "")),
        (shared_offices, Fact("X", "capital of", US, "", "1950")),
        (without_party, Fact("X", "leader of", "Y", "2000", "2000")),
        (without_party, BIDEN._replace(start="1960", end="1960")),
        (
            independent_and_in_a_party,
            Fact("Joe Biden", "member of party", "independent", "2022", "2022"),
        ),
        (without_citizenship, BIDEN._replace(tail="Canada")),
        (unbacked_ruling, Fact(DEMOCRATS, "ruling party of", US, "2018", "2018")),
        (unbacked_ruling, Fact(DEMOCRATS, "ruling party of", "Canada", "2022", "")),
        (out_of_order, BIDEN),
    ],
)
def test_a_wrong_fact_is_noticed(facts, check, wrong):
    assert check([*facts, wrong]) != []


def test_relations(facts):
    assert {f.rel for f in facts} == RELATIONS


def test_size(facts):
    assert len(facts) >= 1200
    assert len({f.tail for f in facts if f.rel in OFFICES}) >= 45


def test_every_office_holder_is_a_citizen_somewhere(facts):
    holders = {f.head for f in facts if f.rel in OFFICES}
    assert holders == {f.head for f in facts if f.rel == "citizen of"}


def test_only_office_holders_are_in_parties(facts):
    holders = {f.head for f in facts if f.rel in PERSONAL}
    assert holders == {f.head for f in facts if f.rel == "member of party"}


def test_presidents_of_the_united_states_follow_without_gap(facts):
    spells = [f for f in facts if f.rel == "president of" and f.tail == US]
    assert [year for f in spells for year in f.years] == list(range(1945, LAST + 1))


@pytest.mark.parametrize(
    ("head", "rel", "tail", "first", "last"),
    [
        ("Donald Trump", "president of", US, 2017, 2020),
        ("Joe Biden", "president of", US, 2021, 2024),
        ("Angela Merkel", "chancellor of", "Germany", 2005, 2020),
        ("Angela Merkel", "citizen of", "East Germany", 1972, 1989),
        ("Elizabeth II", "monarch of", "Canada", 1952, 2021),
        ("Bonn", "capital of", "Germany", 1949, 1989),
        ("Brasília", "capital of", "Brazil", 1960, 2024),
        ("Deutsche Mark", "currency of", "Germany", 1948, 2001),
        ("euro", "currency of", "Croatia", 2023, 2024),
        ("United Kingdom", "member of", "European Union", 1973, 2019),
        ("Finland", "member of", "NATO", 2023, 2024),
        ("Sweden", "member of", "NATO", 2024, 2024),
        ("Poland", "member of", "Warsaw Pact", 1955, 1990),
    ],
)
def test_known_spell(facts, head, rel, tail, first, last):
    (fact,) = [f for f in facts if f[:3] == (head, rel, tail)]
    assert (fact.years[0], fact.years[-1]) == (first, last)


def test_someone_returns_to_office(facts):
    spells = [(f.years[0], f.years[-1]) for f in facts if f[:3] == ("Vladimir Putin", "president of", "Russia")]
    assert spells == [(2000, 2007), (2012, 2024)]
