from __future__ import annotations

import os
from pathlib import Path

import pytest

from tkg_incremental.datasets.download import MIRROR_VARIABLE
from tkg_incremental.datasets.labels import label_entities, read_labels, repair
from tkg_incremental.datasets.lines import DataError, read_names

mirror = pytest.mark.skipif(not os.environ.get(MIRROR_VARIABLE), reason=f"needs the raw files: set {MIRROR_VARIABLE}")


def write(folder: Path, content: bytes) -> Path:
    path = folder / "id2name.csv"
    path.write_bytes(content)
    return path


def test_reading(tmp_path: Path) -> None:
    content = '2,Yōichi Masuzoe\r\n0,"Hugo Swire, Baron Swire"\r\n1,\r\n\r\n'.encode()
    assert read_labels(write(tmp_path, content)) == {"2": "Yōichi Masuzoe", "0": "Hugo Swire, Baron Swire"}


@pytest.mark.parametrize(
    ("damaged", "label"),
    [
        (b"Best Actor \xe2\x80?Motion Picture", "Best Actor – Motion Picture"),
        (b"The Deluge \xe2\x80?Moses \xe2\x80?Genesis", "The Deluge – Moses – Genesis"),
        (b"Czechoslovak War Cross 1939\xe2\x80?945", "Czechoslovak War Cross 1939–1945"),
        (b"Guns N\xe2\x80?Roses", "Guns N’ Roses"),
        (b"Ordre des Arts et des Lettres\xe2\x80?third rank", None),
        (b"approved name (A\xe2\x80?", None),
        (b"One \xe2\x80?Two\xe2\x80?three", None),
    ],
)
def test_damaged_labels(tmp_path: Path, damaged: bytes, label: str | None) -> None:
    found = read_labels(write(tmp_path, b'7,"' + damaged + b'"\r\n'))
    assert found == ({} if label is None else {"7": label})


def test_whole_labels_are_left_alone() -> None:
    for label in ("Guns N’ Roses", "Who? What?", "Best Actor – Drama", "1939–1945"):
        assert repair(label) == label


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"1,a\n1,b\n", "line 2: expected every id once (got 1 again)"),
        (b"1,a,b\n", "line 1: expected an id and a label (got '1,a,b')"),
        (b"Q1,a\n", "line 1: expected an id and a label (got 'Q1,a')"),
        (b"1,\xff\n", "line 1: expected UTF-8 text (invalid start byte at byte 2)"),
    ],
)
def test_errors(tmp_path: Path, content: bytes, problem: str) -> None:
    with pytest.raises(DataError) as error:
        read_labels(write(tmp_path, content))
    assert problem in str(error.value)


@mirror
def test_wikidata() -> None:
    root = Path(os.environ[MIRROR_VARIABLE])
    labels = read_labels(root / "wikidata_labels" / "id2name.csv")
    assert len(labels) == 12_554 - 33 - 4  # blank, and damaged beyond repair
    assert not any("\ufffd" in label for label in labels.values())
    names = read_names(root / "wikidata" / "entity2id.txt")
    assert (names[2454], labels["2454"]) == ("Q202735", "Billy Bob Thornton")
    shown = label_entities(names, labels)
    assert len(set(shown)) == len(names) == 12_554
    assert shown[35].startswith("Q")
