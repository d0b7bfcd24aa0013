"""The manifest of a release: what it holds, and the checksums to verify it with."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tkg_incremental.live.records import Release
from tkg_incremental.live.tensors import DTYPES
from tkg_incremental.storage import atomic_write

__all__ = ["MANIFEST", "DamagedReleaseError", "Manifest"]

MANIFEST = "manifest.json"
MAX_MANIFEST = 1 << 26
FORMAT = 1


class DamagedReleaseError(Exception):
    """A release cannot be used because a file of it is missing or damaged.

    Args:
        release: Number of the release.
        path: The file.
        reason: What is wrong with it.
    """

    def __init__(self, release: int, path: Path, reason: str) -> None:
        super().__init__(release, path, reason)
        self.release, self.path, self.reason = release, path, reason

    def __str__(self) -> str:
        return f"release {self.release} is damaged: '{self.path}': {self.reason}"


@dataclass(frozen=True)
class Manifest:
    """What a release holds.

    Args:
        number: Number of the release.
        parent: The release it was made from; ``None`` for the first one.
        full: Whether it holds whole tables, not only the rows that changed since its parent.
        created: When it was written, in microseconds since 1970 (UTC).
        clock: The last step it has learnt.
        updates: Ids of the updates it contains beyond its parent's.
        tables: For each table its ``dtype`` and ``shape``.
        files: For each file its ``bytes`` and ``sha256``.
        chain_bytes: Bytes of the changed rows since the last full release, this one included.
        metrics: Results of the gate.
        vocabulary: Sizes, such as ``{"entities": …, "relations": …, "steps": …}``.
        calibration: Parameters that turn scores into probabilities.
    """

    number: int
    parent: int | None
    full: bool
    created: int
    clock: int
    updates: tuple[int, ...] = ()
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    chain_bytes: int = 0
    metrics: dict[str, Any] = field(default_factory=dict)
    vocabulary: dict[str, int] = field(default_factory=dict)
    calibration: dict[str, Any] = field(default_factory=dict)

    @property
    def record(self) -> Release:
        """What the fact store keeps of it."""
        return Release(self.number, self.parent, self.created, self.clock, self.updates, self.metrics)

    def write(self, folder: Path) -> None:
        """Writes the manifest, atomically, with a checksum of its own.

        Args:
            folder: The folder of the release.
        """
        about = {"format": FORMAT, **asdict(self)}
        about["sha256"] = _checksum(about)
        with atomic_write(folder / MANIFEST) as file:
            file.write(json.dumps(about, indent=1, ensure_ascii=False).encode())

    @classmethod
    def read(cls, folder: Path, number: int) -> Manifest:
        """Reads and verifies a manifest.

        Args:
            folder: The folder of the release.
            number: Number of the release.
        """
        path = folder / MANIFEST
        try:
            if path.stat().st_size > MAX_MANIFEST:
                raise DamagedReleaseError(number, path, f"it has more than {MAX_MANIFEST} bytes")
            about = json.loads(path.read_bytes())
            if about.pop("sha256") != _checksum(about):
                raise DamagedReleaseError(number, path, "its checksum is wrong")
            version = about.pop("format")
            if version != FORMAT:
                raise DamagedReleaseError(number, path, f"format version {FORMAT} is expected (got {version})")
            about["updates"] = tuple(about["updates"])
            manifest = cls(**about)
            _check(manifest)
        except OSError as error:
            raise DamagedReleaseError(number, path, error.strerror or str(error)) from error
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DamagedReleaseError(number, path, f"it is no manifest ({error!r})") from error
        if manifest.number != number:
            raise DamagedReleaseError(number, path, f"it is of release {manifest.number}")
        if manifest.parent is not None and not 0 <= manifest.parent < number:
            raise DamagedReleaseError(number, path, f"its parent must be older (got {manifest.parent})")
        return manifest


def _check(manifest: Manifest) -> None:
    """Whether every value has the type that its users rely on: a checksum shows accidents, not intent."""
    numbers = (manifest.number, manifest.created, manifest.clock, manifest.chain_bytes, *manifest.updates)
    optional = () if manifest.parent is None else (manifest.parent,)
    sizes = manifest.vocabulary.values()
    for number in (*numbers, *optional, *sizes):
        if type(number) is not int or abs(number) >= 2**62:
            raise TypeError(f"expected an integer (got {number!r})")
    kinds: tuple[tuple[object, type], ...] = (
        (manifest.full, bool),
        (manifest.metrics, dict),
        (manifest.calibration, dict),
    )
    for value, kind in kinds:
        if type(value) is not kind:
            raise TypeError(f"expected a {kind.__name__} (got {value!r})")
    for name, file in manifest.files.items():
        if type(file["bytes"]) is not int or type(file["sha256"]) is not str:
            raise TypeError(f"expected bytes and sha256 of '{name}' (got {file!r})")
        if Path(name).name != name:
            raise ValueError(f"expected a file of the release (got {name!r})")
    for name, table in manifest.tables.items():
        if table["dtype"] not in DTYPES or not all(type(size) is int and size >= 0 for size in table["shape"]):
            raise ValueError(f"expected dtype and shape of '{name}' (got {table!r})")


def _checksum(about: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()
