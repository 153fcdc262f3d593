"""Every state a page can be in, in one record, with the address of each."""

import asyncio

from tests.pages import Visitor, address
from tests.wires import hangs_up

HOSTILE = "<script>hacked=1</script><img src=x onerror=hacked=1> \u202egnp.exe\u202c \"'`{{7*7}}&lt;" + "W" * 200
"""Markup, a right-to-left override, quotes, and a word that does not end."""


async def every_state(me: Visitor) -> dict[str, str]:
    """Address by name of state. The last, `asking`, waits at the upstream until `me.model.gate` is set."""
    found: dict[str, str] = {"home": "/", "error": f"/call/{'0' * 12}/request", "builder": "/build"}
    me.jev.counting = True
    found |= await _answered(me)
    found |= await _stopped(me)
    found["unasked, as a held page"] = address("Is it never asked?", f"{'a' * 12}:1")
    me.model.gate = asyncio.Event()
    await me.post("Is it slow?")
    async with asyncio.timeout(10):
        while "waiting" not in (await me.look("Is it slow?")).states:
            pass
    found["asking"] = address("Is it slow?")
    return found


async def _answered(me: Visitor) -> dict[str, str]:
    page = await me.ask("Is it?")
    first, second = page.names
    await me.ask("Is it?", again=second.partition(":")[0])
    found = {"answered": address("Is it?"), "pinned": address("Is it?", f"{first},{second}")}
    found["looked up"] = address("Is it?", first)
    page = await me.ask("Does it change?")
    me.jev.kind = "how_much"
    await me.here.ask(me.model.got[-2].body, Archive_Answer="fresh")
    found["missing"] = address("Does it change?", page.names[0].replace(":1", ":2"))
    await me.ask("How warm is it?")
    me.jev.kind = "which"
    await me.ask("Tea, coffee or water?")
    await me.ask(HOSTILE, option=[HOSTILE[:90], "b" * 90, "\u202eolleh"])
    await me.ask("Which?")
    me.jev.kind = "open"
    await me.ask("Why is the sky blue?")
    me.jev.kind = "yes_no"
    found |= {"levels": address("How warm is it?"), "options": address("Tea, coffee or water?")}
    found["hostile"] = address(HOSTILE, option=[HOSTILE[:90], "b" * 90, "\u202eolleh"])
    return found | {"needs options": address("Which?"), "open": address("Why is the sky blue?")}


async def _stopped(me: Visitor) -> dict[str, str]:
    behave, me.model.behave = me.model.behave, hangs_up()
    await me.ask("Is it unknown?")
    me.model.behave, me.model.status = behave, 400
    await me.ask("Is it refused?")
    me.model.status = 200
    return {"unknown": address("Is it unknown?"), "refused": address("Is it refused?")}
