"""How fast the package is, beside what the machine can do at the same time: ``python -m benchmarks --help``."""
