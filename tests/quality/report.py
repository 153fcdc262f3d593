"""How often the built-in model is right: `python -m tests.quality.report`.

Each group is shown beside chance, which is what a model that guesses evenly would get. A noul counts as right on
the right side of one half, a score at the right level.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from archive.actor.mini import Mini

FILES = ("quality.jsonl", "quality_extra.jsonl", "quality_routing.jsonl")


class Group(NamedTuple):
    """How many of a group's questions were answered rightly, and how many chance would get."""

    right: int
    total: int
    chance: float

    def plus(self, other: "Group") -> "Group":
        """Both together."""
        return Group(self.right + other.right, self.total + other.total, self.chance + other.chance)


NOTHING = Group(0, 0, 0.0)


def measure(mini: Mini, file: str) -> dict[str, Group]:
    """The groups of one file, in the order they come in it."""
    groups: dict[str, Group] = {}
    for row in rows(file):
        one = Group(int(_is_right(row, _ask(mini, row))), 1, 1 / _choices(row))
        groups[row["group"]] = groups.get(row["group"], NOTHING).plus(one)
    return groups


def rows(file: str) -> Iterator[dict[str, Any]]:
    """The questions of one file."""
    for line in Path(__file__).with_name(file).read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def _ask(mini: Mini, row: dict[str, Any]) -> dict[str, Any]:
    question = {key: row[key] for key in ("type", "instructions", "criteria") if row.get(key)}
    request = {"model": "mini", "state": row["state"], "questions": {"q": question}}
    status, reply = mini.reply("POST", json.dumps(request).encode())
    if status != 200:
        raise RuntimeError(f"{row['id']} was refused: {reply.decode()}")
    return json.loads(reply)["answers"]["q"]


def _is_right(row: dict[str, Any], answer: dict[str, Any]) -> bool:
    if row["type"] == "noul":
        return (answer["noul"] > 0.5) == row["expected"]
    if row["type"] == "choice":
        return answer["choice"] == row["expected"]
    levels = list(answer["probabilities"].values())
    return levels.index(max(levels)) == row["expected"]


def _choices(row: dict[str, Any]) -> int:
    return 2 if row["type"] == "noul" else len(row["criteria"])


def main() -> None:
    """Prints a line per group, a line per file, and the sum."""
    mini = Mini.load()
    everything = NOTHING
    for file in FILES:
        whole = NOTHING
        for name, group in measure(mini, file).items():
            print(_line(f"  {name}", group))
            whole = whole.plus(group)
        print(_line(file, whole))
        everything = everything.plus(whole)
    print(_line(f"all, by {mini.model}", everything))


def _line(name: str, group: Group) -> str:
    return f"{name:<45} {group.right:>3} of {group.total:>3}   chance {group.chance:>5.1f}"


if __name__ == "__main__":
    main()
