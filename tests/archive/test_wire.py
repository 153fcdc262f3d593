"""The frames of /wire: whatever is said inside the process comes out on the other side as it was, or is refused."""

import inspect
from typing import Any, get_args

import msgspec
import pytest

from archive import admin, errors, messages
from archive.admin import (
    AddToken,
    Apart,
    Aside,
    BackedUp,
    BackUp,
    Check,
    Checked,
    CheckFile,
    Chosen,
    Deliveries,
    Delivery,
    Erase,
    Export,
    Exported,
    Facts,
    Holding,
    Import,
    InUse,
    Mark,
    Preview,
    Previewed,
    Proof,
    Prove,
    Rebuild,
    Rebuilt,
    Receipt,
    RevokeToken,
    Searched,
    Tokens,
    Tried,
    Uses,
    Withdraw,
)
from archive.answer import Answer, Detail, Option
from archive.attempts import Outcome, Price, Reply, State
from archive.errors import ArchiveError, BadToken, CallFailed, CallUnknown, Cooling
from archive.exchange import Took, Verdict
from archive.health import Condition
from archive.live import Asked, Changed, Forgotten, Imported, Notice, Place, Stale
from archive.messages import (
    Abouts,
    After,
    Answered,
    Ask,
    Caller,
    Conclusion,
    Count,
    Feed,
    Finished,
    Health,
    History,
    Judged,
    Judgment,
    Kept,
    Key,
    Listed,
    Look,
    Looked,
    Made,
    Message,
    Named,
    Noted,
    Numbered,
    Order,
    Question,
    Recall,
    Remembered,
    Sent,
    Show,
    Shown,
    SoFar,
    Stop,
    Totals,
    Versions,
)
from archive.naming import Asking, Counted, Input, Naming, PassFacts
from archive.picks import Fresh, KeptOnly, Standing, Version
from archive.request import Request
from archive.tokens import Token
from archive.wire import (
    Behind,
    Do,
    Done,
    Here,
    Leave,
    Noticed,
    Outside,
    Refused,
    Watch,
    error_in,
    from_client,
    from_server,
    message_in,
    packed,
    refused,
    reply_to,
)
from tests.fakes import ASK, request

QUESTION = Question("Is it?\u2028\0", ("tea", "coffee"))
ANSWER = Answer("Yes", 0.9, Detail("choice", confidence=0.5, options=(Option("tea", 0.1), Option("", None)), total=0.1))
KEPT = Kept("3f2a9c01be44", 2, 3, 200, b"\xff\0{", "application/json", "req_1", 7, 8, "jev", 1, None, None, True, 5)
REMEMBERED = Remembered(1, QUESTION, 2, 3, 4, 1, (Made("The answer", 1, 2),), Conclusion("which", ANSWER), True)
ASKING = Asking(
    3, 1, 7, Naming("p", "ticket:7", "a: noul > 0; else b", (Input("", "x"),)), (None,), 1, State.UNKNOWN, None, "m"
)
PASS = PassFacts("p", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, (("a: x", None, 1),), (("m", None, 2),), 12, 13)

HOLDING = Holding(3, 40, Uses(1, 2, 3, 4, 5, ("3f2a9c01be44",)), "begins")

SAID: list[tuple[Message[Any], Any]] = [
    (Ask(Request(ASK, b"\xff\0", headers=(("a", "b"),)), Version(2), Key("s")), Answered(KEPT, Sent.SHARED)),
    (Ask(request(), caller=Caller(7, b"\xff", True)), Answered(KEPT, Sent.NOW)),
    (Ask(request(), Fresh(sure=False)), Answered(KEPT, Sent.NOW)),
    (Look(request(), 3), Looked("3f2a9c01be44", 1, KEPT, 3, "", 4, 5, "no", 6)),
    (Show(17, 1), Shown(request(), Looked("3f2a9c01be44"))),
    (History(17, 3), (KEPT, KEPT)),
    (Versions(17, 2, 3), (Numbered(Standing(1, withdrawn=True, gone_at=7), None), Numbered(Standing(2), KEPT))),
    (Named("3f2a9c01be44"), (1, 2)),
    (Recall(QUESTION), None),
    (Recall(QUESTION), REMEMBERED),
    (Noted(QUESTION, 2, 1, (Made("The answer", 1, 2),), Conclusion("which", ANSWER), True), None),
    (Feed(Order.MOST, After(1, 2), 3), Listed((REMEMBERED,), After(3, 4))),
    (Totals(), SoFar(1, 2, 3)),
    (Health(), Condition(True, 0, 1, 2, 1, faults=("text: row 1 is not as it was written",))),
    (Check(Mark("text", 7, b"\xff"), 9), Checked(Mark("text", 16, b"\0"), 9, ("a",))),
    (CheckFile(), ("wrong # of entries",)),
    (AddToken("ann", bytes(32), True, False, 5, 6), Token(1, "ann", True, False, 5, 6, 7)),
    (RevokeToken(1), Token(1, "ann", revoked_at=8)),
    (Tokens(), (InUse(Token(1, "ann"), 2),)),
    (Deliveries(), (Delivery("3f2a9c01be44", 2, 7, Sent.NOT_SENT, 1),)),
    (Judged(3), Judgment(ASKING, request(), KEPT)),
    (Judged(3), Judgment(ASKING, None, None)),
    (Abouts("ticket:7", 9, 2), (ASKING,)),
    (Facts(), Counted((PASS,), 1, 2, 3)),
    (Prove(), Proof((Tried("drop a table", "not authorized", False),), True)),
    (BackUp("/b.db"), BackedUp("/b.db", 1, 2, {"answer": "2:ff"})),
    (Rebuild(), Rebuilt(1, 2, 3, 4, 5)),
    (Export(Chosen(1, 2, "systemone", "p", "a", True), 7), Exported((b"{}", b"\xff"), "3f2a9c01be44", 8, 9)),
    (Import((b"{}", b"\xff"), "askonce", True, True, True), (Verdict(Took.NEW), Verdict(Took.REFUSED, "no"))),
    (Preview("Zo\u00eb\0"), Previewed((HOLDING,), 7)),
    (Erase("Zo\u00eb", True, (3, 4), 7), Receipt(7, (3,), Uses(1), (HOLDING,), (Searched("a", 9, 1, 2),), ("b",))),
    (Withdraw(17, 2, "wrong", False), None),
]  # fmt: skip


@pytest.mark.parametrize(("message", "reply"), SAID, ids=lambda said: type(said).__name__)
def test_every_message_and_its_reply_come_out_as_they_went_in(message: Message[Any], reply: Any) -> None:
    sent = from_client.decode(packed(Do(7, msgspec.Raw(packed(message)))))
    assert isinstance(sent, Do)
    assert (sent.number, message_in.decode(sent.message)) == (7, message)
    came = from_server.decode(packed(Done(7, msgspec.Raw(packed(reply)))))
    assert isinstance(came, Done)
    assert reply_to(type(message)).decode(came.reply) == reply


def test_each_message_is_let_in_or_kept_out_by_name() -> None:
    found = [kind for module in (messages, admin) for _, kind in inspect.getmembers(module, inspect.isclass)]
    kinds: set[object] = {kind for kind in found if issubclass(kind, Message)}
    assert kinds - set(get_args(Outside)) == {
        Message, Aside, Apart, Finished, Count, Stop, messages.Visited,
    }  # fmt: skip
    assert {type(message) for message, _ in SAID} == set(get_args(Outside))


@pytest.mark.parametrize(
    "said",
    [
        Stop(),
        Count(),
        Finished(1, Outcome(State.ANSWERED), 1),
        KeptOnly(),
        messages.Visited(1),
        {"type": "Named", "call_id": "x"},
        {"type": "Named", "call_id": "3f2a9c01be44\n"},
        {"type": "Versions", "request_id": -1},
        {"type": "Show", "request_id": 2**63},
        {"type": "History", "request_id": 1, "most": 0},
        {"type": "Feed", "most": 10**6},
        {"type": "Judged", "number": -1},
        {"type": "Abouts", "about": "x", "most": 10**6},
        {"type": "Import", "lines": [b""] * 101, "source": "askonce"},
        {"type": "Import", "lines": [], "source": ""},
        {"type": "Export", "after": -1},
        {"type": "Erase", "words": "x", "found": [-1]},
        {"type": "Ask", "request": {}},
        [],
        None,
    ],
    ids=str,
)
def test_what_may_not_be_sent_from_outside_is_not_read(said: object) -> None:
    with pytest.raises(msgspec.DecodeError):
        message_in.decode(msgspec.msgpack.encode(said))


TREE = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, ArchiveError)]


def _one(kind: type[ArchiveError]) -> ArchiveError:
    if kind is Cooling:
        return Cooling("text", until=7, status=529)
    if kind is CallFailed:
        return CallFailed("text", reply=Reply(400, b"\xff", "a", "b", ("1",), ("2",), False), at=7)
    if kind is BadToken:
        return BadToken("text", missing=True)
    if kind is CallUnknown:
        return CallUnknown("text", at=7, waited=True)
    return kind("text", at=7, until=8)


@pytest.mark.parametrize("kind", TREE)
def test_every_error_is_raised_again_as_what_it_was(kind: type[ArchiveError]) -> None:
    first = _one(kind)
    came = from_server.decode(packed(refused(7, first)))
    assert isinstance(came, Refused)
    again = error_in(came)
    assert (came.number, type(again), vars(again)) == (7, kind, vars(first))


def test_an_error_of_a_newer_server_is_an_error_all_the_same() -> None:
    told = error_in(Refused(1, "tired", "Come back tomorrow.", until=7))
    assert (type(told), told.text, told.until) == (ArchiveError, "Come back tomorrow.", 7)


@pytest.mark.parametrize(
    "notice",
    [
        Changed("3f2a9c01be44", State.UNKNOWN, 2),
        Imported(("3f2a9c01be44",)),
        Asked(QUESTION, True),
        Stale(),
        Forgotten(),
    ],
    ids=str,
)
def test_notices_and_the_other_frames_come_out_as_they_went_in(notice: Notice) -> None:
    for said in (
        Noticed(7, notice),
        Here(ASK, None, "jev-latest", "", ()),
        Here(ASK, ASK, "jev-latest", "gpt", (Behind("a", "https://a.test", False, True, Price(1, None), 0),)),
    ):
        assert from_server.decode(packed(said)) == said
    for said in (Watch(1, Place("/wire")), Leave(1)):
        assert from_client.decode(packed(said)) == said


def test_a_header_that_is_no_text_does_not_keep_an_answer_from_being_sent() -> None:
    """A provider may put any bytes into a header; the body is what must stay as it is."""
    odd = msgspec.structs.replace(KEPT, content_type="text/\udcff", provider_id="\ud800")
    came = reply_to(Ask).decode(packed(Answered(odd, Sent.NOW)))
    assert (came.kept.body, came.kept.content_type) == (KEPT.body, "text/\ufffd")
    assert came == Answered(msgspec.structs.replace(odd, content_type="text/\ufffd", provider_id="\ufffd"), Sent.NOW)
