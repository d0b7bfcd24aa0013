"""Results as a table, as JSON, and as a page of the documentation."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import Benchmark, Measurement

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
TEMPLATE = HERE / "performance.md.in"
PAGE = HERE.parent / "docs" / "performance.md"


@dataclass(frozen=True)
class Row:
    """One benchmark and its result.

    Args:
        name: The benchmark.
        published: Time of the released research code.
        aims: The aims in words.
        measurement: The result; :obj:`None` if it could not run.
        met: Whether all aims are met; :obj:`None` without aims or with other sizes than theirs.
        skipped: Reason why it could not run.
    """

    name: str
    published: str = ""
    aims: str = ""
    measurement: Measurement | None = None
    met: bool | None = None
    skipped: str = ""

    @classmethod
    def of(cls, benchmark: Benchmark, measurement: Measurement, judged: bool) -> Row:
        aims = " and ".join(aim.describe(measurement.unit) for aim in benchmark.aims)
        met = all(aim.is_met(measurement) for aim in benchmark.aims) if benchmark.aims and judged else None
        return cls(benchmark.name, benchmark.published, aims, measurement, met)

    @property
    def cells(self) -> list[str]:
        """Work, ours, reference, its value, ratio, aim, met: the columns of every table."""
        found = self.measurement
        if found is None:
            return [self.name, f"skipped: {self.skipped}", "", "", "", self.aims, ""]
        verdict = {True: "yes", False: "no", None: ""}[self.met]
        reference = "" if found.reference_value is None else quantity(found.reference_value, found.unit)
        unit = {"cost": "×", "speed": "× as fast"}[found.ratio_of]
        ratio = "" if found.ratio is None else f"{found.ratio:.3g}{unit}"
        return [found.work, quantity(found.value, found.unit), found.reference, reference, ratio, self.aims, verdict]


HEADERS = ["work", "ours", "reference", "takes", "ratio", "aim", "met"]


def quantity(value: float, unit: str) -> str:
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def table(rows: list[Row]) -> str:
    """A table for a terminal; the description is on its own line, because it is long."""
    lines = []
    for row in rows:
        work, ours, reference, takes, ratio, aims, verdict = row.cells
        beside = f"   {reference}: {takes}   ratio {ratio}" if reference else ""
        aim = f"   aim {aims}" + (f": {'met' if row.met else 'NOT MET'}" if verdict else "") if aims else ""
        lines += [f"{row.name}\n    {work}\n    {ours}{beside}{aim}"]
    return "\n".join(lines)


def save(rows: list[Row], machine: dict[str, Any], path: Path) -> None:
    """Writes rows and machine as JSON."""
    state = {"machine": machine, "rows": [asdict(row) for row in rows]}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(state, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def merge(rows: list[Row], path: Path, names: list[str]) -> list[Row]:
    """The rows with those of a file that were not measured again, in the order of ``names``; others are dropped."""
    kept = {row.name: row for row in load(path)[0]} if path.exists() else {}
    found = kept | {row.name: row for row in rows}
    return [found[name] for name in names if name in found]


def load(path: Path) -> tuple[list[Row], dict[str, Any]]:
    """Reads a file of :func:`save`."""
    state = json.loads(path.read_text(encoding="utf-8"))
    rows = []
    for fields in state["rows"]:
        found = fields.pop("measurement")
        rows.append(Row(**fields, measurement=Measurement(**found) if found else None))
    return rows, state["machine"]


def page(rows: list[Row], machine: dict[str, Any]) -> str:
    """The page of the documentation: a template with one table per family and a line for the machine."""
    text = TEMPLATE.read_text(encoding="utf-8")
    filled = {"machine": "Measured with: " + "; ".join(f"{name} {value}" for name, value in machine.items()) + "."}
    for row in rows:
        filled.setdefault(row.name.split("/")[0], "")
    for family in [name for name in filled if name != "machine"]:
        members = [row for row in rows if row.name.startswith(f"{family}/")]
        headers, cells = list(HEADERS), [row.cells for row in members]
        if any(row.published for row in members):
            headers.insert(1, "published code")
            for row, line in zip(members, cells, strict=True):
                line.insert(1, row.published)
        filled[family] = _markdown(cells, headers)
    for family, content in filled.items():
        mark = f"<!-- {family} -->"
        if mark not in text:
            raise ValueError(f"'{TEMPLATE.name}' has no place for the family {family!r}: expected '{mark}'")
        text = text.replace(mark, content)
    return text


def _markdown(lines: list[list[str]], headers: list[str]) -> str:
    # Empty columns are left out.
    used = [i for i, header in enumerate(headers) if i == 0 or not header or any(line[i] for line in lines)]
    picked = [[line[i] for i in used] for line in [headers, ["---"] * len(headers), *lines]]
    return "\n".join(f"| {' | '.join(line)} |" for line in picked)
