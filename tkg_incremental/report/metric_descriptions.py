"""Descriptions of metrics and losses."""

from __future__ import annotations

from typing import NamedTuple

ARROWS = {"higher": "↑ higher is better", "lower": "↓ lower is better"}


class Description(NamedTuple):
    """A metric.

    Args:
        title: Its full name.
        better: ``"higher"`` or ``"lower"``; empty if neither is better.
        unit: Unit of its axis.
        text: The paper's definition; ``{window}`` stands for the window of deleted facts.
    """

    title: str
    better: str
    unit: str
    text: str

    @property
    def arrow(self) -> str:
        return ARROWS.get(self.better, "")


DESCRIPTIONS = {
    "C@10": Description(
        "current facts",
        "higher",
        "% of test questions",
        "Share of the test questions of the current step (head and tail queries) whose answer is among the first 10, "
        "without other true answers.",
    ),
    "A@10": Description(
        "average over all steps so far",
        "higher",
        "% of test questions",
        "The same share for each step up to the current one, averaged over the steps. It falls when the model forgets.",
    ),
    "DF@10": Description(
        "deleted facts",
        "lower",
        "% of deleted answers",
        "Of the answers to test questions that were true in the {window} steps before and are not true now, the share "
        "that is still among the first 10.",
    ),
    "RRD": Description(
        "reciprocal rank difference",
        "higher",
        "100 × difference",
        "1/rank of the true answer minus 1/rank of a deleted answer, averaged over all such pairs, times 100. Above 0, "
        "current facts rank above the facts they replaced.",
    ),
    "MRR": Description(
        "mean reciprocal rank", "higher", "%", "Mean of 1/rank of the true answers of the current step."
    ),
    "F@10": Description(
        "forgetting",
        "lower",
        "percentage points",
        "Hits@10 on earlier steps: the best value so far minus the current one, averaged.",
    ),
    "Hits@1": Description("first answer", "higher", "%", "Share of the questions whose answer is the first."),
    "Hits@3": Description(
        "first 3 answers", "higher", "%", "Share of the questions with the answer among the first 3."
    ),
    "Hits@10": Description(
        "first 10 answers", "higher", "%", "Share of the questions with the answer among the first 10."
    ),
    "data_size": Description(
        "data size", "lower", "labelled facts per epoch", "Facts per epoch, sampled negatives included."
    ),
    "epoch_seconds": Description(
        "time per epoch", "lower", "seconds", "Training time of one epoch, without evaluation."
    ),
}

#: Descriptions of the losses.
LOSSES = {
    "CE": "added facts against negatives",
    "CE current": "all facts of the step against negatives",
    "RCE": "replayed facts against negatives",
    "RKD": "divergence from the previous model on replayed facts",
    "del": "deleted facts, with the label 0",
    "TR": "temporal regularization: change of known vectors",
    "contrast": "current facts against the facts they replaced",
    "unlikelihood": "deleted facts without a successor",
    "val C@10": "validation: % of questions with the answer among the first 10",
    "val MRR": "validation: mean reciprocal rank, in %",
}
