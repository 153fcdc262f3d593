"""The built-in model, whole in one package: weights by name, read-outs, tokenizer, and how they were trained.

Here: `Mini`. Never here: a thread, a loop, a socket, or the archive; this package imports nothing else of ours.
"""

import os

# One request is read at a time, and its matrices are small: a second thread of BLAS costs more than it brings, and
# many times more on a busy machine. Read when numpy is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from archive.actor.mini.answers import Mini

__all__ = ["Mini"]
