"""The chapters of the manual: find, list and show them in a terminal, and write them as HTML.

The pages open from the disk and request nothing from the internet. Their search needs a server,
such as `SERVE`, since browsers start no workers for local files.
"""

import io
import logging
import re
import shutil
import sys
from difflib import get_close_matches
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple

import click

from mpilbm import __version__
from mpilbm.core.errors import CommandError, FileSystemError

FOLDER = Path(__file__).parent
TUTORIALS = (
    "tutorial-cavity",
    "tutorial-cylinder",
    "tutorial-rock",
    "tutorial-drop",
    "tutorial-heat",
    "tutorial-ball",
    "tutorial-channel",
    "tutorial-taylor-green",
    "tutorial-restart",
)
ORDER = (
    "index",
    "installation",
    "first-run",
    *TUTORIALS,
    "proposal",
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

FENCE = re.compile(r"^(`{3,}|~{3,})[^\n]*\n.*?^\1[`~]*[ \t]*$", re.M | re.S)
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


def plain(text: str) -> str:
    """Markdown of one line as text: links and marks of code and emphasis removed."""
    text = re.sub(rf"!?{_LINKED}\([^)]*\)", r"\1", text)
    return re.sub(r"\\([^\w\s])", r"\1", re.sub(r"(?<!\\)[`*]", "", text))


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
    for block in [*FENCE.finditer(text), None]:
        prose = text[last : block.start() if block else len(text)]
        prose = _CHAPTER_LINK.sub(r"\1 (chapter `\2`)", prose)
        parts.append(_SECTION_LINK.sub(r"\1", prose))
        if block:
            parts.append(block[0])
            last = block.end()
    return "".join(parts)


SERVE = "python -m http.server --directory"
INSTALL = "pip install 'mpilbm[docs]', or pip install 'mkdocs-material>=9'"
# Broken links and anchors, and chapters missing from the list, are errors.
VALIDATION = {
    "nav": dict.fromkeys(("omitted_files", "not_found", "absolute_links"), "warn"),
    "links": dict.fromkeys(
        ("not_found", "anchors", "absolute_links", "unrecognized_links"), "warn"
    ),
}


def build(directory: Path, topic: str | None = None) -> Path:
    """Write the pages into a new or empty folder; returns the first page.

    Raises CommandError for a topic, a folder that holds files and a broken link, and if
    mkdocs-material is missing.
    """
    if topic is not None:
        raise CommandError(f"manual --html: writes all chapters; remove '{topic}'")
    _require_empty(directory)
    try:
        import material  # noqa: F401
        from mkdocs.commands.build import build as build_pages
        from mkdocs.config.defaults import MkDocsConfig
        from mkdocs.exceptions import Abort, MkDocsException
    except ImportError as error:
        problem = f"manual --html: requires mkdocs-material ({error})"
        raise CommandError(f"{problem}; install it: {INSTALL}") from error
    notes = _Notes()
    logging.getLogger("mkdocs").addHandler(notes)
    try:
        with TemporaryDirectory() as folder:
            settings = MkDocsConfig(config_file_path=str(FOLDER.parent / "mkdocs.yml"))
            site = Path(folder, "site")  # the folder itself is closed to other users
            settings.load_dict(configuration(site))
            problems, warnings = settings.validate()
            if problems or warnings:
                lines = [f"manual --html: {key}: {text}" for key, text in problems + warnings]
                raise CommandError(lines)
            build_pages(settings)
            shutil.copytree(site, directory, dirs_exist_ok=True)
    except (Abort, MkDocsException) as error:
        lines = [f"manual: {line}" for line in notes.lines] or [f"manual: {error}"]
        raise CommandError([*lines, "manual --html: correct these places and repeat"]) from error
    except OSError as error:
        problem = f"manual --html {directory}: {error.strerror or error}; choose another folder"
        raise FileSystemError(problem) from error
    finally:
        logging.getLogger("mkdocs").removeHandler(notes)
    return directory / "index.html"


def _require_empty(directory: Path) -> None:
    """CommandError unless the folder is new or empty: no file of the user is replaced."""
    try:
        occupied = directory.exists() and (not directory.is_dir() or any(directory.iterdir()))
    except OSError as error:
        problem = f"manual --html {directory}: {error.strerror}; choose another folder"
        raise FileSystemError(problem) from error
    if occupied:
        found = "holds files" if directory.is_dir() else "is a file"
        raise CommandError(f"manual --html {directory}: {found}; name a new or empty folder")


class _Notes(logging.Handler):
    """Keeps the warnings of mkdocs, a line each."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a warning."""
        self.lines.append(" ".join(record.getMessage().split()))


def configuration(directory: Path) -> dict:
    """The settings of mkdocs for pages in a folder."""
    return {
        "site_name": f"mpilbm {__version__}",
        "docs_dir": str(FOLDER),
        "site_dir": str(directory),
        "exclude_docs": "*.py\n__pycache__/",
        "strict": True,
        "nav": navigation(),
        "theme": {
            "name": "material",
            "font": False,  # no request to a server
            "palette": {"primary": "indigo"},
            "features": ["navigation.footer", "search.highlight", "content.code.copy"],
        },
        "use_directory_urls": False,  # so that links work in local files
        "plugins": ["search"],
        "markdown_extensions": ["pymdownx.highlight", "pymdownx.superfences"],
        "validation": VALIDATION,
    }


def navigation() -> list:
    """The menu: all chapters in their order, the tutorials under one heading."""
    entries: list = []
    for name in ORDER:
        entry = {read(name).title if (FOLDER / f"{name}.md").is_file() else name: f"{name}.md"}
        if name in TUTORIALS:
            if name == TUTORIALS[0]:
                entries.append({"Tutorials": []})
            entries[-1]["Tutorials"].append(entry)
        else:
            entries.append(entry)
    return entries
