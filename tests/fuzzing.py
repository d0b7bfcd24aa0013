"""How hard to try: a few fixed examples with the other tests, very many random ones in ``make fuzz``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings

Made = TypeVar("Made")


def tries(few: int) -> Callable[[Any], Any]:
    """Settings for a test whose every example takes a while, or writes files.

    Args:
        few: How many examples to try when in a hurry; always the same ones.
    """
    calm = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
    if settings.get_current_profile_name() == "fuzz":
        return settings(suppress_health_check=calm)
    return settings(max_examples=few, derandomize=True, suppress_health_check=calm)


def attempt(work: Callable[[], Made], *refusals: type[BaseException]) -> tuple[Made | None, Any]:
    """What comes of the work, or the error if it is one of those that users are told of; any other is raised.

    Args:
        work: What to try.
        refusals: The errors that are allowed.
    """
    try:
        return work(), None
    except refusals as error:
        return None, error
