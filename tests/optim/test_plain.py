"""Optimizers do not import torch._dynamo."""

import subprocess
import sys

import pytest

CODE = """
import sys, torch
from tkg_incremental.optim import {name}
table = torch.nn.Parameter(torch.ones(3, 2))
optimizer = {name}({{"table": table}}, lr=0.5)
table[:1].sum().backward()
optimizer.step()
optimizer.zero_grad()
optimizer.load_state_dict(optimizer.state_dict())
assert table.grad is None
assert float(table.detach()[0, 0]) < 1.0 == float(table.detach()[1].max()) or {name}.__name__ == "DenseAdam"
assert optimizer.param_groups[0]["lr"] == 0.5
assert "torch._dynamo" not in sys.modules
"""


@pytest.mark.parametrize("name", ["DenseAdam", "RowAdam", "RowAdagrad"])
def test_nothing_is_imported_for_compilation(name: str) -> None:
    done = subprocess.run([sys.executable, "-c", CODE.format(name=name)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
