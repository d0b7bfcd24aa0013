from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any, ClassVar

from tkg_incremental.datasets.atise import ATISEDataset
from tkg_incremental.datasets.base import Graph
from tkg_incremental.datasets.download import MIRROR_VARIABLE, DownloadError, download
from tkg_incremental.datasets.labels import label_entities, read_labels
from tkg_incremental.datasets.lines import read_fields

logger = logging.getLogger(__name__)

LABELS_UPSTREAM = "https://raw.githubusercontent.com/qianxinying/CoPET/57faec554dc76c0b3a68eed4c717ddf3f25ea359"
LABEL_FILE = "id2name.csv"
LABEL_CHECKSUM = "163563bc1487541f8ed6118041dc1dac87ede32ceb770a0567bda491c29099b4"

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

    Entities are shown by their English labels, which are downloaded with the dataset; entities that share a label also
    show their Q-ids. Q-ids are accepted in queries as well. Without the label file entities are shown by Q-ids, and so
    are the 37 without a usable label. A file ``labels.tsv`` of ``Q-id ⇥ label`` lines in the root folder takes
    precedence; it need not be complete.

    12,554 entities, 24 relations, 78 steps; 257,542 train, 20,764 validation and 19,746 test quads.

    Args:
        root: Folder of the dataset.
        labels: :obj:`True` for the labels of the download, :obj:`False` for Q-ids, or a file as ``labels.tsv`` above.
        single_step_facts: Keep facts that begin and end within one step (272,377 train rows).
        leak_free: Drop validation and test rows that are also in an earlier split.
        **kwargs: Further arguments of :class:`~tkg_incremental.datasets.base.TKGDataset`.
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
        labels: bool | str | Path = True,
        single_step_facts: bool = False,
        leak_free: bool = False,
        **kwargs: Any,
    ) -> None:
        self._labels = labels if isinstance(labels, bool) else Path(labels)
        super().__init__(root, single_step_facts, leak_free, **kwargs)

    def readable(self, name: str) -> str:
        return RELATIONS.get(name, name)

    def download(self) -> None:
        super().download()
        if self._labels is True:
            # A mirror has the labels in a folder of their own; upstream, they are in another repository.
            folder = "wikidata_labels" if os.environ.get(MIRROR_VARIABLE) else "data/wiki"
            try:
                download({f"{folder}/{LABEL_FILE}": LABEL_CHECKSUM}, self.raw_dir, LABELS_UPSTREAM, tries=2)
            except DownloadError as error:
                logger.warning("entities are shown by Q-ids, because their labels could not be downloaded: %s", error)

    def _load(self) -> Graph:
        # Labels are not part of the cache, so that a file that is added later is read.
        graph = super()._load()
        names = graph.entity_names
        shown = self._shown(names)
        graph.entity_aliases = {name: index for index, name in enumerate(names) if shown[index] != name}
        graph.entity_names = shown
        return graph

    def _shown(self, names: list[str]) -> list[str]:
        """The name to show of each Q-id."""
        if self._labels is False:
            return names
        path = Path(self.root) / "labels.tsv" if self._labels is True else self._labels
        if path.exists() or self._labels is not True:
            labels = {name: label for _, (name, label) in read_fields(path, (2,))}
            return [labels.get(name, name) for name in names]
        downloaded = Path(self.raw_dir) / LABEL_FILE
        return label_entities(names, read_labels(downloaded)) if downloaded.exists() else names
