r"""Timelines, snapshots and what they are made of."""

from tkg_incremental.data.axis import TimeAxis, parse_instant
from tkg_incremental.data.facts import FactTable
from tkg_incremental.data.intervals import bin_by_count, expand_intervals
from tkg_incremental.data.snapshot import Snapshot
from tkg_incremental.data.timeline import Timeline
from tkg_incremental.data.vocabulary import Vocabulary

__all__ = classes = [
    "FactTable",
    "Snapshot",
    "TimeAxis",
    "Timeline",
    "Vocabulary",
    "bin_by_count",
    "expand_intervals",
    "parse_instant",
]
