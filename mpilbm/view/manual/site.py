"""The manual as pages in HTML that open from the disk and request nothing from the internet.

The search needs a server, such as `SERVE`, since browsers start no workers for local files.
"""

import logging
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from mpilbm import __version__
from mpilbm.core.errors import CommandError, FileSystemError
from mpilbm.view.manual.pages import FOLDER, ORDER, TUTORIALS, read

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
