"""Number of examples of fuzz tests: a few fixed ones in the test suite, many random ones in ``make fuzz``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings

Made = TypeVar("Made")


def tries(few: int) -> Callable[[Any], Any]:
    """Settings for a test whose examples are slow or write files.

    Args:
        few: Number of examples in the test suite; always the same ones.
    """
    calm = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
    if settings.get_current_profile_name() == "fuzz":
        return settings(suppress_health_check=calm)
    return settings(max_examples=few, derandomize=True, suppress_health_check=calm)


def attempt(work: Callable[[], Made], *refusals: type[BaseException]) -> tuple[Made | None, Any]:
    """Calls a function and returns its result and the error, one of them :obj:`None`; unexpected errors are raised.

    Args:
        work: The function.
        refusals: The expected errors.
    """
    try:
        return work(), None
    except refusals as error:
        return None, error
