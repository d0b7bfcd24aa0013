"""``python -m benchmarks``: runs benchmarks and writes the page of the documentation."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch

from benchmarks import days, distributed, evaluation, live, machine, peers, report, sampling, scale, startup, training
from benchmarks.harness import Benchmark, Unavailable
from benchmarks.lab import Lab
from tkg_incremental.ops.memory import keep_freed_memory

FAMILIES = (startup, training, evaluation, sampling, peers, scale, days, live, distributed)
BENCHMARKS: list[Benchmark] = [benchmark for family in FAMILIES for benchmark in family.BENCHMARKS]


def run(benchmark: Benchmark, lab: Lab) -> report.Row:
    """Runs one benchmark; its row gives the reason if it cannot run."""
    try:
        return report.Row.of(benchmark, benchmark.run(lab), judged=not lab.quick)
    except Unavailable as error:
        return report.Row(benchmark.name, benchmark.published, skipped=str(error))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Times the package, and references on the same machine in the same run.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="run benchmarks with one of these strings in their names"
    )
    parser.add_argument("--list", action="store_true", help="print the names")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to check that all benchmarks run")
    parser.add_argument("--large", action="store_true", help="also a live graph of a million entities, half an hour")
    parser.add_argument("--threads", type=int, help="threads of torch; with one, CPU seconds are measured")
    parser.add_argument("--root", default="data", help="folder of the datasets")
    parser.add_argument(
        "--json",
        type=Path,
        help=f"file for the results, by default {report.RESULTS.name} for a whole run; keeps rows that were not run",
    )
    parser.add_argument(
        "--write-docs", action="store_true", help="only write the page of the documentation from the results"
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    chosen = [b for b in BENCHMARKS if options.only is None or any(part in b.name for part in options.only)]
    if options.list:
        print("\n".join(benchmark.name for benchmark in chosen))
        return
    if options.write_docs:
        report.PAGE.write_text(report.page(*report.load(options.json or report.RESULTS)), encoding="utf-8")
        print(f"Written: {report.PAGE}")
        return
    if not chosen:
        raise SystemExit(f"--only must be part of a name that --list shows (got {' '.join(options.only)})")
    # Fresh memory costs ten times as much as filling it. The setting also helps the references.
    kept = keep_freed_memory()
    if options.threads:
        torch.set_num_threads(options.threads)
    lab = Lab(options.root, options.quick, options.threads, options.large)
    about = machine.describe(lab.threads, kept)
    print("\n".join(f"{name}: {value}" for name, value in about.items()), end="\n\n")
    rows = []
    for benchmark in chosen:
        rows.append(run(benchmark, lab))
        print(report.table(rows[-1:]), flush=True)
    missed = [row.name for row in rows if row.met is False]
    summary = f"{sum(row.met is True for row in rows)} rows meet their aims, {len(missed)} do not: {' '.join(missed)}"
    print("\nThe aims are not for tiny sizes." if options.quick else f"\n{summary}")
    path = options.json or (None if options.quick or options.only else report.RESULTS)
    if path is not None:
        report.save(report.merge(rows, path, [b.name for b in BENCHMARKS]), about, path)
        print(f"Written: {path}")


if __name__ == "__main__":
    main()
