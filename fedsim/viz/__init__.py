"""Results for the eye: figures, and tables of readable numbers."""
