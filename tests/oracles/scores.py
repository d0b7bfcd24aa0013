r"""Scores :math:`\phi(s, r, o, t)` by the formulas of the models' papers, on lists of numbers."""

from __future__ import annotations

import math

from oracles.facts import Row
from tkg_incremental.models import DE, HyTE, TKGModel

Vector = list[float]


def with_answer(row: Row, side: str, entity: int) -> Row:
    """The row with another tail or head."""
    head, rel, tail, time = row
    return (head, rel, entity, time) if side == "tail" else (entity, rel, tail, time)


class ScoreOracle:
    """The score of any row from a copy of a model's tables."""

    def __init__(self, model: TKGModel) -> None:
        self.tables: dict[str, list[Vector]] = {name: table.detach().tolist() for name, table in model.tables().items()}
        self._model, self._decoder = model, model.decoder

    def entity(self, index: int, time: int) -> Vector:
        vector = self.tables["entity_vectors"][index]
        if isinstance(self._model, DE):
            return diachronic(vector, self.tables["frequency"][index], self.tables["phase"][index], time)
        return self._on_hyperplane(vector, time)

    def relation(self, index: int, time: int) -> Vector:
        return self._on_hyperplane(self.tables["relation_vectors"][index], time)

    def _on_hyperplane(self, vector: Vector, time: int) -> Vector:
        if isinstance(self._model, HyTE):
            return hyperplane(vector, self.tables["normals"][time])
        return vector

    def __call__(self, row: Row) -> float:
        head, rel, tail, time = row
        vectors = (self.entity(head, time), self.relation(rel, time), self.entity(tail, time))
        if self._decoder.name == "TransE":
            return transe(*vectors, p=1 if self._decoder.similarity == "l1" else 2)
        return {"ComplEx": complex_, "DistMult": distmult, "SimplE": simple}[self._decoder.name](*vectors)


# Encoders ----------------------------------------------------------------------------------------------


def diachronic(vector: Vector, frequency: Vector, phase: Vector, time: int) -> Vector:
    moving = [z * math.sin(w * time + b) for z, w, b in zip(vector, frequency, phase, strict=False)]
    return moving + vector[len(frequency) :]


def hyperplane(vector: Vector, normal: Vector) -> Vector:
    length = math.sqrt(sum(w * w for w in normal))
    unit = [w / length for w in normal]
    along = sum(w * z for w, z in zip(unit, vector, strict=True))
    return [z - along * w for z, w in zip(vector, unit, strict=True)]


# Decoders ----------------------------------------------------------------------------------------------


def complex_(head: Vector, rel: Vector, tail: Vector) -> float:
    h, r, t = (
        [complex(re, im) for re, im in zip(v[: len(v) // 2], v[len(v) // 2 :], strict=True)] for v in (head, rel, tail)
    )
    return sum((a * b * c.conjugate()).real for a, b, c in zip(h, r, t, strict=True))


def distmult(head: Vector, rel: Vector, tail: Vector) -> float:
    return sum(a * b * c for a, b, c in zip(head, rel, tail, strict=True))


def simple(head: Vector, rel: Vector, tail: Vector) -> float:
    half = len(head) // 2
    forth = distmult(head[:half], rel[:half], tail[half:])
    back = distmult(tail[:half], rel[half:], head[half:])
    return (forth + back) / 2


def transe(head: Vector, rel: Vector, tail: Vector, p: int) -> float:
    return -(sum(abs(a + b - c) ** p for a, b, c in zip(head, rel, tail, strict=True)) ** (1 / p))
