"""Every distribution that the extras install is pinned, and the pins allow what ``setup.cfg`` asks for."""

from __future__ import annotations

import configparser
import re
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent


def pins() -> dict[str, Version]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    found = [re.fullmatch(r"([A-Za-z0-9._-]+)==([^ ;]+)", line) for line in lines if line and not line.startswith("#")]
    assert all(found), "constraints.txt must have lines of the form name==version"
    return {canonicalize_name(match[1]): Version(match[2]) for match in found if match}


def requirements() -> dict[str, list[Requirement]]:
    """What ``setup.cfg`` asks for, by extra; that of the package itself under ``""``."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    texts = {"": config["options"]["install_requires"], **config["options.extras_require"]}
    return {
        extra: [Requirement(line) for line in text.splitlines() if line.strip() and not line.startswith("#")]
        for extra, text in texts.items()
    }


PINS, REQUIREMENTS = pins(), requirements()


def is_needed(requirement: Requirement, extras: set[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in (extras or {""}))


@pytest.mark.parametrize("extra", REQUIREMENTS)
def test_everything_is_pinned(extra: str) -> None:
    """All that is required, directly or not, as far as it is installed here."""
    waiting, seen = [r for r in REQUIREMENTS[extra] if is_needed(r, set())], set()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        assert name in PINS, f"constraints.txt has no version of {name}, which {extra or 'the package'} needs"
        assert requirement.specifier.contains(PINS[name], prereleases=True), f"{requirement} and {name}=={PINS[name]}"
        if name in seen:
            continue
        seen.add(name)
        try:
            more = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue  # an extra that is not installed
        if Version(metadata.version(name)).public == PINS[name].public:
            waiting += [r for r in map(Requirement, more) if is_needed(r, set(requirement.extras))]
