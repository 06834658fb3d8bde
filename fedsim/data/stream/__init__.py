"""Samples that come and go: fresh batches, augmentation, drift, arrival by the clock."""
