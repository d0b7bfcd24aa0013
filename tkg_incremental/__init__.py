r"""Incremental temporal knowledge graph completion: datasets, models, strategies, metrics."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tkg_incremental.live.graph import LiveGraph
    from tkg_incremental.training import IncrementalTrainer, LearningSettings, Result, TrainerSettings

__version__ = "0.1.0"

__all__ = ["IncrementalTrainer", "LearningSettings", "LiveGraph", "Result", "TrainerSettings", "__version__"]


def __getattr__(name: str) -> Any:
    # Imported on first use: torch and torch_geometric take seconds, and `tkg-incremental --help` needs neither.
    if name in __all__:
        module = "tkg_incremental.live.graph" if name == "LiveGraph" else "tkg_incremental.training"
        return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
