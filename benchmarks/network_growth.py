"""How time and memory of a network study grow with the number of sensors: one process for each size, one table.

    python benchmarks/network_growth.py [--sensors 1000,10000] [--rounds 10] [--repeat 1] [--set KEY=VALUE] [--nb-iot]

Each row is the whole of `fedsim run scenarios/hundred_thousand_sensors.yaml` with another number of base stations:
the start of Python, reading, building, ten rounds, tables and digest. Exponents are those of time between a row and the
first one, with and without the start of Python and its libraries, which is the same for every size. With ``--nb-iot``
each sensor has a link budget of its own and the best row of NB-IoT's tables, in place of two given rates.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCENARIO = Path(__file__).parents[1] / "scenarios/hundred_thousand_sensors.yaml"
SENSORS_PER_STATION = 100
BUDGET = "carrier_hz: 0.9e+9, device_power_dbm: 23.0, station_power_dbm: 43.0, shadowing: {}"
STREETS = "path_loss: {name: umi, min_distance_m: 10.0}"
NOISE = "device_noise_figure_db: 5.0, station_noise_figure_db: 3.0"
NB_IOT = f"network.cell.radio={{name: nb_iot, snr: {{name: link_budget, {BUDGET}, {STREETS}, {NOISE}}}}}"


def one_run(sensors: int, rounds: int, changes: list[str]) -> dict[str, float]:
    """Run it in this process."""
    from fedsim.experiment.run import run
    from fedsim.scenario.load import load

    began_s = time.perf_counter()
    stations = f"topology.branching=[{sensors // SENSORS_PER_STATION}]"
    scenario = load(SCENARIO, overrides=[stations, f"stop.rounds={rounds}", *changes])
    with tempfile.TemporaryDirectory() as folder:
        results = run(scenario, out=Path(folder) / "run")
        rows = int(results.links["transfers"].sum())
    return {
        "seconds": time.perf_counter() - began_s,
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
        "hops": rows,
    }


def in_a_process_of_its_own(sensors: int, rounds: int, changes: list[str]) -> dict[str, float]:
    """Run it in a fresh process, for its memory's sake."""
    command = [sys.executable, __file__, "--one", str(sensors), "--rounds", str(rounds)]
    command += [word for change in changes for word in ("--set", change)]
    began_s = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured | {"whole_s": time.perf_counter() - began_s}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sensors", default="1000,10000,100000,1000000")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--repeat", type=int, default=1, help="take the fastest of so many runs of each size")
    parser.add_argument("--set", action="append", default=[], help="another value for a key of the scenario")
    parser.add_argument("--nb-iot", dest="set", action="append_const", const=NB_IOT, help="sensors on NB-IoT")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(one_run(arguments.one, arguments.rounds, arguments.set)))
        return
    print(f"{'sensors':>9} {'hops':>11} {'seconds':>8} {'us/hop':>7} {'memory MB':>10} {'exponent':>9} {'no start':>9}")
    first: tuple[int, dict[str, float]] | None = None
    for sensors in map(int, arguments.sensors.split(",")):
        runs = [in_a_process_of_its_own(sensors, arguments.rounds, arguments.set) for _ in range(arguments.repeat)]
        best = min(runs, key=lambda run: run["whole_s"])
        first = first or (sensors, best)
        size = math.log(sensors / first[0])
        with_start, without = (math.log(best[key] / first[1][key]) / size if size else math.nan for key in KEYS)
        print(
            f"{sensors:>9,} {best['hops']:>11,.0f} {best['whole_s']:>8.2f} "
            f"{best['whole_s'] / best['hops'] * 1e6:>7.2f} "
            f"{best['memory_mb']:>10,.0f} {with_start:>9.2f} {without:>9.2f}",
            flush=True,
        )


KEYS = ("whole_s", "seconds")

if __name__ == "__main__":
    main()
