"""What the files of each output contain, so that a restart does not continue them with other data.

The file `outputs.json` in the output folder has, by the names of files, the definition of what they
contain, see Output.contents. A restart with another definition sets the existing files aside, and
the output begins new ones. With a folder of an earlier version, which has no such file, the case in
the checkpoint is compared.
"""

import json
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpilbm.case.case import parse_case
from mpilbm.core.errors import FileSystemError, MpilbmError
from mpilbm.core.files.file_digest import sealed, unsealed
from mpilbm.outputs.core.restart import opened
from mpilbm.storage.files import whole
from mpilbm.storage.own_files import DEFINITIONS, STEADY, expression
from mpilbm.storage.tables.aside import set_aside

if TYPE_CHECKING:
    from mpilbm.case.case import Case
    from mpilbm.outputs import Context

Definition = dict[str, Any]  # as read from JSON
AND = ", "  # between names of files


def prepare_files(context: "Context") -> None:
    """Set files aside whose definition has changed, and record the definitions; on rank 0.

    Called before the outputs are opened. If it is interrupted, the next start does the rest.
    """
    directory, first = context.directory, context.first_step
    now, before = of_case(context.case), _before(context)
    earlier = {AND.join(names): output.earlier for output in context.case.outputs
               for names in output.contents(context.case)}  # fmt: skip
    for names, definition in now.items():
        present = earlier.get(names, {})
        known = {
            present.get(key, key): value for key, value in before.get(names, definition).items()
        }
        if known != definition:
            keys = (key for key in known | definition if known.get(key) != definition.get(key))
            set_aside(_files(directory, names), first, " and ".join(sorted(keys)))
    if before or now:
        with whole(directory / DEFINITIONS) as file:
            file.write(sealed(before | now))


def of_case(case: "Case") -> dict[str, Definition]:
    """The definitions of all files that a restart continues, by the names of these files.

    In the form in which JSON returns them: tuples are lists.
    """
    found = {AND.join(names): definition for output in case.outputs
             for names, definition in output.contents(case).items()}  # fmt: skip
    if case.run.steady:
        found[STEADY] = {"of": case.run.steady.of, "every": case.run.steady.every}
    return json.loads(json.dumps(found))


def _before(context: "Context") -> dict[str, Definition]:
    """The definitions of the files in the folder, as far as they are known."""
    path, checkpoint = context.directory / DEFINITIONS, context.checkpoint
    try:
        return unsealed(path.read_text("utf-8"))
    except FileNotFoundError:
        pass
    except ValueError as error:
        raise FileSystemError(
            f"{path}: is damaged: {error}; if the keys of all [[output]] are those of the files in "
            "this folder, remove it; else move these files elsewhere, too"
        ) from None
    if checkpoint is None or checkpoint.parent.resolve() != context.directory.resolve():
        return {}
    try:
        with opened(checkpoint) as file:
            tables = tomllib.loads(file.attrs["case"])
        return of_case(parse_case(tables, context.case.path))
    except (MpilbmError, tomllib.TOMLDecodeError):  # such as a file that the case names
        return {}


def _files(directory: Path, names: str) -> list[Path]:
    """The existing files with these names, which have <step> for variable parts."""
    form = re.compile("|".join(map(expression, names.split(AND))))
    return sorted(path for path in directory.iterdir() if form.fullmatch(path.name))
