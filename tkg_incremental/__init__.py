r"""Incremental temporal knowledge graph completion: datasets, models, strategies, metrics."""

from tkg_incremental.training import IncrementalTrainer, LearningSettings, Result, TrainerSettings

__version__ = "0.1.0"

__all__ = ["IncrementalTrainer", "LearningSettings", "Result", "TrainerSettings", "__version__"]
