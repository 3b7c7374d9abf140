from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import examples
from unblur.grid import Box
from unblur.overlaps import overlapping_pairs

SPANS = st.tuples(st.integers(0, 7), st.integers(1, 8)).map(lambda pair: (pair[0], pair[0] + pair[1]))


def meet(one: Box, other: Box) -> bool:
    return all(a < d and c < b for (a, b), (c, d) in zip(one, other, strict=True))


def compared(boxes: list[Box]) -> list[list[int]]:
    return [[i, j] for i, j in combinations(range(len(boxes)), 2) if meet(boxes[i], boxes[j])]


@given(st.lists(st.tuples(SPANS, SPANS), max_size=30))
@settings(max_examples=examples(200))
def test_few_boxes_are_compared_pair_by_pair(boxes: list[Box]) -> None:
    assert overlapping_pairs(boxes).tolist() == compared(boxes)


def test_many_boxes_are_found_by_cutting_space() -> None:
    for seed in range(examples(10)):
        rng = np.random.default_rng(seed)
        starts = rng.integers(0, 30, (500, 3))
        lengths = rng.choice([1, 1, 2, 4, 30], (500, 3))
        boxes = [
            tuple((int(a), int(a + n)) for a, n in zip(*each, strict=True))
            for each in zip(starts, lengths, strict=True)
        ]
        assert overlapping_pairs(boxes).tolist() == compared(boxes)


def test_boxes_that_no_cut_parts_are_all_pairs() -> None:
    boxes: list[Box] = [((0, 5), (0, 5))] * 150
    assert len(overlapping_pairs(boxes)) == 150 * 149 // 2


def test_there_are_no_pairs_of_one_box_or_none() -> None:
    assert overlapping_pairs([]).shape == overlapping_pairs([((0, 1),)]).shape == (0, 2)
