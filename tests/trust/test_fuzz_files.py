"""Files with random contents are read, or refused with a readable error."""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from fuzzing import attempt, tries
from hypothesis import example, given
from hypothesis import strategies as st

from tkg_incremental.datasets import DataError, TabularTKG, TKGDataset
from tkg_incremental.datasets.atise import ATISEDataset
from tkg_incremental.datasets.options import ReadOptions
from tkg_incremental.storage import HEADER, MAGIC, VERSION, CorruptFileError, load_verified

NOISE = st.text(st.sampled_from("\t\n\r,;\"'#-?x0é\x00\ufeff "), max_size=6) | st.text(max_size=8)
YEARS = st.integers(1990, 1999).map(str) | st.sampled_from(["", "-", "?", "####", "0", "-50", "99999999", "2000"])


def mostly(field: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """A valid field in 20 of 21 cases, random text otherwise."""
    return st.integers(0, 20).flatmap(lambda pick: field if pick else NOISE)


def table(*fields: st.SearchStrategy[str], separator: str = "\t") -> st.SearchStrategy[bytes]:
    line = st.tuples(*map(mostly, fields)).map(separator.join)
    lines = st.lists(line, max_size=25).map("\n".join)
    return lines.map(str.encode) | st.binary(max_size=60)


def check_rows(dataset: TKGDataset) -> None:
    """The dataset is consistent; the timeline has checked every id and step."""
    line = dataset.timeline
    assert line.num_steps == len(line.labels) == len(dataset)
    assert len(dataset.entity_names) == line.num_entities
    assert repr(dataset)


# Benchmarks in the format of ATISE ---------------------------------------------------------------------

IDS = st.integers(0, 4).map(str)
DATES = YEARS.map(lambda year: f"{year}-##-##")
FACTS = table(IDS, st.sampled_from("01"), IDS, DATES, DATES)
# Steps of these datasets need more than 300 dates.
MANY = "".join(f"0\t0\t1\t{1990 + i // 160}-##-##\t{1991 + i // 160}-##-##\n" for i in range(480)).encode()


class Given(ATISEDataset):
    """Raw files that need no download."""

    folder: ClassVar[str] = "given"
    checksums: ClassVar[dict[str, str]] = dict.fromkeys(
        ("entity2id.txt", "relation2id.txt", "train.txt", "valid.txt", "test.txt"), ""
    )

    def download(self) -> None:
        pass


@tries(60)
@given(FACTS, FACTS, FACTS, st.none() | table(st.text(max_size=3), IDS), st.booleans())
@example(b"", b"0\t0\t1\t1800-##-##\t1801-##-##", b"0\t0\t1\t2050-##-##\t####-##-##", None, True)
def test_benchmark_files(
    tmp_path_factory: pytest.TempPathFactory,
    train: bytes,
    valid: bytes,
    test: bytes,
    names: bytes | None,
    with_many: bool,
) -> None:
    root = tmp_path_factory.mktemp("fuzz")
    (root / "raw").mkdir()
    entities = b"".join(b"e%d\t%d\n" % (i, i) for i in range(5)) if names is None else names
    files = {"entity2id.txt": entities, "relation2id.txt": b"r\t0\nq\t1\n"}
    files |= {"train.txt": MANY * with_many + train, "valid.txt": valid, "test.txt": test}
    for name, content in files.items():
        (root / "raw" / name).write_bytes(content)
    dataset, error = attempt(lambda: Given(root, single_step_facts=True), DataError)
    if dataset is not None:
        check_rows(dataset)
    else:
        assert error.path.name in files
        assert not list((root / "processed").glob("*"))  # no incomplete cache is left


# Users' tables --------------------------------------------------------------------------------------

WORDS = st.sampled_from(["a", "b", "Köln", "c d", "head", "start"])


@tries(100)
@given(
    st.sampled_from("\t,;").flatmap(
        lambda sep: st.tuples(
            st.just(sep),
            table(WORDS, WORDS, WORDS, YEARS, separator=sep) | table(WORDS, WORDS, WORDS, YEARS, YEARS, separator=sep),
        )
    ),
    st.sampled_from([("year", None), ("day", None), ("index", None), ("auto", "count"), ("auto", [1990, 1995])]),
    st.booleans(),
)
def test_own_tables(
    tmp_path_factory: pytest.TempPathFactory, source: tuple[str, bytes], steps: tuple[str, Any], with_header: bool
) -> None:
    unit, binning = steps
    separator, content = source
    path = tmp_path_factory.mktemp("fuzz") / "facts.tsv"
    header = separator.join(["head", "rel", "tail", "start", "end"]).encode() + b"\n"
    path.write_bytes(header * with_header + content)
    dataset, error = attempt(
        lambda: TabularTKG(path, unit=unit, binning=binning, read=ReadOptions(delimiter=separator)), DataError
    )
    if dataset is not None:
        check_rows(dataset)
    else:
        assert error.path == path


# Configuration files -----------------------------------------------------------------------------------

KEYS = st.sampled_from(["epochs", "lr", "seed", "model", "dataset", "facts", "run-dir", "negatives", "resume", "x"])
VALUES = st.sampled_from(
    ["1", "0", "-3", "0.5", '"DE"', '"x"', "true", "[1]", "{}", "nan", "1e999", '"--help"', "2026-01-01"]
)


@tries(150)
@given(
    st.sampled_from(["toml", "yaml"]),
    st.lists(st.tuples(mostly(KEYS), mostly(VALUES)), max_size=4) | st.binary(max_size=40),
)
def test_configuration_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, content: list[tuple[str, str]] | bytes
) -> None:
    from tkg_incremental.cli import make_parser
    from tkg_incremental.cli.errors import BadDataError, UsageError
    from tkg_incremental.cli.train import merge

    if kind == "yaml":
        pytest.importorskip("yaml")
    sign = " = " if kind == "toml" else ": "
    if not isinstance(content, bytes):
        content = "\n".join(key + sign + value for key, value in content).encode()
    path = tmp_path / f"run.{kind}"
    path.write_bytes(content)
    args: argparse.Namespace = make_parser().parse_args(["train", "--config", str(path)])
    options, error = attempt(lambda: merge(args), UsageError, BadDataError, SystemExit)
    if isinstance(error, SystemExit):
        assert error.code == 2
        assert "error: " in capsys.readouterr().err
    else:
        assert options is not None or str(path) in str(error) or "--" in str(error)


# Files of this package ---------------------------------------------------------------------------------


@tries(100)
@given(st.binary(max_size=200) | st.binary(max_size=60).map(lambda more: b"PK\x03\x04" + more))
def test_whole_files_of_anything(tmp_path: Path, payload: bytes) -> None:
    """Random bytes with a correct checksum."""
    path = tmp_path / "state.pt"
    path.write_bytes(HEADER.pack(MAGIC, VERSION, len(payload), hashlib.sha256(payload).digest()) + payload)
    with pytest.raises(CorruptFileError):
        load_verified(path)


@tries(100)
@given(st.data())
def test_whole_files_with_a_change_inside(tmp_path: Path, data: st.DataObject) -> None:
    """A changed file with a correct checksum is read or refused, and no code in it is executed."""
    path = tmp_path / "state.pt"
    torch.save({"weights": torch.arange(6.0), "names": ["a", "b"]}, path)
    payload = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(HEADER.pack(MAGIC, VERSION, len(payload), hashlib.sha256(payload).digest()) + payload)
    _, error = attempt(lambda: load_verified(path), CorruptFileError)
    assert error is None or str(path) in str(error)
