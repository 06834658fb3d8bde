"""Whose way to the server leads over certain wires, such as those with an outage: found for all nodes at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from fedsim.network.hop import Link

__all__ = ["Cuts"]


class Cuts(Collection[Link]):
    """Some links, and who is behind them.

    To look along each way by itself would take n * n / 4 steps in a ring of n factories. Here it takes n, and once more
    only after the links have changed.
    """

    def __init__(self) -> None:
        self._links: dict[Link, None] = {}
        self._behind: dict[int, tuple[Mapping[str, str], set[str]]] = {}
        """By the identity of a mapping that says for each node the next one: that mapping, and who is behind a link."""

    def add(self, link: Link) -> None:
        """It is one of them."""
        self._links[link] = None
        self._behind.clear()

    def discard(self, link: Link) -> None:
        """It is none of them any more."""
        self._links.pop(link, None)
        self._behind.clear()

    def on_the_way(self, node: str, towards: Mapping[str, str]) -> bool:
        """Whether one of them is a wire on the way of *node*, which leads from each node to the next one *towards* the
        server; nodes that are nearer to the server come first in *towards*."""
        if not self._links:
            return False
        if id(towards) not in self._behind:
            wires = [link.ends for link in self._links if not link.access]
            steps = {step for one, other in wires for step in ((one, other), (other, one))}
            behind: set[str] = set()
            for farther, nearer in towards.items():
                if nearer in behind or (farther, nearer) in steps:
                    behind.add(farther)
            self._behind[id(towards)] = towards, behind
        return node in self._behind[id(towards)][1]

    def __contains__(self, link: object) -> bool:
        return link in self._links

    def __iter__(self) -> Iterator[Link]:
        return iter(self._links)

    def __len__(self) -> int:
        return len(self._links)
