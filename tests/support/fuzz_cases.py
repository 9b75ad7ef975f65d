"""Random case files, from the schema or by mutation of valid ones; a seed determines the file."""

import random
import tomllib
from functools import cache
from pathlib import Path

from mpilbm.case.case import schema
from mpilbm.case.new_case import TEXT, VARIANTS
from mpilbm.core import printable
from support import fuzz_values as values

FACES = ("x-", "x+", "y-", "y+", "z-", "z+")
NESTINGS = (60, 250, 1200)


@cache
def bases() -> list[dict]:
    """Valid cases in small boxes: those of `cases/`, of `mpilbm new`, and of fuzz_bases.toml."""
    folder = Path(__file__).parents[2] / "cases"
    texts = [path.read_text() for path in sorted(folder.glob("*.toml"))]
    texts += [TEXT.format(name="a", file="a", **each) for each in VARIANTS.values()]
    texts += (Path(__file__).with_name("fuzz_bases.toml")).read_text().split("#----\n")
    found = []
    for text in texts:
        tables = tomllib.loads(text)
        size = [n if isinstance(n, int) else 8 for n in tables["domain"]["size"]]  # "4 cm"
        tables["domain"]["size"] = [min(n, 8 if axis == 0 else 6) for axis, n in enumerate(size)]
        for body in tables.get("body", ()):
            if body["label"] in ("rock", "sphere", "wall"):
                body.pop("mask", None)
                body["shape"] = {"name": "sphere", "centre": [4, 3, 3], "radius": 1.2}
        found.append(tables)
    return found


@cache
def schema_of_tables() -> dict:
    """The schema with all names registered at the first call."""
    return schema()


class Maker:
    """A case file from a seed: its bytes `data`, the `settings` for --set, and the `ranks`."""

    def __init__(self, seed: str):
        self.random = random.Random(seed)
        self.raw: list[str] = []
        self.dimensions = self.random.choice((2, 2, 3))
        way = self.random.random()
        if way < 0.3:
            tables = self.from_schema()
            self.mutate(tables, self.random.choice((0, 0, 1)))
        else:
            tables = copy_of(self.random.choice(bases()))
            self.dimensions = len(tables["domain"]["size"])
            for _ in range(self.random.choice((0, 1, 2, 4))):
                self.vary(tables)
            self.mutate(tables, self.random.choice((1, 1, 2, 3, 5)) if 0.45 < way < 0.92 else 0)
        text = self.text(tables)
        self.data = self.spoil(text) if way > 0.92 else text.encode("utf-8", "surrogatepass")
        few = self.random.random() < 0.15
        self.settings = [self.setting(tables) for _ in range(self.random.choice((1, 2)) * few)]
        self.ranks = self.random.choice((1, 1, 2, 5))

    def pick(self, entries):
        """A random entry."""
        return self.random.choice(list(entries))

    # ---------------------------------------------------------------------------------- values

    def odd(self, key: str = ""):
        """A value that is likely to be wrong."""
        kinds = (
            lambda: self.pick(values.ODD),
            lambda: self.pick(values.HOSTILE + values.FORMULAS),
            lambda: self.pick(values.UNITS),
            lambda: self.pick(values.FILES),
            lambda: [self.odd() for _ in range(self.random.choice((1, 2, 3, 3)))],
            lambda: {self.pick(values.TEXTS): self.odd(), key: self.odd()},
            self.nested,
            lambda: [self.pick(values.NUMBERS) for _ in range(self.dimensions)],
            lambda: [self.pick(values.HOSTILE) for _ in range(self.dimensions)],
        )
        weights = (8, 3, 3, 2, 2, 1, 0.5, 2, 1)
        return self.random.choices(kinds, weights)[0]()

    def nested(self) -> str:
        """A placeholder of raw TOML with nested lists or tables."""
        depth = self.pick(NESTINGS)
        opened, closed = self.pick((("[", "]"), ("{a=", "}"), ('{name="union",of=[', "]}")))
        self.raw.append(opened * depth + "1" + closed * depth)
        return f"@raw{len(self.raw) - 1}@"

    def number(self, key: str):
        """A usual number of this key, sometimes an unusual one or one with a unit."""
        chance = self.random.random()
        if chance < 0.03:
            return self.pick(values.NUMBERS)
        if chance < 0.05:
            return self.pick(values.UNITS)
        return self.pick(values.USUAL.get(key, (0.5, 1, 1.5)))

    def string(self, key: str) -> str:
        """A usual text of this key, sometimes an arbitrary one."""
        if self.random.random() < 0.05:
            return self.pick(values.TEXTS + values.HOSTILE)
        if key in ("mask", "file"):
            return self.pick(values.FILES)
        if key in values.NAMES:
            return self.pick(values.NAMES[key])
        return self.pick(values.FORMULAS if self.random.random() < 0.9 else values.FILES)

    # ---------------------------------------------------------------------------------- schema

    def from_schema(self) -> dict:
        """Tables that the schema mostly allows; a face has one boundary, so that many are valid."""
        whole = schema_of_tables()
        tables = self.table(whole, whole["$defs"])
        planar = {2: ("D2Q9",), 3: ("D3Q13", "D3Q15", "D3Q19", "D3Q27")}[self.dimensions]
        if self.random.random() < 0.95:
            tables["lattice"] = {"name": self.pick(planar)}
            tables["fluid"] = {"viscosity": self.number("viscosity")}
        for key in ("layout", "coupling", "collision", "backend", "halo", "units", "force"):
            if self.random.random() < 0.8:
                tables.pop(key, None)
        faces = list(FACES[: 2 * self.dimensions])
        closed = [self.random.random() < 0.4 for _ in range(self.dimensions)]
        tables["domain"]["periodic"] = closed
        left = [f for f in faces if not closed[FACES.index(f) // 2]]
        for boundary in tables.get("boundary", ()):
            for key in ("wetting", self.pick(("velocity", "rho"))):
                boundary.pop(key, None)
            count = self.random.randint(1, max(1, len(left)))
            boundary["where"], left = left[:count], left[count:]
        if left and self.random.random() < 0.9:
            tables.setdefault("boundary", []).append({"name": "bounce_back", "where": left})
        tables["boundary"] = [b for b in tables.get("boundary", ()) if b["where"]]
        return tables

    def table(self, part: dict, definitions: dict, depth: int = 0) -> dict:
        """A table of a schema with all required and some optional keys."""
        required, found = part.get("required", ()), {}
        for key, inner in part.get("properties", {}).items():
            if key in required or self.random.random() < (0.35 if depth == 0 else 0.25):
                found[key] = self.value(inner, definitions, key, depth + 1)
        if isinstance(part.get("additionalProperties"), dict):
            found[self.pick(("a", "fluid", "b"))] = self.number("rho")
        return {key: value for key, value in found.items() if value is not None}

    def value(self, part: dict, definitions: dict, key: str, depth: int):
        """A value allowed by a part of the schema."""
        if "$ref" in part:
            return self.value(definitions[part["$ref"].rpartition("/")[2]], definitions, key, depth)
        if "const" in part:
            return part["const"]
        if "enum" in part:
            return self.pick(part["enum"])
        forms = part.get("oneOf") or part.get("anyOf")
        if forms:
            if self.random.random() < 0.95:  # few quantities, which are wrong in most places
                forms = [form for form in forms if "pattern" not in form] or forms
            return self.value(self.pick(forms), definitions, key, depth)
        kind = part.get("type")
        if kind == "object":
            return self.table(part, definitions, depth)
        if kind == "array":
            return self.array(part, definitions, key, depth)
        if kind == "string":
            return self.pick(values.UNITS) if "pattern" in part else self.string(key)
        if kind in ("integer", "number"):
            return self.number(key)
        return self.random.random() < 0.5 if kind == "boolean" else None

    def array(self, part: dict, definitions: dict, key: str, depth: int) -> list:
        """A list allowed by a part of the schema; lists of numbers have an entry per dimension."""
        if "prefixItems" in part:
            return [self.value(each, definitions, key, depth) for each in part["prefixItems"]]
        least = part.get("minItems", 0)
        count = self.random.randint(least, max(least, 2)) if depth < 4 else max(least, 2)
        if "number" in str(part["items"])[:200] or key in ("size", "periodic", "velocity"):
            count = self.dimensions
        return [self.value(part["items"], definitions, key, depth) for _ in range(count)]

    # -------------------------------------------------------------------------------- mutation

    def vary(self, tables: dict) -> None:
        """Change one value to another usual one, or a name together with its required keys."""
        holder, key = self.pick(places(tables))
        here = holder[key]
        if isinstance(here, bool):
            holder[key] = not here
        elif isinstance(here, int | float) and isinstance(key, str):
            holder[key] = self.number(key)
        elif isinstance(here, int | float):
            holder[key] = self.pick((here, here * 1.01, self.pick(values.FORMULAS), 2))
        elif key == "name" or (isinstance(here, dict) and "name" in here):
            kinds = {"lattice": "lattice", "collision": "collision", "layout": "layout"}
            table = next((t for k, t in tables.items() if k in kinds and t is holder), None)
            name = next((k for k in kinds if tables.get(k) is holder), None)
            if table is not None:
                part = schema_of_tables()["properties"][name]
                tables[name] = self.value(part, schema_of_tables()["$defs"], name, 2)
        elif isinstance(here, str):
            holder[key] = self.string(key) if isinstance(key, str) else here

    def mutate(self, tables: dict, count: int) -> None:
        """Change `count` random entries of the tables."""
        for _ in range(count):
            holder, key = self.pick(places(tables))
            here, chance = holder[key], self.random.random()
            if chance < 0.45:
                holder[key] = self.odd(key if isinstance(key, str) else "")
            elif chance < 0.6:
                last = key if isinstance(key, str) else ""
                holder[key] = self.string(last) if self.random.random() < 0.5 else self.number(last)
            elif chance < 0.7:
                del holder[key]
            elif chance < 0.78:
                other, name = self.pick(places(tables))
                holder[key] = copy_of(other[name])
            elif chance < 0.84 and isinstance(holder, list):
                holder.append(copy_of(here))
            elif chance < 0.9 and isinstance(holder, dict):
                holder[self.misspelt(key)] = holder.pop(key)
            elif chance < 0.95 and isinstance(holder, dict):
                holder[self.pick(values.TEXTS)] = self.odd()
            else:
                holder[key] = self.pick(([here], {"name": here}, {str(key): here}, str(here)))

    def misspelt(self, key: str) -> str:
        """A key with two letters swapped, one missing, in capitals, or with an "s" added."""
        k = self.random.randrange(max(1, len(key) - 1))
        swapped = key[:k] + key[k + 1 : k + 2] + key[k : k + 1] + key[k + 2 :]
        return self.pick((swapped, key[:k] + key[k + 1 :], key.upper(), key + "s"))

    # ------------------------------------------------------------------------------------ text

    def text(self, tables: dict) -> str:
        """The tables as TOML."""
        return self.with_raw(printable.dumps(tables))

    def with_raw(self, text: str) -> str:
        """The text with the placeholders of `nested` replaced; changed placeholders remain."""
        for k, raw in enumerate(self.raw):
            text = text.replace(f'"@raw{k}@"', raw)
        return text

    def spoil(self, text: str) -> bytes:
        """The text with an error of typing or of the encoding, as bytes."""
        lines = text.splitlines()
        k = self.random.randrange(len(lines))
        line = lines[k]
        at = self.random.randrange(len(line) + 1)
        changes = [
            [line[:at]],
            [line, line],
            [],
            [line.replace('"', self.pick(values.QUOTES))],
            [line.replace(" = ", self.pick((": ", " == ", " ", "=")))],
            [line[:at] + self.pick(values.CHARACTERS) + line[at:]],
            [self.pick(values.LINES), line],
            [line.replace(".", ",")],
        ]
        lines[k : k + 1] = self.pick(changes)
        del lines[k + 1 if self.random.random() < 0.1 else len(lines) :]
        end = self.pick(("\n", "\n", "\r\n", "\r"))
        data = end.join(lines).encode(self.pick(("utf-8",) * 6 + ("utf-8-sig", "utf-16")))
        if self.random.random() < 0.2:
            at = self.random.randrange(len(data) + 1)
            data = data[:at] + self.pick(values.BYTES) + data[at:]
        return data

    def setting(self, tables: dict) -> str:
        """A setting for --set: a path, usually one of the tables, and a value."""
        path, here = [], tables
        while isinstance(here, dict | list) and here and self.random.random() < 0.9:
            key = self.pick(here if isinstance(here, dict) else range(len(here)))
            path.append(str(key))
            here = here[key]
        usual = path and self.random.random() < 0.8
        name = ".".join(path) if usual else self.pick(values.PATHS)
        value = self.odd()
        bare = isinstance(value, str) and self.random.random() < 0.6
        text = value if bare and "@raw" not in value else self.with_raw(printable.inline(value))
        text = text.replace("\x00", "")
        form = self.random.choices(("{}={}", "{}", "{} = {}", "{}={}\nb = 1"), (8, 1, 2, 1))[0]
        return form.format(name, text)


def places(tables) -> list[tuple]:
    """(table or list, key) of each value at any depth."""
    found = []
    keys = tables if isinstance(tables, dict) else range(len(tables))
    for key in keys:
        found.append((tables, key))
        if isinstance(tables[key], dict | list):
            found += places(tables[key])
    return found


def copy_of(value):
    """A deep copy of tables and lists."""
    if isinstance(value, dict):
        return {key: copy_of(each) for key, each in value.items()}
    return [copy_of(each) for each in value] if isinstance(value, list) else value
