"""A person whose words are erased: where they are put, and how they are looked for in files."""

import json
from pathlib import Path
from typing import Any

from archive.admin import Erase, Preview, Receipt
from archive.answer import Answer
from archive.attempts import Reply
from archive.doors import Door
from archive.messages import Ask, Conclusion, Made, Noted, Question
from archive.naming import Input, Naming
from archive.request import Request
from tests.actors import refused
from tests.fakes import ASK, answer, ask, body

PERSON = 'Zoë "Zo" O\'Hara of Ghent/Süd'
"""Who wants her words out: quotes, a slash and letters that JSON may escape."""

LONG = " ".join(f"line {n} of what {PERSON} wrote to us, which is long;" for n in range(400))
"""More than fits on a page of the file, five times."""

UNTOUCHED = "Somebody else's"

JSON = json.dumps(PERSON)[1:-1].encode()
RAW = PERSON.encode()


def quoting(text: str = PERSON) -> Reply:
    """An answer that quotes her, in ASCII alone."""
    return Reply(200, answer()[:-1] + b',"note":' + json.dumps(f"as {text} says").encode() + b"}", "application/json")


def in_files(folder: Path, *words: bytes, but: str = "backup") -> list[tuple[str, bytes]]:
    """The words, and 24 bytes of them from the middle, in all files of a folder. Once the process has closed them."""
    found: list[tuple[str, bytes]] = []
    for one in sorted(folder.iterdir()):
        data = b"" if but in one.name else one.read_bytes()
        found += [(one.name, word) for word in words for piece in (word, word[2:26]) if piece in data]
    return found


async def erase(door: Door, words: str = PERSON, *, also_shared: bool = False) -> Receipt:
    """As the command does: what a preview found is erased."""
    found = await door.send(Preview(words))
    return await door.send(Erase(words, also_shared, tuple(one.text for one in found.texts), found.upto))


async def everywhere(door: Door, model: Any) -> None:
    """Her words in every kind of text there is, and somebody else's beside them."""
    reading = f"hers: choice == {json.dumps(PERSON)}; else others"
    named = Naming("triage", f"ticket of {PERSON}", reading, (Input("mail", PERSON), Input(PERSON, "x" * 20)))
    choice = {"type": "choice", "instructions": "Who?", "criteria": {PERSON: None, "others": None}}
    chosen = {"type": "choice", "choice": PERSON, "probabilities": {PERSON: 0.7, "others": 0.3}}
    model.came = Reply(200, json.dumps({"model": "jev", "answers": {"q": chosen}}).encode(), "application/json")
    first = Request(ASK, body(f"What does {PERSON} want?", questions={"q": choice}))
    asked = (await door.send(Ask(first, naming=named))).kept.request_id
    model.came = quoting(LONG)
    await door.send(ask(LONG))
    escaped = json.dumps({"state": f"{PERSON} again", "model": "m", "questions": {}}).encode()
    model.came = quoting()
    await door.send(Ask(Request(ASK, escaped)))
    model.came = Reply(
        422, json.dumps({"detail": [{"input": f"no such thing, {PERSON}"}]}).encode(), "application/json"
    )
    await refused(door, ask(f"refused to {PERSON}"))
    bits = [PERSON[:5], PERSON[5:9], PERSON[9:]]
    model.came = Reply(200, b"".join(
        b"data: " + json.dumps({"choices": [{"delta": {"content": bit}, "finish_reason": "stop"}]}).encode() + b"\n\n"
        for bit in bits
    ) + b"data: [DONE]\n\n", "text/event-stream")  # fmt: skip
    streaming = Request(ASK, b'{"stream":true,"messages":[{"role":"user","content":"Who was it?"}],"model":"m"}')
    await door.send(Ask(streaming))
    came_to = Conclusion("which", Answer(PERSON, 0.8), claim=f"It is {PERSON}.")
    calls = (Made(f"Is it {PERSON}?", asked, 1),)
    await door.send(Noted(Question(f"Is it {PERSON}?", (PERSON, "tea")), 3, 1, calls, came_to, True))
    model.came = Reply(200, answer(0.1))
    await door.send(ask(UNTOUCHED))
    await door.send(Noted(Question(UNTOUCHED), 2, 1, (), Conclusion("which", Answer("Yes")), True))
