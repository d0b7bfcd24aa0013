"""The reading half of a live graph: answers from the release that the fact store agrees with."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tkg_incremental.answers import Answer, AnswerEngine, Answers, KnownFacts, TimelinePoint
from tkg_incremental.answers.calibrate import score_unit
from tkg_incremental.data.units import format_instant
from tkg_incremental.live.candidates import model_sizes
from tkg_incremental.live.clock import GraphClock, recorded_instant
from tkg_incremental.live.folder import GraphFolder, GraphFolderError
from tkg_incremental.live.gate import GateSettings
from tkg_incremental.live.known import StoreFacts, StoreNames
from tkg_incremental.live.live_settings import LiveSettings
from tkg_incremental.live.manifest import MANIFEST, DamagedReleaseError, Manifest
from tkg_incremental.live.records import Release
from tkg_incremental.live.settings import SettingsError
from tkg_incremental.metrics.calibration import AnswerCalibration
from tkg_incremental.models.base import TKGModel

if TYPE_CHECKING:
    from typing_extensions import Self

#: Tables of ``graph.toml``.
_TABLES = ("graph", "model", "model_options", "learning", "gate", "releases")


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
        except ValueError as error:
            self.folder.close()
            raise SettingsError(f"'{self.folder.path / 'graph.toml'}': {error}") from None
        except BaseException:
            self.folder.close()
            raise
        self._served: dict[str, tuple[int, AnswerEngine]] = {}

    def _read_settings(self, tables: dict[str, Any]) -> None:
        for name in tables:
            if name not in _TABLES:
                raise ValueError(f"there is no table [{name}] (expected one of {', '.join(_TABLES)})")
        graph, unit = tables.get("graph", {}), self.folder.store.unit
        first = graph.get("first") if isinstance(graph, dict) else graph
        if not isinstance(first, int) or isinstance(first, bool):
            raise ValueError(f"first in [graph] must be an integer (got {first!r})")
        if graph.get("unit", unit) != unit:
            raise ValueError(f"unit in [graph] must be {unit!r}, as in the fact store (got {graph['unit']!r})")
        self.settings = LiveSettings.from_tables(
            tables.get("model", {}), tables.get("learning"), tables.get("model_options")
        )
        self.gate = GateSettings.from_table(tables.get("gate", {}))

    # Answers -------------------------------------------------------------------------------------------

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
            at: A date; by default the last step. A later one is answered as of the last step, with a warning.
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
            when = engine.axis.labels[-1] if at is None else at
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
            return engine.check(head, rel, tail, engine.axis.labels[-1] if at is None else at)

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

    # State ---------------------------------------------------------------------------------------------

    @property
    def current(self) -> int | None:
        """The release that answers."""
        return self.folder.answering()

    @property
    def clock(self) -> GraphClock:
        """The time axis, up to the last update."""
        origin, now = self.folder.settings["graph"]["first"], self.folder.store.clock
        return GraphClock(origin, origin if now is None else now, self.folder.store.unit)

    @property
    def pending_clock(self) -> GraphClock:
        """The time axis, up to the last pending update."""
        clock = self.clock
        return replace(clock, now=max([clock.now, *(update.clock for update in self.folder.store.updates("pending"))]))

    @property
    def engine(self) -> AnswerEngine:
        """Answers questions with the current release."""
        number = self.released()
        if "now" not in self._served or self._served["now"][0] != number:
            clock = replace(self.clock, now=self.folder.releases.manifest(number).clock)
            self._served["now"] = number, self.make_engine(self.load_model(number), clock, self.calibration)
        return self._served["now"][1]

    def engine_as_of(self, as_of: Any = None) -> AnswerEngine:
        """Answers questions as the graph would have at a recorded time; see :meth:`query`."""
        if as_of is None:
            return self.engine
        store, releases = self.folder.store, self.folder.releases
        if isinstance(as_of, int):
            number, revision = as_of, store.revision_of(as_of)
        else:
            revision = store.revision_at(recorded_instant(as_of))
            found = store.release_at(revision)
            if found is None:
                raise ValueError(f"as_of must not be before the first release (got {as_of!r})")
            number = found
        self.folder.check_present(number)
        if "then" not in self._served or self._served["then"][0] != revision:
            manifest = releases.manifest(number)
            clock = replace(self.clock, now=manifest.clock)
            calibration = self._calibration_of(number)
            facts = StoreFacts(store, clock, revision)
            self._served["then"] = revision, self.make_engine(self.load_model(number), clock, calibration, facts)
        return self._served["then"][1]

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
        return self._calibration_of(self.released())

    def _calibration_of(self, number: int) -> AnswerCalibration | None:
        manifest = self.folder.releases.manifest(number)
        try:
            return AnswerCalibration.from_dict(manifest.calibration) if manifest.calibration else None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            path = self.folder.releases.folder(number) / MANIFEST
            raise DamagedReleaseError(number, path, f"it has no calibration ({error!r})") from None

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
        names = (StoreNames(store, "entity", sizes["entities"]), StoreNames(store, "relation", sizes["relations"]))
        return AnswerEngine(model, facts or StoreFacts(store, clock), *names, clock, calibration)

    def rescaled(
        self, calibration: AnswerCalibration | None, model: TKGModel, clock: GraphClock, quads: Tensor
    ) -> AnswerCalibration | None:
        """A calibration with the unit of another model's scores.

        Args:
            calibration: The calibration.
            model: The model.
            clock: Its time axis.
            quads: ``[n, 4]`` known facts.
        """
        if calibration is None or not len(quads):
            return calibration
        return replace(calibration, unit=score_unit(self.make_engine(model, clock), quads))

    def released(self) -> int:
        """The release that answers; an error before the first one."""
        number = self.current
        if number is None:
            raise GraphFolderError(f"'{self.folder.path}' has no release yet: call train()")
        return number

    def load_model(self, number: int | None = None, sizes: dict[str, int] | None = None) -> TKGModel:
        """The model of a release. Its tables are mapped from their files: it may be trained, and the files stay.

        Args:
            number: Number of the release; by default the current one.
            sizes: Numbers of entities, relations and steps, where there are more than the release has rows for. The new
                rows are zero.
        """
        number = self.released() if number is None else number
        manifest = self.folder.releases.manifest(number)
        self._check_sizes(manifest)
        sizes = {**manifest.vocabulary, **(sizes or {})}
        with torch.device("meta"):
            model = self.settings.make_model(sizes["entities"], sizes["relations"], sizes["steps"])
        rows = {name: model.encoder.sizes[axis] for name, axis in model.encoder.axes.items()}
        tables = self.folder.releases.load_release(number, rows=rows)
        state = {f"encoder.{name}": table for name, table in tables.items()}
        try:
            model.load_state_dict(state, assign=True)
        except RuntimeError as error:
            raise GraphFolderError(
                f"[model] of '{self.folder.path / 'graph.toml'}' does not fit release {number}: {error}"
            ) from None
        return model.eval()

    def load_grown(self, steps: int, generator: torch.Generator) -> tuple[TKGModel, dict[str, int]]:
        """The model of the current release, with initial values for the entities, relations and steps that it lacks,
        and the rows of each axis that it has values for.

        Args:
            steps: Number of steps.
            generator: Source of the initial values.
        """
        number, store = self.released(), self.folder.store
        sizes = {"entities": store.num_entities, "relations": store.num_relations, "steps": steps}
        model, learnt = self.load_model(number, sizes), self.folder.releases.manifest(number).vocabulary
        encoder = model.encoder
        before = {
            "entity": learnt["entities"],
            "relation": learnt["relations"] * (1 + model.reciprocal),
            "time": learnt["steps"],
        }
        for axis in dict.fromkeys(encoder.axes.values()):
            encoder.initialize_new(axis, before[axis], generator)
        return model, before

    def _check_sizes(self, manifest: Manifest) -> None:
        """Whether vocabulary, tables and time axis of a release fit together: a damaged size cannot ask for memory."""
        number, sizes = manifest.number, manifest.vocabulary
        path = self.folder.releases.folder(number) / MANIFEST
        if not sizes.keys() >= {"entities", "relations", "steps"}:
            raise DamagedReleaseError(number, path, f"it has no sizes of the vocabulary (got {sizes})")
        largest = max([0, *(table["shape"][0] for table in manifest.tables.values() if table["shape"])])
        if not all(0 <= sizes[name] <= largest for name in ("entities", "relations")):
            raise DamagedReleaseError(number, path, f"its tables have fewer rows than its vocabulary (got {sizes})")
        if sizes["steps"] != manifest.clock - self.clock.origin + 1:
            raise GraphFolderError(
                f"first in [graph] of '{self.folder.path / 'graph.toml'}' is {self.show(self.clock.origin)}, which "
                f"does not fit the {sizes['steps']} steps of release {number} until {self.show(manifest.clock)}"
            )

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
