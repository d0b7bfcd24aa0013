from __future__ import annotations

import datetime
from typing import ClassVar

from tkg_incremental.datasets.icews import ICEWSDataset


class ICEWS14(ICEWSDataset):
    r"""ICEWS14: political events of the year 2014 from the Integrated Crisis Early Warning System, in the splits of the
    `"Learning Sequence Encoders for Temporal Knowledge Graph Completion" <https://arxiv.org/abs/1809.03202>`_ paper.

    Each fact is an event of one day.

    7,128 entities, 230 relations, 365 steps; 72,826 train, 8,941 validation and 8,963 test quads.

    Args:
        root: Where the dataset is kept.
        **kwargs: Further arguments of :class:`~tkg_incremental.datasets.base.TKGDataset`.
    """

    folder: ClassVar[str] = "icews14"
    first_day: ClassVar[datetime.date] = datetime.date(2014, 1, 1)
    last_day: ClassVar[datetime.date] = datetime.date(2014, 12, 31)
    checksums: ClassVar[dict[str, str]] = {
        "train.txt": "a6c7922dcbe406b3e292a313b4eab191e2399c3bc4810f662bb4363043a93df6",
        "valid.txt": "23dfa5cd6f3bb5421efcc30fc03bed0e8de4c2cf251d1765ff722d6f8b15dbe3",
        "test.txt": "50d53602409a3dbaca2f13d9c7e30bf7311d8c1868fac890dc0c2836118b4cb4",
    }
