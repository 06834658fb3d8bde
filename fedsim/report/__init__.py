"""Reports: finished runs as one HTML page that needs nothing else, neither files nor a network."""
