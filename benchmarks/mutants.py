"""``python -m benchmarks.mutants``: do the tests notice when a line of the package is wrong?

Draws one-line mutants (:mod:`benchmarks.mutations`), and runs for each the tests of its package that call the function
it is in, the quickest first, until one fails. Torch and the other dependencies are imported once; each mutant lives in
a fork, where an import hook replaces the source of its module. The files of the checkout are not changed.

Results are lines of JSON in ``--results``; a second call continues. ``--again`` runs those that have survived once
more, after tests were added.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

from benchmarks.mutations import Mutant, find_mutants

ROOT = Path(__file__).parent.parent
PACKAGE = "tkg_incremental"
#: Folders of the package, and how many mutants of each are drawn.
DRAWN = {"data": 40, "loader": 25, "strategies": 30, "metrics": 30, "optim": 20, "live": 90, "ops": 30, "answers": 25}
PRELOADED = (
    "torch",
    "numpy",
    "torch_geometric.data",
    "hypothesis",
    "pytest",
    "pandas",
    "sqlite3",
    "filelock",
    "jinja2",
)
PYTEST = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--tb=line"]
#: Limits of one mutant: CPU seconds, seconds, and bytes of memory. A mutant that reaches one is killed by it.
CPU, WALL, MEMORY = 90, 600, 12 << 30
SURVIVED = 0

Place = tuple[str, int]


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a module from another text than that of its file."""

    def __init__(self, name: str, path: str, source: str) -> None:
        super().__init__(name, path)
        self.source = source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.source, self.path, "exec", dont_inherit=True)


class MutantFinder(importlib.abc.MetaPathFinder):
    """Import hook for one module, and the pytest plugin that installs it.

    Args:
        path: Its file.
        source: The text to load instead.
    """

    def __init__(self, path: Path, source: str) -> None:
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        self.name, self.path, self.source = name.removesuffix(".__init__"), path, source

    def pytest_sessionstart(self) -> None:
        # Before the hook of pytest, which rewrites modules whose doctests are asked for.
        sys.meta_path.insert(0, self)

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> Any:
        if fullname != self.name:
            return None
        loader = _Loader(fullname, str(self.path), self.source)
        return importlib.util.spec_from_file_location(fullname, self.path, loader=loader)


class Calls:
    """Pytest plugin: which functions of the package each test calls, and how long it takes."""

    def __init__(self) -> None:
        self.now: set[CodeType] = set()
        self.shared: list[tuple[str, set[CodeType]]] = []  # called by fixtures that tests share
        self.called: dict[str, set[CodeType]] = {}
        self.seconds: dict[str, float] = defaultdict(float)

    def trace(self, frame: FrameType, event: str, argument: object) -> None:
        self.now.add(frame.f_code)

    def pytest_sessionstart(self) -> None:
        threading.settrace(self.trace)
        sys.settrace(self.trace)

    def pytest_sessionfinish(self) -> None:
        sys.settrace(None)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] += report.duration
        if report.when == "teardown":
            self.called[report.nodeid], self.now = self.now, set()

    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> None:
        if fixturedef.scope != "function":
            # What it calls is not separated from what the first test calls: all tests that share it get both.
            self.shared.append((request.node.nodeid, self.now))

    def tests(self) -> dict[str, Any]:
        """For each test its seconds and the functions of the package that it calls."""
        base = str(ROOT / PACKAGE) + os.sep
        found = {}
        for test, codes in self.called.items():
            codes = codes.union(*(shared for node, shared in self.shared if test.startswith(node)))
            places = {
                (str(Path(code.co_filename).relative_to(ROOT)), code.co_firstlineno)
                for code in codes
                if code.co_filename.startswith(base)
            }
            found[test] = {"seconds": self.seconds[test], "calls": sorted(places)}
        return found


def in_fork(work: Callable[[], int], cpu: int, wall: int) -> int:
    """Runs a function in a fork, without output, in a folder of its own.

    Args:
        work: The function; returns an exit code.
        cpu: Maximum CPU seconds.
        wall: Maximum seconds.

    Returns:
        The exit code; negative if a signal ended it.
    """
    folder = tempfile.mkdtemp(prefix="mutant-")
    child = os.fork()
    if child == 0:
        code = 99
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 5))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            signal.alarm(wall)
            os.environ["TMPDIR"] = tempfile.tempdir = folder
            null = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(null, stream)
            code = work()
        finally:
            os._exit(int(code))
    status = os.waitpid(child, 0)[1]
    shutil.rmtree(folder, ignore_errors=True)
    return os.waitstatus_to_exitcode(status)


def trace_tests(folder: str, target: Path) -> None:
    """Writes which tests of a folder call which functions.

    Args:
        folder: A folder of the package.
        target: The file to write.
    """

    def work() -> int:
        import pytest

        calls = Calls()
        base = ["--basetemp", tempfile.mkdtemp()]
        code = int(pytest.main([*PYTEST[1:], *base, f"tests/{folder}", f"{PACKAGE}/{folder}"], plugins=[calls]))
        target.write_text(json.dumps(calls.tests()))
        return code

    code = in_fork(work, 3600, 7200)
    if code:
        target.unlink(missing_ok=True)
        sys.exit(f"the tests of {folder} fail without a mutant (exit code {code})")


def select_tests(tests: dict[str, Any], place: Place) -> list[str]:
    """The tests that call a function, the quickest first. Code outside of functions is called by those of its file."""
    path, line = place
    found = []
    for test, about in tests.items():
        if any(file == path and (first == line or line == 0) for file, first in about["calls"]):
            found.append((about["seconds"], test))
    return [test for _, test in sorted(found)]


def run_mutant(path: Path, mutant: Mutant, tests: Sequence[str]) -> int:
    """The exit code of the tests with a mutant: 0 if it survives."""

    def work() -> int:
        import pytest

        finder = MutantFinder(path, mutant.source)
        return int(pytest.main([*PYTEST, "--basetemp", tempfile.mkdtemp(), *tests], plugins=[finder]))

    return in_fork(work, CPU, WALL) if tests else SURVIVED


def draw(folder: str, count: int, seed: int) -> list[tuple[Path, Mutant]]:
    """Mutants of a folder of the package, at most one of each line and kind.

    Args:
        folder: The folder.
        count: Number of mutants.
        seed: Seed of the draw.
    """
    rng, found = random.Random(f"{seed} {folder}"), []
    for path in sorted((ROOT / PACKAGE / folder).rglob("*.py")):
        lines: dict[tuple[int, str], list[Mutant]] = defaultdict(list)
        for mutant in find_mutants(path.read_text(encoding="utf-8")):
            lines[mutant.line, mutant.kind].append(mutant)
        found += [(path, rng.choice(mutants)) for mutants in lines.values()]
    return rng.sample(found, min(count, len(found)))


def find_again(line: dict[str, Any]) -> tuple[Path, Mutant] | None:
    """A mutant of an earlier call in the source of today; :obj:`None` if what it changed is gone.

    Args:
        line: Its result.
    """
    path, names = ROOT / line["file"], ("kind", "before", "after")
    found = find_mutants(path.read_text(encoding="utf-8")) if path.exists() else []
    same = [mutant for mutant in found if all(getattr(mutant, name) == line[name] for name in names)]
    if not same:
        return None
    nearest = min(same, key=lambda mutant: abs(mutant.line - line["line"]))
    return path, replace(nearest, key=line["key"])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=__doc__)
    parser.add_argument("--results", type=Path, default=Path("runs/mutants.jsonl"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", type=float, default=1.0, help="of the usual number of mutants")
    parser.add_argument("--folders", nargs="+", default=list(DRAWN), choices=list(DRAWN))
    parser.add_argument("--again", action="store_true", help="run those that have survived once more")
    options = parser.parse_args()
    os.chdir(ROOT)
    options.results.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(ImportError):
        for name in PRELOADED:
            importlib.import_module(name)
    done: dict[str, dict[str, Any]] = {}
    if options.results.exists():
        with open(options.results, encoding="utf-8") as file:
            done = {line["key"]: line for line in map(json.loads, file)}
    for folder in options.folders:
        chosen = draw(folder, max(1, round(DRAWN[folder] * options.share)), options.seed)
        if options.again:
            old = [line for line in done.values() if not line["killed"] and line["file"].split("/")[1] == folder]
            chosen = [pair for line in old if (pair := find_again(line)) is not None]
        else:
            chosen = [pair for pair in chosen if pair[1].key not in done]
        traced = options.results.with_suffix(f".{folder}.json")
        if chosen and (options.again or not traced.exists()):
            trace_tests(folder, traced)
        for path, mutant in chosen:
            tests = select_tests(json.loads(traced.read_text()), (str(path.relative_to(ROOT)), mutant.function))
            begin = time.perf_counter()
            code = run_mutant(path, mutant, tests)
            line = {"key": mutant.key, "file": str(path.relative_to(ROOT)), "line": mutant.line, "kind": mutant.kind}
            line |= {"before": mutant.before, "after": mutant.after, "killed": code != SURVIVED, "code": code}
            line |= {"tests": len(tests), "seconds": round(time.perf_counter() - begin, 1)}
            done[mutant.key] = line
            with open(options.results, "a", encoding="utf-8") as file:
                print(json.dumps(line), file=file)
    for folder in options.folders:
        lines = [line for line in done.values() if line["file"].split("/")[1] == folder]
        count = Counter(line["killed"] for line in lines)
        print(f"{folder:12} {count[True]:4} of {len(lines):4} killed")


if __name__ == "__main__":
    main()
