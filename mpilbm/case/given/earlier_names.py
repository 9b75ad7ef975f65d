"""Keys of a case that an earlier version named differently, see Parameters.earlier."""

from typing import Any, get_args

from mpilbm.case.quantities import fields_of, selected
from mpilbm.case.tables.case_file import CaseFile
from mpilbm.core.registry import Parameters
from mpilbm.model.findings import NOTE, Finding


def with_present_names(tables: dict) -> tuple[dict, list[str], list[Finding]]:
    """The tables of a case with the present names of all keys, the problems, and a note on each."""
    problems: list[str] = []
    notes: list[Finding] = []

    def named(value: Any, kind: Any, path: str) -> Any:
        kind, _ = selected(value, kind, None)
        if isinstance(value, dict):
            given = renamed(value, kind, path)
            types = fields_of(given, kind)
            return {
                key: named(each, types.get(key, Any), f"{path}{key}.")
                for key, each in given.items()
            }
        if isinstance(value, list):
            entry = (*get_args(kind), Any)[0]
            return [named(each, entry, f"{path}{number}.") for number, each in enumerate(value)]
        return value

    def renamed(table: dict, kind: Any, path: str) -> dict:
        is_table = isinstance(kind, type) and issubclass(kind, Parameters)
        earlier = kind.earlier if is_table else {}
        for old in earlier.keys() & table.keys():
            new = earlier[old]
            if new in table:
                problems.append(
                    f"{path}{old}: is the earlier name of {new}, which is also given; remove {old}"
                )
            else:
                notes.append(
                    Finding(NOTE, f"{path}{old}", f"is the earlier name of {new}; write {new}")
                )
        return {
            earlier.get(key, key): each
            for key, each in table.items()
            if key not in earlier or earlier[key] not in table
        }

    return named(tables, CaseFile, ""), problems, notes
