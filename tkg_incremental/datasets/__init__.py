r"""Temporal knowledge graphs, ready to learn from."""

from tkg_incremental.datasets.base import TKGDataset
from tkg_incremental.datasets.download import DownloadError
from tkg_incremental.datasets.lines import DataError
from tkg_incremental.datasets.wikidata12k import Wikidata12k
from tkg_incremental.datasets.yago11k import YAGO11k

__all__ = classes = [
    "DataError",
    "DownloadError",
    "TKGDataset",
    "Wikidata12k",
    "YAGO11k",
]
