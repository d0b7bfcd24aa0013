r"""Temporal knowledge graphs, ready to learn from."""

from tkg_incremental.datasets.base import TKGDataset
from tkg_incremental.datasets.download import DownloadError
from tkg_incremental.datasets.icews0515 import ICEWS0515
from tkg_incremental.datasets.icews14 import ICEWS14
from tkg_incremental.datasets.lines import DataError
from tkg_incremental.datasets.synthetic import SyntheticTKG
from tkg_incremental.datasets.tabular import TabularTKG
from tkg_incremental.datasets.wikidata12k import Wikidata12k
from tkg_incremental.datasets.world_leaders import WorldLeaders
from tkg_incremental.datasets.yago11k import YAGO11k

__all__ = classes = [
    "ICEWS14",
    "ICEWS0515",
    "DataError",
    "DownloadError",
    "SyntheticTKG",
    "TKGDataset",
    "TabularTKG",
    "Wikidata12k",
    "WorldLeaders",
    "YAGO11k",
]
