"""Progress bars: on a terminal and in notebooks. A log cannot show one."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tqdm import tqdm


def progress_bar(**options: Any) -> tqdm[Any]:
    """A bar on standard error, or a widget if the notebook has ipywidgets.

    Args:
        options: Arguments of :class:`tqdm.tqdm`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about missing ipywidgets: the bar is text then
        from tqdm.auto import tqdm
    # None: only on a terminal. The output of a notebook is none, but shows bars.
    in_notebook = type(sys.stderr).__module__.startswith("ipykernel")
    return tqdm(disable=False if in_notebook else None, **options)
