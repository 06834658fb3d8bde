"""What docs/generate.py is made of: the reference pages, and the generated parts of the other pages."""
