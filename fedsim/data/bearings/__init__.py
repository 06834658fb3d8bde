"""Data set ``bearings``: vibration of sound and damaged rolling bearings, generated for any number of machines."""
