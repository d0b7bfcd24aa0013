import copy
import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import TimelineOracle, rows_of
from timelines import make_interval_timeline, make_timeline, timelines
from torch_geometric.data import Batch
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import ToUndirected
from torch_geometric.utils import to_networkx

from tkg_incremental.data import Snapshot, Timeline, Vocabulary
from tkg_incremental.data.catalog import Catalog

TRUMP, BIDEN, US, PRESIDENT = 0, 1, 2, 0


@pytest.fixture
def handover() -> Timeline:
    """The paper's example: one president until step 1, the next from step 1 on."""
    train = [
        (TRUMP, PRESIDENT, US, 0),
        (TRUMP, PRESIDENT, US, 1),
        (BIDEN, PRESIDENT, US, 1),
        (BIDEN, PRESIDENT, US, 2),
    ]
    return make_timeline(train, num_entities=3, num_relations=1, num_steps=4)


def test_handover(handover: Timeline) -> None:
    snapshot = Snapshot(handover, 2)
    assert str(snapshot) == (
        "Snapshot(edge_index=[2, 1], edge_type=[1], train=[1, 4], val=[0, 4], test=[0, 4], added=[0, 4], "
        "removed=[1, 4], time=2, label='2', num_nodes=3)"
    )
    assert snapshot.removed.tolist() == [[TRUMP, PRESIDENT, US, 1]]
    assert snapshot.deleted(window=1).tolist() == [[TRUMP, PRESIDENT, US, 2]]
    assert Snapshot(handover, 1).added.tolist() == [[BIDEN, PRESIDENT, US, 1]]
    assert Snapshot(handover, 0).added.tolist() == [[TRUMP, PRESIDENT, US, 0]]
    assert Snapshot(handover, 0).removed.shape == (0, 4)
    assert rows_of(Snapshot(handover, 3).deleted(2)) == [(TRUMP, PRESIDENT, US, 3), (BIDEN, PRESIDENT, US, 3)]


def test_it_is_a_pyg_graph(handover: Timeline) -> None:
    snapshot = Snapshot(handover, 1)
    assert snapshot.edge_index.tolist() == [[TRUMP, BIDEN], [US, US]]
    assert snapshot.edge_type.tolist() == [PRESIDENT, PRESIDENT]
    assert snapshot.num_nodes == 3
    assert snapshot.validate()
    for copied in (copy.copy(snapshot), snapshot.clone(), copy.deepcopy(snapshot)):
        assert copied.time == 1
        assert torch.equal(copied.added, snapshot.added)
        assert torch.equal(copied.deleted(), snapshot.deleted())
        assert copied.timeline is handover
    assert "<th>added</th><td>(1, 4)</td>" in snapshot._repr_html_()


def test_a_pickle_has_no_timeline(handover: Timeline) -> None:
    snapshot = Snapshot(handover, 2)
    loaded = pickle.loads(pickle.dumps(snapshot))
    assert str(loaded) == str(snapshot)
    assert all(torch.equal(loaded[key], snapshot[key]) for key in ("edge_index", "train", "added", "removed"))
    for view in (loaded.deleted, loaded.replay, loaded.boundary_facts):
        with pytest.raises(ValueError, match="this Snapshot has no timeline"):
            view()
    with pytest.raises(ValueError, match="this Snapshot has no timeline"):
        _ = loaded.known_entities
    facts = [(e, 0, 999 - e, e, e) for e in range(1000)]
    large = make_interval_timeline(facts, num_entities=1000, num_relations=1, num_steps=1000)
    assert len(pickle.dumps(Snapshot(large, 5))) < 10_000


def test_batches(handover: Timeline) -> None:
    snapshots = [Snapshot(handover, step) for step in range(4)]
    batch = next(iter(DataLoader(snapshots, batch_size=4)))
    assert isinstance(batch, Snapshot)
    assert "train=[4, 4]" in repr(batch)
    assert batch.time.tolist() == [0, 1, 2, 3]
    assert batch.label == ["0", "1", "2", "3"]
    assert batch.num_nodes == 12
    # Heads and tails refer to the nodes of the batch, as those of the edges do.
    assert batch.train[:, [0, 2]].t().tolist() == batch.edge_index.tolist()
    for one, other in zip(batch.to_data_list(), snapshots, strict=True):
        assert one.time == other.time
        assert all(torch.equal(one[key], other[key]) for key in ("edge_index", "edge_type", "train", "added"))
    with pytest.raises(ValueError, match="has no timeline"):
        Batch.from_data_list(snapshots).deleted()


def test_on_another_device(handover: Timeline) -> None:
    snapshot = Snapshot(handover, 2).to("meta")
    for key in ("edge_index", "edge_type", "train", "val", "test", "added", "removed"):
        assert snapshot[key].is_meta
    assert snapshot.deleted().is_meta
    assert snapshot.known_entities.is_meta


def test_transforms_and_conversions(handover: Timeline) -> None:
    snapshot = Snapshot(handover, 1)
    graph = to_networkx(snapshot, edge_attrs=["edge_type"])
    assert sorted(graph.edges) == [(TRUMP, US), (BIDEN, US)]
    # There are as many quads as edges: they are no attributes of edges all the same.
    undirected = ToUndirected()(Snapshot(handover, 1))
    assert undirected.edge_index.shape == (2, 4)
    assert torch.equal(undirected.train, snapshot.train)
    assert not snapshot.is_edge_attr("train")
    assert not snapshot.is_node_attr("train")
    assert snapshot.is_edge_attr("edge_type")


def test_data_frame(handover: Timeline) -> None:
    frame = Snapshot(handover, 1).to_dataframe()
    assert frame.values.tolist() == [[TRUMP, PRESIDENT, US, 1, "train"], [BIDEN, PRESIDENT, US, 1, "train"]]
    names = Catalog(
        Vocabulary(["Trump", "Biden", "US"], "entity"),
        Vocabulary(["president of"], "relation"),
        handover.axis,
        handover.first_seen,
        handover.observed.facts.int(),
    )
    frame = Snapshot(handover, 1).to_dataframe(names)
    assert frame.values.tolist()[1] == ["Biden", "president of", "US", "1", "train"]
    assert list(frame.columns) == ["head", "rel", "tail", "time", "split"]


@given(timelines(), st.integers(1, 12))
def test_views(drawn: tuple[Timeline, TimelineOracle], window: int) -> None:
    timeline, oracle = drawn
    for step in range(oracle.num_steps):
        snapshot = Snapshot(timeline, step)
        for split in ("train", "val", "test"):
            assert rows_of(getattr(snapshot, split)) == sorted(row for row in getattr(oracle, split) if row[3] == step)
        assert rows_of(snapshot.current) == sorted((*triple, step) for triple in oracle.holding(step))
        assert rows_of(snapshot.added) == oracle.added(step)
        assert rows_of(snapshot.removed) == oracle.removed(step)
        assert rows_of(snapshot.deleted(window)) == oracle.deleted(step, window)
        assert rows_of(snapshot.replay(window).quads()) == oracle.replay(step, window)
        assert rows_of(snapshot.boundary_facts(window)) == oracle.boundary_facts(step, window)
        assert set(snapshot.known_entities.tolist()) == oracle.known_entities(step)
        assert set(zip(*snapshot.edge_index.tolist(), snapshot.edge_type.tolist(), strict=True)) == {
            (head, tail, rel) for head, rel, tail in oracle.holding(step)
        }


@given(timelines())
def test_views_are_long_rows(drawn: tuple[Timeline, TimelineOracle]) -> None:
    snapshot = Snapshot(drawn[0], 0)
    past = (snapshot.deleted(), snapshot.replay().quads(), snapshot.boundary_facts())
    for view in (snapshot.train, snapshot.added, snapshot.removed, *past):
        assert view.dtype == torch.long
        assert view.dim() == 2
        assert view.size(1) == 4


@pytest.mark.parametrize("window", [0, -3])
def test_windows_of_nothing(handover: Timeline, window: int) -> None:
    snapshot = Snapshot(handover, 2)
    for view in (snapshot.deleted, snapshot.replay, snapshot.boundary_facts):
        with pytest.raises(ValueError, match=rf"window must be at least 1 \(got {window}\)"):
            view(window)
