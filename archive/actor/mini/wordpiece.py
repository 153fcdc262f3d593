"""Cuts a text into the word pieces that the embedding model knows.

Here: the tokenizer of BERT's lower-cased English models, for which vocab.txt was made. Never here: a vector, a
question, or a special marker read out of a text (somebody's "[SEP]" is three ordinary pieces).

Source: `BasicTokenizer` and `WordpieceTokenizer` of google-research/bert (tokenization.py, Apache-2.0).
"""

import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

VOCABULARY = Path(__file__).with_name("vocab.txt")
UNKNOWN, START, END = 100, 101, 102  # [UNK], [CLS] and [SEP]: their lines in vocab.txt, counted from 0
WORD_CHARACTERS_MAX = 100  # a longer word is one [UNK], as in BERT; it also bounds the search for pieces

# The blocks BERT splits character by character: Chinese, and the Chinese characters of Japanese and Korean.
IDEOGRAPHS = re.compile("([\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\U00020000-\U0002ceaf\U0002f800-\U0002fa1f])")


class Tokens(NamedTuple):
    """The pieces of one text, with a start and an end marker; `whole` is false if the text went on."""

    ids: tuple[int, ...]
    whole: bool

    @property
    def pieces(self) -> int:
        """How many pieces of the text were read, without the two markers."""
        return len(self.ids) - 2


class WordPiece:
    """The tokenizer over one vocabulary (piece -> id). Keeps nothing between texts."""

    def __init__(self, vocabulary: dict[str, int]) -> None:
        self._vocabulary = vocabulary

    @classmethod
    def load(cls) -> "WordPiece":
        """The tokenizer over the vocabulary that lies beside this file."""
        pieces = VOCABULARY.read_text(encoding="utf-8").split("\n")[:-1]
        return cls({piece: at for at, piece in enumerate(pieces)})

    def tokens(self, text: str, tokens_max: int) -> Tokens:
        """The first `tokens_max` ids of a text, markers included; what lies behind them is not looked at."""
        room = tokens_max - 2
        ids: list[int] = []
        for word in _words(text):
            ids += self._pieces(word)
            if len(ids) > room:
                return Tokens((START, *ids[:room], END), whole=False)
        return Tokens((START, *ids, END), whole=True)

    def _pieces(self, word: str) -> list[int]:
        """The longest known piece first, then the longest that continues it, or one [UNK] for the whole word."""
        if len(word) > WORD_CHARACTERS_MAX:
            return [UNKNOWN]
        ids: list[int] = []
        start = 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = word[start:end] if start == 0 else "##" + word[start:end]
                known = self._vocabulary.get(piece)
                if known is not None:
                    ids.append(known)
                    start = end
                    break
            else:
                return [UNKNOWN]
        return ids


def _words(text: str) -> Iterator[str]:
    """Words and single punctuation marks: lower case, without accents and control characters."""
    for chunk in re.finditer(r"\S+", IDEOGRAPHS.sub(r" \1 ", text)):
        word: list[str] = []
        for character in unicodedata.normalize("NFD", chunk[0].lower()):
            if character.isascii() and character.isalnum():  # nearly all of them: spare the look-up
                word.append(character)
                continue
            category = unicodedata.category(character)
            if _is_punctuation(character, category):
                if word:
                    yield "".join(word)
                    word = []
                yield character
            elif category != "Mn" and category[0] != "C" and character != "\ufffd":
                word.append(character)
        if word:
            yield "".join(word)


def _is_punctuation(character: str, category: str) -> bool:
    # Every ASCII sign counts, "$" and "+" too; beyond ASCII only what Unicode calls punctuation does.
    return category[0] == "P" or (category[0] == "S" and character.isascii())
