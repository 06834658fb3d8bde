"""The operations of the graph: what a node computes, each a frozen record of what its numbers depend on.

The executors know training, scoring, extraction and sums by heart, and compute them in waves and in workers. Every
other operation brings its own arithmetic, `Operation.apply`; nobody else has to know it.
"""
