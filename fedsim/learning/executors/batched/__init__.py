"""Clients that train together: one product with what they share, and each one's own change in factors.

To read in this order: ``support.py``, which models; ``trainer.py``, a wave; ``lockstep.py``, a group of clients that go
step by step; ``course.py``, their mini-batches; ``conv_stack.py`` and ``dense.py``, their layers; ``low_rank.py``,
the idea.
"""
