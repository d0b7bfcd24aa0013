r"""Reports of runs: HTML pages, matplotlib figures for notebooks, TensorBoard."""

from tkg_incremental.report.changes import Changes
from tkg_incremental.report.page import render_report, write_report
from tkg_incremental.report.plots import (
    plot_alpha,
    plot_cost,
    plot_facts,
    plot_handovers,
    plot_losses,
    plot_metrics,
)
from tkg_incremental.report.recorder import ChangeRecorder
from tkg_incremental.report.tensorboard import TensorBoardLogger

__all__ = classes = [
    "ChangeRecorder",
    "Changes",
    "TensorBoardLogger",
    "plot_alpha",
    "plot_cost",
    "plot_facts",
    "plot_handovers",
    "plot_losses",
    "plot_metrics",
    "render_report",
    "write_report",
]
