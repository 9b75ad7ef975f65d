"""One page in HTML about a run: what was run, its findings, results, files, and how to go on."""

import re
import shlex
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from mpilbm import __version__
from mpilbm.case.case import Case
from mpilbm.core.errors import CommandError, MpilbmError
from mpilbm.core.units import counted, duration, in_words
from mpilbm.model.findings import NOTE
from mpilbm.model.limits import LIKELY, POSSIBLY
from mpilbm.outputs.core.summary import DONE
from mpilbm.view.results import Run
from mpilbm.view.results.state import NOT_STARTED, RunState, whole

Rows = list[tuple[str, str, str]]  # (quantity, value, verdict)
STABLE = "stable until its last step"
GROUP = re.compile(r"_[0-9]{9,}(?=\.)")  # the step in a file name


def content(run: Run) -> dict[str, Any]:
    """The values of the template run.html."""
    summary = run.summary
    case, problem = None, ""
    try:
        case = run.case
    except MpilbmError as error:  # such as a case of another version
        problem = f"the case cannot be read again: {str(error).splitlines()[0]}"
    pictures, sentences, missing = _pictures(run)
    state = run.state
    tables = [
        ("Run", _run_rows(summary, state)),
        ("Speed", _speed_rows(summary) if state.ended else _rate_rows(state)),
        *(_flow_rows(run, case, state.status == DONE) if case is not None else []),
    ]
    return {
        "title": run.title,
        "status": state.where if state.status in (DONE, NOT_STARTED) else state.sentence,
        "level": state.level,
        "reason": state.reason or problem,
        "tables": [(name, rows) for name, rows in tables if rows],
        "findings": _findings(summary, state),
        "sentences": sentences,
        "pictures": pictures,
        "no_pictures": missing,
        "files": _files(run),
        "commands": _commands(run),
        "case_text": summary.get("case_text", ""),
        "version": summary.get("version", __version__),
        "date": date.today().isoformat(),
    }


def _findings(summary: dict[str, Any], state: RunState) -> list[tuple[str, str, str]]:
    """(severity, where, message); after a complete run a prediction of stability is a note."""
    found = summary.get("findings")
    rows = [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    texts = []
    for each in rows:
        severity, where, message = (str(each.get(k, "")) for k in ("severity", "where", "message"))
        if state.status == DONE and _predicts(message):
            severity = NOTE
            message = f"predicted before the run, which was {STABLE}: {message}"
        texts.append((severity, where, message))
    return texts


def _run_rows(summary: dict[str, Any], state: RunState) -> Rows:
    size, halo = summary.get("size"), summary.get("halo")
    formats, of = summary.get("precision"), ""
    if state.last and state.last != state.step:
        of = f" of {state.last:,}"
    if state.first:
        of += f", continued from {state.first:,}"
    facts = {
        "case file": summary.get("case"),
        "lattice": summary.get("lattice"),
        "cells": " x ".join(map(str, size)) if isinstance(size, list) else None,
        "steps": f"{state.step:,}{of}" if summary else None,
        "ranks": summary.get("ranks"),
        "device": summary.get("device"),
        "layout": _because(summary.get("layout"), summary.get("layout_why")),
        "halo": _because(halo.get("name"), halo.get("why")) if isinstance(halo, dict) else None,
        "precision": (
            f"computes in {formats.get('compute')}, stores {formats.get('storage')}"
            if isinstance(formats, dict)
            else None
        ),
    }
    return [(name, str(value), "") for name, value in facts.items() if value is not None]


def _because(what: Any, why: Any) -> str | None:
    return None if what is None else f"{what}: {why}" if why else str(what)


def _rate_rows(state: RunState) -> Rows:
    """The speed by the last file of a run that is active or was killed."""
    if not state.rate:
        return []
    return [
        ("time until the newest file", duration(state.seconds), ""),
        ("speed", f"about {state.rate:.3g} steps per second", ""),
    ]


def _speed_rows(summary: dict[str, Any]) -> Rows:
    """Time and speed, compared with the bandwidth of a copy where it was measured."""
    forms = (
        ("wall_seconds", "time of the run", "{:.4g} s"),
        ("stepping_seconds", "time of the steps", "{:.4g} s"),
        ("glups", "speed", "{:.4g} GLUPS (10^9 cells per second)"),
        ("expected_glups", "speed expected from the layout", "{:.3g} GLUPS"),
        ("output_share", "share of outputs", "{:.1%}"),
        ("copy_bandwidth", "bandwidth of a copy", "{:.4g} bytes/s"),
        ("copy_share", "bytes of the steps, relative to a copy", "{:.1%}"),
        ("halo_hidden", "halo exchange behind the computation", "{:.0%}"),
    )
    values = ((name, form, summary.get(key)) for key, name, form in forms)
    return [(name, form.format(n), "") for name, form, n in values if isinstance(n, int | float)]


def _flow_rows(run: Run, case: Case, done: bool) -> list[tuple[str, Rows]]:
    """Derived numbers of each fluid, and the units; `done`: whether the run is complete.

    Without advice on other collisions, which needs the content of input files: it is a part of the
    findings, which the run has recorded. A prediction of stability is omitted after a complete run.
    """
    from mpilbm.run.preflight.report import fluid_lines, unit_lines

    def never(lattice: str, collision: str) -> bool:
        return False

    speed, source = _largest_speed(run)
    found = [
        (f"Fluid {fluid.label}".strip(), fluid_lines(case, fluid, speed, source, never))
        for fluid in case.fluids
    ]
    if case.units:
        found.append(("Units", unit_lines(case, case.units, speed, source)))

    def verdict(text: str) -> str:
        return STABLE if done and _predicts(text) else text

    return [
        (name, [(line.what, line.value, verdict(line.verdict)) for line in lines])
        for name, lines in found
    ]


def _predicts(text: str) -> bool:
    """Whether a verdict or a finding expects the flow to be unstable."""
    return any(verdict in text for verdict in (POSSIBLY, LIKELY))


def _largest_speed(run: Run) -> tuple[float, str]:
    """The largest speed of the run in lattice units, and of what it is the largest."""
    if "monitor" in run.tables:
        table = run.table("monitor")
        speeds = table["max_speed"] if "max_speed" in table else np.empty(0)
        if np.isfinite(speeds).any():
            return float(speeds[np.isfinite(speeds)].max()), "the largest in monitor.csv"
    if len(run.steps) and "u" in run.fields:
        planes = range(run.snapshots.head.shape[-run.dimensions])
        each = (run.field("u", region=plane, lattice_units=True).astype(float) for plane in planes)
        speed = max(float((u**2).sum(axis=-1).max()) for u in each) ** 0.5
        return (speed, "the largest in the last snapshot") if np.isfinite(speed) else (0.0, "")
    return 0.0, ""


def _pictures(run: Run) -> tuple[list[tuple[str, bytes]], list[str], str]:
    """Pictures by name, lines of text, and why there are no pictures."""
    from mpilbm.view.plot.pictures import Choice, draw

    with TemporaryDirectory() as folder:
        try:
            files, sentences = draw(run.directory, Path(folder), choice=Choice(across=1))
        except CommandError as error:
            return [], [], f"No pictures: {error}"
        found = [(path.stem.replace("_", " "), path.read_bytes()) for path in files]
    return found, sentences, ""


def _files(run: Run) -> list[tuple[str, int, str, str]]:
    """For each output its files: how many, their size, and the first and last step."""
    groups: dict[str, list[Path]] = {}
    for path in run.paths:
        groups.setdefault(GROUP.sub("_<step>", path.name), []).append(path)
    rows = []
    for name, paths in sorted(groups.items()):
        found = [re.search("[0-9]{9,}", path.name) for path in paths if "<step>" in name]
        steps = sorted(int(match[0]) for match in found if match)
        size = in_words(sum(map(_size, paths)))
        text = "" if not steps else f"{steps[0]:,}" + f" to {steps[-1]:,}" * (len(steps) > 1)
        rows.append((name, len(paths), size, text))
    return rows


def _size(path: Path) -> int:
    """Bytes of a file; 0 if a run that is still active has removed it."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _commands(run: Run) -> list[tuple[str, str]]:
    """What can be done next, and the command for it."""
    folder, summary = shlex.quote(str(run.directory)), run.summary
    file = shlex.quote(str(summary.get("case", "case.toml")))
    given = summary.get("settings")  # keys that --set replaced
    texts = [each for each in given if isinstance(each, str)] if isinstance(given, list) else []
    settings = "".join(f" --set {shlex.quote(text)}" for text in texts)
    command = f"mpilbm run {file}{settings} --output {folder}"
    again = (
        "The run has no checkpoint, so it can only be repeated; add [[output]] with "
        'name = "checkpoint" to the case:',
        f"{command} --overwrite",
    )
    number = counted(len(run.steps), "snapshot")
    python = f"import mpilbm\nrun = mpilbm.open_run({str(run.directory)!r})"
    return [
        _continued(run, f"{command} --restart auto") if run.checkpoints else again,
        ("Draw the pictures as files:", f"mpilbm plot {folder}"),
        (f"Read the results in Python ({number}):", python),
    ]


def _continued(run: Run, command: str) -> tuple[str, str]:
    """How to continue from the last checkpoint: to the end of the run, or beyond it."""
    summary, ranks = run.summary, whole(run.summary, "ranks") or 1
    last = int(re.findall("[0-9]+", run.checkpoints[-1].stem)[-1])
    text = f"Continue from step {last:,} (on any number of ranks):"
    if summary.get("status") == "unstable":
        text = (
            "The flow became unstable: change what the reason above names, then continue from step "
            f"{last:,}:"
        )
    steps, target = whole(summary, "steps"), whole(summary, "last_step")
    if steps is not None and steps == target:  # the run is complete
        command += f" --set run.steps={2 * steps}"
    return text, f"mpirun -n {ranks} {command}"
