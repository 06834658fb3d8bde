"""Clients that train together: one product with what they share, and each one's own change in factors."""
