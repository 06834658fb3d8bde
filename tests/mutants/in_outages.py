"""Faults in outages, failing devices and changing coverage."""

from __future__ import annotations

from mutants.fault import Fault

OUTAGES = "fedsim/network/faults/outages.py"
COVERAGE = "fedsim/network/coverage.py"
TRANSFER = "fedsim/network/transfer.py"
WORLD = "fedsim/protocols/world.py"
WIRES = "fedsim/network/wires.py"
ATTACHMENT = "fedsim/network/attachment.py"
TEST_OUTAGES = "tests/network/test_outages.py"
TEST_RANDOM = "tests/network/test_random_faults.py"
TEST_ROUTES = "tests/network/test_routes_around_outages.py"
TEST_RATES = "tests/network/test_rates_that_change.py"
TEST_WIRES = "tests/network/test_wires.py"
TEST_DEVICES = "tests/protocols/test_failing_devices.py"

FAULTS = (
    Fault(
        "an outage does not stop what is being sent",
        OUTAGES,
        "                channel.pause()\n",
        "                pass\n",
        (TEST_OUTAGES,),
    ),
    Fault(
        "a repair does not let traffic go on",
        OUTAGES,
        "                    channel.resume()\n",
        "                    pass\n",
        (TEST_OUTAGES,),
    ),
    Fault(
        "the first of two repairs opens a link",
        OUTAGES,
        "            if not self._failures[link]:\n",
        "            if True:\n",
        (TEST_OUTAGES,),
    ),
    Fault(
        "the first of two repairs brings a device back",
        OUTAGES,
        "            if not self._failures[part.device]:\n",
        "            if True:\n",
        (TEST_DEVICES, TEST_RANDOM),
    ),
    Fault(
        "where outages destroy messages, what comes later waits",
        OUTAGES,
        'link.refuses = rule == "lose"',
        "link.refuses = False",
        (TEST_OUTAGES,),
    ),
    Fault(
        "a device that fails does not free the air",
        OUTAGES,
        "            transfer.fail()\n        self.on_device_failure(device)\n",
        "            pass\n        self.on_device_failure(device)\n",
        (TEST_DEVICES,),
    ),
    Fault(
        "a device that fails works on",
        OUTAGES,
        "        self.on_device_failure(device)\n",
        "",
        (TEST_DEVICES,),
    ),
    Fault(
        "a device that forgets remembers",
        WORLD,
        "            client.kept.clear()\n            if client.stream",
        "            if client.stream",
        (TEST_DEVICES,),
    ),
    Fault(
        "a device that is away can be reached",
        OUTAGES,
        "        device.on = False\n",
        "        device.on = True\n",
        (TEST_DEVICES,),
    ),
    Fault(
        "nobody goes around an outage",
        OUTAGES,
        'self._settings.routing == "around_outages"',
        "False",
        (TEST_ROUTES,),
    ),
    Fault(
        "parts work 10 % longer than they should in the mean",
        OUTAGES,
        "rng.exponential(faults.mean_up_s)",
        "rng.exponential(1.1 * faults.mean_up_s)",
        (TEST_RANDOM,),
    ),
    Fault(
        "every failure comes after the same time",
        OUTAGES,
        "self._expect_next(faults, part, purpose, index, use + 1)",
        "self._expect_next(faults, part, purpose, index, use)",
        (TEST_RANDOM,),
    ),
    Fault(
        "what an outage destroyed is not counted",
        TRANSFER,
        "        self.repeated_bytes += self.attempted.bytes * self.share_sent\n",
        "",
        (TEST_OUTAGES,),
    ),
    Fault(
        "after an outage only the rest is sent again",
        TRANSFER,
        "            self.hop.channel.adjust(self, whole_s, self.share)\n",
        "            self.hop.channel.adjust(self, whole_s / 2, self.share)\n",
        (TEST_OUTAGES,),
    ),
    Fault(
        "a message is restarted without end",
        TRANSFER,
        "if self.repeats >= self.hop.loss.attempts:",
        "if False:",
        (TEST_OUTAGES,),
    ),
    Fault(
        "an outage that destroys nothing is an attempt",
        TRANSFER,
        "if not self._is_being_sent() or self.hop.channel.progress(self).share_sent == 0:",
        "if not self._is_being_sent():",
        (TEST_OUTAGES,),
    ),
    Fault(
        "a device that fails loses what it had sent",
        TRANSFER,
        "(self.hop.device_failed and not self.hop.is_uplink)",
        "self.hop.device_failed",
        (TEST_OUTAGES,),
    ),
    Fault(
        "coverage that ends for ever loses what was sent before",
        TRANSFER,
        "(self.hop.device_failed and",
        "(self.hop.closed and",
        (TEST_RATES,),
    ),
    Fault(
        "a restarted message is sent without its headers",
        TRANSFER,
        "whole_s = self._all_bits()",
        "whole_s = bits(self.size_bytes)",
        (TEST_OUTAGES,),
    ),
    Fault(
        "a message has its attempts once for all hops",
        TRANSFER,
        "        self.repeats = 0\n",
        "        self.repeats = 0 if self.stage == 0 else self.repeats\n",
        (TEST_OUTAGES,),
    ),
    Fault(
        "who is covered again has his old share",
        TRANSFER,
        "self.need_s, self.share = self._left_bits(self.share_sent) / hop.rate_bps, hop.share",
        "self.need_s = self._left_bits(self.share_sent) / hop.rate_bps",
        (TEST_RATES,),
    ),
    Fault(
        "a repaired device is covered again",
        OUTAGES,
        "hop.closed = not part.device.covered and hop.rate_bps == 0",
        "hop.closed = False",
        (TEST_RATES,),
    ),
    Fault(
        "a station that is the server never fails",
        ATTACHMENT,
        "return self.on and self.covered and in_coverage and not up.link.closed",
        "return self.on and self.covered and in_coverage",
        (TEST_OUTAGES,),
    ),
    Fault(
        "what fails for ever loses nothing",
        OUTAGES,
        'rule = "lose" if link in self._gone else',
        'rule = "lose" if link in self._gone and link.access else',
        (TEST_OUTAGES,),
    ),
    Fault(
        "a failure for ever tells nobody",
        OUTAGES,
        "        if for_ever:\n            self.tell()\n",
        "",
        ("tests/protocols/test_centralised.py",),
    ),
    Fault(
        "a wire with a rate of its own has no delay",
        WIRES,
        "default.delay_s if default else 0.0",
        "default.delay_s if default and rate_bps is None else 0.0",
        (TEST_WIRES,),
    ),
    Fault(
        "without coverage a message goes on at its old rate",
        TRANSFER,
        "            channel.stop(self)\n            hop.link.keep_waiting(self)\n",
        "            pass\n",
        (TEST_RATES,),
    ),
    Fault(
        "a new rate counts for what has been sent too",
        TRANSFER,
        "return (1.0 - share_sent) * self._all_bits()",
        "return self._all_bits()",
        (TEST_RATES,),
    ),
    Fault(
        "a new rate does not reach those who are sending",
        COVERAGE,
        "            transfer.adapt()\n",
        "            pass\n",
        (TEST_RATES,),
    ),
    Fault(
        "who has lost coverage for good is waited for",
        COVERAGE,
        "            attachment.covered = False\n",
        "            attachment.covered = True\n",
        (TEST_RATES, TEST_DEVICES),
    ),
)
