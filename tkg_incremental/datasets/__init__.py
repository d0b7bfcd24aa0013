r"""Temporal knowledge graphs, ready to learn from."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tkg_incremental.datasets.lines import DataError

if TYPE_CHECKING:
    from tkg_incremental.datasets.base import TKGDataset
    from tkg_incremental.datasets.download import DownloadError
    from tkg_incremental.datasets.icews0515 import ICEWS0515
    from tkg_incremental.datasets.icews14 import ICEWS14
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

# Datasets need torch_geometric, which takes seconds to import, and requests. Readers of files and live graphs do not.
_MODULES = {
    "DownloadError": "download",
    "ICEWS14": "icews14",
    "ICEWS0515": "icews0515",
    "SyntheticTKG": "synthetic",
    "TKGDataset": "base",
    "TabularTKG": "tabular",
    "Wikidata12k": "wikidata12k",
    "WorldLeaders": "world_leaders",
    "YAGO11k": "yago11k",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
