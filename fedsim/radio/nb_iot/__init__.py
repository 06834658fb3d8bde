"""NB-IoT: one carrier of 180 kHz, transport blocks that are repeated, and cycles of control, data and answer."""
