"""The ``devices`` section of a scenario: classes of devices, how fast each computes, and what it can train."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import model_validator

from fedsim.devices.compute import ComputeSettings
from fedsim.errors import Misfit, nearest
from fedsim.models.settings import ModelSettings
from fedsim.radio.settings import Place
from fedsim.settings import Name, NonNegative, OneOf, Settings

__all__ = ["Computer", "DeviceClass", "DevicesSettings"]


class Computer(Settings):
    """What trains."""

    compute: Annotated[ComputeSettings, OneOf("computes")]
    """How long local training takes. Simulated, never measured."""


class DeviceClass(Computer):
    """A kind of device."""

    model: Annotated[ModelSettings, OneOf("models")] | None = None
    """The model that such devices have; left out: the scenario's ``model``, as all others."""
    duplex: Literal["full", "half"] | None = None
    """half: such a device either sends or receives (half-duplex FDD), and what goes the other way waits; left out, as
    the radio's technology has it: half for NB-IoT and for half-duplex LTE-M."""
    place: Place | None = None
    """Where such devices stand, as far as their radio is concerned: how high, and how deep in a building."""


class DevicesSettings(Settings):
    """Classes of devices, and the cloud."""

    classes: dict[Name, DeviceClass]
    """Device classes by name; a sensor's class is named in the topology."""
    default: str | None = None
    """The class of sensors for which the topology names none; may be left out when there is only one class."""
    cloud: Computer | None = None
    """The cloud's computer, for protocols that train there."""
    aggregation_s: NonNegative = 0.0
    """Seconds that the cloud takes to aggregate one round's updates."""

    @model_validator(mode="after")
    def _known_default(self) -> Self:
        if not self.classes:
            raise Misfit("devices.classes needs at least one class", "classes")
        if self.default is not None and self.default not in self.classes:
            raise Misfit(
                f"default={self.default!r} is no device class{nearest(self.default, self.classes)} "
                f"(classes: {', '.join(self.classes)})",
                "default",
            )
        return self

    @property
    def default_class(self) -> str | None:
        """The class of sensors for which the topology names none, if there is one."""
        return self.default if self.default is not None or len(self.classes) > 1 else next(iter(self.classes))
