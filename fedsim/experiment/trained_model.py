"""A model that a run has trained, made again from what its folder keeps: the scenario, the manifest and the weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedsim.errors import UserError, nearest, some
from fedsim.files import shown
from fedsim.scenario.load import read_models, read_protocol

if TYPE_CHECKING:
    from fedsim.models.torch_module import Module

__all__ = ["model_of_client", "trained_model"]


def trained_model(
    folder: Path,
    manifest: Mapping[str, Any],
    weights: Mapping[str, Path],
    device_class: str | None,
    adapted_by: str | None = None,
) -> Module:
    """The torch module that has been trained for *device_class*, with those of the *weights* that belong to it.

    None is for runs with one model for all. *adapted_by* is the title of a protocol that has trained another model than
    the scenario's. Raises `UserError` when nothing was learned, when there are several models
    and none is named, and when the folder does not say any more which model it is.
    """
    where = shown(folder)
    if not weights:
        raise UserError(f"{where} has no model: nothing was learned (learn: false, or --no-training)")
    found = read_models(folder / "scenario.yaml")
    classes = found.devices.classes
    if device_class is not None and device_class not in classes:
        near = nearest(device_class, classes)
        raise UserError(f"{where} has no device class {device_class!r}{near} (classes: {some(list(classes))})")
    own = {name.rpartition("/")[0] for name in weights} - {""}
    if device_class is None and own:
        raise UserError(
            f"{where} has several models, as {some(sorted(own))} of its device classes do not have the scenario's; say "
            f"which one is meant with device_class={min(own)!r} (classes: {some(list(classes))})"
        )
    settings = (device_class is not None and classes[device_class].model) or found.model
    shape, outputs = manifest.get("sample_shape"), manifest.get("outputs")
    place = f"{device_class}/" if device_class in own else ""
    from fedsim.models.torch_module import trained

    try:
        table = settings.table(None if shape is None else tuple(shape), outputs)
        if adapted_by is not None:
            protocol = read_protocol(folder / "scenario.yaml", adapted_by)
            table = protocol.models(table, [table] * manifest["clients"])[-1]
        return trained(table, {part: weights[f"{place}{part}"] for part in table.parts if f"{place}{part}" in weights})
    except ValueError as error:
        raise UserError(f"{where}: its scenario.yaml describes another model than it has trained ({error})") from None


def model_of_client(
    folder: Path, manifest: Mapping[str, Any], row: Mapping[str, Any], weights: Mapping[str, Path], client: str | None
) -> Module:
    """The torch module of *client*, in the run that the manifest's *row* is about, where each client has its own.

    Raises `UserError` when that is not so, when no client or none of the run is named, and when the folder does not say
    any more which model it is.
    """
    where, owners = shown(folder), row.get("client_classes", {})
    if not owners:
        raise UserError(f"{where}: clients of {row['protocol']!r} have no models of their own; leave client out")
    if client not in owners:
        which = (
            "say which one is meant" if client is None else f"there is no client {client!r}{nearest(client, owners)}"
        )
        raise UserError(
            f"{where}: each client of {row['protocol']!r} has its own model, and {which}, as in "
            f"client={min(owners)!r} (clients: {some(list(owners))})"
        )
    found, kinds = read_models(folder / "scenario.yaml"), tuple(dict.fromkeys(owners.values()))
    shape, outputs = manifest.get("sample_shape"), manifest.get("outputs")
    from fedsim.models.torch_module import trained

    try:
        tables = {
            kind: (found.devices.classes[kind].model or found.model).table(
                None if shape is None else tuple(shape), outputs
            )
            for kind in kinds
        }
        protocol = read_protocol(folder / "scenario.yaml", row["protocol"])
        table = protocol.models(tables[owners[client]], tuple(tables.values()))[-1]
        return trained(table, {part: weights[f"{client}/{part}"] for part in table.parts})
    except (KeyError, ValueError) as error:
        raise UserError(f"{where}: its scenario.yaml describes another model than it has trained ({error})") from None
