from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import torch
from torch import Tensor

from tkg_incremental.models.base import TKGModel
from tkg_incremental.models.de import check_frequency
from tkg_incremental.models.decoders import make_decoder
from tkg_incremental.models.halves import join_halves

if TYPE_CHECKING:
    from typing_extensions import Self  # typing's from Python 3.11 on

    from tkg_incremental.datasets.base import TKGDataset
    from tkg_incremental.models.encoder import Axis

Unit = Literal["day", "month", "year"]

#: Each has its own sine.
PARTS = ("year", "month", "day")


class CalendarDE(TKGModel):
    r"""Diachronic embeddings with own sines for year, month and day: DE-SimplE as in the `"Diachronic Embedding for
    Temporal Knowledge Graph Completion" <https://arxiv.org/abs/1907.03143>`_ paper, or DE-DistMult, DE-TransE,
    DE-ComplEx.

    Each half of an entity's vector has :math:`\gamma d / 2` temporal channels, followed by static ones. A temporal
    channel is the sum of one sine each of the year, the month and the day of step :math:`t`. Years are counted from
    the first one: a frequency that is multiplied by 2014 could hardly be learnt.

    .. math::
        \mathbf{z}^t_i[n] = \sum_{c \in \{\text{year}, \text{month}, \text{day}\}}
            \mathbf{a}_{c,i}[n] \sin(\mathbf{w}_{c,i}[n]\, c(t) + \mathbf{b}_{c,i}[n])

    Relations do not depend on time. Both roles of SimplE, and both parts of ComplEx, thus depend on time.

    Args:
        num_entities: Number of entities.
        num_relations: Number of relations.
        num_steps: Number of steps.
        hidden_channels: Width of the vectors; with SimplE the two roles share it. Even.
        decoder: ``"simple"``, ``"distmult"``, ``"transe"`` or ``"complex"``.
        temporal_share: :math:`\gamma`, the share of temporal channels: one minus the paper's static share.
        first_date: Date of the first step, ``"YYYY-MM-DD"``; the others follow at equal distance. :meth:`from_dataset`
            takes it from the dataset.
        unit: Distance of two steps: ``"day"``, ``"month"`` or ``"year"``.
        max_frequency: Initial frequencies of months and days lie between plus and minus this, in radians a month or
            day. By default they have the bound of the other tables.
        dropout: Probability of a channel of a query vector to be dropped in training; not with TransE.
        reciprocal: Learn a row of its own for the inverse of each relation.
        seed: Seed of the initial values.
    """

    calendar: Tensor

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        num_steps: int,
        hidden_channels: int = 200,
        decoder: str = "simple",
        temporal_share: float = 0.32,
        first_date: str = "2000-01-01",
        unit: Unit = "day",
        max_frequency: float | None = None,
        dropout: float = 0.0,
        reciprocal: bool = False,
        seed: int = 0,
    ) -> None:
        made = make_decoder(decoder, dropout)
        super().__init__(num_entities, num_relations, num_steps, hidden_channels, made, reciprocal)
        if hidden_channels % 2:
            raise ValueError(f"hidden_channels must be even (got {hidden_channels})")
        width = 2 * round(temporal_share * hidden_channels / 2)
        if not 0 < width < hidden_channels:
            raise ValueError(
                f"temporal_share must leave some of {hidden_channels} channels for time and some without it "
                f"(got {temporal_share})"
            )
        check_frequency(max_frequency)
        self.first_date, self.unit = first_date, unit
        self.register_buffer("calendar", self._calendar(num_steps), persistent=False)
        self.add_table("entity_vectors", "entity", hidden_channels - width)
        for part in PARTS:
            bound = None if part == "year" else max_frequency
            self.add_table(f"{part}_amplitude", "entity", width)
            self.add_table(f"{part}_frequency", "entity", width, bound=bound)
            self.add_table(f"{part}_phase", "entity", width)
        self.add_table("relation_vectors", "relation", hidden_channels)
        self.reset_parameters(seed)

    @classmethod
    def from_dataset(cls, dataset: TKGDataset, hidden_channels: int = 200, **kwargs: Any) -> Self:
        """A new model of the dataset's size, with its names and its calendar."""
        axis = dataset.timeline.axis
        if axis.unit not in ("day", "year") or list(axis.first) != [axis.first[0] + i for i in range(len(axis.first))]:
            raise ValueError("dataset must have one step per day or per year (its steps are of another kind)")
        first = datetime.date.fromordinal(axis.first[0]) if axis.unit == "day" else datetime.date(axis.first[0], 1, 1)
        calendar = {"first_date": first.isoformat(), "unit": axis.unit}
        return super().from_dataset(dataset, hidden_channels, **(calendar | kwargs))

    def entity(self, index: Tensor, time: Tensor) -> Tensor:
        index, time = torch.broadcast_tensors(index, time)
        still = self.rows("entity_vectors", index)
        moving, date = torch.zeros((), device=still.device), self.calendar[time].to(still.dtype)
        for part, when in zip(PARTS, date.unsqueeze(-2).unbind(-1), strict=True):
            amplitude, frequency, phase = self._tables_of(part, index)
            moving = moving + amplitude * torch.addcmul(phase, frequency, when).sin()
        return join_halves(moving, still)

    def encode_steps(self, order: Tensor, steps: Sequence[int], sizes: Sequence[int]) -> Tensor:
        # Steps of one year, or month, share its sines: a batch of many days has few of them.
        index, vectors = order[: max(sizes)], []
        still = self.rows("entity_vectors", index)
        sines: dict[tuple[str, int], Tensor] = {}
        tables = {part: self._tables_of(part, index) for part in PARTS}
        for step, size in zip(steps, sizes, strict=True):
            date = list(zip(PARTS, self.calendar[step].tolist(), strict=True))
            for part, when in date:
                if (part, when) not in sines:
                    amplitude, frequency, phase = tables[part]
                    sines[part, when] = amplitude * torch.add(phase, frequency, alpha=when).sin()
            year, month, day = (sines[each][:size] for each in date)
            vectors.append(join_halves(year + month + day, still[:size]))
        return torch.cat(vectors)

    def expand_tables(self, sizes: dict[Axis, int | None], generator: torch.Generator | None = None) -> None:
        super().expand_tables(sizes, generator)
        self.calendar = self._calendar(self.sizes["time"]).to(self.calendar.device)

    def _calendar(self, num_steps: int) -> Tensor:
        """Years since the first, month and day of each step, ``[num_steps, 3]``."""
        dates = calendar_of(self.first_date, num_steps, self.unit)
        return dates - dates[:1] * torch.tensor([1, 0, 0])

    def _tables_of(self, part: str, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        amplitude, frequency, phase = (
            self.rows(f"{part}_{what}", index) for what in ("amplitude", "frequency", "phase")
        )
        return amplitude, frequency, phase


def calendar_of(first_date: str, num_steps: int, unit: Unit = "day") -> Tensor:
    """Year, month and day of each step, ``[num_steps, 3]``.

    Args:
        first_date: Date of the first step, ``"YYYY-MM-DD"``.
        num_steps: Number of steps.
        unit: Distance of two steps.

    >>> calendar_of("2014-12-30", 3).tolist()
    [[2014, 12, 30], [2014, 12, 31], [2015, 1, 1]]
    """
    if unit not in get_args(Unit):
        raise ValueError(f"unit must be one of {', '.join(get_args(Unit))} (got {unit!r})")
    try:
        first = datetime.date.fromisoformat(first_date)
    except ValueError:
        raise ValueError(f"first_date must be a date YYYY-MM-DD (got {first_date!r})") from None
    if unit == "day":
        days = [datetime.date.fromordinal(first.toordinal() + step) for step in range(num_steps)]
        dates = [(day.year, day.month, day.day) for day in days]
    else:
        months = 12 * first.year + first.month - 1
        at = [months + step * (12 if unit == "year" else 1) for step in range(num_steps)]
        dates = [(month // 12, month % 12 + 1, first.day) for month in at]
    return torch.tensor(dates, dtype=torch.long).view(-1, len(PARTS))
