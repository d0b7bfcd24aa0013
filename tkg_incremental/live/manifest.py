"""The manifest of a release: what it holds, and the checksums to verify it with."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tkg_incremental.live.tensors import DTYPES
from tkg_incremental.storage import CorruptFileError, atomic_write

MANIFEST, FORMAT, MAX_MANIFEST = "manifest.json", 1, 1 << 26


@dataclass(frozen=True)
class Release:
    """What is known of a release: its manifest. The fact store keeps the first six values, of removed releases, too.

    Args:
        number: Number of the release.
        parent: The release it was made from; ``None`` for the first one.
        created: When it was written, in microseconds since 1970 (UTC).
        clock: The last step it has learnt.
        updates: Ids of the updates it contains beyond its parent's.
        metrics: Results of the gate.
        full: Whether it holds all tables. Otherwise it holds the rows that differ from its parent's.
        tables: For each table its ``dtype`` and ``shape``.
        files: For each file its ``bytes`` and ``sha256``.
        chain_bytes: Bytes of the changed rows since the last full release, this one included.
        vocabulary: Sizes, such as ``{"entities": …, "relations": …, "steps": …}``.
        calibration: Parameters that turn scores into probabilities.
    """

    number: int
    parent: int | None
    created: int
    clock: int
    updates: tuple[int, ...] = ()
    metrics: dict[str, Any] = field(default_factory=dict)
    full: bool = True
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    chain_bytes: int = 0
    vocabulary: dict[str, int] = field(default_factory=dict)
    calibration: dict[str, Any] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """Writes the manifest to the folder of the release, atomically, with a checksum of its own."""
        about = {"format": FORMAT, **asdict(self)}
        about["sha256"] = _checksum(about)
        with atomic_write(folder / MANIFEST) as file:
            file.write(json.dumps(about, indent=1, ensure_ascii=False).encode())

    @classmethod
    def read(cls, folder: Path, number: int) -> Release:
        """Reads and verifies the manifest in the folder of a release."""
        path = folder / MANIFEST
        try:
            if path.stat().st_size > MAX_MANIFEST:
                raise ValueError(f"it has more than {MAX_MANIFEST} bytes")
            about = json.loads(path.read_bytes())
            if about.pop("sha256") != _checksum(about):
                raise ValueError("its checksum is wrong")
            version = about.pop("format")
            if version != FORMAT:
                raise ValueError(f"format version {FORMAT} is expected (got {version})")
            release = cls(**{**about, "updates": tuple(about["updates"])})
            _check(release)
            if release.number != number:
                raise ValueError(f"it is of release {release.number}")
            if release.parent is not None and not 0 <= release.parent < number:
                raise ValueError(f"its parent must be older (got {release.parent})")
        except OSError as error:
            raise CorruptFileError(path, error.strerror or str(error)) from error
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CorruptFileError(path, f"it is no valid manifest ({error})") from error
        return release


#: What the fact store keeps of a release; the updates in a table of their own.
RECORDED = ("number", "parent", "created", "clock", "updates", "metrics")


def _check(release: Release) -> None:
    """Whether every value has the type that its users rely on: a checksum shows accidents, not intent."""
    numbers = [release.number, release.created, release.clock, release.chain_bytes, *release.updates]
    numbers += [release.number if release.parent is None else release.parent, *release.vocabulary.values()]
    for number in numbers:
        if type(number) is not int or abs(number) >= 2**62:
            raise TypeError(f"expected an integer (got {number!r})")
    if [type(value) for value in (release.full, release.metrics, release.calibration)] != [bool, dict, dict]:
        raise TypeError(f"expected a truth value and two tables (got {release})")
    for name, file in release.files.items():
        if type(file["bytes"]) is not int or type(file["sha256"]) is not str or Path(name).name != name:
            raise ValueError(f"expected bytes and sha256 of a file of the release (got {file!r} of {name!r})")
    for name, table in release.tables.items():
        if table["dtype"] not in DTYPES or not all(type(size) is int and size >= 0 for size in table["shape"]):
            raise ValueError(f"expected dtype and shape of '{name}' (got {table!r})")


def _checksum(about: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()
