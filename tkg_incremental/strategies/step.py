"""What a term is given to work with."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from tkg_incremental.data import Snapshot, Timeline
from tkg_incremental.models.base import TKGModel
from tkg_incremental.sampling import NegativeSampler
from tkg_incremental.sampling.share import WHOLE, Share


@dataclass
class Step:
    """One step of learning.

    Args:
        snapshot: The step's data.
        model: The model that learns.
        previous: The model as it was before the step, frozen.
        negatives: Draws negatives.
        generator: Source of all randomness.
        share: Which part of the batch a term is given; what it draws for its rows goes through it.
    """

    snapshot: Snapshot
    model: TKGModel
    previous: TKGModel
    negatives: NegativeSampler
    generator: torch.Generator
    share: Share = WHOLE

    @property
    def timeline(self) -> Timeline:
        return self.snapshot.timeline
