"""The reading half of a live graph: answers from the release that the fact store agrees with."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from torch import Tensor

from tkg_incremental.answers import Answer, AnswerEngine, Answers, KnownFacts, TimelinePoint
from tkg_incremental.answers.calibrate import score_unit
from tkg_incremental.data.units import format_instant
from tkg_incremental.live.clock import GraphClock, recorded_instant
from tkg_incremental.live.folder import GraphFolder
from tkg_incremental.live.gate import GateSettings
from tkg_incremental.live.known import StoreFacts
from tkg_incremental.live.live_settings import LiveSettings
from tkg_incremental.live.manifest import Release
from tkg_incremental.live.reading import from_tables, to_iso
from tkg_incremental.live.records import GraphFolderError
from tkg_incremental.live.release_model import load_calibration, load_model, model_sizes
from tkg_incremental.metrics.calibration import AnswerCalibration
from tkg_incremental.models.base import TKGModel

if TYPE_CHECKING:
    from typing_extensions import Self

#: Tables of ``graph.toml``.
_TABLES = ("graph", "model", "model_options", "learning", "gate", "releases", "read", "columns")


class ServedGraph:
    """A graph folder that answers questions.

    A question is answered from one snapshot of the store and the release that belongs to it. After another process has
    released an update, the next question is answered by the new release.

    Args:
        path: The folder.
        write: Take the writer lock at once. Otherwise it is taken for each update.
    """

    def __init__(self, path: str | os.PathLike[str], write: bool = False) -> None:
        self.folder = GraphFolder(path, write=write)
        try:
            self._read_settings(self.folder.settings)
        except BaseException as error:
            self.folder.close()
            if isinstance(error, ValueError):
                raise ValueError(f"'{self.folder.path / 'graph.toml'}': {error}") from None
            raise
        # For the present and for the past, the release and the revision that answer.
        self._served: dict[bool, tuple[tuple[int, int | None], AnswerEngine]] = {}

    def _read_settings(self, tables: dict[str, Any]) -> None:
        for name in tables:
            if name not in _TABLES:
                raise ValueError(f"there is no table [{name}] (expected one of {', '.join(_TABLES)})")
        graph, unit = tables.get("graph", {}), self.folder.store.unit
        first = graph.get("first") if isinstance(graph, dict) else graph
        if type(first) is not int:
            raise ValueError(f"first in [graph] must be an integer (got {first!r})")
        if abs(first) >= 2**61:
            raise ValueError(f"first in [graph] must have at most 61 bits (got {first})")
        if graph.get("unit", unit) != unit:
            raise ValueError(f"unit in [graph] must be {unit!r}, as in the fact store (got {graph['unit']!r})")
        learning = tables.get("learning"), tables.get("model_options")
        # A file without a width means 128, as in earlier versions.
        self.settings = LiveSettings.from_tables(tables.get("model", {}), *learning).sized(0)
        self.gate = GateSettings.from_table(tables.get("gate", {}))

    def query(
        self,
        head: str | None,
        rel: str | None,
        tail: str | None,
        at: Any = None,
        k: int = 10,
        any_type: bool = False,
        only: str | None = None,
        as_of: Any = None,
    ) -> list[Answer]:
        """The ``k`` best answers: known facts, then predictions, then facts that are known to be over.

        Args:
            head: Name; :obj:`None` if it is asked for.
            rel: Name of the relation; :obj:`None` if it is asked for.
            tail: Name; :obj:`None` if it is asked for.
            at: A date, in an ISO form or as in the first file; by default the last step. A later one is answered as of
                the last step, with a warning.
            k: Number of answers.
            any_type: Rank all entities, not only those that were on that side of the relation in some fact.
            only: ``"known"`` or ``"predicted"`` answers.
            as_of: Answer as the graph would have then, with the facts that were recorded and the release that answered:
                a time (UTC, unless it has an offset; a date stands for its end), or the number of a release.
        """
        if only not in (None, "known", "predicted"):
            raise ValueError(f"only must be 'known', 'predicted' or None (got {only!r})")
        with self._snapshot():
            engine, asked = self.engine_as_of(as_of), k
            when = engine.axis.labels[-1] if at is None else self.iso_date(at)
            while True:
                found = engine.query(head, rel, tail, when, asked, any_type)
                chosen = [answer for answer in found if only in (None, answer.kind)]
                # Known answers come first: those that are predicted may need a longer list.
                if only != "predicted" or len(chosen) >= k or len(found) < asked:
                    return Answers(chosen[:k])
                asked *= 2

    def check(self, head: str, rel: str, tail: str, at: Any = None, as_of: Any = None) -> Answer:
        """The probability that a fact holds, and whether it is known. Arguments as of :meth:`query`."""
        with self._snapshot():
            engine = self.engine_as_of(as_of)
            return engine.check(head, rel, tail, engine.axis.labels[-1] if at is None else self.iso_date(at))

    def timeline(self, head: str, rel: str, tail: str, as_of: Any = None) -> list[TimelinePoint]:
        """The probability of a fact at every step. Arguments as of :meth:`query`."""
        with self._snapshot():
            return self.engine_as_of(as_of).timeline(head, rel, tail)

    def history(self) -> list[Release]:
        """All releases, oldest first, with what the gate measured. Those of :meth:`GraphFolder.pruned` are no longer on
        disk."""
        return self.folder.store.releases()

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        """All reads of the block see one state of the store, whatever a writer commits meanwhile."""
        connection = self.folder.store.connection
        if connection.in_transaction:
            yield
            return
        connection.execute("BEGIN")
        try:
            yield
        finally:
            connection.execute("ROLLBACK")

    @property
    def current(self) -> int | None:
        """The release that answers."""
        return self.folder.store.release

    @property
    def clock(self) -> GraphClock:
        """The time axis, up to the last update."""
        origin, now = self.folder.settings["graph"]["first"], self.folder.store.clock
        return GraphClock(origin, origin if now is None else now, self.folder.store.unit)

    @property
    def pending_clock(self) -> GraphClock:
        """The time axis, up to the last pending update."""
        clock = self.clock
        return clock.until(max([clock.now, *(update.clock for update in self.folder.store.updates("pending"))]))

    @property
    def engine(self) -> AnswerEngine:
        """Answers questions with the current release."""
        return self.engine_as_of(None)

    def engine_as_of(self, as_of: Any) -> AnswerEngine:
        """Answers questions as the graph would have at a recorded time; see :meth:`query`."""
        store, number, revision = self.folder.store, as_of, None
        if as_of is None:
            number = self.released()
        elif isinstance(as_of, int):
            revision = store.revision_of(as_of)
        else:
            revision, number = store.state_at(recorded_instant(as_of))
            if number is None:
                made = datetime.fromtimestamp(store.releases()[0].created / 1e6, timezone.utc)
                first = f"the first release, which was made at {made:%Y-%m-%dT%H:%M:%S} UTC"
                raise ValueError(f"as_of must not be before {first} (got {as_of!r})")
        is_past, key = revision is not None, (number, revision)
        if is_past:
            self.folder.check_present(number)
        if is_past not in self._served or self._served[is_past][0] != key:
            clock = self.clock.until(self.folder.releases.manifest(number).clock)
            facts = StoreFacts(store, clock, revision)
            engine = self.make_engine(load_model(self, number), clock, load_calibration(self.folder, number), facts)
            self._served[is_past] = key, engine
        return self._served[is_past][1]

    def forget(self) -> None:
        """Closes the releases that answer: the next question opens them again."""
        self._served.clear()

    @property
    def model(self) -> TKGModel:
        """The model of the current release."""
        return self.engine.model

    @property
    def calibration(self) -> AnswerCalibration | None:
        """Turns features of an answer into a probability."""
        return load_calibration(self.folder, self.released())

    def iso_date(self, when: Any) -> Any:
        """A date; one in the form of the graph's files becomes an ISO date."""
        return to_iso(when, self.folder.store.unit, from_tables(self.folder.settings))

    def show(self, instant: int) -> str:
        """An instant as a date."""
        return format_instant(instant, self.folder.store.unit)

    def make_engine(
        self,
        model: TKGModel,
        clock: GraphClock | None = None,
        calibration: AnswerCalibration | None = None,
        facts: KnownFacts | None = None,
    ) -> AnswerEngine:
        """An engine that answers with any model of this graph."""
        store, clock = self.folder.store, clock or self.clock
        # Pending and undone updates have given ids to names that the model has no rows for.
        sizes = model_sizes(model)
        names = store.entities.up_to(sizes["entities"]), store.relations.up_to(sizes["relations"])
        return AnswerEngine(model, facts or StoreFacts(store, clock), *names, clock, calibration)

    def rescaled(
        self, calibration: AnswerCalibration | None, model: TKGModel, clock: GraphClock, quads: Tensor
    ) -> AnswerCalibration | None:
        """A calibration with the unit of another model's scores, measured on known facts ``[n, 4]``."""
        if calibration is None or not len(quads):
            return calibration
        return replace(calibration, unit=score_unit(self.make_engine(model, clock), quads))

    def released(self) -> int:
        """The release that answers; an error before the first one."""
        number = self.current
        if number is None:
            raise GraphFolderError(
                f"'{self.folder.path}' has no release yet: call train(), or remove the folder and create it again"
            )
        return number

    def close(self) -> None:
        """Closes the store and gives up the lock."""
        self.folder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        store = self.folder.store
        return (
            f"{type(self).__name__}({str(self.folder.path)!r}, {store.num_facts} facts, {store.num_entities} entities, "
            f"{store.num_relations} relations, until {self.show(self.clock.now)}, release {self.current})"
        )
