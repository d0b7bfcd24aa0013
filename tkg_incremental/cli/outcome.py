"""What ``train`` prints: the data it found, the metrics, and how many facts the model has learnt."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

from tkg_incremental.text import printable

if TYPE_CHECKING:
    from tkg_incremental.datasets import TKGDataset
    from tkg_incremental.training import Result

# A share below this is worth a warning.
ENOUGH = 0.9


def print_dataset(dataset: TKGDataset) -> None:
    """Describes the dataset on standard error; for own facts with the unit of time and what is withheld."""
    from tkg_incremental.datasets import TabularTKG

    print(printable(str(dataset)), file=sys.stderr)
    if not isinstance(dataset, TabularTKG):
        return
    print(f"unit of time: {dataset.unit_reason}", file=sys.stderr)
    counts = {name: len(dataset.timeline.split(name).facts) for name in ("val", "test")}
    if any(counts.values()):
        text = f"withheld: {counts['val']} facts for validation and {counts['test']} for test"
        print(f"{text}; they are not learnt", file=sys.stderr)


def print_result(result: Result, own_facts: bool) -> None:
    """Prints the metrics of a run and the share of its facts that rank first; warns if that is low.

    Args:
        result: The metrics.
        own_facts: Whether the facts are a user's own, which a model is expected to know.
    """
    if has_metrics(result):
        print(result)
    else:
        print(str(result).splitlines()[0])
        print("No facts were withheld, so there are no metrics: --holdout 0.1 withholds a tenth.")
    share = result.known_ranked_first
    if math.isnan(share):
        return
    print(f"facts given that rank first: {share:.0%}")
    if own_facts and share < ENOUGH:
        print(
            f"warning: {1 - share:.0%} of the facts given do not rank first, so answers about them may be wrong. Try "
            "more --base-epochs and --epochs, a larger --hidden-channels, a smaller --n3, or a coarser --unit.",
            file=sys.stderr,
        )


def has_metrics(result: Result) -> bool:
    """Whether there was anything to evaluate."""
    found = result.link_prediction or {name: result.summary[name] for name in ("C@10", "A@10", "MRR")}
    return any(not math.isnan(value) for value in found.values())
