"""Ways in which clients measure differently. One file and one line per feature skew."""

from __future__ import annotations

REGISTRY = {
    "noise": "fedsim.data.feature_skew.noise:Noise",
    "rotation": "fedsim.data.feature_skew.rotation:Rotation",
}
