"""What is erased is in no byte of the folder, and the rest of the graph is as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from graphs import commit, small_graph, state_of

from tkg_incremental.live import Change, GraphFolder, GraphFolderError, audit_bytes, erase_storage
from tkg_incremental.live import erase as module
from tkg_incremental.live.clock import GraphClock
from tkg_incremental.live.known import StoreFacts
from tkg_incremental.storage import CorruptFileError

CLOCK = GraphClock(0, 10, "day")

NAME = 'Zoë "Z" Žižek'


def graph_with_name(path: Path) -> GraphFolder:
    """A graph whose name occurs in the store, in changes, in old versions, and in the metrics of two releases."""
    folder = small_graph(path)
    tables = folder.releases.load_release(0)
    for step, change in enumerate(
        [
            Change("add", NAME, "leads", "Sales", 11),
            Change("end", NAME, "leads", "Sales", 13),
            Change("retract", "Bob", "leads", "Sales"),
        ]
    ):
        folder.store.record([change], 11 + step, f"hash {step}", f"{NAME}.csv" if step < 2 else "other.csv")
        if step == 0:
            tables["entity"] = torch.cat([tables["entity"], torch.ones(1, 64)])
        tables["entity"][5] = float(step + 1)
        commit(
            folder,
            tables,
            {"entity": torch.tensor([5, step])},
            clock=11 + step,
            metrics={"worst": f"{NAME}: 3", NAME: 1},
        )
    return folder


def test_no_byte_is_left(tmp_path: Path) -> None:
    path = tmp_path / "graph"
    with graph_with_name(path) as folder:
        assert {found.suffix for found in audit_bytes(path, NAME)} >= {".json"}
        assert any(found.name.startswith("facts.db") for found in audit_bytes(path, NAME))
        tables = [folder.releases.load_release(number) for number in range(4)]
        number = folder.store.entities.find(NAME)
        assert number == 5
        fresh = torch.full((1, 64), 0.25)
        erase_storage(folder, (number,), {"entity": (torch.tensor([number]), fresh)})
        assert audit_bytes(path, NAME) == []
        assert folder.store.entities.of([number]) == [None]
        assert folder.store.entities.add("someone") == 6
        assert folder.store.neighbours(number) == []
        assert number not in StoreFacts(folder.store, CLOCK).type_members(0, "head")
        for release, before in enumerate(tables):
            after = folder.releases.load_release(release)
            if release:
                assert torch.equal(after["entity"][5], fresh[0])
            assert torch.equal(after["entity"][:5], before["entity"][:5])
            assert len(list(folder.releases.folder(release).iterdir())) == 2
        for release in (0, 3, 1):
            folder.release(release)
            assert not any(NAME in triple for triple in state_of(folder.store))
        assert ("Bob", "leads", "Sales") in state_of(folder.store)
    assert audit_bytes(path, NAME) == []
    with GraphFolder(path, write=True) as folder:
        assert [update.num_changes for update in folder.store.updates()] == [0, 0, 1]


def test_a_fact(tmp_path: Path) -> None:
    with graph_with_name(tmp_path / "graph") as folder:
        ann, works, research = (folder.store.entities.find("Ann"), folder.store.relations.find("works in"), 1)
        research = folder.store.entities.find("R&D")  # type: ignore[assignment]
        assert ann is not None
        assert works is not None
        before = state_of(folder.store)
        erase_storage(folder, (ann, works, research))
        del before["Ann", "works in", "R&D"]
        assert state_of(folder.store) == before
        assert folder.store.entities.find("Ann") == ann
        types = StoreFacts(folder.store, CLOCK)
        assert ann not in types.type_members(works, "head")
        assert research in types.type_members(works, "tail")


@pytest.mark.parametrize("moment", ["_rewrite_release", "_compact", "_set_rows"])
def test_an_erasure_that_was_stopped_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    path = tmp_path / "graph"
    with graph_with_name(path) as folder:
        calls = 0
        work = getattr(module, moment)

        def stopped(*args: object) -> object:
            nonlocal calls
            calls += 1
            if calls == (1 if moment == "_compact" else 3):
                raise KeyboardInterrupt
            return work(*args)

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(module, moment, stopped)
            erase_storage(folder, (5,), {"entity": (torch.tensor([5]), torch.zeros(1, 64))})
    with GraphFolder(path, write=True) as folder:
        assert audit_bytes(path, NAME) == []
        for number in range(1, 4):
            assert not folder.releases.load_release(number)["entity"][5].any()


def test_only_a_writer_erases(tmp_path: Path) -> None:
    small_graph(tmp_path / "graph").close()
    with GraphFolder(tmp_path / "graph") as folder, pytest.raises(GraphFolderError, match="opened for reading"):
        erase_storage(folder, (0,))


def test_the_audit_finds_a_name_however_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 7)  # a name across two chunks
    texts = {
        "utf8": NAME.encode(),
        "utf16": NAME.encode("utf-16"),
        "utf16be": NAME.encode("utf-16-be"),
        "json": json.dumps([NAME]).encode(),
        "unicode": json.dumps([NAME], ensure_ascii=False).encode(),
        "upper": json.dumps(NAME)
        .replace("\\u00eb", "\\u00EB")
        .replace("\\u017d", "\\u017D")
        .replace("\\u017e", "\\u017E")
        .encode(),
        "html": b"<b>Zo\xc3\xab &quot;Z&quot; \xc5\xbdi\xc5\xbeek</b>",
    }
    for name, data in texts.items():
        (tmp_path / name).write_bytes(b"x" * 11 + data + b"y" * 9)
    (tmp_path / "other").write_text("Zoë Z")
    (tmp_path / f"{NAME}.csv").touch()
    found = {path.name for path in audit_bytes(tmp_path, NAME)}
    assert found == {*texts, f"{NAME}.csv"}
    with pytest.raises(ValueError, match="name must not be empty"):
        audit_bytes(tmp_path, "")


def test_a_damaged_release_is_not_rewritten(tmp_path: Path) -> None:
    """Its checksum would be that of the damage."""
    path = tmp_path / "graph"
    with graph_with_name(path) as folder:
        (tables,) = folder.releases.folder(1).glob("*.safetensors")
        data = bytearray(tables.read_bytes())
        data[-3] ^= 1
        tables.write_bytes(data)
        with pytest.raises(CorruptFileError, match="0001.*its checksum is wrong"):
            erase_storage(folder, (5,), {"entity": (torch.tensor([5]), torch.ones(1, 64))})


def test_files_that_a_killed_erasure_left_are_removed(tmp_path: Path) -> None:
    path = tmp_path / "graph"
    with graph_with_name(path) as folder:
        left = folder.releases.folder(1) / "tables-00000000.safetensors"
        left.write_text(NAME)
        erase_storage(folder, (5,))
        assert not left.exists()
        assert audit_bytes(path, NAME) == []
