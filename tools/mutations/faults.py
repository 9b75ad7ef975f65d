"""Seeded faults of a package, spread over its folders in proportion to their lines."""

import ast
from pathlib import Path
from random import Random
from typing import NamedTuple

from mutations.candidates import Change, changes


class Fault(NamedTuple):
    """A change of one line of a file, whose path is relative to the root of the tree."""

    path: str
    change: Change
    before: str
    after: str

    @property
    def folder(self) -> str:
        """The package and its folder, such as mpilbm/core."""
        return _folder(self.path)

    @property
    def place(self) -> str:
        """`file:line`."""
        return f"{self.path}:{self.change.line}"


def faults(root: Path, package: str, number: int, seed: int) -> list[Fault]:
    """`number` faults on different lines, fewer if there are not as many; sorted by place."""
    texts = {
        path.relative_to(root).as_posix(): path.read_text("utf-8")
        for path in sorted((root / package).rglob("*.py"))
    }
    folders: dict[str, dict[str, str]] = {}
    for path, text in texts.items():
        folders.setdefault(_folder(path), {})[path] = text
    lines = {folder: sum(map(_lines, inside.values())) for folder, inside in folders.items()}
    found = []
    for folder, share in shares(lines, number).items():
        found += _drawn(folders[folder], share, Random(f"{seed} {folder}"))
    return sorted(found)


def shares(weights: dict[str, int], number: int) -> dict[str, int]:
    """`number` divided in proportion to the weights, by the largest remainders."""
    total = max(sum(weights.values()), 1)
    found = {name: number * weight // total for name, weight in weights.items()}
    by_remainder = sorted(weights, key=lambda name: (-(number * weights[name] % total), name))
    for name in by_remainder[: number - sum(found.values())]:
        found[name] += 1
    return found


def applied(source: str, change: Change) -> str:
    """The text of a module with a change."""
    lines = source.splitlines(keepends=True)
    line = lines[change.line - 1].encode()
    after = line[: change.start] + change.text + line[change.end :]
    lines[change.line - 1] = after.decode()
    return "".join(lines)


def _drawn(texts: dict[str, str], number: int, random: Random) -> list[Fault]:
    """Changes of `number` lines: all kinds are equally likely, and all lines with a kind."""
    kinds: dict[str, list[tuple[str, Change]]] = {}
    for path, text in texts.items():
        for change in changes(text):
            kinds.setdefault(change.kind, []).append((path, change))
    found: dict[tuple[str, int], Fault] = {}
    while kinds and len(found) < number:
        kind = random.choice(sorted(kinds))
        places = sorted({(path, change.line) for path, change in kinds[kind]} - found.keys())
        if not places:
            del kinds[kind]
            continue
        path, line = random.choice(places)
        here = [each for each in kinds[kind] if (each[0], each[1].line) == (path, line)]
        chosen = random.choice(here)
        if _is_effective(texts[path], chosen[1]):
            found[path, line] = _fault(path, texts[path], chosen[1])
        else:
            kinds[kind].remove(chosen)
    return list(found.values())


def _fault(path: str, text: str, change: Change) -> Fault:
    sources = text, applied(text, change)
    return Fault(path, change, *(each.splitlines()[change.line - 1].strip() for each in sources))


def _is_effective(source: str, change: Change) -> bool:
    """Whether the changed text compiles to another program."""
    try:
        after = ast.parse(applied(source, change))
        compile(after, "fault", "exec")
    except (SyntaxError, ValueError):
        return False
    return ast.dump(after) != ast.dump(ast.parse(source))


def _lines(text: str) -> int:
    return len(text.splitlines())


def _folder(path: str) -> str:
    return "/".join(path.split("/")[:-1][:2])
