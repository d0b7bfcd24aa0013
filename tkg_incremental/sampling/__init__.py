r"""What a model is shown beside the facts themselves: negatives and replayed facts."""

from tkg_incremental.sampling.negatives import NegativeSampler
from tkg_incremental.sampling.pool import Pool
from tkg_incremental.sampling.replay import replay_weights, sample_replay

__all__ = classes = ["NegativeSampler", "Pool", "replay_weights", "sample_replay"]
