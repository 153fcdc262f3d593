"""A strict reading of our own HTML: what a lenient browser would quietly repair is an error here."""

from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import pairwise

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
DRAWN = {"circle", "g", "line", "path", "pattern", "rect", "symbol", "use"}
ENDS_A_PARAGRAPH = {
    "article",
    "aside",
    "details",
    "div",
    "dl",
    "fieldset",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "header",
    "hr",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "ul",
}
"""A browser closes an open <p> before one of these: whoever wrote it meant something else."""

INTERACTIVE = {"a", "button", "input", "textarea", "select", "details", "label"}
REFERENCES = ("for", "aria-labelledby", "aria-describedby")


@dataclass(eq=False)
class Element:
    """An element, what stands in it, and all text in it in order."""

    tag: str
    attributes: dict[str, str]
    parent: "Element | None" = None
    children: list["Element"] = field(default_factory=list["Element"])
    pieces: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        """The text exactly as it stands."""
        return "".join(self.pieces)

    @property
    def spaced(self) -> str:
        """The text with one space wherever there is any, or a tag."""
        return " ".join(" ".join(self.pieces).split())

    def all(self, tag: str, **attributes: str) -> list["Element"]:
        """Every element below with this tag ("" for any) and these attributes; `class` is written `class_`."""
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        found: list[Element] = []
        for child in self.children:
            if tag in {"", child.tag} and wanted.items() <= child.attributes.items():
                found.append(child)
            found += child.all(tag, **attributes)
        return found

    def one(self, tag: str, **attributes: str) -> "Element":
        """The only such element."""
        found = self.all(tag, **attributes)
        assert len(found) == 1, f"{len(found)} of <{tag} {attributes}>"
        return found[0]

    def __getitem__(self, name: str) -> str:
        return self.attributes[name]

    def above(self) -> list["Element"]:
        """The elements around it, from the nearest outwards."""
        return [] if self.parent is None else [self.parent, *self.parent.above()]

    def shape(self) -> list[tuple[str, tuple[str, ...]]]:
        """Every tag with the names of its attributes: what a text on the page can never change."""
        return [(child.tag, tuple(child.attributes)) for child in self.all("")]


class _Parser(HTMLParser):
    """Builds the tree; asserts that every tag is closed where it must be."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = self.open = Element("", {})

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), f"an attribute twice in <{tag}>: {names}"
        around = [self.open.tag, *(element.tag for element in self.open.above())]
        assert not (tag in ENDS_A_PARAGRAPH and "p" in around), f"<{tag}> in a <p>"
        assert not (tag == "form" and "form" in around), "a form in a form"
        assert not (tag in INTERACTIVE and ("a" in around or "button" in around)), f"<{tag}> in a link or button"
        assert tag not in {"style", "iframe"}, tag
        # The one script there is, from a file of ours.
        assert tag != "script" or dict(attrs) == {"type": "module", "src": "/static/live.js"}, attrs
        element = Element(tag, {name: value or "" for name, value in attrs}, self.open)
        self.open.children.append(element)
        if tag not in VOID:
            self.open = element

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in DRAWN, f"<{tag}/> does not close itself"
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag not in VOID and tag == self.open.tag, f"</{tag}> closes <{self.open.tag}>"
        assert self.open.parent is not None
        self.open = self.open.parent

    def handle_data(self, data: str) -> None:
        for element in (self.open, *self.open.above()):
            element.pieces.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(f"a declaration: {data}")

    def handle_pi(self, data: str) -> None:
        raise AssertionError(f"an instruction: {data}")


def fragment(text: str) -> Element:
    """A piece of HTML, well formed; its elements are the children of what is returned."""
    parser = _Parser()
    parser.feed(text)
    parser.close()
    assert parser.open is parser.root, f"<{parser.open.tag}> is never closed"
    return parser.root


def read(body: bytes) -> Element:
    """The page, checked: well formed, ids unique and found, one h1, a name for everything that takes input."""
    text = body.decode()
    assert text.startswith("<!doctype html>\n")
    page = fragment(text)
    every = page.all("")
    ids = Counter(element["id"] for element in every if "id" in element.attributes)
    assert set(ids.values()) <= {1}, f"an id twice: {ids}"
    assert [element.tag for element in every if element.tag in {"html", "head", "body", "title", "main", "h1"}] == [
        "html", "head", "title", "body", "main", "h1"
    ]  # fmt: skip
    for element in every:
        _check(element, set(ids))
    levels = [int(element.tag[1]) for element in every if element.tag in {"h1", "h2", "h3", "h4"}]
    assert all(after - before <= 1 for before, after in pairwise(levels)), levels
    return page


def _check(element: Element, ids: set[str]) -> None:
    attributes = element.attributes
    assert not any(name.startswith("on") or name == "style" for name in attributes), element
    for name in REFERENCES:
        assert set(attributes.get(name, "").split()) <= ids, f"{name}={attributes.get(name)} leads nowhere"
    link = attributes.get("href", "/")
    whole = attributes.get("rel") == "canonical" and link.startswith(("http://", "https://"))
    assert link.startswith("/") or whole or link[1:] in ids, f"the link {link} leads nowhere"
    if element.tag in {"input", "textarea"} and attributes.get("type") != "hidden":
        root = element.above()[-1]
        assert "aria-label" in attributes or root.all("label", for_=attributes["id"]), f"no label for {attributes}"
    if element.tag in {"a", "button"}:
        assert element.text.strip() or "aria-label" in attributes, f"<{element.tag}> without a name"
    if element.tag == "form":
        assert (attributes["method"], attributes["action"]) == ("post", "/ask")
