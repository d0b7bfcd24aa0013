"""If the disk is full, the error says so and existing files stay as they were."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from tiny_run import CASES, Tiny, make_trainer, same_bits, write_mirror

from tkg_incremental.datasets.download import MIRROR_VARIABLE
from tkg_incremental.storage import load_verified, save_verified
from tkg_incremental.training import RunFolderError

resource = pytest.importorskip("resource")


@contextmanager
def full_beyond(size: int) -> Iterator[None]:
    """Limits the size of files: writes fail as on a full disk (Python ignores the signal that comes with it)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("numbers", [10, 1_000, 10_000, 24_800, 100_000])
def test_a_file_is_whole_or_as_it_was(tmp_path: Path, numbers: int) -> None:
    """The disk may become full in torch's writer, in the header or in the last flush."""
    path = tmp_path / "state.pt"
    save_verified([1], path)
    state = {"x": torch.arange(numbers), "y": torch.zeros(numbers)}
    if numbers < 8_000:
        with full_beyond(100_000):
            save_verified(state, path)
        assert torch.equal(load_verified(path)["x"], state["x"])
    else:
        with (
            full_beyond(100_000),
            pytest.raises(OSError, match="File too large"),
        ):  # instead of the error that torch raises
            save_verified(state, path)
        assert load_verified(path) == [1]
    assert [found.name for found in tmp_path.iterdir()] == ["state.pt"]


def test_the_checkpoint_before_survives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MIRROR_VARIABLE, str(write_mirror(tmp_path / "mirror")))
    dataset = Tiny(tmp_path / "data")
    # The state of the dense optimizer makes checkpoints inside a step several times as large as those between steps.
    whole = make_trainer(CASES[2], dataset, tmp_path / "whole")
    whole.pretrain(tmp_path / "base.pt")
    whole.fit()

    trainer = make_trainer(CASES[2], dataset, tmp_path / "run")
    trainer.pretrain(tmp_path / "base.pt")
    assert trainer.folder is not None
    (saved,) = trainer.folder.checkpoints
    before = saved.read_bytes()
    with full_beyond(2 * len(before)), pytest.raises(RunFolderError) as error:
        trainer.fit()
    assert str(error.value).startswith(f"cannot write a checkpoint in '{tmp_path / 'run'}': [Errno 27] File too large")
    assert str(error.value).endswith(f"the last checkpoint, '{saved}', is untouched")
    assert trainer.folder.checkpoints == [saved]
    assert saved.read_bytes() == before
    assert list((tmp_path / "run").rglob("*.tmp")) == []
    trainer.folder.release()

    make_trainer(CASES[2], dataset, tmp_path / "run").resume().fit()
    assert same_bits(tmp_path / "run", tmp_path / "whole")


def test_the_first_checkpoint_and_the_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MIRROR_VARIABLE, str(write_mirror(tmp_path / "mirror")))
    trainer = make_trainer(CASES[0], Tiny(tmp_path / "data"), tmp_path / "run", checkpoint_every=100)
    with full_beyond(3000), pytest.raises(RunFolderError, match=r"a checkpoint .*; there is no earlier checkpoint"):
        trainer.pretrain()
    with full_beyond(10), pytest.raises(RunFolderError, match=r"cannot write the results in .*File too large"):
        trainer._write_results()


def test_exit_code_of_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tkg_incremental.cli import main

    facts = tmp_path / "facts.tsv"
    facts.write_text(
        "".join(f"leader {i}\tleads\tcountry {i % 5}\t{2000 + i // 2}\t{2002 + i // 2}\n" for i in range(40))
    )
    flags = ["train", "--facts", str(facts), "--epochs", "2", "--hidden-channels", "8", "--negatives", "5"]
    with full_beyond(3000):
        assert main([*flags, "--run-dir", str(tmp_path / "run")]) == 3
    said = capsys.readouterr().err
    assert "File too large" in said
    assert "Traceback" not in said
