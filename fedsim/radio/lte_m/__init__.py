"""LTE-M (Cat M1, M2): LTE in narrowbands of six resource blocks, with repetitions for bad coverage."""
