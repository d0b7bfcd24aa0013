import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the graph of :mod:`small_live`, which is trained once. Tests that write take a copy."""
    from small_live import make

    folder = tmp_path_factory.mktemp("live")
    make(folder).close()
    return folder / "graph"


@pytest.fixture
def path(trained: Path, tmp_path: Path) -> Path:
    """A copy of the trained graph."""
    return Path(shutil.copytree(trained, tmp_path / "graph"))
