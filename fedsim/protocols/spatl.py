"""SPATL (Yu, Nguyen, Abebe, Qian, Anwar and Jannesari, *SPATL: salient parameter aggregation and transfer learning for
heterogeneous federated learning*, SC 2022), and the ablations of its section V-F.

All share the extractor, which the paper calls encoder. Each client keeps a classifier of its own, the predictor. It
trains with control variates of the extractor, and sends only the filters that an agent has chosen.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Literal

from fedsim.learning.objectives.extractor_control import ExtractorControl
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.rules.salient_mean import SalientMean
from fedsim.learning.selections.gnn_ppo import GnnPpo
from fedsim.learning.selections.selection import NoSelection, Selection
from fedsim.protocols.averaging import ParallelTraining
from fedsim.protocols.exchanges.salient_filters import SalientFilters
from fedsim.settings import OneOf, Settings

__all__ = ["Spatl", "SpatlWithSharedPredictor", "SpatlWithoutControl", "SpatlWithoutSelection"]


class _Spatl(ParallelTraining):
    """The keys that all of them have."""

    server: SalientMean = SalientMean()
    """The server's step, and how it counts who has not sent a filter, by their keys."""
    weighting: Literal["samples", "uniform"] = "uniform"
    """Weights of the updates: all equal (the paper), or by training samples."""

    @abstractmethod
    def exchanged(self) -> SalientFilters:
        """Filters."""

    def local_objective(self) -> Objective:
        """The loss on a client's samples."""
        return Plain()


class _Selects(Settings):
    selection: Annotated[Selection, OneOf("selections")] = GnnPpo()
    """Which filters of the trained extractor a client sends."""


class _Controls(Settings):
    control: ExtractorControl = ExtractorControl()
    """How gradients of the extractor are corrected, by the keys of this objective."""


class Spatl(_Spatl, _Controls, _Selects):
    """SPATL: clients share an extractor and send its salient filters; classifiers are private, gradients controlled."""

    name: Literal["spatl"] = "spatl"

    def exchanged(self) -> SalientFilters:
        """The filters that are selected."""
        return SalientFilters(selection=self.selection)

    def local_objective(self) -> Objective:
        """The loss, with corrected gradients of the extractor."""
        return self.control


class SpatlWithoutSelection(_Spatl, _Controls):
    """SPATL where every filter is sent (section V-F1)."""

    name: Literal["spatl_no_selection"] = "spatl_no_selection"

    def exchanged(self) -> SalientFilters:
        """The whole extractor."""
        return SalientFilters(selection=NoSelection())

    def local_objective(self) -> Objective:
        """The loss, with corrected gradients of the extractor."""
        return self.control


class SpatlWithoutControl(_Spatl, _Selects):
    """SPATL where gradients are not corrected (section V-F3)."""

    name: Literal["spatl_no_control"] = "spatl_no_control"

    def exchanged(self) -> SalientFilters:
        """The filters that are selected."""
        return SalientFilters(selection=self.selection)


class SpatlWithSharedPredictor(_Spatl, _Controls, _Selects):
    """SPATL where the classifier is shared as in FedAvg (section V-F2)."""

    name: Literal["spatl_shared_predictor"] = "spatl_shared_predictor"

    def exchanged(self) -> SalientFilters:
        """The filters that are selected, and the classifier."""
        return SalientFilters(selection=self.selection, classifier="shared")

    def local_objective(self) -> Objective:
        """The loss, with corrected gradients of the extractor."""
        return self.control
