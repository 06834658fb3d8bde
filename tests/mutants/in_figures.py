"""Faults in figures: which line is whose, how long a whisker is, and what stands where."""

from __future__ import annotations

from mutants.fault import Fault

NAMES = "fedsim/viz/names.py"
STYLE = "fedsim/viz/style.py"
SERIES = "fedsim/viz/series.py"
BARS = "fedsim/viz/bars.py"
DRAWING = "fedsim/viz/topology_map/drawing.py"
MAP_NAMES = "fedsim/viz/topology_map/names.py"
PLACES = "fedsim/viz/topology_map/places.py"
TEST_FIGURES = "tests/viz/test_figures.py"
TEST_NAMES = "tests/viz/test_names_in_figures.py"
TEST_SAVED = "tests/viz/test_saved_figures.py"
HUES = "fedsim/viz/topology_map/hues.py"
TEST_HUES = "tests/viz/test_hues_on_maps.py"
TEST_CLASSES = "tests/viz/test_device_classes_on_maps.py"
TEST_MAP = "tests/viz/test_topology_map.py"
TEST_PLACES = "tests/viz/test_network_places.py"

FAULTS = (
    Fault(
        "without colour, protocols of several runs look alike",
        STYLE,
        "return Look(self.colour, LINES[number % len(LINES)], self.marker)",
        'return Look(self.colour, LINES[number % len(LINES)], "o")',
        (TEST_FIGURES,),
    ),
    Fault(
        "the colour of a protocol depends on the figure",
        SERIES,
        "    if len(by_protocol) == 1 and len(runs) > 1:\n",
        "    if len({protocol for _, protocol in keys}) == 1 and len(runs) > 1:\n",
        (TEST_FIGURES,),
    ),
    Fault(
        "markers of long curves cover each other",
        "fedsim/viz/curves.py",
        "return int(share * step), step",
        "return 0, step",
        (TEST_FIGURES,),
    ),
    Fault(
        "a legend covers curves",
        SERIES,
        'loc="outside lower center"',
        'loc="lower center"',
        (TEST_SAVED,),
    ),
    Fault(
        "a long legend leaves no room for curves",
        "fedsim/viz/overview.py",
        "figsize=(_WIDTH, 3.2 + series.legend_inches(_WIDTH))",
        "figsize=(_WIDTH, 4.2)",
        (TEST_SAVED,),
    ),
    Fault(
        "a panel's axis is in the unit of its own run",
        "fedsim/viz/overview.py",
        "draw(rounds, ax, styles, legend=False, run=run)",
        'draw(rounds[rounds["run"] == run], ax, styles, legend=False)',
        (TEST_SAVED,),
    ),
    Fault(
        "a bar's text lies on its whisker",
        BARS,
        '(end, position), va="center"',
        '(begin, position), va="center"',
        (TEST_SAVED,),
    ),
    Fault(
        "a mean of some seeds looks like one of all",
        BARS,
        "    if 0 < len(known) < len(parts):\n",
        "    if 0 > len(known):\n",
        (TEST_FIGURES,),
    ),
    Fault(
        "a number loses what stands before its dot",
        NAMES,
        r"(?:[^-_/. ]|(?<=\d)\.(?=\d))+",
        r"[^-_/. ]+",
        (TEST_NAMES,),
    ),
    Fault(
        "names that were shortened look the same",
        NAMES,
        "shown[name] = text if text not in shown.values() else",
        "shown[name] = text if True else",
        (TEST_NAMES,),
    ),
    Fault(
        "a run that is named twice has twice as many seeds",
        "fedsim/experiment/figures.py",
        "if results.count(result) > 1",
        "if results.count(result) > 2",
        (TEST_SAVED,),
    ),
    Fault(
        "a class of devices takes another part of its cell",
        DRAWING,
        "(count / len(cell), hues.colour(key)",
        "(1 / len(held), hues.colour(key)",
        (TEST_CLASSES,),
    ),
    Fault(
        "a device without coverage looks like any other",
        HUES,
        "known = covered & ~np.isnan(values)",
        "known = ~np.isnan(values)",
        (TEST_HUES,),
    ),
    Fault(
        "extreme coverage is as bright as the best ratio",
        HUES,
        "Normalize(0.0, 2.0), 2.0 - values",
        "Normalize(0.0, 2.0), values",
        (TEST_HUES,),
    ),
    Fault(
        "devices are coloured by their downlinks",
        "fedsim/experiment/device_hues.py",
        "radio.snr_of(paths).uplink if",
        "radio.snr_of(paths).downlink if",
        (TEST_HUES,),
    ),
    Fault(
        "a half of a wire shows what the other end sends",
        DRAWING,
        "wires[sender, receiver] if",
        "wires[receiver, sender] if",
        (TEST_MAP,),
    ),
    Fault(
        "a wire runs over a node that it does not join",
        DRAWING,
        ">= 10.0 * places.point",
        ">= 0.0",
        (TEST_MAP,),
    ),
    Fault(
        "names cover each other and markers",
        MAP_NAMES,
        "if apart and (low >= 0.0)",
        "if (low >= 0.0)",
        (TEST_MAP,),
    ),
    Fault(
        "two nodes are called alike",
        MAP_NAMES,
        "if len({*texts.values(), *written.values()}) == len(texts) + len(written):",
        "if texts:",
        (TEST_MAP,),
    ),
    Fault(
        "an edge server is hidden by its base station",
        PLACES,
        "< 0.5 * apart:",
        "< 0.0:",
        (TEST_PLACES,),
    ),
    Fault(
        "a wide network without positions is not wrapped",
        PLACES,
        "if right and right + wide > widest:",
        "if False:",
        (TEST_PLACES,),
    ),
)
