"""Faults in what is described of links over the air: of one device, and of all of them together."""

from __future__ import annotations

from mutants.fault import Fault

LINK = "fedsim/experiment/description/link.py"
LINKS = "fedsim/experiment/description/links.py"
TEST_LINKS = "tests/cli/test_described_links.py"

FAULTS = (
    Fault(
        "a model's time over a link leaves headers out",
        LINK,
        "bits(put_on_link(size_bytes, scenario.network.transport, Loss(), None).bytes)",
        "bits(size_bytes)",
        (TEST_LINKS,),
    ),
    Fault(
        "a short message takes a part of a block",
        LINK,
        "return air_bits(put_bits, replace(row, block_errors=0.0)) / (1.0",
        "return put_bits / (1.0",
        (TEST_LINKS,),
    ),
    Fault(
        "devices that take one row in several cells are counted once",
        LINKS,
        "self.rows[way][row] += devices",
        "self.rows[way][row] = devices",
        (TEST_LINKS,),
    ),
    Fault(
        "terms of a second radio stand behind all others",
        LINKS,
        "names.insert(behind, name)",
        "names.append(name)",
        (TEST_LINKS,),
    ),
    Fault(
        "a link is that of another seed",
        LINK,
        "gather_materials(scenario, scenario.seeds[0])",
        "gather_materials(scenario, scenario.seeds[-1])",
        (TEST_LINKS,),
    ),
)
