"""What the numbers of a report mean, in plain words."""

from __future__ import annotations

from typing import NamedTuple


class Meaning(NamedTuple):
    """A metric for someone who meets it first.

    Args:
        title: What it is called in full.
        better: ``"higher"`` or ``"lower"``; empty if neither is better.
        unit: What its axis counts.
        text: The paper's definition in plain words; ``{window}`` stands for the window of deleted facts.
    """

    title: str
    better: str
    unit: str
    text: str

    @property
    def arrow(self) -> str:
        return {"higher": "↑ higher is better", "lower": "↓ lower is better"}.get(self.better, "")


MEANINGS = {
    "C@10": Meaning(
        "current facts",
        "higher",
        "% of test questions",
        "How well does the model answer questions about the step it has just learnt? The share of its test questions "
        "(who? and whom?) whose right answer is among the first 10, other right answers left aside.",
    ),
    "A@10": Meaning(
        "average over the past",
        "higher",
        "% of test questions",
        "How well does it still answer questions about all steps so far? The same share for each step up to this one, "
        "averaged over the steps. It falls when the model forgets.",
    ),
    "DF@10": Meaning(
        "deleted facts",
        "lower",
        "% of deleted answers",
        "How often does it still believe what is over? Of the answers to the test questions that were true in the "
        "{window} steps before and are not now, the share that still comes among the first 10.",
    ),
    "RRD": Meaning(
        "reciprocal rank difference",
        "higher",
        "100 × difference",
        "Do facts that hold rank above the facts they replaced? 1/rank of the right answer minus 1/rank of a deleted "
        "answer, averaged over all such pairs, times 100. Above 0 the present wins.",
    ),
    "MRR": Meaning("mean reciprocal rank", "higher", "%", "Mean of 1/rank of the right answers of the current step."),
    "F@10": Meaning(
        "forgetting", "lower", "percentage points", "What was lost, on average, since each earlier step was known best."
    ),
    "data_size": Meaning(
        "data size", "lower", "labelled facts per epoch", "Facts trained on in one epoch, sampled negatives included."
    ),
    "epoch_seconds": Meaning("time per epoch", "lower", "seconds", "Training time of one epoch, without evaluation."),
}

#: What the losses of the strategies are.
LOSSES = {
    "CE": "new facts against wrong answers",
    "RCE": "replayed facts against wrong answers",
    "RKD": "distance to the previous model on replayed facts",
    "del": "deleted facts taken for true",
    "TR": "movement of what was known",
    "val C@10": "validation: % of questions answered among the first 10",
}
