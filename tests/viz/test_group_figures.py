"""Figures of groups show how many there are, how long they are, and how alike."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedsim.viz.group_figures import distances_between_pairs, groups_over_rounds


def formed(protocol: str, seed: int, sizes: dict[int, list[int]]) -> pd.DataFrame:
    """Groups of so many members, by the round in which they were formed."""
    rows = [
        (protocol, seed, number, group, position)
        for number, members in sizes.items()
        for group, size in enumerate(members)
        for position in range(size)
    ]
    return pd.DataFrame(rows, columns=["protocol", "seed", "round", "group", "position"])


def test_groups_and_their_members_are_steps_of_the_first_seed() -> None:
    groups = pd.concat([formed("fedgsp", 2, {1: [9]}), formed("fedgsp", 1, {1: [4, 4], 3: [3, 3, 2]})])
    figure = Figure()
    ax = groups_over_rounds(groups, figure.add_subplot())
    (line,) = ax.get_lines()
    assert np.asarray(line.get_xydata()).tolist() == [[1, 2], [3, 3]]
    members = next(axes for axes in figure.axes if axes is not ax)
    assert np.asarray(members.get_lines()[0].get_xydata()).tolist() == [[1, 4], [3, 3]]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("round", "groups")
    assert line.get_label() == "fedgsp"


def medians(ax: Axes) -> list[float]:
    return [float(line.get_ydata()[0]) for line in ax.get_lines() if line.get_color() == "#D55E00"]  # type: ignore[index]


def test_a_box_has_its_median_and_its_name() -> None:
    ax = distances_between_pairs(
        {"clients": np.array([0.1, 0.3, 0.8]), "_groups": np.array([0.2])}, Figure().subplots()
    )
    assert medians(ax) == [0.3, 0.2]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["clients", " _groups"]
