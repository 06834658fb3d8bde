"""Which segments of clients' models are averaged over whom, for all clients of a run, or of one round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Literal, NamedTuple

from annotated_types import Interval

from fedsim.grouping.common_layers import Rule, partners
from fedsim.models.segmented import SegmentedTable, whole
from fedsim.models.signatures import Signatures, first_connected, signatures
from fedsim.models.table import LayerTable, ModelTable
from fedsim.settings import Settings

__all__ = ["CommonSettings", "Group", "Sharing"]


class CommonSettings(Settings):
    """The keys of what clients have in common."""

    common: Literal["run", "round"] = "run"
    """run: what is common is so among all clients of the run, whoever was drawn; the mean that the server has of it is
    where each client begins. round: among the clients of the round, who begin with what they have."""
    upload: Literal["whole", "common"] = "whole"
    """Whether a client sends its whole model (as in algorithm 2), or only the layers that it has in common."""
    share_fc: bool = True
    """Whether fully connected layers can be common, which they are in identical models only. false: nothing is from the
    first fully connected layer on."""
    layers: Annotated[int, Interval(ge=1, le=10**6)] | None = None
    """At most so many layers are common, from the first one on, as in the paper's study; left out, all that can be."""
    init: Literal["common", "own"] = "common"
    """common: layers that models have in common start alike in all; own: each client draws all of its own."""


class Group(NamedTuple):
    """Segments that are averaged over the same clients."""

    segments: tuple[str, ...]
    models: frozenset[Signatures]
    """Those that their clients have."""


class Sharing:
    """By *rule*, among clients whose models' *tables* these are."""

    def __init__(
        self, tables: Iterable[ModelTable], rule: Rule, *, share_fc: bool = True, layers: int | None = None
    ) -> None:
        counted = list(tables)
        clients = Counter(table.digest for table in counted)
        self.tables = tuple({table.digest: table for table in counted}.values())
        """Each once."""
        models = {table.digest: signatures(whole(table)) for table in self.tables}
        number = Counter[Signatures]()
        for digest, model in models.items():
            number[model] += clients[digest]
        with_whom = partners(rule, models.values())
        self._groups: dict[str, tuple[Group, ...]] = {}
        for table in self.tables:
            model = models[table.digest]
            limits = [first_connected(model) if not share_fc else None, layers]
            found: list[Group] = []
            for segment, end in _ends(table):
                some = with_whom[model][end - 1]
                if sum(number[one] for one in some) < 2 or any(end > limit for limit in limits if limit is not None):
                    continue
                if found and found[-1].models == some:
                    found[-1] = Group((*found[-1].segments, segment), some)
                else:
                    found.append(Group((segment,), some))
            self._groups[table.digest] = tuple(found)
        self.groups = tuple(dict.fromkeys(group for groups in self._groups.values() for group in groups))
        """All, each once."""
        self._segments = {
            digest: tuple(segment for group in groups for segment in group.segments)
            for digest, groups in self._groups.items()
        }

    def of(self, table: ModelTable) -> tuple[Group, ...]:
        """Those that a model of *table* is in."""
        return self._groups.get(table.digest, ())

    def segments(self, table: ModelTable) -> tuple[str, ...]:
        """The segments of *table* that are shared."""
        return self._segments.get(table.digest, ())

    @property
    def is_one_model(self) -> bool:
        """Whether all clients have all of one model in common."""
        return len(self.tables) == 1 and len(self.groups) == 1 and self.groups[0].segments == self.tables[0].parts

    def layers(self, table: ModelTable) -> int:
        """How many layers that is."""
        begin, found = 0, 0
        for segment, end in _ends(table):
            found += end - begin if segment in self.segments(table) else 0
            begin = end
        return found

    def first_table(self, group: Group) -> ModelTable:
        """The first of the tables that has the group."""
        return next(table for table in self.tables if group in self._groups[table.digest])


def _ends(table: ModelTable) -> list[tuple[str, int]]:
    """The segments, or parts, with how many layers there are up to the end of each."""
    if isinstance(table, SegmentedTable):
        return list(zip(table.parts, table.ends, strict=True))
    if not isinstance(table, LayerTable):
        return [(part, 1) for part in table.parts]
    ends = {layer.part: end for end, layer in enumerate(table.signed_layers(), start=1)}
    return [(part, ends.get(part, 1)) for part in table.parts]
