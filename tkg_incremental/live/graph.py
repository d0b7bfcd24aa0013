"""The live graph: a fact store and a model that is updated with each change."""

from __future__ import annotations

import os
import shutil
import time as clock_time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from tkg_incremental.datasets.options import ReadOptions
from tkg_incremental.datasets.readers import is_frame, source_name
from tkg_incremental.live import proposals
from tkg_incremental.live.changes import ChangeSet
from tkg_incremental.live.erase import audit_bytes, erase_storage
from tkg_incremental.live.first_training import train_first
from tkg_incremental.live.folder import GraphFolder, check_free
from tkg_incremental.live.from_run import import_run
from tkg_incremental.live.gate import GateSettings
from tkg_incremental.live.importing import import_facts, last_step, read_named_facts
from tkg_incremental.live.live_settings import LiveSettings
from tkg_incremental.live.reading import from_tables, to_iso, to_tables
from tkg_incremental.live.records import GraphFolderError
from tkg_incremental.live.relearning import new_rows, relearn
from tkg_incremental.live.reports import UpdateReport
from tkg_incremental.live.serving import ServedGraph
from tkg_incremental.live.updating import learn_pending


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
        aliases: Mapping[str, str] | None = None,
        at: Any = None,
    ) -> LiveGraph:
        """Creates a graph folder and imports facts. :meth:`train` then makes release 0.

        Args:
            path: The folder; must be empty or missing.
            facts: A CSV, TSV, JSON lines or Parquet file, or a data frame.
            unit: Unit of time: ``"hour"``, ``"day"``, … or ``"auto"``.
            read: How the file is read. Updates read their files in the same way.
            settings: The model and how it learns.
            gate: What an update must reach.
            aliases: Further names of entities, such as ``{"USA": "United States"}``.
            at: The last step, for facts with planned ends: facts hold until updates reach their ends. By default the
                last date that occurs.
        """
        check_free(path)
        found = read_named_facts(facts, unit, read)
        clock = None if at is None else last_step(found, to_iso(at, found.unit, read or ReadOptions()))
        about = {
            "graph": {"first": int(found.facts[3].min()), "unit_reason": found.unit_reason},
            **(settings or LiveSettings()).sized(found.facts.shape[1]).to_tables(),
            "gate": asdict(gate or GateSettings()),
            **to_tables(read),
        }
        folder = GraphFolder.create(path, found.unit, about)
        try:
            with folder:
                import_facts(folder.store, found, clock)
                folder.store.entities.add_aliases(aliases or {})
        except BaseException:
            shutil.rmtree(folder.path)  # so that the next try finds no half of a graph
            raise
        return cls(path)

    @classmethod
    def from_run(
        cls,
        path: str | os.PathLike[str],
        run: str | os.PathLike[str],
        settings: LiveSettings | None = None,
        gate: GateSettings | None = None,
    ) -> LiveGraph:
        """Makes a live graph of a run that ``train`` made. Its model is release 0.

        The graph knows the train facts of the run until the last step that its model learnt; those that hold then have
        no end. The first update continues from there.

        Args:
            path: The folder; must be empty or missing.
            run: The folder of the run, or its ``model.pt``.
            settings: How updates learn; the model is that of the run.
            gate: What an update must reach.
        """
        import_run(path, run, settings or LiveSettings(), gate or GateSettings())
        return cls(path)

    def train(self, calibrate: bool = True) -> UpdateReport:
        """Trains a model on all facts, pending changes included, and makes it the current release. With ``calibrate``,
        some facts are first left out to fit probabilities on; then all facts are learnt."""
        with self._writing():
            return train_first(self, calibrate)

    def update(
        self,
        changes: Any = None,
        *,
        added: Iterable[tuple[Any, ...]] = (),
        ended: Iterable[tuple[Any, ...]] = (),
        retracted: Iterable[tuple[Any, ...]] = (),
        full: Any = None,
        read: ReadOptions | None = None,
        at: Any = None,
        dry_run: bool = False,
        force: bool = False,
        skip_rejected: bool = False,
    ) -> UpdateReport:
        """Applies changes, learns them, and releases the model if it passes the gate.

        Updates that the gate has refused, or that were killed, are pending and part of this one. Without changes, they
        are learnt again; if there are none, the clock moves and nothing else.

        Args:
            changes: A file or data frame with an ``op`` column: ``add``, ``end`` or ``retract``. Its other columns may
                have the names of the first file.
            added: Facts ``(head, rel, tail)`` that begin at ``at``, or ``(head, rel, tail, at)``.
            ended: Facts that no longer hold from ``at`` on.
            retracted: Facts that were never true.
            full: A new full export instead of changes: the differences are the changes.
            read: How the file is read; by default as the first one.
            at: When changes without a date of their own take effect; by default the step after the last one.
            dry_run: Only validate.
            force: Release even if the gate refuses, as long as all numbers are finite.
            skip_rejected: Apply the valid changes even if others are rejected.
        """
        begin = clock_time.perf_counter()
        with self._writing():
            self.released()
            self._check_clock()
            store, last = self.folder.store, self.pending_clock
            read = read or from_tables(self.folder.settings)
            when = last.now + 1
            if at is not None:
                when = proposals.check_date(last, to_iso(at, store.unit, read), self.show)
            given = {"add": added, "end": ended, "retract": retracted}
            found = proposals.read_changes(store, self.clock, changes, given, full, when, read)
            # Changes without a date are the same changes whenever they are applied, as far as they still fit.
            key = (found if at is None else proposals.date_changes(found, when)).content_hash
            seen = store.find_update(key) if len(found) else None
            is_retry = seen is not None and seen.state == "pending"
            if seen is not None and is_retry:
                validation = ChangeSet(store.changes(seen.id))
            else:
                dated = proposals.date_changes(found, when)
                validation = proposals.validate_changes(store, self.clock, dated, max(last.now, when), self.show)
            counts = proposals.count_changes(validation.changes)
            rejected = tuple(validation.rejected)
            is_same = seen is not None and seen.state == "applied"
            if is_same and (at is not None or proposals.is_dated(found) or not validation.changes):
                return UpdateReport("unchanged", self.current, notes=("the same changes were applied before",))
            if rejected and not skip_rejected:
                return UpdateReport("rejected", self.current, rejected=rejected, **counts)
            sizes = self.folder.releases.manifest(self.released()).vocabulary
            names = proposals.new_names(store, validation.changes, sizes)
            given_at = None if at is None else when
            remarks = proposals.describe_changes(names, validation.changes, self.clock, given_at, self.show)
            notes = [*validation.notes, *remarks]
            earlier = [update for update in store.updates("pending") if seen is None or update.id != seen.id]
            if pending := sum(update.num_changes for update in earlier):
                notes.append(f"pending changes of earlier updates, which are part of this one: {pending}")
            about: dict[str, Any] = {"rejected": rejected, "new_entities": len(names["entities"]), **counts}
            if dry_run:
                return UpdateReport("valid", self.current, notes=tuple(notes), **about)
            is_empty = not validation.changes and not store.updates("pending")
            if is_empty and when <= last.now:
                notes.append(f"no changes, and the last step is {self.show(last.now)} already")
                return UpdateReport("unchanged", self.current, rejected=rejected, notes=tuple(notes))
            if is_empty:
                notes.append(f"no changes: only the last step moved, to {self.show(when)}")
            if not is_retry and (validation.changes or at is not None or not store.updates("pending")):
                dates = [change.at for change in validation.changes if change.at is not None]
                moved = [when] if at is not None or not validation.changes else []
                source = changes if full is None else full
                is_named = is_frame(source) or isinstance(source, (str, os.PathLike))
                name = str(source_name(source))[:200] if is_named else ""
                store.record(validation.changes, max([last.now, *dates, *moved]), key, name)
            report = learn_pending(self, force, begin)
        return UpdateReport(seconds=clock_time.perf_counter() - begin, notes=tuple(notes), **about, **report)

    def rollback(self, number: int) -> None:
        """Makes a release that is still on disk answer again, see ``[releases]`` in ``graph.toml``. Pending changes are
        discarded; with the number of the current release, nothing else happens."""
        with self._writing():
            self.folder.check_present(number)
            self.folder.releases.verify(number)
            for update in self.folder.store.updates("pending"):
                self.folder.store.discard(update.id)
            self.folder.release(number)

    def erase(self, *names: str) -> list[str]:
        """Removes an entity or a fact from the store and every release, and learns what is left of it again.

        The row of an entity is initialised again in every release; of a fact, the rows of its head and tail.

        Args:
            *names: Name of an entity, or head, relation and tail of a fact.

        Returns:
            Files of the folder that still contain a name or alias of the entity: none, unless it is part of another
            name. An empty list for a fact.
        """
        if len(names) not in (1, 3):
            raise ValueError(f"erase takes one name or head, relation and tail (got {len(names)} names)")
        with self._writing():
            store, ids = self.folder.store, []
            for place, name in enumerate(names):
                known = store.relations if place == 1 else store.entities
                found = known.find(name)
                if found is None:
                    raise KeyError(f"no {known.kind} is called {name!r}")
                ids.append(found)
            if self.current is not None:
                self._check_clock()
            touched, gone = set(ids[::2]), []
            rows = new_rows(self, ids[::2])
            if len(ids) == 1:
                gone = store.entities.all_of(ids[0])
                touched = {end for fact in store.neighbours(ids[0]) for end in (fact.head, fact.tail)} - touched
            erase_storage(self.folder, tuple(ids), rows)
            self.forget()
            if rows:
                relearn(self, touched)
        return sorted({str(path) for name in gone for path in audit_bytes(self.folder.path, name)})

    def add_aliases(self, aliases: Mapping[str, str]) -> None:
        """Gives entities further names, such as ``{"USA": "United States"}``: questions and changes may use them."""
        with self._writing():
            self.folder.store.entities.add_aliases(aliases)

    def _check_clock(self) -> None:
        """Whether store and release agree on the last step: an update would be learnt at a wrong one."""
        now, manifest = self.folder.store.clock, self.folder.releases.manifest(self.released())
        if now != manifest.clock:
            raise GraphFolderError(
                f"'{self.folder.store.path}' is damaged: its last step is {now}, that of release {manifest.number} is "
                f"{manifest.clock}"
            )

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Takes the writer lock for a block. The next question opens its release again."""
        try:
            with self.folder.writing():
                yield
        finally:
            self.forget()
