"""Releases are whole or not there; damage is found before use."""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from graphs import small_tables

from tkg_incremental.live import ReleaseFolder
from tkg_incremental.live.manifest import FORMAT, MANIFEST, Release, _checksum
from tkg_incremental.live.tensors import read_tensors, write_tensors
from tkg_incremental.storage import CorruptFileError


def three_releases(path: Path) -> tuple[ReleaseFolder, list[dict[str, torch.Tensor]]]:
    releases, tables = ReleaseFolder(path), small_tables(8)
    states = [{name: table.clone() for name, table in tables.items()}]
    releases.write_release(0, tables, None, None, clock=1)
    tables["entity"][2] = 7
    tables["scale"] = torch.tensor(2.0)
    releases.write_release(1, tables, {"entity": torch.tensor([2])}, 0, clock=2, updates=[4], metrics={"kept": 1})
    states.append({name: table.clone() for name, table in tables.items()})
    tables["entity"] = torch.cat([tables["entity"], torch.ones(2, 64)])
    tables["entity"][1] = -1
    releases.write_release(2, tables, {"entity": torch.tensor([1, 1])}, 1, clock=3)
    states.append({name: table.clone() for name, table in tables.items()})
    releases.set_current(2)
    return releases, states


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def write_manifest(folder: Path, release: Release) -> None:
    """As :meth:`Release.write`, without waiting for the disk."""
    about = {"format": FORMAT, **asdict(release)}
    (folder / MANIFEST).write_text(json.dumps({**about, "sha256": _checksum(about)}))


def data_file(releases: ReleaseFolder, number: int) -> Path:
    (found,) = releases.folder(number).glob("*.safetensors")
    return found


def test_what_is_written_is_read(tmp_path: Path) -> None:
    releases, states = three_releases(tmp_path)
    for number, state in enumerate(states):
        assert same(releases.load_release(number), state)
    assert releases.current() == 2
    assert [manifest.full for manifest in releases.chain(2)] == [True, False, False]
    assert data_file(releases, 1).stat().st_size < 0.6 * data_file(releases, 0).stat().st_size
    assert releases.manifest(1).updates == (4,)
    releases.set_current(0)
    assert releases.current() == 0
    # Rows changed in memory do not reach the file.
    releases.load_release(0)["entity"].zero_()
    assert same(releases.load_release(0), states[0])


def test_other_programs_read_the_files(tmp_path: Path) -> None:
    library = pytest.importorskip("safetensors.torch")
    kinds = {
        str(dtype): torch.ones(2, 3).to(dtype) for dtype in (torch.bfloat16, torch.float16, torch.int8, torch.bool)
    }
    kinds |= {"none": torch.empty(0, 4), "one": torch.tensor(3)}
    write_tensors(tmp_path / "ours", kinds)
    assert same(library.load_file(tmp_path / "ours"), kinds)
    library.save_file(kinds, tmp_path / "theirs")
    assert same(read_tensors(tmp_path / "theirs"), kinds)


def test_compaction(tmp_path: Path) -> None:
    releases, tables = ReleaseFolder(tmp_path), small_tables(20)
    releases.write_release(0, tables, None, None, clock=0)
    for number in range(1, 12):
        tables["entity"][number] = number
        releases.write_release(number, tables, {"entity": torch.tensor([number])}, number - 1, clock=number)
    full = [number for number in range(12) if releases.manifest(number).full]
    assert full[0] == 0
    assert 1 < len(full) < 4
    assert same(releases.load_release(11), tables)
    assert len(releases.chain(11)) == 12


def test_arguments(tmp_path: Path) -> None:
    releases, states = three_releases(tmp_path)
    tables = states[2]
    with pytest.raises(FileExistsError, match="release 2 exists already"):
        releases.write_release(2, tables, None, 1, clock=1)
    with pytest.raises(ValueError, match=r"must not shrink \(got 1 rows after 10\)"):
        releases.write_release(3, {**tables, "entity": tables["entity"][:1]}, {}, 2, clock=1)
    with pytest.raises(ValueError, match="tables that are not there"):
        releases.write_release(3, tables, {"entities": torch.tensor([1])}, 2, clock=1)
    with pytest.raises(ValueError, match=r"must be in 0..9 \(got 10\)"):
        releases.write_release(3, tables, {"entity": torch.tensor([10])}, 2, clock=1)
    with pytest.raises(ValueError, match="is the current one"):
        releases.reject(2)
    releases.write_release(3, tables, {}, 2, clock=1)
    assert releases.reject(3).name == "rejected"
    assert releases.numbers() == [0, 1, 2]


@pytest.mark.parametrize("kind", ["flip", "truncate", "missing", "empty"])
@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("name", ["data", MANIFEST])
def test_damage_is_named(tmp_path: Path, kind: str, number: int, name: str) -> None:
    releases, states = three_releases(tmp_path)
    path = data_file(releases, number) if name == "data" else releases.folder(number) / name
    data = bytearray(path.read_bytes())
    if kind == "flip":
        data[-40] ^= 1
    elif kind == "truncate":
        del data[-20:]
    path.unlink()
    if kind != "missing":
        path.write_bytes(b"" if kind == "empty" else bytes(data))
    with pytest.raises(CorruptFileError) as error:
        releases.load_release(2)
    assert error.value.path == path
    if number == 1:
        assert same(releases.load_release(0), states[0])


def test_any_damaged_byte_is_an_error_or_harmless(tmp_path: Path) -> None:
    """Also behind valid checksums: headers that ask for other types, other places and huge sizes."""
    releases, _ = three_releases(tmp_path)
    source = random.Random(0)
    for number in (0, 2):
        path, release = data_file(releases, number), releases.manifest(number)
        whole = path.read_bytes()
        length = 8 + int.from_bytes(whole[:8], "little")
        for _ in range(150):
            data = bytearray(whole)
            for _ in range(source.randint(1, 3)):
                data[source.randrange(length)] = source.choice(b'09,:[]{}"FI\x00\xff ')
            path.write_bytes(data)
            about = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            write_manifest(releases.folder(number), replace(release, files={path.name: about}))
            with contextlib.suppress(CorruptFileError):
                releases.load_release(2)
        path.write_bytes(whole)
        write_manifest(releases.folder(number), release)


def test_sizes_that_are_not_there(tmp_path: Path) -> None:
    releases, _ = three_releases(tmp_path)
    path = releases.folder(2) / MANIFEST
    about = json.loads(path.read_bytes())
    about["tables"]["entity"]["shape"][0] = 10**12
    del about["sha256"]
    about["sha256"] = _checksum(about)
    path.write_text(json.dumps(about))
    with pytest.raises(CorruptFileError, match=r"should have 1000000000000 rows, which are not there"):
        releases.load_release(2)
    (tmp_path / "huge").write_bytes((2**60).to_bytes(8, "little") + b"{}")
    with pytest.raises(ValueError, match="truncated or damaged"):
        read_tensors(tmp_path / "huge")


def test_a_pointer_that_is_none(tmp_path: Path) -> None:
    releases, _ = three_releases(tmp_path)
    (tmp_path / "current").write_text("../../etc")
    with pytest.raises(CorruptFileError, match="the number of a release is expected"):
        releases.current()
    with pytest.raises(CorruptFileError, match="0009"):
        releases.set_current(9)


def test_garbage_of_killed_writers(tmp_path: Path) -> None:
    releases, states = three_releases(tmp_path)
    (tmp_path / "releases" / "0003.ab.tmp").mkdir()
    (tmp_path / "releases" / "0003.ab.tmp" / "x").touch()
    (tmp_path / ".current.ab.tmp").touch()
    (releases.folder(0) / "tables-old.safetensors").touch()
    releases.write_release(3, states[2], {}, 2, clock=4)
    assert len(releases.clean({0, 1, 2})) == 4
    assert releases.numbers() == [0, 1, 2]
    assert same(releases.load_release(2), states[2])
    assert sorted(path.name for path in tmp_path.rglob("*.tmp")) == []


def test_current_is_replaced_under_readers(tmp_path: Path) -> None:
    releases, _ = three_releases(tmp_path)
    end, seen = time.time() + 0.3, set()
    while time.time() < end:
        for number in range(3):
            releases.set_current(number)
            seen.add(ReleaseFolder(tmp_path).current())
    assert seen == {0, 1, 2}
