"""What ``fedsim describe`` says of data, model and network, worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_worlds import scenario

from fedsim.data.dataset import FederatedDataset
from fedsim.data.stream.settings import Arrival, StreamSettings
from fedsim.experiment.describe import describe
from fedsim.experiment.description import data as data_description
from fedsim.experiment.description import simulations
from fedsim.experiment.description.data import data_facts
from fedsim.experiment.description.model import model_facts
from fedsim.learning.executors.choice import choose
from fedsim.learning.training import TrainingSettings
from fedsim.models.gru import GruModel
from fedsim.models.mlp import Mlp
from fedsim.viz.describe_tables import description_tables

# -- data and model ---------------------------------------------------------------------------------------------------


def dataset(owners: list[list[int]], **keys: Any) -> FederatedDataset:
    """Clients that hold one sample of each of the listed classes (0 to 3)."""
    y = np.array([label for labels in owners for label in labels])
    ends = np.cumsum([len(labels) for labels in owners])
    return FederatedDataset(
        name="by hand",
        classes=4,
        sample_shape=(1, 2, 2),
        sample_bytes=5.0,
        client_samples=np.array([len(labels) for labels in owners]),
        stored=np.random.default_rng(0).random((len(y), 1, 2, 2)).astype(np.float32),
        y=y,
        train_ids=tuple(np.split(np.arange(len(y)), ends[:-1])),
        client_test_ids=(np.empty(0, np.int64),) * len(owners),
        **keys,
    )


def test_skew_is_the_distance_of_a_client_to_everybody() -> None:
    """Everybody has the classes 0 and 1 in halves, each client one of them: half of the samples would have to change,
    and ln 2 nats tell; (1 - 1/e) (1/4 + 1/4) is the CPD."""
    skew = data_facts(dataset([[0, 0], [1, 1]]))["skew"]
    assert skew["earth_movers"] == {"min": 0.5, "median": 0.5, "mean": 0.5, "max": 0.5}
    assert skew["kl"]["max"] == pytest.approx(math.log(2))
    assert skew["cpd"]["max"] == pytest.approx((1 - 1 / math.e) / 2)
    assert skew["classes_held"]["max"] == 1


def test_blocks_of_clients_have_the_skew_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    data = dataset([[0], [1, 2], [0, 1, 2, 3, 3, 3], [2, 2, 3]])
    whole = data_facts(data)["skew"]
    monkeypatch.setattr(data_description, "AT_ONCE", 8)  # two clients of four classes
    assert data_facts(data)["skew"] == whole


def test_too_many_counts_are_left_out_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    data = dataset([[0], [1, 2]])
    monkeypatch.setattr(data_description, "MOST_COUNTS", 8)
    assert data_facts(data)["skew"] is not None and data_facts(data)["remarks"] == []
    monkeypatch.setattr(data_description, "MOST_COUNTS", 7)
    assert data_facts(data)["skew"] is None
    assert data_facts(data)["remarks"] == [
        "who has which classes is not told: 2 clients and 4 classes are more than 7 counts"
    ]


def test_what_took_long_before_counts_as_hops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of four nodes are sensors; both have ten samples, of digits."""
    nodes = {"cloud": {"kind": "cloud"}, "hall": {"kind": "base_station"}}
    nodes |= {name: {"kind": "sensor", "attach": "hall"} for name in ("one", "two")}
    topology = {"name": "explicit", "nodes": nodes, "links": [{"between": ["cloud", "hall"]}]}
    listed = describe(scenario({"topology": topology}), most_hops=20)[0]["protocols"][0]
    assert "so large a network counts as 15" in listed["not_simulated"]  # three for each of five entries
    digits = scenario({"data": {"name": "digits"}, "model": {"name": "mlp", "hidden": [4]}})
    monkeypatch.setattr(simulations, "LARGE_SAMPLES", 1797 - 30)
    told = describe(digits, most_hops=10)[0]["protocols"][0]
    assert "so many samples counts as 10" in told["not_simulated"]


def test_samples_of_a_client_are_counted() -> None:
    facts = data_facts(dataset([[0], [1, 2], [0, 1, 2, 3, 3, 3]]))
    assert facts["samples_per_client"] == {"min": 1.0, "median": 2.0, "mean": 3.0, "max": 6.0}
    assert (facts["training_samples"], facts["clients"], facts["sample_bytes"]) == (9, 3, 5.0)


def test_a_stream_passes_over_small_clients_more_often() -> None:
    stream = StreamSettings(samples=6, arrival=Arrival(samples_per_s=3.0, buffer_samples=12))
    facts = data_facts(dataset([[0, 1, 2], [0, 1, 2, 3, 3, 3]], stream=stream))["stream"]
    assert facts["passes_per_training"] == {"min": 1.0, "median": 1.5, "mean": 1.5, "max": 2.0}
    assert facts["seconds_per_capture"] == 2.0


def test_memory_holds_weights_gradients_and_what_every_layer_gives() -> None:
    """Per sample 4 pixels, flattened 4, 8 hidden before and after the rectifier, 4 scores; 2 samples in a batch."""
    table = Mlp(hidden=(8,)).table((1, 2, 2), 4)
    plain_sgd, momentum = (
        model_facts("mlp", table, TrainingSettings(learning_rate=0.1, batch_size=2, momentum=momentum))
        for momentum in (0.0, 0.9)
    )
    weights = 4 * (4 * 8 + 8 + 8 * 4 + 4)
    assert plain_sgd["activation_bytes"] == 4 * 2 * (4 + 4 + 8 + 8 + 4)
    assert plain_sgd["training_memory_bytes"] == 2 * weights + plain_sgd["activation_bytes"]
    assert momentum["training_memory_bytes"] == plain_sgd["training_memory_bytes"] + weights


def test_the_executor_that_auto_takes_is_told_with_its_reason() -> None:
    training = TrainingSettings(learning_rate=0.1, batch_size=2)
    known, unknown = Mlp().table((1, 2, 2), 4), GruModel().table((14, 30), 4)
    for table in (known, unknown):
        choice = choose("auto", [table], "cpu")
        assert model_facts("", table, training)["executor"] == choice._asdict()
    digits = {"data": {"name": "digits"}, "model": {"name": "mlp"}}
    (cells,) = (
        table.cells for table in description_tables(describe(scenario(digits))[0]) if table.cells.columns[0] == "model"
    )
    assert cells.to_numpy().tolist()[-1] == [
        "executor, if it is auto",
        "batched, as it has the arithmetic of every layer of the model",
    ]
    assert describe(scenario({}))[0]["model"]["executor"] is None, "a declared model is not trained"


# -- network ----------------------------------------------------------------------------------------------------------

SHANNON = {
    "name": "shannon",
    "profile": "nr_38803",
    "bandwidth_hz": 1e6,
    "snr": {
        "name": "link_budget",
        "carrier_hz": 3.7e9,
        "device_power_dbm": 23.0,
        "station_power_dbm": 30.0,
        "device_noise_figure_db": 9.0,
        "station_noise_figure_db": 5.0,
        "path_loss": {"name": "log_distance", "exponent": 3.0},
        "shadowing": {"sigma_db": 8.0},
    },
}


def test_the_terms_of_one_link_add_up_to_its_ratio_and_its_rate() -> None:
    network = describe(scenario({"topology.devices": 1, "network.cell.radio": SHANNON}))[0]["network"]
    for way in ("uplink", "downlink"):
        term = {one["term"]: one[way]["median"] for one in network["link_budget"]}
        signal = term["transmit power"] + term["antenna gains"] - term["path loss"] - term["extra loss"]
        noise = term["thermal noise"] + term["noise figure"] + term["interference margin"]
        assert signal - term["shadowing"] - noise == pytest.approx(term["SNR"], abs=1e-9)
        assert term["shadowing"] != 0.0
        assert network[f"{way}_bps"]["median"] == pytest.approx(term["bandwidth"] * term["spectral efficiency"])


def test_sensors_that_the_air_never_reaches_are_counted_and_have_no_rate(tmp_path: Path) -> None:
    (tmp_path / "hall.csv").write_text(
        "time_s,device,uplink_bps,downlink_bps\n0,sensor-1,500,0\n0,sensor-2,0,9\n5,sensor-2,7,9\n0,*,1000,2000\n",
        encoding="utf-8",
    )
    radio = {"name": "trace", "path": str(tmp_path / "hall.csv"), "out_of_coverage": "exclude"}
    network = describe(scenario({"topology.devices": 4, "network.cell.radio": radio}))[0]["network"]
    assert (network["out_of_coverage"], network["without_coverage_now"]) == (1, 1)
    assert network["uplink_bps"] == {"min": 1e3, "median": 1e3, "mean": 1e3, "max": 1e3}


def test_nodes_cells_and_wires_are_those_of_the_topology() -> None:
    topology = {"name": "factory_park", "factories": 2, "devices_per_factory": 5, "stations_per_factory": 2}
    network = describe(scenario({"topology": topology}))[0]["network"]
    assert network["nodes"] == {"sensor": 10, "base_station": 4, "edge": 2, "cloud": 1}
    assert network["cells"] == 4
    assert (network["sensors_per_cell"]["min"], network["sensors_per_cell"]["max"]) == (2.0, 3.0)
    assert (network["wires"], network["wires_used"]) == (6, 6)
    assert network["wires_to_server"]["max"] == 2.0


def test_what_each_cell_is_and_how_many_devices_are_half_duplex_is_told() -> None:
    nb_iot = {"radio": {"name": "fixed", "profile": "nb_iot_nb1"}, "delay_s": 0.5}
    shared = {"radio": {"name": "fixed", "uplink_bps": 1e3, "downlink_bps": 1e3}, "duplex": "shared", "carriers": 3}
    topology = {"name": "factory_park", "factories": 1, "devices_per_factory": 5, "stations_per_factory": 2}
    facts, _ = describe(
        scenario({"topology": topology, "network.cell": nb_iot, "network.cells": {"factory-1/station-2": shared}})
    )
    assert facts["network"]["half_duplex"] == 2
    rows = [row for table in description_tables(facts) for row in table.cells.iloc[:, :2].to_numpy().tolist()]
    text = " ".join(f"{title} {value}" for title, value in rows)  # long ones are folded
    assert "1 cell radio fixed nb_iot_nb1, 1 carrier each way, fair, delay 500 ms" in text
    assert "1 cell radio fixed, 3 carriers for both directions, serial" in text
    assert ["half-duplex devices", "2 sensors"] in rows
    others = describe(scenario({"topology": topology}))[0]
    assert others["network"]["half_duplex"] == 0
    assert not any("half-duplex" in str(row) for table in description_tables(others) for row in table.cells.to_numpy())
