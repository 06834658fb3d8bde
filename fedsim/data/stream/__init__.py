"""Samples that come and go: captures, augmentation, drift, arrival by the clock."""
