"""Complex vectors as lists of Python's complex numbers: first half real, second half imaginary."""

from __future__ import annotations

import cmath

Vector = list[float]


def to_complex(vector: Vector) -> list[complex]:
    half = len(vector) // 2
    return [complex(re, im) for re, im in zip(vector[:half], vector[half:], strict=True)]


def to_real(numbers: list[complex]) -> Vector:
    return [z.real for z in numbers] + [z.imag for z in numbers]


def times(a: list[complex], b: list[complex]) -> list[complex]:
    return [x * y for x, y in zip(a, b, strict=True)]


def plus(a: list[complex], b: list[complex]) -> list[complex]:
    return [x + y for x, y in zip(a, b, strict=True)]


def rotated(vector: Vector, angles: Vector) -> Vector:
    return to_real(times(to_complex(vector), [cmath.exp(1j * angle) for angle in angles]))
