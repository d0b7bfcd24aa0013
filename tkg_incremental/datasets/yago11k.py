from __future__ import annotations

import re
from typing import ClassVar

from tkg_incremental.datasets.atise import ATISEDataset


class YAGO11k(ATISEDataset):
    r"""YAGO11k from the `"HyTE: Hyperplane-based Temporally aware Knowledge Graph Embedding"
    <https://aclanthology.org/D18-1225>`_ paper, in the 61 steps of the `TIE paper
    <https://doi.org/10.1145/3404835.3462961>`_.

    10,623 entities, 10 relations, 61 steps; 215,894 train, 23,197 validation and 22,567 test quads.

    Args:
        root: Folder of the dataset.
        single_step_facts: Keep facts that begin and end within one step (220,025 train rows).
        leak_free: Drop validation and test rows that are also in an earlier split.
        **kwargs: Further arguments of :class:`~tkg_incremental.datasets.base.TKGDataset`.
    """

    folder: ClassVar[str] = "yago"
    checksums: ClassVar[dict[str, str]] = {
        "entity2id.txt": "3a5482d19f80b3936ca735ea105db799f5c500b170c57f7a59f0ea2650231789",
        "relation2id.txt": "83e460205fa11720980c814aa99d70b4ec42ff9571f7ce9915390e262fc8dc34",
        "train.txt": "e709ff0e8eced3ec9332dba5c5da95c0db403f8eddda52f3b100486b63c4e580",
        "valid.txt": "f3a3946235b078070e6bac0cd2bf6f51bd9cedc394c406873a21141a447730c7",
        "test.txt": "cc94fd96f8fbacb97cb3e75e3aa8cf2c753acd0ee4e2ae56632f7495278f1b7f",
    }

    def readable(self, name: str) -> str:
        """``<Getafe_CF>`` → ``Getafe CF``, ``<isMarriedTo>`` → ``is married to``."""
        name = name.strip("<>")
        if re.fullmatch(r"[a-z]+(?:[A-Z][a-z]*)*", name) and name != name.lower():
            return re.sub(r"(?<=[a-z])([A-Z])", lambda match: " " + match.group(1).lower(), name)
        return name.replace("_", " ")
