"""Which layers a protocol averages among models that differ: how many of each device class's, and their bytes."""

from __future__ import annotations

from typing import Any

from fedsim.models.segmented import whole
from fedsim.models.signatures import signatures
from fedsim.protocols.combination import Combination
from fedsim.protocols.exchanges.common_layers import CommonLayers
from fedsim.protocols.protocol import Protocol
from fedsim.scenario.build import Materials

__all__ = ["common_layer_facts"]


def common_layer_facts(protocol: Protocol, materials: Materials) -> list[dict[str, Any]]:
    """For each device class: its ``clients``, and how many ``layers`` and ``bytes`` of its model somebody shares.

    ``of_layers`` and ``of_bytes`` are all of them. Empty for a protocol that averages whole models, or one part.
    """
    if not isinstance(protocol, Combination) or not isinstance(exchange := protocol.what()[0], CommonLayers):
        return []
    adapted = {table.digest: materials.table_for(protocol, table) for table in materials.tables}
    tables = [adapted[table.digest] for table in materials.client_tables]
    sharing = exchange.sharing(tables)
    facts = []
    for name in dict.fromkeys(materials.device_classes):
        table = tables[materials.device_classes.index(name)]
        facts.append(
            {
                "device_class": name,
                "clients": materials.device_classes.count(name),
                "layers": sharing.layers(table),
                "of_layers": len(signatures(whole(table))),
                "bytes": sum(table.bytes(segment) for segment in sharing.segments(table)),
                "of_bytes": table.bytes(),
            }
        )
    return facts
