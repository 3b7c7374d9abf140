"""A hierarchy on the screen: a line of counts, and the tree with its root on top."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from unblur.config import QuasiIdentifier
from unblur.hierarchy import CategoryHierarchy, Hierarchy, IntervalHierarchy

MOST_LINES = 60
"""How long a drawing may be before children are left out."""


def show(attribute: QuasiIdentifier, *, everything: bool) -> None:
    """Print the counts, the notes and the tree of a quasi-identifier."""
    print(summary(attribute))
    for note in attribute.hierarchy.notes:
        print(f"  note: {note}")
    console = Console(soft_wrap=True, highlight=False)
    ellipsis = "..." if console.options.ascii_only else "…"
    console.print(draw(attribute.hierarchy, everything=everything, ellipsis=ellipsis))
    print()


def summary(attribute: QuasiIdentifier) -> str:
    """Describe a quasi-identifier in a line."""
    tree = attribute.hierarchy
    counts = [_count(tree.values, "value"), _count(tree.nodes(1), "leaf"), _count(tree.height, "layer")]
    finest = "raw values" if attribute.finest_layer == 0 else "leaves"
    step = f", step {tree.step}" if isinstance(tree, IntervalHierarchy) else ""
    return f"{attribute.name}: {', '.join(counts)}{step}; finest layer {attribute.finest_layer} ({finest})"


@dataclass(frozen=True)
class Branch:
    """A node with all that is below it."""

    label: str
    children: tuple[Branch, ...] = ()

    def shown(self, few: int) -> tuple[Branch, ...]:
        """The children to draw; one alone is never left out, as its line would be spent on saying so."""
        return self.children if len(self.children) <= few + 1 else self.children[:few]

    def lines(self, few: int) -> int:
        """Count the lines of the drawing."""
        shown = self.shown(few)
        return 1 + sum(child.lines(few) for child in shown) + (len(shown) < len(self.children))

    def draw(self, few: int, ellipsis: str) -> Tree:
        """Draw the branch, with at most about `few` children of each node."""
        drawing = Tree(Text(self.label))
        shown = self.shown(few)
        for child in shown:
            drawing.children.append(child.draw(few, ellipsis))
        if hidden := len(self.children) - len(shown):
            drawing.add(Text(f"{ellipsis} {hidden:,} more"))
        return drawing


def draw(tree: Hierarchy, *, everything: bool = False, ellipsis: str = "…") -> Tree:
    """Draw a tree; unless everything is asked for, show so few children of each node that it fits a screen or two."""
    root = branch(tree)
    if everything:
        return root.draw(tree.values, ellipsis)
    few = next((few for few in (20, 12, 8, 6, 5, 4, 3, 2) if root.lines(few) <= MOST_LINES), 1)
    return root.draw(few, ellipsis)


def branch(tree: Hierarchy) -> Branch:
    """Build the branches from the bottom: raw values for categories; the leaves, with their lengths, for intervals."""
    if isinstance(tree, CategoryHierarchy):
        below = [Branch(value) for value in tree.domain]
        parents = [tree.leaf_of, *tree.parents]
        labels = list(tree.labels)
    else:
        below = [Branch(f"{label}  {_count(tree.length(1, n), 'value')}") for n, label in enumerate(tree.labels[0])]
        parents, labels = list(tree.parents), list(tree.labels[1:])
    for above, names in zip(parents, labels, strict=True):
        children: list[list[Branch]] = [[] for _ in names]
        for child, parent in zip(below, above, strict=True):
            children[parent].append(child)
        below = [Branch(name, tuple(inside)) for name, inside in zip(names, children, strict=True)]
    return below[0]


def _count(number: int, noun: str) -> str:
    plural = {"leaf": "leaves"}.get(noun, f"{noun}s")
    return f"{number:,} {noun if number == 1 else plural}"
