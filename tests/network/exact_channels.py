"""Channels in exact arithmetic, the plain way: every flow's remaining work is touched at every event.

Nothing of it is how the product does it: no plan, no virtual clock, no classes, no heap, no rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

__all__ = ["RULES", "ExactChannel", "Work"]


@dataclass
class Work:
    """One flow."""

    left_s: Fraction
    share: Fraction
    weight: Fraction
    given_s: Fraction
    """What ``left_s`` was when it was last given."""
    unsent: Fraction = Fraction(1)
    """Part of the message that was unsent then."""
    spent_s: Fraction = Fraction(0)
    begun_s: Fraction | None = None
    gone_s: Fraction | None = None
    """When all of it had been sent."""
    pace: Fraction = Fraction(1)
    """The part of its full rate that it had last."""

    @property
    def share_sent(self) -> Fraction:
        if self.gone_s is not None:
            return Fraction(1)
        return 1 - self.unsent * (self.left_s / self.given_s if self.given_s else 1)


Parts = dict[int, Fraction]
"""How much of a carrier each flow has, by its number."""


def first_come_first_served(works: Mapping[int, Work], carriers: int) -> Parts:
    return {number: works[number].share for number in list(works)[:carriers]}


def everybody_at_once(works: Mapping[int, Work], carriers: int) -> Parts:
    return {number: work.share for number, work in works.items()}


def water_filling(works: Mapping[int, Work], carriers: int) -> Parts:
    """In proportion to the weights; who would get more than its share gets that, and the rest is dealt out again."""
    sharing, left, parts = list(works), Fraction(carriers), {}
    while sharing:
        level = left / sum(works[number].weight for number in sharing)
        modest = [number for number in sharing if works[number].share <= works[number].weight * level]
        if not modest:
            return parts | {number: works[number].weight * level for number in sharing}
        parts |= {number: works[number].share for number in modest}
        left -= sum(works[number].share for number in modest)
        sharing = [number for number in sharing if number not in modest]
    return parts


RULES = {"serial": first_come_first_served, "dedicated": everybody_at_once, "fair": water_filling}
"""By the name of the discipline."""


@dataclass
class ExactChannel:
    """A channel that follows one of the rules."""

    rule: Callable[[Mapping[int, Work], int], Parts]
    now_s: Fraction
    carriers: int = 1
    flows: dict[int, Work] = field(default_factory=dict)
    """All that were ever started, by number."""
    on: list[int] = field(default_factory=list)
    """Those of which something is still to be sent, in the order in which they were started."""
    paused: bool = False
    used_s: Fraction = Fraction(0)
    """Integral over time of how much of the carriers is used, all together."""

    def start(self, number: int, need_s: float, share: float, weight: float) -> None:
        need = Fraction(need_s)
        self.flows[number] = Work(need, Fraction(share), Fraction(weight), need)
        self.on.append(number)

    def stop(self, number: int) -> None:
        self.on.remove(number)

    def adjust(self, number: int, need_s: float, share: float) -> None:
        work = self.flows[number]
        work.unsent = 1 - work.share_sent
        work.left_s = work.given_s = Fraction(need_s)
        work.share = Fraction(share)

    def put_back(self, number: int) -> None:
        """It is sent now, but what happens next happens before that."""
        self.flows[number].gone_s = None
        self.on = sorted([*self.on, number])

    def let_go(self, number: int) -> None:
        """It is sent now, and before what happens next."""
        self.flows[number].gone_s = self.now_s
        self.on.remove(number)

    def parts(self) -> Parts:
        return {} if self.paused else self.rule({number: self.flows[number] for number in self.on}, self.carriers)

    def advance(self, to_s: Fraction | None) -> None:
        """Let time pass until *to_s*, or until all that can be sent has been sent."""
        while True:
            parts = self.parts()
            for number in parts:
                if self.flows[number].begun_s is None:
                    self.flows[number].begun_s = self.now_s
            ends = [self.flows[n].left_s * self.flows[n].share / part for n, part in parts.items()]
            if to_s is not None and (not ends or self.now_s + min(ends) > to_s):
                self._pass(to_s - self.now_s, parts)
                return
            if not ends:
                return
            self._pass(min(ends), parts)
            self.on = [number for number in self.on if self.flows[number].gone_s is None]

    def _pass(self, step_s: Fraction, parts: Parts) -> None:
        self.now_s += step_s
        for number, part in parts.items():
            work = self.flows[number]
            work.pace = part / work.share
            work.left_s -= work.pace * step_s
            work.spent_s += part * step_s
            self.used_s += part * step_s
            if not work.left_s:
                work.gone_s = self.now_s
