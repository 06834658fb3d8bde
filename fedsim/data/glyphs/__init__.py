"""Data set ``glyphs``: characters of 20 typefaces as cameras see them, generated for any number of cameras."""
