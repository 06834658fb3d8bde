"""5G New Radio, and its devices of reduced capability."""
