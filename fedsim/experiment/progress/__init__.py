"""The progress of a run: bars in a notebook, bars on a terminal, or plain lines on a pipe."""
