"""One task per question, shared by all who wait for it, outliving them: drives the recipe through the door.

After a restart nothing goes on by itself: what was on the wire is unknown by then, and the page says so.
What must never be here: HTML, and which calls a question needs (recipe.py).
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from archive.doors import Door
from archive.errors import ArchiveError, Busy, Erased
from archive.messages import Ask, Caller, Conclusion, Made, Noted, Question, Sent
from archive.picks import Pins, pick_next
from archive.request import Destination, Request, call_id
from web.errors import internal
from web.recipe import VERSION, Done, Models, Step, recipe

ENDED_MAX = 1_000
"""How many askings that have ended are remembered, for the page to say what they sent or why they stopped."""

LATELY_SECONDS = 60.0
"""How long a page says what the last asking sent."""


Press = tuple[Question, Pins, str | None, bool]
"""What was pressed: on which question, under which pins, ↻ on which call if any, and whether surely."""


@dataclass(eq=False)
class Asking:
    """A question being asked: by whom first, by how many, what was got so far and how, and what stopped it."""

    question: Question
    caller: Caller
    times: int = 1
    got: dict[str, Sent] = field(default_factory=dict[str, Sent])
    trouble: ArchiveError | None = None
    began_at: float = field(default_factory=time.monotonic)
    ended_at: float | None = None

    @property
    def seconds(self) -> int:
        """For how long it has been asked."""
        return int(time.monotonic() - self.began_at)

    @property
    def stands(self) -> bool:
        """Is what kept it from being asked still to be told: for a minute, or until the moment it names?"""
        until = None if self.trouble is None else self.trouble.until
        return self.lately or (until is not None and time.time_ns() // 1000 < until)

    @property
    def lately(self) -> bool:
        """Has it ended within the last minute?"""
        return self.ended_at is not None and time.monotonic() - self.ended_at < LATELY_SECONDS


class Askings:
    """The questions that are being asked now, and those that were asked lately."""

    def __init__(
        self,
        door: Door,
        places: tuple[Destination, Destination | None],
        models: Models,
        may_list: Callable[[str, float | None], bool],
        most: int,
    ) -> None:
        """`places`: of the decision model, and of the language model in front if there is one.

        `may_list`: whether words with this fitness may be listed. `most`: askings at a time.
        """
        self._door = door
        self._places = places
        self.models = models
        self._may_list = may_list
        self._most = most
        self._running: dict[Press, Asking] = {}
        self._ended: OrderedDict[Question, Asking] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()
        self.stopped: Callable[[Question], Awaitable[None]] = _nobody
        """Told of every asking that ended in trouble: the record may know nothing of it, so no notice says so."""

    def request(self, step: Step) -> Request:
        """The request a step is."""
        decision, front = self._places
        return Request(front if step.to_front and front is not None else decision, step.body)

    def running(self, question: Question, pins: Pins) -> Asking | None:
        """The asking of a question that is going on, for the page that holds just this still."""
        running = self._running.items()
        return next((a for (asked, at, *_), a in running if asked == question and at.held == pins.held), None)

    def last(self, question: Question) -> Asking | None:
        """The last asking of a question that has ended, if it is remembered."""
        return self._ended.get(question)

    def forget(self) -> None:
        """Let go of the askings that have ended: words in them may have been erased."""
        self._ended.clear()

    def start(self, question: Question, pins: Pins, pressed: str | None, caller: Caller, *, sure: bool) -> Asking:
        """Ask, or join whoever is asking just that. Raises Busy.

        `pressed` is the call_id ↻ was pressed on; `sure`: also if it may be paid for twice. Calls count as those of
        the `caller` who comes first.
        """
        name = (question, pins, pressed, sure)
        asking = self._running.get(name)
        if asking is not None:
            asking.times += 1
            return asking
        if len(self._running) >= self._most:
            raise Busy("Too many questions are being asked at this moment. Try again in a second.")
        asking = self._running[name] = Asking(question, caller)
        task = asyncio.create_task(self._carry(asking, name), name="asking")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return asking

    async def settled(self) -> None:
        """Wait until nothing is being asked."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _carry(self, asking: Asking, press: Press) -> None:
        try:
            await self._note(asking, press, *await self._ask(asking, press))
        except ArchiveError as error:
            asking.trouble = error
        except Exception as error:
            asking.trouble = internal(error)
        finally:
            asking.ended_at = time.monotonic()
            self._running.pop(press, None)
            if not isinstance(asking.trouble, Erased):
                self._ended[asking.question] = asking
                self._ended.move_to_end(asking.question)
            while len(self._ended) > ENDED_MAX:
                self._ended.popitem(last=False)
        if asking.trouble is not None:
            await self.stopped(asking.question)

    async def _note(self, asking: Asking, press: Press, done: Done, calls: tuple[Made, ...], alone: bool) -> None:
        question, conclusion = asking.question, done.conclusion
        # The model judged the words alone; an option typed apart from them would be the answer that is listed, and an
        # answer to a claim would stand there without it.
        typed_apart = bool(question.options or question.levels or question.typed or conclusion.claim)
        listed = (
            conclusion.answer is not None and not typed_apart and self._may_list(_shown(question, conclusion), done.fit)
        )
        noted = asking.times
        if press[1].held:
            # What a held page comes to is its own; the question's is what it comes to now.
            await self._door.send(Noted(question, noted))
        else:
            await self._door.send(Noted(question, noted, VERSION, calls, conclusion, listed, alone))
        while noted < asking.times:  # some joined while that was being written
            more, noted = asking.times - noted, asking.times
            await self._door.send(Noted(question, more))

    async def _ask(self, asking: Asking, press: Press) -> tuple[Done, tuple[Made, ...], bool]:
        """What it came to, by which calls, and whether the decision model answered it alone."""
        _, pins, pressed, sure = press
        walk = recipe(asking.question, self.models)
        calls: list[Made] = []
        step = next(walk)
        alone = True
        while True:
            alone = alone and not step.to_front
            request = self.request(step)
            name = call_id(request)
            pick = pick_next(name, pins, pressed, tuple(asking.got), sure=sure)
            answered = await self._door.send(Ask(request, pick, caller=asking.caller))
            asking.got[name] = answered.sent
            calls.append(Made(step.title, answered.kept.request_id, answered.kept.n))
            try:
                step = walk.send(answered.kept.body)
            except StopIteration as end:
                done: Done = end.value
                return done, tuple(calls), alone and done.conclusion.answer is not None


async def _nobody(_: Question) -> None:
    """Nobody is to be told."""


def _shown(question: Question, conclusion: Conclusion) -> str:
    """What the front page would show of it: the words may be a visitor's, or a language model's."""
    return question.words if conclusion.answer is None else f"{question.words}\n{conclusion.answer.words}"
