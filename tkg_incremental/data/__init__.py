r"""Timelines, snapshots and their parts."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tkg_incremental.data.axis import TimeAxis, parse_instant
from tkg_incremental.data.facts import FactTable
from tkg_incremental.data.intervals import bin_by_count
from tkg_incremental.data.lazy_quads import LazyQuads
from tkg_incremental.data.timeline import Timeline
from tkg_incremental.data.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tkg_incremental.data.snapshot import Snapshot

__all__ = classes = [
    "FactTable",
    "LazyQuads",
    "Snapshot",
    "TimeAxis",
    "Timeline",
    "Vocabulary",
    "bin_by_count",
    "parse_instant",
]


def __getattr__(name: str) -> Any:
    # torch_geometric takes seconds to import, and a query to a saved model does not need it.
    if name == "Snapshot":
        return import_module("tkg_incremental.data.snapshot").Snapshot
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
