"""What an update did, for people and for scripts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tkg_incremental.live.gate import GateReport
from tkg_incremental.live.records import Rejection
from tkg_incremental.text import counted

#: Exit codes of the command line by state.
EXIT_CODES = {"released": 0, "unchanged": 0, "valid": 0, "rejected": 3, "refused": 4}
# Rejected lines that the text of a report lists; a script has all of them.
SHOWN = 20


@dataclass(frozen=True)
class UpdateReport:
    """The outcome of an update.

    Args:
        state: ``"released"``, ``"refused"`` by the gate, ``"rejected"`` because of invalid lines, ``"valid"`` after a
            dry run, or ``"unchanged"`` if the same changes were applied before.
        release: The release that answers now.
        gate: What the gate measured.
        added: Number of added facts.
        ended: Number of ended facts.
        retracted: Number of retracted facts.
        new_entities: Number of new entities.
        facts: Number of facts, after the first training.
        rejected: Rejected lines with reasons.
        notes: Remarks.
        seconds: Duration.
    """

    state: str
    release: int | None
    gate: GateReport | None = None
    added: int = 0
    ended: int = 0
    retracted: int = 0
    new_entities: int = 0
    facts: int = 0
    rejected: tuple[Rejection, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.state]

    def to_dict(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        values["gate"] = None if self.gate is None else self.gate.to_dict()
        values["rejected"] = [rejection._asdict() for rejection in self.rejected]
        return values

    def __str__(self) -> str:
        parts = []
        if self.facts:
            parts.append(f"trained on {counted(self.facts, 'fact')}")
        changes = [(self.added, "added"), (self.ended, "ended"), (self.retracted, "retracted")]
        num_changes = self.added + self.ended + self.retracted
        if self.state != "rejected":
            parts += [f"{count} {name}" for count, name in changes if count]
        if self.gate is not None:
            gate = self.gate
            shown = [("learned", gate.learned), ("kept", gate.kept), ("ended facts outranked", gate.outranked)]
            parts += [f"{name} {value:.1%}" for name, value in shown if not math.isnan(value)]
        if self.new_entities:
            parts.append(counted(self.new_entities, "new entity", "new entities"))
        if self.rejected:
            parts.append(f"{counted(len(self.rejected), 'line')} rejected")
        last = {
            "released": f"released as {self.release} in {self.seconds:.1f} s",
            "refused": f"refused by the gate; release {self.release} still answers",
            "rejected": "nothing was applied",
            "valid": f"{'the changes are valid' if num_changes else 'there are no changes'}; nothing was applied",
            "unchanged": f"nothing to do; release {self.release} answers",
        }[self.state]
        lines = [" · ".join([*parts, last])]
        if self.gate is not None:
            lines += [f"  gate: {reason}" for reason in self.gate.reasons]
        if self.state == "refused":
            lines.append(
                "  the changes are pending: force=True, on the command line --force, releases them; a rollback to "
                f"release {self.release} discards them"
            )
        # A full export and the changes of a gate have no lines.
        places = [f"line {line}: " if line else "" for line, *_ in self.rejected]
        lines += [
            f"  {place}{reason} ({text})"
            for place, (_, text, reason) in zip(places[:SHOWN], self.rejected, strict=False)
        ]
        if len(self.rejected) > SHOWN:
            lines.append(f"  … and {len(self.rejected) - SHOWN} more")
        if self.state == "rejected" and num_changes:
            lines.append(
                f"  correct them, or apply the {counted(num_changes, 'valid change')} with skip_rejected=True, on the "
                "command line --skip-rejected"
            )
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)
