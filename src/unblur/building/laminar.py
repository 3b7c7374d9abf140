"""Laminar families: intervals any two of which are nested or disjoint, and the plainest trees that have them all."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

from unblur.errors import HierarchyError
from unblur.hierarchy import MOST_LEAVES, IntervalHierarchy, from_cuts
from unblur.labels import ROOT_LABEL, interval_label

Bounds = tuple[Decimal, Decimal]


@dataclass(frozen=True)
class Family:
    """Half-open intervals that are nested or disjoint, with their labels, in a domain around them all."""

    labels: Mapping[Bounds, str]
    low: Decimal
    high: Decimal
    step: Decimal
    low_fixed: bool = False
    """Whether the domain begins at `low` and not before."""
    high_fixed: bool = False
    """Whether the domain ends at `high` and not after."""
    keep_labels: bool = False
    """Whether the labels must stay as they are: an open-ended one has no bounds to be written with."""

    def __post_init__(self) -> None:
        """Refuse two intervals that overlap without one being inside the other."""
        around: list[Bounds] = []
        for node in sorted(self.labels, key=lambda node: (node[0], -node[1])):
            while around and around[-1][1] <= node[0]:
                around.pop()
            if around and node[1] > around[-1][1]:
                raise HierarchyError(
                    f"{self.labels[around[-1]]} and {self.labels[node]} overlap, but neither is inside the other; "
                    "labels of one hierarchy are nested or apart"
                )
            around.append(node)

    def tree(self) -> IntervalHierarchy:
        """Find equal leaves, evenly grouped, that give every interval; else take the intervals as they are."""
        return _regular(self) or _irregular(self)


def _regular(family: Family) -> IntervalHierarchy | None:
    """Find equal leaves and fan-outs that give every label; None if there are none.

    The last node of a layer may be cut short by the end of the domain, so the widths of the nodes there count only
    if nothing fits without them.
    """
    if family.keep_labels:
        return None
    nodes = list(family.labels)
    top = max(high for _, high in nodes)
    for some in ([node for node in nodes if node[1] < top], nodes):
        tree = _grid(family, sorted({high - low for low, high in some}))
        if tree is not None and nodes_of(tree) >= set(nodes):
            return tree
    return None


def _grid(family: Family, widths: Sequence[Decimal]) -> IntervalHierarchy | None:
    """Make leaves of the first width and group them to the others; None if that is impossible."""
    if not widths or any(wide % narrow for narrow, wide in pairwise(widths)):
        return None
    narrow, wide = widths[0], widths[-1]
    anchor = next(low for low, high in family.labels if high - low == wide)
    low = anchor - _round_up(anchor - family.low, wide)  # groups are counted from the lower end
    if low != family.low and family.low_fixed:
        return None
    count = int(_round_up(family.high - low, narrow) / narrow)
    if count > MOST_LEAVES:
        return None
    cuts = [low + narrow * i for i in range(count + 1)]
    if family.high_fixed or any(high == family.high for _, high in family.labels):
        cuts[-1] = family.high
    return _possible(cuts, [int(upper / lower) for lower, upper in pairwise(widths)], family.step)


def _possible(cuts: Sequence[Decimal], fanouts: Sequence[int], step: Decimal) -> IntervalHierarchy | None:
    try:
        return from_cuts(cuts, fanouts=fanouts, step=step)
    except HierarchyError:
        return None


def nodes_of(tree: IntervalHierarchy) -> set[Bounds]:
    """The bounds of all nodes whose labels state them."""
    layer = list(pairwise(tree.bounds))
    found = set(layer)
    for parents, labels in zip(tree.parents, tree.labels[1:], strict=True):
        starts = [next_ != last for last, next_ in pairwise((-1, *parents))]
        edges = [node[0] for node, start in zip(layer, starts, strict=True) if start]
        layer = list(pairwise([*edges, tree.high]))
        found |= {node for node, label in zip(layer, labels, strict=True) if label != ROOT_LABEL}
    return found


def _round_up(value: Decimal, grain: Decimal) -> Decimal:
    return -((-value / grain).to_integral_value("ROUND_FLOOR")) * grain


def _irregular(family: Family) -> IntervalHierarchy:
    """Take the intervals as they are: leaves between neighbouring bounds, each under the intervals around it."""
    edges = sorted({family.low, family.high, *(bound for node in family.labels for bound in node)})
    if len(edges) > MOST_LEAVES + 1:
        raise HierarchyError(f"{len(edges) - 1:,} leaves are too many; {MOST_LEAVES:,} are accepted")
    chains = list(_chains(family, edges))
    rank = _ranks(chains)
    layers: list[list[Bounds]] = []
    for layer in range(1, max(rank.values()) + 1):
        # In each chain the widest node of at most this rank; neighbours share it.
        layers.append(list(dict.fromkeys([node for node in chain if rank[node] <= layer][-1] for chain in chains)))
    decimals = any(number % 1 for number in (*edges, family.step))
    labels = [
        tuple(family.labels.get(node) or interval_label(*node, decimals=decimals) for node in layer) for layer in layers
    ]
    parents = [tuple(_rank_of(node, above) for node in below) for below, above in pairwise(layers)]
    if len(layers[-1]) > 1:
        labels.append((ROOT_LABEL,))
        parents.append((0,) * len(layers[-1]))
    return IntervalHierarchy(tuple(labels), tuple(parents), tuple(edges), family.step)


def _chains(family: Family, edges: Sequence[Decimal]) -> Iterator[list[Bounds]]:
    """Per leaf, the nodes that hold it, from the leaf itself to the widest."""
    waiting = sorted(family.labels, key=lambda node: (-node[0], node[1]))
    around: list[Bounds] = []
    for leaf in pairwise(edges):
        while around and around[-1][1] <= leaf[0]:
            around.pop()
        while waiting and waiting[-1][0] <= leaf[0]:
            around.append(waiting.pop())
        yield list(dict.fromkeys([leaf, *reversed(around)]))


def _ranks(chains: Sequence[Sequence[Bounds]]) -> dict[Bounds, int]:
    """The layer of each node: 1 for a leaf, else one above the highest node inside."""
    parent = {lower: upper for chain in chains for lower, upper in pairwise(chain)}
    rank = dict.fromkeys((node for chain in chains for node in chain), 1)
    for node in sorted(parent, key=lambda node: node[1] - node[0]):
        above = parent[node]
        rank[above] = max(rank[above], rank[node] + 1)
    return rank


def _rank_of(node: Bounds, layer: Sequence[Bounds]) -> int:
    return bisect_right(layer, node[0], key=lambda each: each[0]) - 1
