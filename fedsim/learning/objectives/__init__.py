"""Local objectives: what a client minimises beside the loss on its samples."""

REGISTRY = {
    "plain": "fedsim.learning.objectives.plain:Plain",
    "proximal": "fedsim.learning.objectives.proximal:Proximal",
    "distilled": "fedsim.learning.objectives.distilled:Distilled",
    "control_variates": "fedsim.learning.objectives.control_variates:ControlVariates",
    "extractor_control": "fedsim.learning.objectives.extractor_control:ExtractorControl",
    "tells_accuracy": "fedsim.learning.objectives.accuracy:TellsAccuracy",
    "mmd": "fedsim.learning.objectives.mmd:Mmd",
    "fusion": "fedsim.learning.objectives.fusion:FeatureFusion",
}
