r"""Training with several processes, on one machine or many, by ``torch.distributed``."""

from tkg_incremental.distributed.communicator import DistributedCommunicator, LostProcessError, connect
from tkg_incremental.distributed.sharded import shard_entities

__all__ = classes = ["DistributedCommunicator", "LostProcessError", "connect", "shard_entities"]
