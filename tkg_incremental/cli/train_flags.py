"""The flags of ``train``: one for each option of a run."""

from __future__ import annotations

import argparse
from pathlib import Path

from tkg_incremental.cli.arguments import add_data, add_device, one_of, positive, positive_or_all
from tkg_incremental.cli.options import DEFAULTS, SUITED
from tkg_incremental.models.zoo import DECODERS
from tkg_incremental.registry import MODELS, STRATEGIES
from tkg_incremental.sampling.replay import SAMPLINGS
from tkg_incremental.training.newcomers import NEW_ENTITIES

STRATEGY_HELP = {
    "ft": "fine-tuning: the facts that are new",
    "tr": "ft, and vectors may not drift far from the step before",
    "tie": "tr, and past facts are replayed, and facts that ended are unlearnt",
    "fb": "all facts of the last steps: slow, a yardstick",
    "fb_future": "all facts of all steps at once, future ones too: a yardstick",
    "agem": "tie, with gradients that do not harm replayed facts instead of their loss",
    "supersede": "tie, and an answer that was replaced must rank below its successor",
}


def add_flags(parser: argparse.ArgumentParser) -> None:
    """All of them, in groups. Those that are not given leave no trace, so that a file can say what they are."""
    parser.argument_default = argparse.SUPPRESS
    folder = parser.add_argument_group("the run")
    folder.add_argument("--run-dir", metavar="DIR", help="folder of the run (runs/DATASET-MODEL-STRATEGY-SEED)")
    folder.add_argument("--config", metavar="FILE", type=Path, help="a TOML or YAML file with any of these options")
    again = folder.add_mutually_exclusive_group()
    again.add_argument("--resume", action="store_true", help="continue the run of the folder")
    again.add_argument("--overwrite", action="store_true", help="replace the run of the folder")
    folder.add_argument("--seed", type=int, metavar="N", help=f"seed of everything random ({DEFAULTS.seed})")
    add_device(folder)
    folder.add_argument(
        "--checkpoint-every",
        type=positive,
        metavar="N",
        help=f"epochs between checkpoints; there is one after each step, too ({DEFAULTS.checkpoint_every})",
    )
    folder.add_argument("--base", metavar="FILE", help="share the base model between runs: read it, or leave it there")
    add_data(parser.add_argument_group("what to learn", f"By default the dataset {DEFAULTS.dataset}."))
    add_model(parser.add_argument_group("the model"))
    add_strategy(parser.add_argument_group("what to learn it from at each step", explain(STRATEGY_HELP)))
    add_learning(parser.add_argument_group("how to learn"))


def add_model(group: argparse._ActionsContainer) -> None:
    group.add_argument("--model", type=one_of(MODELS), metavar="NAME", help=f"{', '.join(MODELS)} ({DEFAULTS.model})")
    group.add_argument("--decoder", type=one_of(DECODERS), metavar="NAME", help=f"score: {', '.join(DECODERS)}")
    group.add_argument(
        "--hidden-channels", type=positive, metavar="N", help=f"width of the vectors ({DEFAULTS.hidden_channels})"
    )
    group.add_argument(
        "--max-frequency",
        type=float,
        metavar="X",
        help="DE: how fast vectors swing at first, in radians a step; the faster, the more suddenly answers can change "
        f"({suited('max_frequency', 'as in the released TIE code')})",
    )


def add_strategy(group: argparse._ActionsContainer) -> None:
    names = ", ".join(STRATEGIES)
    group.add_argument("--strategy", type=one_of(STRATEGIES), metavar="NAME", help=f"{names} ({DEFAULTS.strategy})")
    group.add_argument(
        "--learn-from", type=one_of(["added", "all"]), metavar="WHICH", help="added or all facts of a step (added)"
    )
    group.add_argument(
        "--window", type=positive, metavar="N", help=f"how many steps back facts that ended reach ({DEFAULTS.window})"
    )
    group.add_argument(
        "--replay",
        type=one_of(SAMPLINGS),
        metavar="HOW",
        help=f"sampling of past facts: {', '.join(SAMPLINGS)} ({suited('replay')})",
    )
    group.add_argument(
        "--replay-window",
        type=positive_or_all,
        metavar="N",
        help="how many steps back they reach, or all (turns of small datasets: all, others: as --window)",
    )
    group.add_argument(
        "--replay-size",
        type=positive,
        metavar="N",
        help="facts to replay in a step (1000 × window)",
    )
    group.add_argument(
        "--replay-weight",
        type=float,
        metavar="X",
        help=f"how much they weigh: with more, more of the past is kept, and lingers ({suited('replay_weight')})",
    )
    group.add_argument(
        "--drift",
        type=float,
        metavar="X",
        help=f"how strongly vectors are held to those of the step before ({suited('drift')})",
    )
    group.add_argument(
        "--lapse",
        type=float,
        metavar="X",
        help=f"supersede: how much facts weigh that ended with nothing known in their place ({suited('lapse')})",
    )
    group.add_argument(
        "--negatives", type=positive_or_all, metavar="N", help=f"wrong answers a side, or all ({suited('negatives')})"
    )
    group.add_argument(
        "--replay-negatives",
        type=positive_or_all,
        metavar="N",
        help=f"the same for replayed facts ({suited('replay_negatives')})",
    )
    group.add_argument(
        "--base-negatives", type=positive_or_all, metavar="N", help="the same for the base model (all; 500 for TransE)"
    )
    group.add_argument(
        "--negative-pool",
        type=positive,
        metavar="N",
        help=f"of a larger graph, entities that a step draws wrong answers from ({DEFAULTS.negative_pool})",
    )
    group.add_argument(
        "--new-entities",
        type=one_of(NEW_ENTITIES),
        metavar="HOW",
        help="how those that appear at a step start: settled, by their own facts; fresh, at random; or kept "
        f"({DEFAULTS.new_entities})",
    )


def add_learning(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--epochs", type=positive, metavar="N", help=f"at most so many epochs a step ({suited('epochs')})"
    )
    group.add_argument(
        "--base-epochs", type=positive, metavar="N", help="the same for the base model (small datasets: twice as many)"
    )
    group.add_argument(
        "--patience", type=positive, metavar="N", help=f"epochs to wait for a better one ({suited('patience')})"
    )
    group.add_argument("--lr", type=float, metavar="X", help=f"learning rate ({suited('lr')})")
    group.add_argument("--batch-size", type=positive, metavar="N", help=f"rows in a batch ({DEFAULTS.batch_size})")
    group.add_argument("--weight-decay", type=float, metavar="X", help="L2 penalty (none; 1e-4 with published)")
    group.add_argument(
        "--autocast", type=one_of(["bf16", "fp16"]), metavar="TYPE", help="bf16 or fp16 products, for GPUs (neither)"
    )
    group.add_argument(
        "--optimizer",
        type=one_of(["rowwise", "published"]),
        metavar="NAME",
        help="rowwise moves what a batch touches; published is the dense Adam of the released TIE code (rowwise)",
    )


def explain(meanings: dict[str, str]) -> str:
    """Names and what they mean, below each other."""
    width = max(map(len, meanings))
    return "\n".join(f"{name:{width}}  {meaning}" for name, meaning in meanings.items())


def suited(name: str, otherwise: str = "") -> str:
    """The defaults of an option that depends on the dataset."""
    small, large = SUITED[name]
    return f"small datasets: {small}, others: {otherwise or large}"
