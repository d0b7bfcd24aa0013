"""The live graph: a fact store and a model that is updated with each change."""

from __future__ import annotations

import math
import os
import time as clock_time
from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tkg_incremental.answers.calibrate import fit_calibration
from tkg_incremental.answers.facts import TensorFacts
from tkg_incremental.datasets.options import ReadOptions
from tkg_incremental.live.changes import Change, ChangeSet, Rejection, Validation
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
    type_ranks,
)
from tkg_incremental.live.importing import import_arrays
from tkg_incremental.live.learning import (
    MAX_WHOLE,
    ChangedFacts,
    LiveSettings,
    changed_facts,
    expired_facts,
    facts_of_entities,
    make_timeline,
    partial_timeline,
    train_update,
    train_whole,
    whole_timeline,
)
from tkg_incremental.live.reading import read_named_facts
from tkg_incremental.live.records import Update
from tkg_incremental.live.reports import UpdateReport
from tkg_incremental.live.serving import ServedGraph
from tkg_incremental.metrics.calibration import AnswerCalibration
from tkg_incremental.models.base import TKGModel
from tkg_incremental.ops.answers import TIME
from tkg_incremental.seeding import make_generator

# Facts that a calibration is fitted on, and the share of all facts that they are at most.
_CALIBRATION_FACTS, _CALIBRATION_SHARE = 400, 0.1
# Stands for the date of a change that has none until the update's date is known.
_UNDATED = -(2**61)
# A change may move the clock by this number of steps, or by as many as the graph has. A wrong century may not.
_LEAP = 1000
# A round of learning that adds less than this to the sum of the gate's shares is the last one.
_STEP = 0.01


class LiveGraph(ServedGraph):
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
        """Trains a model on all facts, pending changes included, and makes it the current release.

        With ``calibrate``, some facts are first left out to fit probabilities on; then all facts are learnt.
        """
        begin = clock_time.perf_counter()
        with self._writing():
            store, settings = self.folder.store, self.settings
            clock = self._clock_after(store.updates("pending"))
            with store.preview():
                everything = whole_timeline(store, clock)
                model = settings.make_model(store.num_entities, store.num_relations, clock.num_steps)
                calibration, epochs = None, settings.epochs
                if calibrate and len(everything.observed) >= 50:
                    held_out = self._held_out(len(everything.observed.facts))
                    facts = everything.observed.facts
                    train_whole(model, make_timeline(facts[~held_out], store, clock), settings, epochs)
                    splits = {"train": facts[~held_out], "val": facts[held_out], "test": facts[:0]}
                    timeline = type(everything)(splits, everything.num_entities, everything.num_relations, clock.axis)
                    generator = make_generator(settings.seed, "calibration")
                    train, val = (
                        table.between(0, clock.num_steps - 1).sample(_CALIBRATION_FACTS, generator)
                        for table in (timeline.observed, timeline.val)
                    )
                    # Facts that were left out are not known to this engine.
                    engine = self._engine(model, clock, facts=TensorFacts(facts[~held_out], clock.num_steps))
                    calibration = fit_calibration(engine, timeline, train, val, generator)
                    epochs = max(1, epochs // 3)
                train_whole(model, everything, settings, epochs)
                quads = everything.observed.at(clock.num_steps - 1)
                kept = share_first(self._engine(model, clock), self._some(quads))
                report = GateReport(math.nan, kept, kept, math.nan, math.nan, _is_finite(model, None))
                number = self._write(model, None, report, calibration, clock.now)
            self._release(number)
            facts_known = store.num_facts
        seconds = clock_time.perf_counter() - begin
        return UpdateReport("released", number, report, facts=facts_known, seconds=seconds)

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

        Updates that the gate has refused, or that were killed, are pending and part of this one. Without changes, they
        are learnt again; if there are none, the clock moves and nothing else.

        Args:
            changes: A file or data frame with an ``op`` column: ``add``, ``end`` or ``retract``.
            added: Facts ``(head, rel, tail)`` that begin at ``at``, or ``(head, rel, tail, at)``.
            ended: Facts that no longer hold from ``at`` on.
            retracted: Facts that were never true.
            full: A new full export instead of changes: the differences are the changes.
            at: When changes without a date of their own take effect; by default the step after the last one.
            dry_run: Only validate.
            force: Release even if the gate refuses, as long as all numbers are finite.
            skip_rejected: Apply the valid changes even if others are rejected.
        """
        begin = clock_time.perf_counter()
        with self._writing():
            self._released()
            store = self.folder.store
            pending = store.updates("pending")
            last = self._clock_after(pending)
            when = last.now + 1 if at is None else self._checked(last, at)
            found = self._changes(changes, added, ended, retracted, full, when)
            # Changes without a date are the same changes whenever they are applied, as far as they still fit.
            is_dated = at is not None or not any(change.at in (None, _UNDATED) for change in found)
            key = (found if at is None else _dated(found, when)).content_hash
            seen = store.find_update(key) if len(found) else None
            if seen is not None and seen.state == "pending":
                validation = Validation(store.changes(seen.id))
            else:
                validation = self._validated(_dated(found, when), max(last.now, when))
            counts = _counts(validation)
            if seen is not None and seen.state == "applied" and (is_dated or not validation.accepted):
                return UpdateReport("unchanged", self.current, notes=("the same changes were applied before",))
            if validation.rejected and not skip_rejected:
                return UpdateReport("rejected", self.current, rejected=tuple(validation.rejected), **counts)
            if dry_run:
                return UpdateReport("valid", self.current, rejected=tuple(validation.rejected), **counts)
            is_retry = seen is not None and seen.state == "pending"
            if not is_retry and (len(validation.accepted) or at is not None or not pending):
                dates = [change.at for change in validation.accepted if change.at is not None]
                moved = [when] if at is not None or not validation.accepted else []
                now = max([last.now, *dates, *moved])
                store.record(validation.accepted, now, key, str(changes or full or "")[:200])
            report = self._learn(force)
        extra = {"rejected": tuple(validation.rejected), "notes": tuple(validation.notes), **counts}
        return UpdateReport(seconds=clock_time.perf_counter() - begin, **{**extra, **report})

    def _learn(self, force: bool) -> dict[str, Any]:
        """Learns all pending updates and releases the result."""
        store, settings = self.folder.store, self.settings
        pending = store.updates("pending")
        before, clock = self.clock, self._clock_after(pending)
        changes = [change for update in pending for change in store.changes(update.id)]
        rng = np.random.default_rng(make_generator(settings.seed, "replay", len(store.releases())).initial_seed())
        model = self._load_model(writable=True)
        old_entities, old_steps = model.encoder.sizes["entity"], model.encoder.sizes["time"]
        sample = self._old_facts()
        first_before = type_ranks(self.engine, sample).view(2, len(sample)) <= 1
        probe, others = self._probe(old_entities)
        near_before = neighbours(model, probe, others)
        with store.preview():
            changed = changed_facts(changes, store, clock)
            if store.num_facts <= MAX_WHOLE:
                ended = torch.cat([changed.ended, expired_facts(store, before, clock)])
                changed = changed._replace(ended=torch.unique(ended, dim=0) if len(ended) else ended)
            replay = self._replay(clock, rng)
            timeline = self._timeline(clock, changed, replay)
            new_entities = store.num_entities - old_entities
            model.expand(
                store.num_entities,
                store.num_relations,
                clock.num_steps,
                make_generator(settings.seed, "growth", store.num_entities),
            )
            engine = self._engine(model, clock)
            # Facts of the last step must hold at the new last step, too.
            sample[sample[:, TIME] == before.num_steps - 1, TIME] = clock.num_steps - 1
            holds = self._hold(sample, clock)
            still = sample[holds]
            kept_before = float(first_before[:, holds].double().mean()) if len(still) else math.nan
            added = self._some(changed.added[_first_of_each(changed.added)], 2)
            ended = self._some(changed.ended)
            moved: dict[str, Tensor] = {}

            def report() -> GateReport:
                return GateReport(
                    learned=share_first(engine, added),
                    kept=share_first(engine, still),
                    kept_before=kept_before,
                    outranked=share_outranked(engine, ended),
                    drift=neighbour_overlap(near_before, model, probe, others),
                    finite=True,
                )

            progress = [-math.inf]

            def is_learnt() -> bool:
                """Nothing is left to learn, or the gate is passed and another round has not helped."""
                found = report()
                progress.append(sum(v for v in (found.learned, found.kept, found.outranked) if not math.isnan(v)))
                has_stopped = progress[-1] - progress[-2] < _STEP
                return _is_good(found, self.gate) or (has_stopped and judge(found, self.gate).passed)

            if len(torch.cat(changed)):
                moved = train_update(model, timeline, changed, replay, settings, len(store.releases()), is_learnt)
            lost = self._without_facts(changes)
            if len(lost):  # nothing is left that its vector stands for
                model.encoder.initialize("entity", lost, make_generator(settings.seed, "lost", len(store.releases())))
                for name in model.encoder.tables("entity"):
                    moved[name] = torch.cat([moved.get(name, lost[:0]), lost])
            rows = _changed_rows(model, moved, old_entities, old_steps, self._sizes)
            outcome = judge(replace(report(), finite=_is_finite(model, rows)), self.gate)
        number = self._write(model, rows, outcome, self.calibration, clock.now)
        summary = {"gate": outcome, "new_entities": new_entities}
        if not outcome.passed and not (force and outcome.finite):
            self.folder.releases.reject(number)
            return {"state": "refused", "release": self.current, **summary}
        self._release(number)
        return {"state": "released", "release": number, **summary}

    def rollback(self, number: int) -> None:
        """Makes an earlier release answer again. Pending changes are discarded.

        Args:
            number: Number of the release. The current one discards the pending changes and nothing else.
        """
        with self._writing():
            known = [release.number for release in self.history()]
            if number not in known:
                raise ValueError(f"release must be one of {', '.join(map(str, known))} (got {number})")
            self.folder.releases.verify(number)
            for update in self.folder.store.updates("pending"):
                self.folder.store.discard(update.id)
            self._release(number)

    def erase(self, *names: str) -> list[str]:
        """Removes an entity or a fact from the store and every release, and learns what is left of it again.

        The row of an entity is initialised again in every release; of a fact, the rows of its head and tail.

        Args:
            *names: Name of an entity, or head, relation and tail of a fact.

        Returns:
            Files of the folder that still contain the name of the entity: none, unless it is part of another name. An
            empty list for a fact.
        """
        if len(names) not in (1, 3):
            raise ValueError(f"erase takes one name or head, relation and tail (got {len(names)} names)")
        with self._writing():
            store = self.folder.store
            ends = [names[0]] if len(names) == 1 else [names[0], names[2]]
            found = [store.entity_id(name) for name in ends]
            relation = store.relation_id(names[1]) if len(names) == 3 else 0
            if None in found:
                raise KeyError(f"no entity is called {ends[found.index(None)]!r}")
            if relation is None:
                raise KeyError(f"no relation is called {names[1]!r}")
            ids = [entity for entity in found if entity is not None]
            rows = self._new_rows(ids)
            if len(ids) == 1:
                facts = store.neighbours(ids[0])
                touched = {end for fact in facts for end in (fact.head, fact.tail)} - {ids[0]}
                erase_storage(self.folder, ids, (), rows)
            else:
                touched = set(ids)
                erase_storage(self.folder, (), [(ids[0], relation, ids[1])], rows)
            self._served = None
            if rows:
                self._relearn(touched)
        return [str(path) for path in audit_bytes(self.folder.path, names[0])] if len(names) == 1 else []

    def _new_rows(self, entities: list[int]) -> dict[str, tuple[Tensor, Tensor]]:
        """For each table new values of the rows of entities, as far as there is a model with such rows."""
        if self.current is None:
            return {}
        model = self._load_model(writable=True)
        index = torch.tensor([entity for entity in entities if entity < model.encoder.sizes["entity"]])
        if not len(index):
            return {}
        model.encoder.initialize("entity", index, make_generator(self.settings.seed, "erase", int(index[0])))
        tables = model.encoder.tables("entity")
        return {name: (index, values[index].detach().clone()) for name, values in tables.items()}

    def _relearn(self, entities: set[int]) -> None:
        """Learns the facts of entities again, after an erasure, and releases the result. What is pending stays so."""
        store, clock, settings = self.folder.store, self.clock, self.settings
        changed = ChangedFacts(facts_of_entities(entities, store, clock), *torch.empty(2, 0, 4, dtype=torch.long))
        model = self._load_model(writable=True)
        sizes, steps = dict(model.encoder.sizes), model.encoder.sizes["time"]
        # Names of pending changes have ids already.
        model.expand(
            store.num_entities, store.num_relations, None, make_generator(settings.seed, "growth", store.num_entities)
        )
        replay = self._replay(clock, np.random.default_rng(settings.seed))
        engine = self._engine(model)
        moved = train_update(
            model,
            self._timeline(clock, changed, replay),
            changed,
            replay,
            settings,
            0,
            lambda: not len(changed.added) or share_first(engine, self._some(changed.added)) >= 0.99,
        )
        rows = _changed_rows(model, moved, sizes["entity"], steps, self._sizes)
        kept = share_first(engine, self._old_facts())
        report = GateReport(math.nan, kept, kept, math.nan, math.nan, _is_finite(model, rows))
        self._release(self._write(model, rows, report, self.calibration, clock.now, updates=()))

    # Parts of an update --------------------------------------------------------------------------------

    def _clock_after(self, pending: list[Update]) -> GraphClock:
        clock = self.clock
        return replace(clock, now=max([clock.now, *(update.clock for update in pending)]))

    def _checked(self, last: GraphClock, at: Any) -> int:
        instant, limit = last.instant(at), last.now + max(_LEAP, last.num_steps)
        if not last.origin <= instant <= limit:
            shown = f"{self.show(last.origin)} … {self.show(limit)}"
            raise ValueError(f"at must be in {shown} (got {at!r})")
        return instant

    def _changes(
        self,
        changes: Any,
        added: Iterable[tuple[Any, ...]],
        ended: Iterable[tuple[Any, ...]],
        retracted: Iterable[tuple[Any, ...]],
        full: Any,
        when: int,
    ) -> ChangeSet:
        clock = self.clock
        given = [(op, list(facts)) for op, facts in (("add", added), ("end", ended), ("retract", retracted))]
        if sum([changes is not None, full is not None, any(facts for _, facts in given)]) > 1:
            raise ValueError("only one of changes, full, and added, ended or retracted must be given")
        if full is not None:
            with self.folder.store.preview():
                return ChangeSet.from_full_export(self.folder.store, read_named_facts(full, clock.unit).rows(), when)
        if changes is not None:
            return ChangeSet.read(changes, clock.instant, _UNDATED)
        found = []
        for op, facts in given:
            for line, (head, rel, tail, *own) in enumerate(facts, 1):
                instant = clock.instant(own[0]) if own else None if op == "retract" else _UNDATED
                found.append(Change(op, head, rel, tail, instant, line=line))
        return ChangeSet(found)

    def _validated(self, found: ChangeSet, now: int) -> Validation:
        limit = now + max(_LEAP, self.clock.num_steps)
        far = [change for change in found if change.at is not None and change.at > limit]
        reason = f"the date is far after the last step, {self.show(self.clock.now)}"
        rejected = [
            Rejection(c.line, f"{c.op}, {c.head}, {c.rel}, {c.tail}, {self.show(c.at or 0)}", reason) for c in far
        ]
        near = [change for change in found if change.at is None or change.at <= limit]
        return ChangeSet(near, [*found.rejected, *rejected]).validate(self.folder.store, self.show)

    def _without_facts(self, changes: list[Change]) -> Tensor:
        """``[n]`` entities of retracted facts that have no other facts."""
        store = self.folder.store
        names = {name for change in changes if change.op == "retract" for name in (change.head, change.tail)}
        ids = sorted({entity for name in names if (entity := store.entity_id(name)) is not None})
        return torch.tensor([entity for entity in ids if not store.neighbours(entity)], dtype=torch.long)

    def _timeline(self, clock: GraphClock, changed: ChangedFacts, replay: Tensor) -> Any:
        store = self.folder.store
        if store.num_facts <= MAX_WHOLE:
            return whole_timeline(store, clock)
        return partial_timeline(store, clock, changed, replay)

    def _write(
        self,
        model: TKGModel,
        rows: dict[str, Tensor] | None,
        report: GateReport,
        calibration: AnswerCalibration | None,
        now: int,
        updates: tuple[int, ...] | None = None,
    ) -> int:
        sizes = model.encoder.sizes
        vocabulary = {"entities": sizes["entity"], "relations": sizes["relation"] // 2, "steps": sizes["time"]}
        manifest = self.folder.write_candidate(
            {name: table.detach() for name, table in model.encoder.tables().items()},
            rows,
            clock=now,
            updates=updates,
            metrics=report.to_dict(),
            vocabulary=vocabulary,
            calibration={} if calibration is None else calibration.to_dict(),
        )
        return manifest.number

    def _release(self, number: int) -> None:
        self.folder.release(number)
        self._served = None

    def _writing(self) -> _Writing:
        return _Writing(self.folder)

    def _held_out(self, count: int) -> Tensor:
        size = min(_CALIBRATION_FACTS, int(count * _CALIBRATION_SHARE))
        mask = torch.zeros(count, dtype=torch.bool)
        mask[torch.randperm(count, generator=make_generator(self.settings.seed, "held out"))[:size]] = True
        return mask

    def _some(self, quads: Tensor, factor: int = 1) -> Tensor:
        """At most ``factor`` times as many quads as the gate's sample has, in a random order."""
        generator = make_generator(self.settings.seed, "gate")
        return quads[torch.randperm(len(quads), generator=generator)[: factor * self.gate.sample]]

    def _old_facts(self) -> Tensor:
        """A sample of (fact, step) pairs, half of them of the last step and half of all steps."""
        store, clock = self.folder.store, self.clock
        rng = np.random.default_rng(self.settings.seed)
        pairs = store.sample_pairs(4 * self.gate.sample, rng, clock.now + 1)
        now, half = clock.num_steps - 1, self.gate.sample // 2
        columns = (pairs.head, pairs.rel, pairs.tail, np.clip(pairs.step - clock.origin, 0, now))
        past = torch.from_numpy(np.stack(columns, axis=1))
        current = past.clone()
        current[:, TIME] = now
        current = torch.unique(current, dim=0)
        current = self._some(current)[: 2 * half]
        current = current[self._hold(current, clock)][:half]
        return torch.cat([current, torch.unique(past[:half], dim=0)])

    def _hold(self, quads: Tensor, clock: GraphClock) -> Tensor:
        """Which facts hold at the step of their quad."""
        store = self.folder.store
        found = []
        for head, rel, tail, step in quads.tolist():
            at = clock.origin + step
            intervals = store.intervals(head, rel, tail)
            found.append(any(i.valid_from <= at and (i.valid_to is None or at < i.valid_to) for i in intervals))
        return torch.tensor(found, dtype=torch.bool)

    def _replay(self, clock: GraphClock, rng: np.random.Generator) -> Tensor:
        pairs = self.folder.store.sample_pairs(self.settings.replay, rng, clock.now + 1)
        steps = np.clip(pairs.step - clock.origin, 0, clock.num_steps - 1)
        return torch.from_numpy(np.stack([pairs.head, pairs.rel, pairs.tail, steps], axis=1).copy())

    def _probe(self, entities: int) -> tuple[Tensor, Tensor]:
        order = torch.randperm(entities, generator=make_generator(self.settings.seed, "drift"))
        return order[:100], order[: min(entities, 2000)]


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


def _is_good(report: GateReport, gate: GateSettings) -> bool:
    """Whether nothing is left to learn: the gate would pass with a little to spare."""
    tighter = replace(gate, learned=0.99, kept=gate.kept / 10, outranked=(1 + gate.outranked) / 2)
    return judge(report, tighter).passed


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


def _dated(changes: ChangeSet, when: int) -> ChangeSet:
    """Changes without a date take effect at ``when``."""
    return ChangeSet(
        [replace(change, at=when) if change.at == _UNDATED else change for change in changes], changes.rejected
    )


@torch.no_grad()
def _is_finite(model: TKGModel, rows: dict[str, Tensor] | None) -> bool:
    """Whether all numbers of the rows are finite; of all rows, if they are not given."""
    tables = model.encoder.tables()
    return all(bool((t if rows is None else t[rows[name]]).isfinite().all()) for name, t in tables.items())


def _counts(validation: Validation) -> dict[str, Any]:
    ops = [change.op for change in validation.accepted]
    return {"added": ops.count("add"), "ended": ops.count("end"), "retracted": ops.count("retract")}


__all__ = ["LiveGraph"]
