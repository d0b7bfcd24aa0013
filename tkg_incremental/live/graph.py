"""The live graph: a fact store and a model that is updated with each change."""

from __future__ import annotations

import math
import os
import time as clock_time
from collections.abc import Iterable
from dataclasses import asdict
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tkg_incremental.answers import Answer, AnswerEngine, TimelinePoint
from tkg_incremental.answers.calibrate import fit_calibration
from tkg_incremental.data.units import format_instant
from tkg_incremental.datasets.options import ReadOptions
from tkg_incremental.live.changes import Change, ChangeSet, Validation
from tkg_incremental.live.clock import GraphClock
from tkg_incremental.live.erase import audit_bytes, erase_storage
from tkg_incremental.live.folder import GraphFolder
from tkg_incremental.live.gate import (
    GateReport,
    GateSettings,
    judge,
    neighbour_overlap,
    neighbours,
    share_first,
    share_outranked,
)
from tkg_incremental.live.importing import import_arrays
from tkg_incremental.live.known import StoreFacts, StoreNames
from tkg_incremental.live.learning import (
    MAX_WHOLE,
    ChangedFacts,
    LiveSettings,
    changed_facts,
    make_timeline,
    partial_timeline,
    steps_of_facts,
    train_update,
    train_whole,
    whole_timeline,
)
from tkg_incremental.live.reading import read_named_facts
from tkg_incremental.live.records import Release
from tkg_incremental.live.reports import UpdateReport
from tkg_incremental.metrics.calibration import Calibration
from tkg_incremental.models.base import TKGModel
from tkg_incremental.seeding import make_generator

# Facts that a calibration is fitted on, and the share of all facts that they are at most.
_CALIBRATION_FACTS, _CALIBRATION_SHARE = 400, 0.1


class LiveGraph:
    """A graph folder that is opened for questions and updates. Use as a context manager, or call :meth:`close`.

    .. code-block:: python

        graph = LiveGraph.create("graphs/company", facts="facts.csv", unit="day")
        graph.train()
        print(graph.update("changes.csv"))
        graph.query(None, "leads", "R&D", at="2026-11-18")

    Args:
        path: The folder.
        write: Take the writer lock at once. Otherwise it is taken for each update.
    """

    def __init__(self, path: str | os.PathLike[str], write: bool = False) -> None:
        self.folder = GraphFolder(path, write=write)
        tables = self.folder.settings
        self.settings = LiveSettings.from_tables(tables.get("model", {}), tables.get("learning", {}))
        self.gate = GateSettings.from_table(tables.get("gate", {}))

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        facts: Any,
        unit: str = "auto",
        read: ReadOptions | None = None,
        settings: LiveSettings | None = None,
        gate: GateSettings | None = None,
    ) -> LiveGraph:
        """Creates a graph folder and imports facts. :meth:`train` then makes release 0.

        Args:
            path: The folder; must be empty or missing.
            facts: A CSV, TSV, JSON lines or Parquet file, or a data frame.
            unit: Unit of time: ``"hour"``, ``"day"``, … or ``"auto"``.
            read: How the file is read.
            settings: The model and how it learns.
            gate: What an update must reach.
        """
        found = read_named_facts(facts, unit, read)
        chosen = asdict(settings or LiveSettings())
        model = {key: chosen.pop(key) for key in ("name", "hidden_channels", "seed")}
        about = {
            "graph": {"first": int(found.valid_from.min()), "unit_reason": found.unit_reason},
            "model": model,
            "learning": chosen,
            "gate": asdict(gate or GateSettings()),
        }
        folder = GraphFolder.create(path, found.unit, about)
        with folder:
            import_arrays(folder.store, found.entities, found.relations, *found[4:])
        return cls(path)

    # Training and updates ------------------------------------------------------------------------------

    def train(self, calibrate: bool = True) -> UpdateReport:
        """Trains a model on all facts and makes it the current release.

        With ``calibrate``, some facts are first left out to fit probabilities on; then all facts are learnt.
        """
        begin = clock_time.perf_counter()
        with self._writing():
            store, clock, settings = self.folder.store, self.clock, self.settings
            everything = whole_timeline(store, clock)
            model = settings.make_model(store.num_entities, store.num_relations, clock.num_steps)
            calibration, epochs = None, settings.epochs
            if calibrate and len(everything.observed) >= 50:
                held_out = self._held_out(len(everything.observed.facts))
                facts = everything.observed.facts
                nothing = facts[:0]
                rest = make_timeline(facts[~held_out], store, clock)
                train_whole(model, rest, settings, epochs)
                splits = {"train": facts[~held_out], "val": facts[held_out], "test": nothing}
                timeline = type(everything)(splits, everything.num_entities, everything.num_relations, clock.axis)
                generator = make_generator(settings.seed, "calibration")
                quads = timeline.val.between(0, clock.num_steps - 1).sample(_CALIBRATION_FACTS, generator)
                calibration = fit_calibration(self._engine(model), timeline, quads, generator)
                epochs = max(1, epochs // 3)
            train_whole(model, everything, settings, epochs)
            quads = everything.observed.at(clock.num_steps - 1)
            kept = share_first(self._engine(model), self._some(quads))
            finite = all(bool(table.isfinite().all()) for table in model.encoder.tables().values())
            report = GateReport(math.nan, kept, kept, math.nan, math.nan, finite)
            number = self._commit(model, None, report, calibration)
        seconds = clock_time.perf_counter() - begin
        return UpdateReport("released", number, report, facts=store.num_facts, seconds=seconds)

    def update(
        self,
        changes: Any = None,
        *,
        added: Iterable[tuple[Any, ...]] = (),
        ended: Iterable[tuple[Any, ...]] = (),
        retracted: Iterable[tuple[Any, ...]] = (),
        full: Any = None,
        at: Any = None,
        dry_run: bool = False,
        force: bool = False,
        skip_rejected: bool = False,
    ) -> UpdateReport:
        """Applies changes, learns them, and releases the model if it passes the gate.

        Args:
            changes: A file or data frame with an ``op`` column: ``add``, ``end`` or ``retract``.
            added: Facts ``(head, rel, tail)`` that begin at ``at``, or ``(head, rel, tail, at)``.
            ended: Facts that no longer hold from ``at`` on.
            retracted: Facts that were never true.
            full: A new full export instead of changes: the differences are the changes.
            at: When changes without a date of their own take effect; by default the step after the last one.
            dry_run: Only validate.
            force: Release even if the gate refuses.
            skip_rejected: Apply the valid changes even if others are rejected.
        """
        begin = clock_time.perf_counter()
        with self._writing():
            found = self._changes(changes, added, ended, retracted, full, at)
            validation = found.validate(self.folder.store, self.show)
            counts = _counts(validation)
            seen = self.folder.store.find_update(found.content_hash) if len(found) else None
            if seen is not None and seen.state == "applied":
                return UpdateReport("unchanged", self.current, notes=("the same changes were applied before",))
            if validation.rejected and not skip_rejected:
                return UpdateReport("rejected", self.current, rejected=tuple(validation.rejected), **counts)
            if dry_run:
                return UpdateReport("valid", self.current, rejected=tuple(validation.rejected), **counts)
            if seen is None or seen.state != "pending":
                now = self._now_after(validation.accepted, at)
                self.folder.store.record(validation.accepted, now, found.content_hash, str(changes or full or "")[:200])
            report = self._learn(force)
        extra = {"rejected": tuple(validation.rejected), "notes": tuple(validation.notes), **counts}
        return UpdateReport(seconds=clock_time.perf_counter() - begin, **{**extra, **report})

    def _learn(self, force: bool) -> dict[str, Any]:
        """Learns all pending updates and releases the result."""
        store, settings = self.folder.store, self.settings
        pending = store.updates("pending")
        now = max([update.clock for update in pending], default=self.clock.now)
        clock = GraphClock(self.clock.origin, max(now, self.clock.now), self.clock.unit)
        changes = [change for update in pending for change in store.changes(update.id)]
        rng = np.random.default_rng(make_generator(settings.seed, "replay", len(store.releases())).initial_seed())
        model = self._load_model(writable=True)
        old_entities, old_steps = model.encoder.sizes["entity"], model.encoder.sizes["time"]
        sample = self._old_facts()
        before_engine = self._engine(self.model, self.clock)
        kept_before = share_first(before_engine, sample)
        probe, others = self._probe(old_entities)
        near_before = neighbours(model, probe, others)
        with store.preview():
            changed = changed_facts(changes, store, clock)
            replay = self._replay(clock, rng)
            timeline = (
                whole_timeline(store, clock)
                if store.num_facts <= MAX_WHOLE
                else partial_timeline(store, clock, changed, replay)
            )
            new_entities = store.num_entities - old_entities
            model.expand(
                store.num_entities,
                store.num_relations,
                clock.num_steps,
                make_generator(settings.seed, "growth", store.num_entities),
            )
            engine = self._engine(model, clock)
            still = sample[self._hold(sample, clock)]
            moved: dict[str, Tensor] = {}

            def report() -> GateReport:
                finite = all(bool(table.isfinite().all()) for table in model.encoder.tables().values())
                first = changed.added[_first_of_each(changed.added)]
                return GateReport(
                    learned=share_first(engine, first),
                    kept=share_first(engine, still),
                    kept_before=kept_before,
                    outranked=share_outranked(engine, changed.ended[:200]),
                    drift=neighbour_overlap(near_before, model, probe, others),
                    finite=finite,
                )

            if len(torch.cat(changed)):
                moved = train_update(
                    model, timeline, changed, replay, settings, len(store.releases()), lambda: _is_good(report())
                )
            outcome = judge(report(), self.gate)
        rows = _changed_rows(model, moved, old_entities, old_steps, self._sizes)
        calibration = self.calibration
        summary = {"gate": outcome, "new_entities": new_entities}
        manifest = self._write(model, rows, outcome, calibration, clock.now)
        if not outcome.passed and not force:
            self.folder.releases.reject(manifest)
            return {"state": "refused", "release": self.current, **summary}
        self.folder.release(manifest)
        self._forget()
        return {"state": "released", "release": manifest, **summary}

    # Answers -------------------------------------------------------------------------------------------

    def query(
        self, head: str | None, rel: str, tail: str | None, at: Any = None, k: int = 10, any_type: bool = False
    ) -> list[Answer]:
        """The ``k`` best answers, known facts first; by default as of the last step."""
        return self.engine.query(head, rel, tail, self._at(at), k, any_type)

    def check(self, head: str, rel: str, tail: str, at: Any = None) -> Answer:
        """The probability that a fact holds, and whether it is known."""
        return self.engine.check(head, rel, tail, self._at(at))

    def timeline(self, head: str, rel: str, tail: str) -> list[TimelinePoint]:
        """The probability of a fact at every step."""
        return self.engine.timeline(head, rel, tail)

    def history(self) -> list[Release]:
        """All releases, oldest first, with what the gate measured."""
        return self.folder.store.releases()

    def rollback(self, number: int) -> None:
        """Makes an earlier release answer again. Pending changes are discarded."""
        with self._writing():
            for update in self.folder.store.updates("pending"):
                self.folder.store.discard(update.id)
            self.folder.rollback(number)
            self._forget()

    def erase(self, name: str) -> list[str]:
        """Removes an entity from the store, the vocabulary and every release, and learns its neighbours again.

        Returns:
            Files of the folder that still contain the name: none, unless something went wrong.
        """
        with self._writing():
            store = self.folder.store
            entity = store.entity_id(name)
            if entity is None:
                raise KeyError(f"no entity is called {name!r}")
            touched = {fact.tail if fact.head == entity else fact.head for fact in store.neighbours(entity)}
            model = self._load_model(writable=True)
            model.encoder.initialize(
                "entity", torch.tensor([entity]), make_generator(self.settings.seed, "erase", entity)
            )
            rows = {
                table: (torch.tensor([entity]), values[entity : entity + 1].detach().clone())
                for table, values in model.encoder.tables("entity").items()
            }
            erase_storage(self.folder, [entity], (), rows)
            self._forget()
            self._relearn(touched - {entity})
        return [str(path) for path in audit_bytes(self.folder.path, name)]

    def _relearn(self, entities: set[int]) -> None:
        """Learns the facts of entities again, after an erasure, and releases the result."""
        store, clock, settings = self.folder.store, self.clock, self.settings
        facts = [fact for entity in sorted(entities) for fact in store.neighbours(entity)]
        quads = torch.tensor([(f.head, f.rel, f.tail, clock.step(f.valid_from)) for f in facts], dtype=torch.long)
        nothing = torch.empty(0, 4, dtype=torch.long)
        changed = ChangedFacts(quads.view(-1, 4), nothing, nothing)
        model = self._load_model(writable=True)
        replay = self._replay(clock, np.random.default_rng(settings.seed))
        timeline = (
            whole_timeline(store, clock)
            if store.num_facts <= MAX_WHOLE
            else partial_timeline(store, clock, changed, replay)
        )
        engine = self._engine(model)
        moved = train_update(
            model, timeline, changed, replay, settings, 0, lambda: share_first(engine, quads.view(-1, 4)) >= 0.99
        )
        kept = share_first(engine, self._old_facts())
        report = GateReport(math.nan, kept, kept, math.nan, math.nan, True)
        number = self._write(model, moved, report, self.calibration, clock.now)
        self.folder.release(number)
        self._forget()

    # State ---------------------------------------------------------------------------------------------

    @property
    def current(self) -> int | None:
        """The release that answers."""
        return self.folder.releases.current()

    @property
    def clock(self) -> GraphClock:
        origin, now = self.folder.settings["graph"]["first"], self.folder.store.clock
        return GraphClock(origin, origin if now is None else now, self.folder.store.unit)

    @cached_property
    def model(self) -> TKGModel:
        """The model of the current release."""
        return self._load_model(writable=False)

    @property
    def calibration(self) -> Calibration | None:
        state = self.folder.releases.manifest(self._released()).calibration
        return Calibration.from_dict(state) if state else None

    @cached_property
    def engine(self) -> AnswerEngine:
        """Answers questions with the current release."""
        return self._engine(self.model, calibration=self.calibration)

    def show(self, instant: int) -> str:
        """An instant as a date."""
        return format_instant(instant, self.folder.store.unit)

    def _engine(
        self, model: TKGModel, clock: GraphClock | None = None, calibration: Calibration | None = None
    ) -> AnswerEngine:
        store, clock = self.folder.store, clock or self.clock
        names = StoreNames(store, "entity"), StoreNames(store, "relation")
        return AnswerEngine(model, StoreFacts(store, clock), *names, clock, calibration)

    def _released(self) -> int:
        number = self.current
        if number is None:
            raise RuntimeError(f"'{self.folder.path}' has no release yet: call train()")
        return number

    @property
    def _sizes(self) -> dict[str, int]:
        return self.folder.releases.manifest(self._released()).vocabulary

    def _load_model(self, writable: bool) -> TKGModel:
        number = self._released()
        tables = self.folder.releases.load_release(number, checksums=not writable)
        sizes = self._sizes
        with torch.device("meta"):
            model = self.settings.make_model(sizes["entities"], sizes["relations"], sizes["steps"])
        state = {f"encoder.{name}": table.clone() if writable else table for name, table in tables.items()}
        model.load_state_dict(state, assign=True)
        return model.eval()

    def _commit(
        self, model: TKGModel, rows: dict[str, Tensor] | None, report: GateReport, calibration: Calibration | None
    ) -> int:
        number = self._write(model, rows, report, calibration, self.clock.now)
        self.folder.release(number)
        self._forget()
        return number

    def _write(
        self,
        model: TKGModel,
        rows: dict[str, Tensor] | None,
        report: GateReport,
        calibration: Calibration | None,
        now: int,
    ) -> int:
        sizes = model.encoder.sizes
        vocabulary = {"entities": sizes["entity"], "relations": sizes["relation"] // 2, "steps": sizes["time"]}
        manifest = self.folder.write_candidate(
            {name: table.detach() for name, table in model.encoder.tables().items()},
            rows,
            clock=now,
            metrics=report.to_dict(),
            vocabulary=vocabulary,
            calibration={} if calibration is None else calibration.to_dict(),
        )
        return manifest.number

    def _forget(self) -> None:
        self.__dict__.pop("model", None)
        self.__dict__.pop("engine", None)

    def _at(self, at: Any) -> Any:
        return self.show(self.clock.now) if at is None else at

    def _writing(self) -> _Writing:
        return _Writing(self.folder)

    def _changes(
        self,
        changes: Any,
        added: Iterable[tuple[Any, ...]],
        ended: Iterable[tuple[Any, ...]],
        retracted: Iterable[tuple[Any, ...]],
        full: Any,
        at: Any,
    ) -> ChangeSet:
        clock = self.clock
        when = clock.now + 1 if at is None else clock.instant(at)
        if full is not None:
            return ChangeSet.from_full_export(self.folder.store, read_named_facts(full, clock.unit).rows(), when)
        if changes is not None:
            return ChangeSet.read(changes, clock.instant, when)
        found = []
        for op, facts in (("add", added), ("end", ended), ("retract", retracted)):
            for line, (head, rel, tail, *own) in enumerate(facts, 1):
                instant = clock.instant(own[0]) if own else None if op == "retract" else when
                found.append(Change(op, head, rel, tail, instant, line=line))
        return ChangeSet(found)

    def _now_after(self, changes: list[Change], at: Any) -> int:
        """The last step once changes are applied: the latest date that occurs, and never earlier than before."""
        dates = [change.at for change in changes if change.at is not None]
        asked = [] if at is None else [self.clock.instant(at)]
        return max([self.clock.now, *dates, *asked])

    def _held_out(self, count: int) -> Tensor:
        size = min(_CALIBRATION_FACTS, int(count * _CALIBRATION_SHARE))
        mask = torch.zeros(count, dtype=torch.bool)
        mask[torch.randperm(count, generator=make_generator(self.settings.seed, "held out"))[:size]] = True
        return mask

    def _some(self, quads: Tensor) -> Tensor:
        generator = make_generator(self.settings.seed, "gate")
        return quads[torch.randperm(len(quads), generator=generator)[: self.gate.sample]]

    def _old_facts(self) -> Tensor:
        """A sample of facts that hold at the last step, as its quads."""
        store, clock = self.folder.store, self.clock
        rng = np.random.default_rng(self.settings.seed)
        pairs = store.sample_pairs(4 * self.gate.sample, rng, clock.now + 1)
        now = clock.num_steps - 1
        rows = sorted({(h, r, t, now) for _, h, r, t, _ in zip(*(c.tolist() for c in pairs), strict=True)})
        quads = torch.tensor(rows, dtype=torch.long).view(-1, 4)
        quads = self._some(quads)
        return quads[self._hold(quads, clock)]

    def _hold(self, quads: Tensor, clock: GraphClock) -> Tensor:
        """Which facts of quads hold at the last step of a clock."""
        store, now = self.folder.store, clock.now
        found = [
            any(i.valid_from <= now and (i.valid_to is None or now < i.valid_to) for i in store.intervals(*quad[:3]))
            for quad in quads.tolist()
        ]
        return torch.tensor(found, dtype=torch.bool)

    def _replay(self, clock: GraphClock, rng: np.random.Generator) -> Tensor:
        pairs = self.folder.store.sample_pairs(self.settings.replay, rng, clock.now + 1)
        steps = np.clip(pairs.step - clock.origin, 0, clock.num_steps - 1)
        return torch.from_numpy(np.stack([pairs.head, pairs.rel, pairs.tail, steps], axis=1).copy())

    def _probe(self, entities: int) -> tuple[Tensor, Tensor]:
        order = torch.randperm(entities, generator=make_generator(self.settings.seed, "drift"))
        return order[:100], order[: min(entities, 2000)]

    def close(self) -> None:
        self.folder.close()

    def __enter__(self) -> LiveGraph:  # noqa: PYI034
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        store = self.folder.store
        return (
            f"LiveGraph({str(self.folder.path)!r}, {store.num_facts} facts, {store.num_entities} entities, "
            f"{store.num_relations} relations, until {self.show(self.clock.now)}, release {self.current})"
        )


class _Writing:
    """Takes the writer lock for a block, if it is not held already."""

    def __init__(self, folder: GraphFolder) -> None:
        self._folder, self._had = folder, folder.is_writer

    def __enter__(self) -> None:
        if not self._had:
            self._folder.lock()
            self._folder.recover()

    def __exit__(self, *_: object) -> None:
        if not self._had:
            self._folder.unlock()


def _is_good(report: GateReport) -> bool:
    """Whether nothing is left to learn."""
    return all(math.isnan(value) or value >= 0.99 for value in (report.learned, report.outranked)) and (
        math.isnan(report.kept) or report.kept >= report.kept_before - 0.005
    )


def _first_of_each(quads: Tensor) -> Tensor:
    """Index of the first quad of each triple."""
    seen: dict[tuple[int, ...], int] = {}
    for i, quad in enumerate(quads.tolist()):
        seen.setdefault(tuple(quad[:3]), i)
    return torch.tensor(sorted(seen.values()), dtype=torch.long)


def _changed_rows(
    model: TKGModel, moved: dict[str, Tensor], entities: int, steps: int, sizes: dict[str, int]
) -> dict[str, Tensor]:
    """For each table the rows that training moved, and the rows that are new."""
    old = {"entity": entities, "relation": 2 * sizes["relations"], "time": steps}
    rows = {}
    for name, axis in model.encoder.axes.items():
        new = torch.arange(old[axis], model.encoder.sizes[axis])
        rows[name] = torch.unique(torch.cat([moved.get(name, new[:0]), new]))
    return rows


def _counts(validation: Validation) -> dict[str, int]:
    ops = [change.op for change in validation.accepted]
    return {"added": ops.count("add"), "ended": ops.count("end"), "retracted": ops.count("retract")}


__all__ = ["LiveGraph", "steps_of_facts"]
