r"""Timelines, snapshots and their parts."""

from tkg_incremental.data.axis import TimeAxis, parse_instant
from tkg_incremental.data.facts import FactTable
from tkg_incremental.data.intervals import bin_by_count, expand_intervals
from tkg_incremental.data.lazy_quads import LazyQuads
from tkg_incremental.data.snapshot import Snapshot
from tkg_incremental.data.timeline import Timeline
from tkg_incremental.data.vocabulary import Vocabulary

__all__ = classes = [
    "FactTable",
    "LazyQuads",
    "Snapshot",
    "TimeAxis",
    "Timeline",
    "Vocabulary",
    "bin_by_count",
    "expand_intervals",
    "parse_instant",
]
