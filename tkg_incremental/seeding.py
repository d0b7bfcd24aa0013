"""Random generators from a seed and a purpose."""

from __future__ import annotations

import hashlib

import torch

_MAX_SEED = 2**63 - 1


def derive_seed(seed: int, *purpose: object) -> int:
    """A 63-bit seed for one purpose.

    Torch's CPU generator reads 32 bits of its seed, so that 0 and 2³² would be the same. Hashing uses all digits, and
    gives every purpose an independent stream.

    >>> derive_seed(0, "pool", 7) == derive_seed(2**32, "pool", 7)
    False
    """
    digest = hashlib.blake2b(repr((seed, *purpose)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") & _MAX_SEED


def make_generator(seed: int, *purpose: object, device: torch.device | str = "cpu") -> torch.Generator:
    """A generator for one purpose, e.g. ``make_generator(seed, "warm up", time)``."""
    generator = torch.Generator(device)
    mixed = derive_seed(seed, *purpose)
    # Fold the upper half into the 32 bits that the generator reads.
    return generator.manual_seed((mixed ^ (mixed >> 32)) & 0xFFFFFFFF)
