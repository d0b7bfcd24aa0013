"""The live graph: a fact store, changes, releases and the folder that keeps them together."""

from tkg_incremental.live.changes import ChangeSet
from tkg_incremental.live.erase import audit_bytes, erase_storage
from tkg_incremental.live.folder import GraphFolder
from tkg_incremental.live.gate import GateReport, GateSettings
from tkg_incremental.live.graph import LiveGraph
from tkg_incremental.live.importing import NamedFacts, import_facts, read_named_facts
from tkg_incremental.live.live_settings import LiveSettings
from tkg_incremental.live.manifest import Release
from tkg_incremental.live.records import OPEN, Change, Fact, GraphFolderError, GraphLockedError, Rejection, Update
from tkg_incremental.live.releases import ReleaseFolder
from tkg_incremental.live.reports import UpdateReport
from tkg_incremental.live.store import FactStore

__all__ = [
    "OPEN",
    "Change",
    "ChangeSet",
    "Fact",
    "FactStore",
    "GateReport",
    "GateSettings",
    "GraphFolder",
    "GraphFolderError",
    "GraphLockedError",
    "LiveGraph",
    "LiveSettings",
    "NamedFacts",
    "Rejection",
    "Release",
    "ReleaseFolder",
    "Update",
    "UpdateReport",
    "audit_bytes",
    "erase_storage",
    "import_facts",
    "read_named_facts",
]
