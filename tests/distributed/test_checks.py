"""Combinations that several processes or sharded tables do not support."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tkg_incremental.communicator import LOCAL
from tkg_incremental.distributed.checks import check_distributed
from tkg_incremental.models import DE
from tkg_incremental.strategies import AGEM
from tkg_incremental.training import TrainerSettings

Found = Callable[[str], dict[int, list[dict[str, Any]]]]


def test_one_process_supports_everything() -> None:
    check_distributed(DE(5, 2, 3, 4), AGEM(), TrainerSettings(), LOCAL, "/run")


def test_messages(found: Found) -> None:
    groups = found("refused")
    assert len(groups[2] + groups[4]) == 6
    for message in groups[2] + groups[4]:
        assert message["agem"].startswith("strategy must not change gradients")
        assert "(got A-GEM)" in message["agem"]
        assert message["folder"].startswith("run_dir must be None for a model with sharded tables (got '/nowhere')")
        assert message["all"] == "negatives must be a number for sharded tables (got 'all' in the base model)"
        assert message["all in a term"].startswith("negatives must be a number for sharded tables (got 'all' in Cross")
        assert message["published"] == "optimizer must be row-wise for sharded tables (got 'published')"
        assert message["base"] == "base must be None for a model with sharded tables (got '/nowhere/base.pt')"
        assert message["mps"] == "device must be cpu or cuda if several processes train (got mps)"
        assert message["grow"].startswith("sharded tables cannot grow")
