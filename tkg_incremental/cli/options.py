"""The options of a run, each defined once: flags, configuration files and ``run.json`` are derived from this table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tkg_incremental.cli.arguments import columns, device, one_of, positive, positive_or_all, seed, share, weight, whole
from tkg_incremental.cli.errors import BadDataError, UsageError
from tkg_incremental.registry import DATASETS, DECODERS, MODELS, STRATEGIES
from tkg_incremental.run_file import RUN_FILE, read_run_file, write_run_file

if TYPE_CHECKING:
    from tkg_incremental.datasets.options import ReadOptions

SAMPLINGS = ("uniform", "frequency", "inverse", "boundary", "fact")
UNITS = ("auto", "hour", "day", "week", "month", "quarter", "year", "index")
# A graph with at least this many train quads counts as large. A small one needs fewer epochs and larger steps.
_LARGE = 100_000

#: Options of how a file of facts is read.
READING = ("columns", "delimiter", "dayfirst", "date_format", "keep_outliers")
_REPLAY = ("tie", "agem", "supersede")
_STEPWISE = [name for name in STRATEGIES if name != "fb_future"]
# Models with a vector per step.
_TIME_TABLES = ("HyTE", "TComplEx", "TNTComplEx", "ChronoR", "TTransE", "TeRo")
# Model and optimization of own facts, those of a live graph. Company graphs of 380 facts: 97.5% of them rank first, 88%
# with DE and Adam.
OWN_FACTS = {
    "model": "TNTComplEx", "reciprocal": True, "optimizer": "adagrad", "lr": 0.1, "batch_size": 1000,
    "n3": 3e-3, "smoothness": 0.01,
}  # fmt: skip


def option(
    default: Any,
    group: str,
    text: str,
    kind: Callable[[str], Any] = str,
    metavar: str = "NAME",
    suited: tuple[Any, Any] | None = None,
    used_by: Collection[str] | None = None,
    needs: str | None = None,
) -> Any:
    """One option.

    Args:
        default: Its value if it is not given; :obj:`None` if it depends on the dataset or the model.
        group: Its group in the help.
        text: Its help.
        kind: Parses its text; ``bool`` for a flag without a value.
        metavar: The name of its value in the help.
        suited: Its default for small and for large datasets.
        used_by: The strategies or the models that use it; all by default.
        needs: An option without which it has no effect, perhaps with its value: ``"optimizer adagrad"``.
    """
    metadata = {
        "group": group, "text": text, "kind": kind, "metavar": metavar,
        "suited": suited, "used_by": used_by, "needs": needs,
    }  # fmt: skip
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class RunOptions:
    """The options of a run. Those that are :obj:`None` are chosen by the dataset, the model or the strategy."""

    seed: int = option(0, "run", "seed of everything random", seed, "N")
    device: str = option("auto", "run", "auto, cpu, cuda or mps", device, "DEVICE")
    checkpoint_every: int = option(10, "run", "epochs between checkpoints; one follows each step, too", positive, "N")
    exclude_ended: bool = option(
        False, "run", "rank answers that have ended, by the train facts, behind all others (not for events)", bool
    )
    base: str | None = option(None, "run", "share the base model between runs: read or write this file", str, "FILE")

    dataset: str = option("WorldLeaders", "data", f"a dataset by name: {', '.join(DATASETS)}", one_of(DATASETS))
    root: str = option("data", "data", "folder of the datasets", str, "DIR")
    facts: str | None = option(
        None,
        "data",
        "your own facts instead: CSV, TSV, JSON lines or Parquet with head, rel, tail and time or start, end",
        str,
        "FILE",
    )
    val: str | None = option(None, "data", "validation facts", str, "FILE", needs="facts")
    test: str | None = option(None, "data", "test facts", str, "FILE", needs="facts")
    holdout: float = option(
        0.0, "data", "share of the facts withheld for validation and test; by default all are learnt", share, "X",
        needs="facts",
    )  # fmt: skip
    unit: str = option("auto", "data", f"unit of time: {', '.join(UNITS)}", one_of(UNITS), "UNIT", needs="facts")
    threshold: int | None = option(
        None, "data", "make steps with more than N starts and ends each, instead of one per unit", positive, "N",
        needs="facts",
    )  # fmt: skip
    columns: str | None = option(
        None, "data", "which column is which, e.g. head=Employee,rel=Role,start=Hired", columns, "MAP", needs="facts"
    )
    delimiter: str | None = option(None, "data", "separator of the fields (detected)", str, "C", needs="facts")
    dayfirst: bool = option(False, "data", "read 03/04/2024 as 3 April", bool, needs="facts")
    date_format: str | None = option(
        None, "data", "format of the dates as in strptime, or unix, or unix_ms", str, "FORMAT", needs="facts"
    )
    keep_outliers: bool = option(False, "data", "accept dates far outside of all others", bool, needs="facts")

    model: str = option("DE", "model", f"{', '.join(MODELS)} (own facts: TNTComplEx)", one_of(MODELS))
    decoder: str | None = option(
        None, "model", f"score: {', '.join(DECODERS)}", one_of(DECODERS), used_by=("DE", "Static", "CalendarDE")
    )
    hidden_channels: int = option(128, "model", "width of the vectors", positive, "N")
    max_frequency: float | None = option(
        None,
        "model",
        "highest initial frequency of the vectors, in radians per step; with more, answers can change faster",
        float,
        "X",
        suited=(0.3, None),  # answers of a small graph can change from one step to the next
        used_by=("DE", "CalendarDE"),
    )
    dropout: float | None = option(
        None, "model", "share of the channels of a query dropped in training", share, "X", used_by=("CalendarDE",)
    )
    temporal_share: float | None = option(
        None, "model", "share of the channels that depend on time", share, "X", used_by=("CalendarDE", "ChronoR")
    )
    reciprocal: bool = option(False, "model", "a second vector per relation, for head queries", bool)

    protocol: str = option(
        "incremental", "strategy", "incremental: step by step; joint: all steps at once, then link prediction",
        one_of(("incremental", "joint")),
    )  # fmt: skip
    strategy: str = option("tie", "strategy", f"{', '.join(STRATEGIES)}", one_of(STRATEGIES), used_by=STRATEGIES)
    learn_from: str = option(
        "added", "strategy", "added or all facts of a step", one_of(("added", "all")), "WHICH",
        used_by=("ft", "tr", "tie", "agem"),
    )  # fmt: skip
    window: int = option(10, "strategy", "steps that deleted facts reach back", positive, "N", used_by=(*_REPLAY, "fb"))
    replay: str | None = option(
        None, "strategy", f"replay sampling: {', '.join(SAMPLINGS)}", one_of(SAMPLINGS),
        suited=("boundary", "uniform"), used_by=_REPLAY,
    )  # fmt: skip
    replay_window: int | str | None = option(
        None,
        "strategy",
        "steps that replayed facts reach back, or all (boundary facts of small datasets: all, others: as --window)",
        positive_or_all,
        "N",
        used_by=_REPLAY,
    )
    replay_size: int | None = option(
        None, "strategy", "replayed facts per step (1000 × window; supersede: 600 × window)", positive, "N",
        used_by=_REPLAY,
    )  # fmt: skip
    replay_weight: float | None = option(
        None, "strategy", "weight of replayed facts", weight, "X", suited=(5.0, 1.0), used_by=("tie", "supersede")
    )
    regularization: float | None = option(
        None, "strategy", "weight of the temporal regularization", weight, "X", suited=(0.03, 1.0),
        used_by=("tr", *_REPLAY),
    )  # fmt: skip
    unlikelihood: float | None = option(
        None, "strategy", "weight of deleted facts without a successor", weight, "X",
        # Half of the answers that change in WorldLeaders have no known successor; few in YAGO11k.
        suited=(2.0, 0.0), used_by=("supersede",),
    )  # fmt: skip
    unlikelihood_of: str = option(
        "unreplaced", "strategy", "deleted facts that become unlikely: unreplaced or all",
        one_of(("unreplaced", "all")), "WHICH", used_by=("supersede",),
    )  # fmt: skip
    unlikelihood_negatives: int = option(
        50, "strategy", "negatives per query of deleted facts; with more, they need not fall as low", positive, "N",
        used_by=("supersede",),
    )  # fmt: skip
    contrast: float | None = option(
        None, "strategy", "weight of current facts against the facts they replaced (8; events: 0)", weight, "X",
        used_by=("supersede",),
    )  # fmt: skip
    deletion: float | None = option(
        None, "strategy", "weight of deleted facts (1; events: 0)", weight, "X", used_by=("tie", "agem")
    )
    current: int | str = option(
        "all", "strategy", "facts of the step that are learnt beside the added ones, or all", positive_or_all, "N",
        used_by=("supersede",),
    )  # fmt: skip
    repeats: int = option(1, "strategy", "visits of an added fact per epoch", positive, "N", used_by=("supersede",))
    negatives: int | str | None = option(
        None, "strategy", "negatives per query, or all", positive_or_all, "N",
        # The entities of a small graph are fewer than the negatives one would draw.
        suited=("all", 500), used_by=("ft", "tr", "tie", "fb", "supersede"),
    )  # fmt: skip
    replay_negatives: int | str | None = option(
        None, "strategy", "negatives per query of replayed facts", positive_or_all, "N", suited=("all", 50),
        used_by=_REPLAY,
    )  # fmt: skip
    new_entities: str = option(
        "warm_up", "strategy", "entities that appear at a step: warm_up on their own facts, initialize, or keep",
        one_of(("warm_up", "initialize", "keep")), "HOW", used_by=_STEPWISE,
    )  # fmt: skip
    candidates: str = option(
        "own", "strategy", "wrong answers to facts of the past: entities known then (own) or now (last; own facts)",
        one_of(("own", "last")), "WHICH", used_by=_STEPWISE,
    )  # fmt: skip
    negative_pool: int = option(
        5_000, "strategy", "number of entities to draw negatives from, in larger graphs", positive, "N",
        used_by=_STEPWISE,
    )  # fmt: skip

    epochs: int | None = option(
        None, "learning", "maximum number of epochs per step", positive, "N", suited=(10, 100), used_by=STRATEGIES
    )
    base_epochs: int | None = option(
        None, "learning", "the same for the base model or --protocol joint (small datasets: 20, others: 100)", positive,
        "N",
    )  # fmt: skip
    base_negatives: int | str | None = option(
        None, "learning", "negatives per query of the base model (all; 500 for distances)", positive_or_all, "N"
    )
    base_visits: int | None = option(
        None, "learning", "visits of a fact per epoch of the base model, at random steps (at most 10; else every step)",
        positive, "N",
    )  # fmt: skip
    shared_negatives: bool = option(
        False, "learning",
        "the facts of a batch share their negatives (joint: those of a step, if entities depend on time)", bool,
    )  # fmt: skip
    patience: int | None = option(
        None, "learning", "epochs to wait for an improvement; 0 for all epochs, as with own facts", whole, "N",
        suited=(5, 20),
    )  # fmt: skip
    lr: float | None = option(None, "learning", "learning rate", float, "X", suited=(5e-3, 1e-3))
    cooldown: int = option(
        0, "learning", "epochs at the end in which the learning rate of --protocol joint falls towards zero", whole, "N"
    )
    batch_size: int = option(2048, "learning", "facts per batch", positive, "N")
    together: int = option(
        1, "learning", "facts of one step that are put into a batch together: cheaper if entities depend on time",
        positive, "N",
    )  # fmt: skip
    optimizer: str = option(
        "rowwise", "learning", "rowwise: Adam on touched rows; published: dense Adam of the released TIE code; adagrad",
        one_of(("rowwise", "published", "adagrad")),
    )  # fmt: skip
    accumulator: float = option(
        0.0, "learning", "adagrad: initial sum of squares of a step; with 1e-6, rows with tiny gradients hardly move",
        weight, "X", needs="optimizer adagrad",
    )  # fmt: skip
    weight_decay: float | None = option(None, "learning", "L2 penalty (0; published: 1e-4)", weight, "X")
    max_norm: float | None = option(
        None, "learning", "clip gradients to this norm, 0 for no clipping (1; adagrad: 0)", weight, "X"
    )
    validate_every: int = option(1, "learning", "epochs between validations", positive, "N")
    n3: float = option(0.0, "learning", "weight of the N3 regularization", weight, "X")
    smoothness: float = option(
        0.0, "learning", "weight of the smoothness of vectors over time", weight, "X", used_by=_TIME_TABLES
    )
    autocast: str | None = option(
        None, "learning", "bf16 or fp16: precision of matrix products", one_of(("bf16", "fp16")), "TYPE"
    )

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> RunOptions:
        """The options that were given, with the defaults for own facts where these are learnt.

        Own facts are learnt by a model that knows what it is given, without early stopping: a few withheld facts are no
        reason to stop before the others are learnt.
        """
        if given.get("facts") is None:
            return cls(**given)
        own: dict[str, Any] = {"patience": 0, "candidates": "last"}
        if "model" not in given and "optimizer" not in given:
            own |= OWN_FACTS
        return cls(**{**own, **given})

    def suited_to(self, num_quads: int, is_events: bool = False) -> RunOptions:
        """The same options with the defaults for a dataset of this size and kind.

        Args:
            num_quads: Number of train quads.
            is_events: Whether all facts are point events. They are over after one step, although they may well happen
                again, so that by default nothing is learnt from their end.
        """
        large = num_quads >= _LARGE
        chosen = {
            each.name: each.metadata["suited"][large]
            for each in fields(self)
            if each.metadata["suited"] and getattr(self, each.name) is None and self.uses(each.name)
        }
        if self.base_epochs is None:
            steps = self.epochs or chosen.get("epochs") or (10, 100)[large]
            chosen["base_epochs"] = steps * (1 if large else 2)
        for name, usual in (("contrast", 8.0), ("deletion", 1.0), ("unlikelihood", None)):
            if getattr(self, name) is None and self.uses(name) and (is_events or usual is not None):
                chosen[name] = 0.0 if is_events else usual
        if self.replay_window is None and chosen.get("replay", self.replay) == "boundary" and not large:
            chosen["replay_window"] = "all"  # with other samplings the whole past would be too much
        return replace(self, **chosen)

    def uses(self, name: str) -> bool:
        """Whether the model, the strategy or the protocol uses an option."""
        used_by = OPTIONS[name].metadata["used_by"]
        if used_by is None:
            return True
        return self._user(used_by) in used_by

    @property
    def learns_deleted_facts(self) -> bool:
        """Whether the strategy has a term for deleted facts whose weight was not given."""
        return any(self.uses(name) and getattr(self, name) is None for name in ("contrast", "deletion"))

    def _user(self, used_by: Collection[str]) -> str:
        """What decides whether an option is used: the model, the strategy or the protocol."""
        if set(used_by) <= set(MODELS):
            return self.model
        return "joint" if self.protocol == "joint" else self.strategy

    def refuse_unused(self, given: Mapping[str, Any]) -> None:
        """Raises an error for an option that was given and has no effect."""
        for name in given:
            each = OPTIONS[name]
            flag = f"--{name.replace('_', '-')}"
            if not self.uses(name):
                used_by = each.metadata["used_by"]
                remedy = f"it goes with {', '.join(used_by)}"
                if self.protocol == "joint" and f"base_{name}" in OPTIONS:
                    remedy = f"--base-{flag[2:]} has"
                raise UsageError(f"{flag} has no effect with {self._user(used_by)} (got {given[name]!r}); {remedy}")
            needed, _, value = (each.metadata["needs"] or "").partition(" ")
            found = getattr(self, needed) if needed else ""
            if found is None or (value and found != value):
                raise UsageError(f"{flag} goes with --{each.metadata['needs']} (got {given[name]!r})")
        if given.get("holdout") and (self.val or self.test):
            raise UsageError(f"--holdout has no effect with --val or --test (got {given['holdout']!r})")

    def read_options(self) -> ReadOptions:
        """How the file of facts is read."""
        from tkg_incremental.datasets.options import ReadOptions

        pairs = [part.split("=", 1) for part in self.columns.split(",")] if self.columns else []
        return ReadOptions(
            columns={key.strip(): name.strip() for key, name in pairs} or None,
            delimiter={"\\t": "\t", "tab": "\t"}.get(self.delimiter or "", self.delimiter),
            dayfirst=self.dayfirst,
            date_format=self.date_format,
            outliers="keep" if self.keep_outliers else "error",
        )

    def save(self, run_dir: Path, command: str = "") -> None:
        """Writes ``run.json``: the options, the version, the date and the command."""
        options: dict[str, Any] = asdict(self)
        for name in ("facts", "val", "test", "root", "base"):  # a run may be resumed from another folder
            if options[name] is not None:
                options[name] = str(Path(options[name]).absolute())
        write_run_file(run_dir, options, command)

    @classmethod
    def load(cls, run_dir: Path) -> RunOptions:
        """Reads ``run.json``."""
        try:
            state = read_run_file(run_dir)
            if state:
                return cls(**state["options"])
        except ValueError as error:
            raise BadDataError(str(error)) from None
        except (KeyError, TypeError) as error:
            raise BadDataError(f"'{run_dir / RUN_FILE}' is damaged or of another version: {error}") from None
        raise BadDataError(f"there is no run of the command line in '{run_dir}' (no {RUN_FILE})")


#: The fields of :class:`RunOptions` by name.
OPTIONS = {each.name: each for each in fields(RunOptions)}
DEFAULTS = RunOptions()
