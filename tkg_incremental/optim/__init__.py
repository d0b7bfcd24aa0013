r"""Optimizers for tables of embeddings: dense Adam, and optimizers that move touched rows only."""

from tkg_incremental.optim.dense_adam import DenseAdam
from tkg_incremental.optim.rowwise import RowAdagrad, RowAdam, RowOptimizer
from tkg_incremental.optim.touched_rows import TouchedRows

__all__ = classes = ["DenseAdam", "RowAdagrad", "RowAdam", "RowOptimizer", "TouchedRows"]
