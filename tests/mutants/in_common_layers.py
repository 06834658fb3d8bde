"""Faults in common layers: whom a layer is averaged with, how models are cut, what travels, and what stays."""

from __future__ import annotations

from mutants.fault import Fault

GROUPING = "fedsim/grouping/common_layers.py"
SEGMENTED = "fedsim/models/segmented.py"
SERVER = "fedsim/protocols/layer_server.py"
SHARING = "fedsim/protocols/sharing.py"
EXCHANGE = "fedsim/protocols/exchanges/common_layers.py"
TRAINER = "fedsim/learning/executors/segmented.py"
TRIE = ("tests/grouping/test_common_layers.py",)
CUT = ("tests/models/test_segmented.py",)
CLOCK = ("tests/protocols/test_common_layers_on_the_clock.py",)
LOOP = ("tests/laws/test_common_layers_learn_like_plain_loops.py",)

FAULTS = (
    Fault(
        "max averages a layer over those who have it anywhere",
        GROUPING,
        "return frozenset(self._below[model[: layer + 1]])",
        "return frozenset(other for other in self.models if model[layer] in other)",
        TRIE,
    ),
    Fault(
        "clustered leaves what is behind the common layers with each client",
        GROUPING,
        "return basic(trie, model, layer) or identical(trie, model, layer)",
        "return basic(trie, model, layer)",
        TRIE,
    ),
    Fault(
        "a layer behind the first difference is common",
        "fedsim/models/signatures.py",
        "return next((at for at, same in enumerate(alike) if not same), min(shortest, len(first)))",
        "return sum(alike)",
        TRIE,
    ),
    Fault(
        "a model is not cut where a part of another one ends",
        SEGMENTED,
        "cuts |= {start, *(end for end in _part_ends(other) if end <= start)}",
        "cuts |= {start}",
        (*CUT, *LOOP),
    ),
    Fault(
        "each segment starts as if it were the first",
        TRAINER,
        'purpose=f"{stream.purpose}/{table.path(number)}"',
        'purpose=f"{stream.purpose}/{table.path(1)}"',
        LOOP,
    ),
    Fault(
        "a layer that one client only has is averaged",
        SHARING,
        "sum(number[one] for one in some) < 2",
        "sum(number[one] for one in some) < 1",
        (*CLOCK, *LOOP),
    ),
    Fault(
        "fully connected layers are shared all the same",
        SHARING,
        "limits = [first_connected(model) if not share_fc else None, layers]",
        "limits = [layers]",
        LOOP,
    ),
    Fault(
        "all layers can be common all the same",
        SHARING,
        "limits = [first_connected(model) if not share_fc else None, layers]",
        "limits = [first_connected(model) if not share_fc else None]",
        LOOP,
    ),
    Fault(
        "who takes part begins with what it has",
        SERVER,
        "            if group in self._means:\n                begin |=",
        "            if group in self._means and not self.world.own_model(client):\n                begin |=",
        LOOP,
    ),
    Fault(
        "who has not arrived gets the mean",
        SERVER,
        "            for update in members:\n",
        "            for update in [one for one in updates for _ in members]:\n",
        LOOP,
    ),
    Fault(
        "what nobody shares is sent down",
        EXCHANGE,
        "begin, down_bytes = site.start(client)",
        "begin, down_bytes = site.start(client)[0], table.bytes()",
        CLOCK,
    ),
    Fault(
        "who shares nothing sends its model",
        EXCHANGE,
        "        if not shared:\n            return 0.0\n",
        "",
        CLOCK,
    ),
    Fault(
        "what was averaged is sent again and again",
        SERVER,
        "self._to_deliver.pop(client.index, None)",
        "self._to_deliver.get(client.index, None)",
        CLOCK,
    ),
    Fault(
        "a client's own layers begin anew in each round",
        SERVER,
        "        self.site.keep(client, own)\n",
        "",
        LOOP,
    ),
)
