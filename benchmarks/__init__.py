"""Benchmarks of the package beside references on the same machine: ``python -m benchmarks --help``."""
