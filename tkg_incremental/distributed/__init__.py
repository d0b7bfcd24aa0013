r"""Several processes that train one model, on one machine or many: ``torch.distributed`` underneath."""

from tkg_incremental.distributed.sharded import shard_entities
from tkg_incremental.distributed.world import LostProcessError, Processes, World, join

__all__ = classes = ["LostProcessError", "Processes", "World", "join", "shard_entities"]
