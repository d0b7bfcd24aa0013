r"""The trainer, and what it is made of."""

from tkg_incremental.training.callbacks import Callback, ProgressBar
from tkg_incremental.training.early_stopping import EarlyStopping
from tkg_incremental.training.learner import LearningSettings, StepLearner, TrainingError
from tkg_incremental.training.newcomers import settle
from tkg_incremental.training.optimizers import PublishedAdam, RowAdam
from tkg_incremental.training.result import Result
from tkg_incremental.training.run_folder import RunFolder, RunFolderError
from tkg_incremental.training.trainer import IncrementalTrainer

__all__ = classes = [
    "Callback",
    "EarlyStopping",
    "IncrementalTrainer",
    "LearningSettings",
    "ProgressBar",
    "PublishedAdam",
    "Result",
    "RowAdam",
    "RunFolder",
    "RunFolderError",
    "StepLearner",
    "TrainingError",
    "settle",
]
