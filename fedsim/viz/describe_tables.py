"""The facts about a scenario as tables of text that fit a terminal of 100 columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from fedsim.units import si
from fedsim.viz.describe_memory import memory_tables
from fedsim.viz.describe_network import network_tables
from fedsim.viz.human import duration, number, size
from fedsim.viz.tables import DescriptionTable, Show, count, many, pairs, spreads

__all__ = ["description_tables"]

LONGEST_LABEL = 24
MOST_NAMES = 20


def description_tables(facts: dict[str, Any]) -> list[DescriptionTable]:
    """What `fedsim.experiment.describe.describe` found out, section by section: data, network, model, protocols."""
    tables = [
        *_data(facts["data"]),
        *network_tables(facts["network"]),
        *_model("model", facts["model"]),
        *(table for name, model in facts["class_models"].items() for table in _model(f"model of {name}", model)),
        *_protocols(facts["protocols"], facts["data"]["clients"]),
        *_newcomers(facts["newcomers"], facts["data"]["clients"]),
    ]
    return [table for table in tables if len(table.cells)]


def _data(data: dict[str, Any]) -> Iterator[DescriptionTable]:
    yield pairs("data", data["name"], _data_rows(data))
    rows: list[tuple[str, Any, Show]] = [
        ("training samples", data["samples_per_client"], count),
        ("test samples of its own", data["client_test_samples"], count),
        ("test samples of an unseen client", data["unseen_test_samples"], count),
    ]
    if data["skew"] is not None:
        rows += [
            ("classes among its training samples", data["skew"]["classes_held"], count),
            ("EMD of its classes to all (0 to 1)", data["skew"]["earth_movers"], number),
            ("KL divergence from all (nats)", data["skew"]["kl"], number),
            ("CPD to all (0 to 1.26)", data["skew"]["cpd"], number),
        ]
    if data["stream"] is not None:
        rows.append(("passes over its samples in a training", data["stream"]["passes_per_training"], number))
    yield spreads("each client", rows)


def _data_rows(data: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "clients", f"{data['clients']:,}"
    if data["regression"]:
        levels = data["levels"]
        yield "labels", "numbers (regression)" + (f", counted as {len(levels) + 1} classes" if levels else "")
    elif data["classes"] is not None:
        names = data["class_names"]
        yield "classes", f"{data['classes']}" + (f": {', '.join(names)}" if 0 < len(names) <= MOST_NAMES else "")
    if data["sample_shape"] is not None:
        ids = f", ids below {data['vocabulary']}" if data["vocabulary"] is not None else ""
        yield "sample", f"{' x '.join(map(str, data['sample_shape']))}{ids}"
        yield "kept as", f"{data['stored_as']}, {size(data['memory_bytes'])} in all; decoded by {data['encoding']}"
    known = data["sample_bytes"]
    yield "one raw sample sent", "unknown" if known is None else f"{size(known)} with its label"
    yield "training samples", f"{data['training_samples']:,}"
    if data["sample_shape"] is not None:
        yield "test samples", f"{data['test_samples']:,} global"
    if data["unseen_clients"]:
        yield "unseen clients", f"{data['unseen_clients']:,}"
    if data["stream"] is not None:
        yield "stream", _stream(data["stream"])
    for remark in data["remarks"]:
        yield "remark", remark


def _stream(stream: dict[str, Any]) -> str:
    kept = stream["refresh_rounds"]
    text = f"{stream['samples_per_training']} fresh samples " + (
        "for each training" if kept == 1 else f"every {kept} rounds"
    )
    if stream["arrival_samples_per_s"] is not None:
        text += (
            f", which take {duration(stream['seconds_per_capture'])} to arrive at "
            f"{number(stream['arrival_samples_per_s'])} a second, into a buffer for {stream['buffer_samples']}"
        )
    return (
        text
        + (", augmented" if stream["augmentation"] else "")
        + (f", drift {stream['drift']}" if stream["drift"] else "")
    )


def _model(title: str, model: dict[str, Any]) -> Iterator[DescriptionTable]:
    yield pairs(title, model["name"], _model_rows(model))
    whole = {"part": "all", "parameters": model["parameters"], "bytes": model["bytes"], "share": 1.0}
    rows = [
        {
            "part": part["part"],
            "parameters": f"{part['parameters']:,.0f}",
            "sent as": size(part["bytes"]),
            "share": f"{100 * part['share']:.3g} %",
        }
        for part in (*model["parts"], *([whole] if len(model["parts"]) > 1 else []))
    ]
    yield DescriptionTable(pd.DataFrame(rows), ("part",))


def _model_rows(model: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if model["outputs"] is not None:
        yield "outputs", f"{model['outputs']:,}"
    if model["forward_flops_per_sample"] is None:
        yield "work", "not declared"
    else:
        forward, training = (si(model[f"{way}_flops_per_sample"], "FLOP") for way in ("forward", "training"))
        yield "work for one sample", f"{forward} forward, {training} in training"
    if model["training_memory_bytes"] is not None:
        activations = model["activation_bytes"]
        inside = "" if activations is None else f", {size(activations)} of it for a mini-batch's activations"
        yield "memory to train, at least", f"{size(model['training_memory_bytes'])}{inside}"
    if model["executor"] is not None:
        yield "executor, if it is auto", f"{model['executor']['name']}, as {model['executor']['reason']}"
        if model["executor"]["remark"] is not None:
            yield "remark", model["executor"]["remark"]


def _protocols(protocols: list[dict[str, Any]], clients: int) -> Iterator[DescriptionTable]:
    yield DescriptionTable(pd.DataFrame([_round_row(one, clients) for one in protocols]), ("protocol",))
    yield DescriptionTable(
        pd.DataFrame([row for one in protocols for row in _part_rows(one)]), ("protocol", "a device's part")
    )
    yield DescriptionTable(pd.DataFrame([_run_row(one) for one in protocols]), ("protocol", "estimate of the run"))
    yield from memory_tables([{**one, "protocol": _label(one)} for one in protocols])
    common = [_common_row(one, of_class) for one in protocols for of_class in one["common_layers"]]
    yield DescriptionTable(pd.DataFrame(common), ("protocol", "common layers of"))
    left_out = [(_label(one), one["not_simulated"]) for one in protocols if one["not_simulated"] is not None]
    if left_out:
        yield pairs("protocol", "why that is unknown", left_out)


def _round_row(protocol: dict[str, Any], clients: int) -> dict[str, str]:
    rounds = protocol["rounds"]
    row = dict.fromkeys(("protocol", "clients", "down each", "up each", "one round", "first takes", "next takes"), "")
    row["protocol"] = _label(protocol)
    if not rounds:
        cohort = protocol["mean_cohort"]
        return row if cohort is None else {**row, "clients": f"{cohort:,.4g} of {clients:,}"}
    first, later = rounds[0], rounds[-1]
    return {
        **row,
        "clients": f"{first['selected']:,} of {clients:,}",
        "down each": size(first["downlink_bytes_per_client"]),
        "up each": size(first["uplink_bytes_per_client"]),
        "one round": size(first["downlink_bytes"] + first["uplink_bytes"]),
        "first takes": duration(first["seconds"]),
        "next takes": duration(later["seconds"]) if len(rounds) > 1 else "",
    }


def _newcomers(newcomers: dict[str, Any] | None, clients: int) -> Iterator[DescriptionTable]:
    if newcomers is None:
        return
    who, kept_out = "clients that were never asked", newcomers["clients"]
    rows = [("train", f"{newcomers['trains']}, for {many(newcomers['epochs'], 'epoch')} after the last round")]
    if kept_out:
        who = f"{kept_out:,} of {clients:,} clients, and whoever was never asked"
        rows.append((f"{kept_out:,} are sent", size(newcomers["downlink_bytes"])))
    yield pairs("newcomers", who, rows)


def _common_row(protocol: dict[str, Any], of_class: dict[str, Any]) -> dict[str, str]:
    return {
        "protocol": _label(protocol),
        "common layers of": of_class["device_class"],
        "clients": f"{of_class['clients']:,}",
        "layers": f"{of_class['layers']} of {of_class['of_layers']}",
        "bytes": f"{size(of_class['bytes'])} of {size(of_class['of_bytes'])}",
    }


PARTS = {
    "download_s": "download",
    "download_airtime_s": "  airtime used",
    "download_air_queue_s": "  waiting for the air",
    "wait_for_samples_s": "waiting for samples",
    "compute_s": "computing",
    "upload_s": "upload",
    "upload_airtime_s": "  airtime used",
    "upload_air_queue_s": "  waiting for the air",
}


def _part_rows(protocol: dict[str, Any]) -> Iterator[dict[str, str]]:
    for key, title in PARTS.items():
        spread = protocol["parts"].get(key)
        if spread is not None and spread["max"] > 0:
            numbers = {which: duration(spread[which]) for which in ("min", "median", "mean", "max")}
            yield {"protocol": _label(protocol), "a device's part": title, **numbers}


ENDS = {
    "rounds": "rounds",
    "sim_time_s": "rounds in its time",
    "transfer_bytes": "rounds with its bytes",
}


def _run_row(protocol: dict[str, Any]) -> dict[str, str]:
    run = protocol["run"]
    row = {"protocol": _label(protocol), "estimate of the run": "", "time": "", "downlink": "", "uplink": ""}
    if protocol["measured_size"]:
        return {**row, "estimate of the run": f"none: sizes are measured; {protocol['measured_size']} gives them"}
    if protocol["reads_learning"]:
        return {**row, "estimate of the run": "none: it decides on what is learned"}
    if protocol["not_simulated"] is not None:
        return {**row, "estimate of the run": "none: too many hops to simulate here"}
    if protocol["cut_short"] is not None:
        return {**row, "estimate of the run": "it ends early: nobody is left to take part"}
    if run is None:
        why = "it ends at an accuracy" if protocol["ends_at_accuracy"] else "the end is too many rounds away"
        return {**row, "estimate of the run": f"none: {why}"}
    row["estimate of the run"] = f"{run['rounds']:,} {ENDS[run['ends_by']]}"
    if run["may_end_earlier"]:
        row["estimate of the run"] += " at most"
    shown = {
        "time": duration(run["seconds"]),
        "downlink": size(run["downlink_bytes"]),
        "uplink": size(run["uplink_bytes"]),
    }
    return {**row, **shown}


def _label(protocol: dict[str, Any]) -> str:
    label: str = protocol["protocol"]
    return label if len(label) <= LONGEST_LABEL else f"{label[: LONGEST_LABEL - 3]}..."
