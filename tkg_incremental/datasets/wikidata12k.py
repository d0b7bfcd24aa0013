from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from tkg_incremental.datasets.atise import ATISEDataset
from tkg_incremental.datasets.base import Graph
from tkg_incremental.datasets.lines import read_fields

RELATIONS = {
    "P6": "head of government",
    "P17": "country",
    "P26": "spouse",
    "P27": "country of citizenship",
    "P31": "instance of",
    "P39": "position held",
    "P54": "member of sports team",
    "P69": "educated at",
    "P102": "member of political party",
    "P108": "employer",
    "P131": "located in the administrative territorial entity",
    "P150": "contains the administrative territorial entity",
    "P166": "award received",
    "P190": "twinned administrative body",
    "P463": "member of",
    "P512": "academic degree",
    "P551": "residence",
    "P579": "IMA status",
    "P793": "significant event",
    "P1346": "winner",
    "P1376": "capital of",
    "P1411": "nominated for",
    "P1435": "heritage designation",
    "P2962": "title of chess person",
}


class Wikidata12k(ATISEDataset):
    r"""Wikidata12k from the `"HyTE: Hyperplane-based Temporally aware Knowledge Graph Embedding"
    <https://aclanthology.org/D18-1225>`_ paper, in the 78 steps of the `TIE paper
    <https://doi.org/10.1145/3404835.3462961>`_.

    Entities are shown by their Q-ids. A file ``labels.tsv`` of ``Q-id ⇥ label`` lines in the root folder
    (or the file ``labels``) replaces them by names; it need not be complete.

    Args:
        root: Folder of the dataset.
        labels: A label file elsewhere.
        single_step_facts: Keep facts that begin and end within one step (272,377 train rows).
        leak_free: Drop validation and test rows that are also in an earlier split.
        **kwargs: Further arguments of :class:`~tkg_incremental.datasets.base.TKGDataset`.

    **STATS:**

    .. list-table::
        :widths: 10 10 10 10 10 10
        :header-rows: 1

        * - #entities
          - #relations
          - #steps
          - #train
          - #val
          - #test
        * - 12,554
          - 24
          - 78
          - 257,542
          - 20,764
          - 19,746
    """

    folder: ClassVar[str] = "wikidata"
    checksums: ClassVar[dict[str, str]] = {
        "entity2id.txt": "307628d198b9369b650d46bb88980b38ed0957a9e8148227c94907f9b2804f01",
        "relation2id.txt": "50e6d3c632dde882c8a84aece1eda1f640f4a79a184033eb0941c10dad90e517",
        "train.txt": "90b42097c9741fada0f81fc5f1be1cb3c0eb0f8bfcf3f5de833dd252b98d069b",
        "valid.txt": "ade5b9c50b985fcf4948b7edde69c65ff8b7c993ea545cd40dc62fc70b5e2e52",
        "test.txt": "f9d6b1bbeba58e94298a5655485b7ca3d1d449ba310b8755b32abafc5ec1da6f",
    }

    def __init__(
        self,
        root: str | Path,
        labels: str | Path | None = None,
        single_step_facts: bool = False,
        leak_free: bool = False,
        **kwargs: Any,
    ) -> None:
        self._labels = Path(labels) if labels is not None else None
        super().__init__(root, single_step_facts, leak_free, **kwargs)

    def readable(self, name: str) -> str:
        return RELATIONS.get(name, name)

    def _load(self) -> Graph:
        # Labels are not part of the cache, so that a file that is added later is read.
        graph = super()._load()
        path = self._labels or Path(self.root) / "labels.tsv"
        if self._labels is not None or path.exists():
            labels = {name: label for _, (name, label) in read_fields(path, (2,))}
            graph.entity_names = [labels.get(name, name) for name in graph.entity_names]
        return graph
