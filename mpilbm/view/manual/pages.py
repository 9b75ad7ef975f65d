"""The chapters of the manual: find, list and show them in a terminal."""

import io
import re
import shutil
import sys
import unicodedata
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, NamedTuple

import click

from mpilbm.core.errors import CommandError

FOLDER = Path(__file__).parent
TUTORIALS = (
    "tutorial-cavity",
    "tutorial-cylinder",
    "tutorial-rock",
    "tutorial-drop",
    "tutorial-heat",
    "tutorial-channel",
    "tutorial-taylor-green",
    "tutorial-restart",
)
ORDER = (
    "index",
    "installation",
    "first-run",
    *TUTORIALS,
    "case-file",
    "choosing",
    "boundaries",
    "meshes",
    "outputs",
    "units",
    "python",
    "clusters",
    "opencl",
    "many-gpus",
    "performance",
    "validation",
    "extending",
    "how-it-works",
    "glossary",
    "contributing",
)
WIDTH = 100, 140  # characters of a line: in a file or pipe, and at most on a terminal

_FENCE = re.compile(r"^(`{3,}|~{3,})[^\n]*\n.*?^\1[`~]*[ \t]*$", re.M | re.S)
_HEADING = re.compile(r"^(#{1,6})[ \t]+(.+?)[ \t]*#*$", re.M)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")
# [text](chapter.md#section) and [text](#section), but no picture ![text](file)
_LINKED = r"\[((?:`[^`]*`|[^\]`])+)\]"
_CHAPTER_LINK = re.compile(rf"(?<!!){_LINKED}\(([\w-]+)\.md(?:#[^)]*)?\)")
_SECTION_LINK = re.compile(rf"(?<!!){_LINKED}\(#[^)]*\)")


class Chapter(NamedTuple):
    """A chapter by its name, that of its file without `.md`."""

    name: str
    text: str

    @property
    def title(self) -> str:
        """The first line, which is `# Title`."""
        return self.text.partition("\n")[0].removeprefix("# ").strip()

    @property
    def summary(self) -> str:
        """The first sentence of the first paragraph, without marks of Markdown."""
        body = self.text.partition("\n")[2].strip()
        paragraph = " ".join(body.partition("\n\n")[0].split())
        return plain(_SENTENCE.split(paragraph, maxsplit=1)[0])

    @property
    def anchors(self) -> list[str]:
        """Names of the sections, as the pages in HTML call them: repeated ones with _1, _2, …"""
        found: list[str] = []
        for match in _HEADING.finditer(without_code(self.text)):
            base = name = slug(plain(match[2]))
            number = 0
            while name in found:
                name = f"{base}_{(number := number + 1)}"
            found.append(name)
        return found


def plain(text: str) -> str:
    """Markdown of one line as text: links and marks of code and emphasis removed."""
    text = re.sub(rf"!?{_LINKED}\([^)]*\)", r"\1", text)
    return re.sub(r"\\([^\w\s])", r"\1", re.sub(r"(?<!\\)[`*]", "", text))


def without_code(text: str) -> str:
    """The text with its fenced code blocks made empty, line by line."""
    return _FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)


def slug(title: str) -> str:
    """The anchor of a heading, as Python-Markdown makes it."""
    ascii_only = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_only).strip().lower())


def chapters() -> list[Chapter]:
    """The chapters in the order of the manual."""
    return [read(name) for name in ORDER if (FOLDER / f"{name}.md").is_file()]


def read(name: str) -> Chapter:
    """The chapter of this name."""
    return Chapter(name, (FOLDER / f"{name}.md").read_text(encoding="utf-8"))


def find(topic: str) -> Chapter:
    """The chapter `topic`; else CommandError, with similar names or chapters with that word."""
    found = chapters()
    for chapter in found:
        if chapter.name == topic.lower().removesuffix(".md"):
            return chapter
    raise CommandError(f"manual: '{topic}' is not a chapter; {_advice(topic.lower(), found)}")


def _advice(topic: str, found: list[Chapter]) -> str:
    names = [chapter.name for chapter in found]
    near = [name for name in names if topic and topic in name]
    near += [name for name in get_close_matches(topic, names, 3, 0.5) if name not in near]
    if near:
        *others, last = [f"'{name}'" for name in near]
        return f"did you mean {' or '.join(filter(None, (', '.join(others), last)))}?"
    holding = [each.name for each in found if topic and topic in plain(each.text).lower()]
    if holding:
        return f"the word occurs in {', '.join(holding)}; try: mpilbm manual {holding[0]}"
    return f"allowed: {', '.join(names)}"


def contents() -> str:
    """One line for each chapter: its name, title and first sentence."""
    found = chapters()
    width = max(len(chapter.name) for chapter in found)
    room = max(shutil.get_terminal_size().columns, 60) if sys.stdout.isatty() else None
    lines = []
    for chapter in found:
        line = f"{chapter.name.ljust(width)}  {chapter.title}. {chapter.summary}"
        lines.append(line if room is None or len(line) <= room else f"{line[: room - 1]}…")
    lines += ["", "Read one: mpilbm manual TOPIC. Build pages in HTML: mpilbm manual --html DIR"]
    return "\n".join(lines)


def show(topic: str | None) -> None:
    """Print the list of chapters, or a chapter: through a pager if the terminal is interactive."""
    if topic is None:
        click.echo(contents())
        return
    interactive = sys.stdin.isatty() and sys.stdout.isatty()
    text = rendered(find(topic).text, interactive)
    if interactive:
        click.echo_via_pager(text, color=True)
    else:
        click.echo(text, nl=False)


def rendered(text: str, colours: bool) -> str:
    """Markdown as text for a terminal."""
    from rich.console import Console
    from rich.markdown import Markdown

    usual, most = WIDTH
    width = min(shutil.get_terminal_size().columns, most) if colours else usual
    buffer = io.StringIO()
    style: Literal["standard"] | None = "standard" if colours else None
    console = Console(file=buffer, force_terminal=colours, width=width, color_system=style)
    body = Markdown(for_terminal(text), hyperlinks=False, code_theme="ansi_dark")
    console.print(body)
    return "".join(f"{line.rstrip()}\n" for line in buffer.getvalue().split("\n")[:-1])


def for_terminal(text: str) -> str:
    """The text without addresses of links: links to chapters name the chapter."""
    parts, last = [], 0
    for block in [*_FENCE.finditer(text), None]:
        prose = text[last : block.start() if block else len(text)]
        prose = _CHAPTER_LINK.sub(r"\1 (chapter `\2`)", prose)
        parts.append(_SECTION_LINK.sub(r"\1", prose))
        if block:
            parts.append(block[0])
            last = block.end()
    return "".join(parts)
