r"""The trainer and its parts."""

from tkg_incremental.training.callbacks import Callback, ProgressBar
from tkg_incremental.training.early_stopping import EarlyStopping
from tkg_incremental.training.learner import StepLearner
from tkg_incremental.training.new_entities import initialize_new_entities, warm_up
from tkg_incremental.training.result import Result
from tkg_incremental.training.run_folder import RunFolder, RunFolderError
from tkg_incremental.training.settings import BaseSettings, LearningSettings, TrainerSettings
from tkg_incremental.training.trainer import IncrementalTrainer

__all__ = classes = [
    "BaseSettings",
    "Callback",
    "EarlyStopping",
    "IncrementalTrainer",
    "LearningSettings",
    "ProgressBar",
    "Result",
    "RunFolder",
    "RunFolderError",
    "StepLearner",
    "TrainerSettings",
    "initialize_new_entities",
    "warm_up",
]
