"""all-MiniLM-L6-v2 in plain numpy: token ids in, one vector of length 1 out.

Here: the forward pass and where its weights lie in the file. Never here: a text, a question, a file, or
anything that depends on what else is in a batch.

Source: the BERT encoder as sentence-transformers/all-MiniLM-L6-v2 uses it (6 layers, 12 heads, width 384, mean
over all tokens, then normalised), with int8 weights and one float scale per column.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]

WIDTH, HEADS, LAYERS = 384, 12, 6
PER_LAYER = 6  # query, key, value, attention output, intermediate, output: so ordered in the file
NORM_EPSILON = np.float32(1e-12)

# numpy has no error function. This is the Chebyshev fit of erfc in Numerical Recipes (section 6.2), whose relative
# error is below 1.2e-7 everywhere: as good as float32 gets. Highest power first.
ERFC = tuple(
    np.float32(value)
    for value in (0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418,
                  0.37409196, 1.00002368, -1.26551223)
)  # fmt: skip


class Norm(NamedTuple):
    """A layer normalisation: what to multiply by, what to add."""

    weight: Floats
    bias: Floats


class Layer(NamedTuple):
    """The weights of one encoder layer; matrices are (in, out)."""

    attend: Floats  # (384, 3*384): query, key and value side by side
    attend_bias: Floats
    join: Floats
    join_bias: Floats
    join_norm: Norm
    widen: Floats
    widen_bias: Floats
    narrow: Floats
    narrow_bias: Floats
    narrow_norm: Norm


class Encoder:
    """The network. Takes the tensors of the ONNX file by name; raises KeyError if one is missing."""

    def __init__(self, tensors: Mapping[str, npt.NDArray[Any]]) -> None:
        def plain(name: str) -> Floats:
            return tensors["inner." + name].astype(np.float32)

        def scaled(name: str) -> Floats:
            return tensors[name + "_q"].astype(np.float32) * tensors[name + "_scale"].astype(np.float32)

        def norm(name: str) -> Norm:
            return Norm(plain(name + ".weight"), plain(name + ".bias"))

        # The word table is half of the file: it stays int8, and only the rows asked for are scaled. Copied, since a
        # view would keep the other half in memory.
        self._words = tensors["inner.embeddings.word_embeddings.weight_q"].copy()
        self._word_scales = tensors["inner.embeddings.word_embeddings.weight_scale"].copy()
        self._places: Floats = (
            scaled("inner.embeddings.position_embeddings.weight") + plain("embeddings.token_type_embeddings.weight")[0]
        )
        self._norm = norm("embeddings.LayerNorm")
        # The exporter gave the matrices numbers instead of names; in order of number they are in order of use.
        numbers = sorted(int(found[1]) for name in tensors if (found := re.fullmatch(r"val_(\d+)_q", name)))
        matrices = [scaled(f"val_{number}") for number in numbers]
        self._layers: list[Layer] = []
        for at in range(LAYERS):
            at_layer = f"encoder.layer.{at}."
            query, key, value, join, widen, narrow = matrices[at * PER_LAYER : (at + 1) * PER_LAYER]
            biases = [plain(f"{at_layer}attention.self.{part}.bias") for part in ("query", "key", "value")]
            self._layers.append(
                Layer(
                    np.concatenate([query, key, value], axis=1),
                    np.concatenate(biases),
                    join,
                    plain(at_layer + "attention.output.dense.bias"),
                    norm(at_layer + "attention.output.LayerNorm"),
                    widen,
                    plain(at_layer + "intermediate.dense.bias"),
                    narrow,
                    plain(at_layer + "output.dense.bias"),
                    norm(at_layer + "output.LayerNorm"),
                )
            )

    def vectors(self, ids: Ids) -> Floats:
        """(texts, tokens) of ids -> (texts, 384), each row of length 1. All texts have equally many tokens.

        A row never depends on the other rows, to the last bit: a product of stacked matrices calls the same
        multiplication once per text, with that text's own shape, and everything else works along one row.
        """
        count, length = ids.shape
        x: Floats = self._words[ids].astype(np.float32) * self._word_scales[ids].reshape(count, length, 1)
        x = _normalise(x + self._places[:length], self._norm)
        for layer in self._layers:
            joined = _attention(x, layer) @ layer.join
            joined += layer.join_bias
            joined += x
            x = _normalise(joined, layer.join_norm)
            wide = x @ layer.widen
            wide += layer.widen_bias
            narrowed = _gelu(wide) @ layer.narrow
            narrowed += layer.narrow_bias
            narrowed += x
            x = _normalise(narrowed, layer.narrow_norm)
        mean: Floats = x.mean(axis=1)
        return mean / np.sqrt((mean * mean).sum(axis=-1, keepdims=True))


def _attention(x: Floats, layer: Layer) -> Floats:
    count, length, _ = x.shape
    parts = (x @ layer.attend + layer.attend_bias).reshape(count, length, 3, HEADS, WIDTH // HEADS)
    query, key, value = parts.transpose(2, 0, 3, 1, 4)  # each (texts, heads, tokens, 32)
    weights: Floats = query @ key.swapaxes(-1, -2) / np.float32((WIDTH // HEADS) ** 0.5)
    weights = np.exp(weights - weights.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    joined: Floats = (weights @ value).transpose(0, 2, 1, 3).reshape(count, length, WIDTH)
    return joined


def _normalise(x: Floats, norm: Norm) -> Floats:
    centred = x - x.mean(axis=-1, keepdims=True)
    variance: Floats = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + NORM_EPSILON) * norm.weight + norm.bias


def _gelu(x: Floats) -> Floats:
    """x times the normal distribution function of x, in the exact form (not the tanh approximation)."""
    share = erf(x / np.float32(2**0.5))
    share += 1
    share *= x
    share /= 2
    return share


def erf(x: Floats) -> Floats:
    """The error function, element by element, to about 2e-7."""
    t = 1 / (1 + np.float32(0.5) * np.abs(x))
    power = np.full_like(x, ERFC[0])
    for coefficient in ERFC[1:]:
        power = power * t + coefficient
    tail = t * np.exp(power - x * x)
    return np.where(x >= 0, 1 - tail, tail - 1)
