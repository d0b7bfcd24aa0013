"""A graph neural network of PyG on snapshots: a relational GCN reads the graph of one year, DistMult predicts the facts
that are added in the next. Usage: `python examples/rgcn.py --epochs 5`."""

from __future__ import annotations

import argparse

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.loader import DataLoader
from torch_geometric.nn import RGCNConv
from torch_geometric.utils import negative_sampling

from tkg_incremental.data import Snapshot
from tkg_incremental.datasets import WorldLeaders


class RGCN(nn.Module):
    """Two relational convolutions, and a DistMult score of edges."""

    def __init__(self, num_entities: int, num_relations: int, channels: int = 32) -> None:
        super().__init__()
        self.entities = nn.Embedding(num_entities, channels)
        self.relations = nn.Embedding(num_relations, channels)
        self.convs = nn.ModuleList(RGCNConv(channels, channels, num_relations, num_bases=4) for _ in range(2))

    def forward(self, batch: Snapshot, num_entities: int) -> Tensor:  # [num_nodes, channels]
        x = self.entities.weight[torch.arange(batch.num_nodes) % num_entities]  # a batch repeats all entities
        x = self.convs[0](x, batch.edge_index, batch.edge_type).relu()
        return self.convs[1](x, batch.edge_index, batch.edge_type)

    def score(self, x: Tensor, edges: Tensor, rel: Tensor) -> Tensor:  # [2, E] → [E]
        return (x[edges[0]] * self.relations(rel) * x[edges[1]]).sum(-1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5, help="number of epochs")
    epochs = parser.parse_args().epochs
    torch.manual_seed(0)
    dataset = WorldLeaders()
    split = dataset.timeline.base_step + 1

    def with_target(snapshot: Snapshot) -> Snapshot:
        """Adds the facts of the next year that are not in this one."""
        snapshot.added = dataset.timeline.observed.added(snapshot.time + 1)
        return snapshot

    snapshots = [with_target(dataset[t]) for t in range(dataset.num_steps - 1)]
    loader = DataLoader(snapshots[:split], batch_size=8, shuffle=True)
    model = RGCN(dataset.num_entities, dataset.num_relations)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        total = 0.0
        for batch in loader:
            x, edges, rel = model(batch, dataset.num_entities), batch.added[:, [0, 2]].T, batch.added[:, 1]
            others = negative_sampling(edges, batch.num_nodes, len(rel))
            logits = torch.cat([model.score(x, edges, rel), model.score(x, others, rel[: others.size(1)])])
            labels = (torch.arange(len(logits)) < len(rel)).float()
            loss = F.binary_cross_entropy_with_logits(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += float(loss.detach())
        print(f"epoch {epoch + 1}: loss {total / len(loader):.3f}")
    with torch.no_grad():  # rank the tails of the facts that are new in the later years
        ranks = []
        for snapshot in snapshots[split:]:
            x = model(snapshot, dataset.num_entities)
            head, rel, tail, _ = snapshot.added.T
            scores = (x[head] * model.relations(rel)) @ x.T
            ranks.append((scores > scores.gather(1, tail[:, None])).sum(1) + 1)
    print(f"Hits@10 of added facts in later years: {float((torch.cat(ranks) <= 10).float().mean()):.1%}")


if __name__ == "__main__":
    main()
