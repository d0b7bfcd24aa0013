from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from typing import Literal, get_args

import torch
from torch import Tensor

from tkg_incremental.models.encoder import Encoder

Unit = Literal["day", "month", "year"]

#: Year, month and day each have their own sine.
PARTS = 3


class CalendarEncoder(Encoder):
    r"""Diachronic embeddings with calendar features from the `"Diachronic Embedding for Temporal Knowledge Graph
    Completion" <https://arxiv.org/abs/1907.03143>`_ paper.

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
        hidden_channels: Width of the vectors. Even.
        temporal_share: :math:`\gamma`, the share of temporal channels.
        first_date: Date of the first step, ``"YYYY-MM-DD"``. The others follow at equal distance.
        unit: Distance of two steps: ``"day"``, ``"month"`` or ``"year"``.
        max_frequency: Initial frequencies of months and days lie between plus and minus this, in radians a month or
            day. By default they have the bound of the other tables.
        generator: Source of the initial values.
    """

    calendar: Tensor

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        num_steps: int,
        hidden_channels: int = 128,
        temporal_share: float = 0.5,
        first_date: str = "2000-01-01",
        unit: Unit = "day",
        max_frequency: float | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(num_entities, num_relations, num_steps, hidden_channels)
        if hidden_channels % 2:
            raise ValueError(f"hidden_channels must be even (got {hidden_channels})")
        self.temporal_channels = 2 * round(temporal_share * hidden_channels / 2)
        if not 0 < self.temporal_channels < hidden_channels:
            raise ValueError(
                f"temporal_share must leave some of {hidden_channels} channels for time and some without it "
                f"(got {temporal_share})"
            )
        if max_frequency is not None and not 0 < max_frequency <= math.pi:
            raise ValueError(f"max_frequency must lie in (0, π] (got {max_frequency})")
        self.first_date, self.unit = first_date, unit
        self.register_buffer("calendar", self._calendar(num_steps), persistent=False)
        width = self.temporal_channels
        self.add_table("entity_vectors", "entity", hidden_channels - width)
        for part in ("year", "month", "day"):
            bound = None if part == "year" else max_frequency
            self.add_table(f"{part}_amplitude", "entity", width)
            self.add_table(f"{part}_frequency", "entity", width, bound=bound)
            self.add_table(f"{part}_phase", "entity", width)
        self.add_table("relation_vectors", "relation", hidden_channels)
        self.reset_parameters(generator)

    def entity(self, index: Tensor, time: Tensor) -> Tensor:
        index, time = torch.broadcast_tensors(index, time)
        still = self.rows("entity_vectors", index)
        date = self.calendar[time].to(still.dtype)
        moving = sum(self._swing(part, index, date[..., i, None]) for i, part in enumerate(("year", "month", "day")))
        assert isinstance(moving, Tensor)
        return _halve_both(moving, still)

    def encode_known(self, order: Tensor, steps: Sequence[int], sizes: Sequence[int]) -> Tensor:
        # Steps of one year, or month, share its sines: a batch of many days has few of them.
        index, vectors = order[: max(sizes)], []
        still = self.rows("entity_vectors", index)
        sines: dict[tuple[int, int], Tensor] = {}
        tables = {part: self._tables(part, index) for part in ("year", "month", "day")}
        for step, size in zip(steps, sizes, strict=True):
            date = self.calendar[step].tolist()
            for i, part in enumerate(tables):
                if (i, date[i]) not in sines:
                    amplitude, frequency, phase = tables[part]
                    sines[i, date[i]] = amplitude * torch.add(phase, frequency, alpha=date[i]).sin()
            year, month, day = (sines[i, date[i]][:size] for i in range(PARTS))
            vectors.append(_halve_both(year + month + day, still[:size]))
        return torch.cat(vectors)

    def relation(self, index: Tensor, time: Tensor) -> Tensor:
        return self.rows("relation_vectors", index)

    @torch.no_grad()
    def expand(
        self,
        num_entities: int | None = None,
        num_relations: int | None = None,
        num_steps: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().expand(num_entities, num_relations, num_steps, generator)
        self.calendar = self._calendar(self.sizes["time"]).to(self.calendar.device)

    def _calendar(self, num_steps: int) -> Tensor:
        """Years since the first, month and day of each step, ``[num_steps, 3]``."""
        dates = calendar_of(self.first_date, num_steps, self.unit)
        return dates - dates[:1] * torch.tensor([1, 0, 0])

    def _swing(self, part: str, index: Tensor, when: Tensor) -> Tensor:
        amplitude, frequency, phase = self._tables(part, index)
        return amplitude * torch.addcmul(phase, frequency, when).sin()

    def _tables(self, part: str, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
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
    return torch.tensor(dates, dtype=torch.long).view(-1, PARTS)


def _halve_both(moving: Tensor, still: Tensor) -> Tensor:
    """Half of each, then the other half of each: ``[*, a], [*, b] → [*, a + b]``."""
    a, b = moving.size(-1) // 2, still.size(-1) // 2
    return torch.cat([moving[..., :a], still[..., :b], moving[..., a:], still[..., b:]], dim=-1)
