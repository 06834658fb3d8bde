"""Faults in half-duplex devices, in what a cell is by its radio, and in remarks before a run."""

from __future__ import annotations

from mutants.fault import Fault

HALF_DUPLEX = "fedsim/network/half_duplex.py"
TRANSFER = "fedsim/network/transfer.py"
WIRES = "fedsim/network/wires.py"
CELL = "fedsim/network/cell.py"
SETTINGS = "fedsim/network/settings.py"
BUILD = "fedsim/scenario/build.py"
REMARKS = "fedsim/experiment/remarks_on_air.py"
FIXED = "fedsim/radio/fixed.py"
TEST_DEVICES = "tests/network/test_half_duplex.py"
TEST_STRESS = "tests/laws/test_half_duplex_under_stress.py"
TEST_CELLS = "tests/network/test_cells.py"
TEST_REMARKS = "tests/experiment/test_remarks_before.py"
BOTH = (TEST_DEVICES, TEST_STRESS)

FAULTS = (
    Fault(
        "a half-duplex device does both at once",
        HALF_DUPLEX,
        "return not self._on_air or next(iter(self._on_air)).hop.is_uplink == message.hop.is_uplink",
        "return True",
        BOTH,
    ),
    Fault(
        "what goes the same way waits too",
        HALF_DUPLEX,
        "return not self._on_air or next(iter(self._on_air)).hop.is_uplink == message.hop.is_uplink",
        "return not self._on_air",
        BOTH,
    ),
    Fault(
        "who goes the same way overtakes who waits",
        HALF_DUPLEX,
        "(not self._waiting and self._fits(message))",
        "self._fits(message)",
        BOTH,
    ),
    Fault(
        "who waits for a device comes to it in the opposite order",
        HALF_DUPLEX,
        "following := next(iter(self._waiting))",
        "following := next(reversed(self._waiting))",
        BOTH,
    ),
    Fault(
        "a device that is free takes one at a time",
        HALF_DUPLEX,
        "        while self._waiting and self._fits(",
        "        if self._waiting and self._fits(",
        BOTH,
    ),
    Fault(
        "who is given up while it waits keeps its place",
        HALF_DUPLEX,
        "        self._waiting.pop(message, None)\n",
        "",
        BOTH,
    ),
    Fault(
        "a device is never free again",
        HALF_DUPLEX,
        "        self._on_air.pop(message, None)\n",
        "",
        BOTH,
    ),
    Fault(
        "who waits for a device is sent without coverage",
        HALF_DUPLEX,
        "            if following.hop.rate_bps > 0:",
        "            if True:",
        BOTH,
    ),
    Fault(
        "who goes on the air does not keep the device",
        HALF_DUPLEX,
        "                self._on_air = _with(self._on_air, following)\n",
        "",
        BOTH,
    ),
    Fault(
        "what has been received keeps the device",
        TRANSFER,
        "            self.hop.half_duplex.release(self)\n        if not self.attempted.delivered",
        "            pass\n        if not self.attempted.delivered",
        BOTH,
    ),
    Fault(
        "what is lost on the way keeps the device",
        TRANSFER,
        "        if self.hop.half_duplex is not None:\n            self.hop.half_duplex.release(self)\n",
        "        if self.hop.half_duplex is not None and self.attempted.delivered:\n"
        "            self.hop.half_duplex.release(self)\n",
        (TEST_STRESS,),
    ),
    Fault(
        "what is given up keeps the device",
        TRANSFER,
        "            self.hop.channel.stop(self)\n        self._release_device()\n",
        "            self.hop.channel.stop(self)\n",
        BOTH,
    ),
    Fault(
        "a message out of coverage keeps the device",
        TRANSFER,
        "            self._release_device()  # out of coverage it keeps nobody else waiting\n",
        "            pass\n",
        BOTH,
    ),
    Fault(
        "who is covered again does not look whether the device is free",
        TRANSFER,
        "        elif hop.half_duplex is None or hop.half_duplex.takes(self):\n            self.go_on_air()\n",
        "        else:\n            self.go_on_air()\n",
        BOTH,
    ),
    Fault(
        "who comes does not look whether the device is free",
        TRANSFER,
        "elif rate_bps > 0 and (hop.half_duplex is None or hop.half_duplex.takes(self)):",
        "elif rate_bps > 0:",
        BOTH,
    ),
    Fault(
        "who has had his turn waits still",
        TRANSFER,
        "        hop.link.take_waiting(self)\n        self.need_s",
        "        self.need_s",
        BOTH,
    ),
    Fault(
        "each way has a device of its own",
        CELL,
        "False, 0.0, weight=weight, half_duplex=turn)",
        "False, 0.0, weight=weight, half_duplex=HalfDuplex() if half else None)",
        BOTH,
    ),
    Fault(
        "all devices are as the technology has them",
        CELL,
        "(kind.duplex or self.settings.radio.device_duplex)",
        "self.settings.radio.device_duplex",
        (TEST_CELLS,),
    ),
    Fault(
        "devices whose class says nothing are full-duplex",
        CELL,
        "(kind.duplex or self.settings.radio.device_duplex)",
        '(kind.duplex or "full")',
        (TEST_CELLS,),
    ),
    Fault(
        "a shared cell has two channels",
        WIRES,
        'if settings.duplex == "shared" else (up_s, down_s)',
        "if False else (up_s, down_s)",
        ("tests/network/test_wires.py",),
    ),
    Fault(
        "the default class has no weight",
        BUILD,
        "name: DeviceKind(name, kind.duplex",
        "name: DeviceKind(name if name != scenario.devices.default_class else None, kind.duplex",
        (TEST_CELLS,),
    ),
    Fault(
        "the old word is not known",
        SETTINGS,
        'return "shared" if word == "half" else word',
        "return word",
        (TEST_CELLS,),
    ),
    Fault(
        "the old word is another one",
        SETTINGS,
        'return "shared" if word == "half" else word',
        'return "full" if word == "half" else word',
        (TEST_CELLS,),
    ),
    Fault(
        "every cell serves one after the other by default",
        SETTINGS,
        'return Fair() if usual == "fair" else Serial()',
        "return Serial()",
        (TEST_CELLS,),
    ),
    Fault(
        "time division counts twice",
        SETTINGS,
        'if self.duplex == "shared" and getattr(self.radio, "divides_time", False):',
        "if False:",
        (TEST_CELLS,),
    ),
    Fault(
        "frequency division is taken for time division",
        FIXED,
        'technologies()[self.profile].duplex == "tdd"',
        'technologies()[self.profile].duplex != "half"',
        (TEST_CELLS, "tests/radio/test_fixed_radio.py"),
    ),
    Fault(
        "ratios with a carrier are plain rates",
        "fedsim/radio/trace.py",
        'return "serial" if self.carrier is None else "fair"',
        'return "serial"',
        (TEST_CELLS,),
    ),
    Fault(
        "a default that other keys decide is blamed too",
        "fedsim/scenario/messages.py",
        'if details["type"] == "default_factory_not_called":',
        "if False:",
        ("tests/cli/test_wrong_scenarios.py",),
    ),
    Fault(
        "cells of single stations need no remark",
        REMARKS,
        "    for station, cell in network.cells.items():\n",
        "    for station, cell in ():\n",
        (TEST_REMARKS,),
    ),
    Fault(
        "nobody is told of the old word",
        REMARKS,
        '    if word == "half":',
        '    if word == "hlaf":',
        (TEST_REMARKS,),
    ),
    Fault(
        "a cell is told of the rates of another one",
        REMARKS,
        '("cells", station) if station in self._network.cells else ("cell",)',
        '("cell",)',
        (TEST_REMARKS,),
    ),
    Fault(
        "who can fill the carrier one way needs no other",
        REMARKS,
        "min(rates.uplink_share, rates.downlink_share) < 1",
        "max(rates.uplink_share, rates.downlink_share) < 1",
        (TEST_REMARKS,),
    ),
    Fault(
        "all who share the air are said to have it in turn",
        REMARKS,
        "not isinstance(cell.discipline, Serial) or ",
        "",
        (TEST_REMARKS,),
    ),
    Fault(
        "full-duplex devices are remarkable everywhere",
        REMARKS,
        '    if cell.radio.device_duplex == "full":\n        return\n',
        "",
        (TEST_REMARKS,),
    ),
    Fault(
        "who is held back on the way down is not counted",
        REMARKS,
        " | (uncut.downlink_bps > most_bps.downlink)",
        "",
        (TEST_REMARKS,),
    ),
    Fault(
        "only the last of many that are held back are counted",
        REMARKS,
        "held_back + int(more.sum()), all_of_them + len(own)",
        "int(more.sum()), len(own)",
        (TEST_REMARKS,),
    ),
    Fault(
        "all of a category are said to be held back",
        REMARKS,
        "    if cut:\n",
        "    if True:\n",
        (TEST_REMARKS,),
    ),
    Fault(
        "what nobody meets is remarked on",
        REMARKS,
        "        if devices.first(where) is None:\n",
        "        if False:\n",
        (TEST_REMARKS,),
    ),
    Fault(
        "the same is said of each of many cells",
        "fedsim/experiment/remarks_before.py",
        "for path in paths[:MOST]",
        "for path in paths",
        (TEST_REMARKS,),
    ),
    Fault(
        "a run keeps remarks to itself",
        "fedsim/experiment/run.py",
        '        observer.tell(f"Remark: {remark}")\n',
        "        pass\n",
        (TEST_REMARKS,),
    ),
    Fault(
        "many carriers are as busy as one",
        "fedsim/metrics/tables.py",
        " / np.repeat([link.medium.carriers for link in links], 2)",
        "",
        ("tests/metrics/test_result_tables.py",),
    ),
)
