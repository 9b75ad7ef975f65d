"""Figures of scalings, one for each question; a figure shows at most MOST series."""

from collections.abc import Callable, Sequence
from textwrap import fill
from typing import Any, NamedTuple

from mpilbm.outputs import drawing as canvas
from mpilbm.view.report.scaling_series import (
    MOST,
    Row,
    Series,
    by_box,
    chosen,
    common,
    fastest,
    labels,
    step_seconds,
)

# of Okabe & Ito 2008, distinguishable with any colour vision
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#8c6d46")
MARKERS = "osD^vP*X"
PARTS = {"edge": "edge planes", "bulk": "other planes", "exchange": "visible exchange"}
SIZE = 5.6  # inches, the width
NEAR = 0.3  # limit / time of a step; below it, the limit is not drawn
LETTERS = 84  # of the legend, that fit next to each other
APART = 0.03  # of the points of two series at the same number of ranks, as a factor of 2^APART


class Drawn(NamedTuple):
    """A figure, its file name, the question that it answers, and what it shows."""

    name: str
    title: str
    text: str
    figure: Any


def draw(found: Sequence[Series]) -> list[Drawn]:
    """The figures for which there are measurements."""
    kinds = {kind: [each for each in found if each.kind == kind] for kind in ("weak", "strong")}
    made = (
        weak(fastest(kinds["weak"])),
        strong(fastest(kinds["strong"])),
        transports(found),
        parts(fastest(found)),
    )
    return [each for each in made if each]


def weak(found: Sequence[Series]) -> Drawn | None:
    """Efficiency over ranks."""
    shown = chosen([each for each in found if any(row["efficiency"] for row in each.rows)])
    if not shown:
        return None
    figure, panel = _panel(shown)
    extent = [100.0]
    for style, each in zip(_styles(shown), shown, strict=True):
        rows = [row for row in each.rows if row["efficiency"]]
        shares = [_shares(row) for row in rows]
        _points(panel, rows, shares, style)
        extent += [value for middle, low, high in shares for value in (middle - low, middle + high)]
        extent += _model_line(panel, each, style, lambda known, n: 100 * known.at(n).efficiency(n))
    margin = max(1.0, 0.06 * (max(extent) - min(extent)))
    panel.axhline(100, color="0.6", lw=0.8, zorder=0)
    panel.set(ylabel="efficiency, %", ylim=(min(extent) - margin, max(extent) + margin))
    _ranks_axis(panel, shown)
    text = (
        "Speed of N ranks divided by N times the speed of one rank, with a box that grows with "
        f"the number of ranks. {_shown(shown, found)}"
    )
    return Drawn("scaling_weak", "Weak scaling: what does each further rank cost?", text, figure)


def strong(found: Sequence[Series]) -> Drawn | None:
    """Time of a step over ranks, the ideal time, and the limit of the model."""
    shown = chosen([each for each in found if any(row["ranks"] > 1 for row in each.rows)])
    if not shown:
        return None
    figure, panel = _panel(shown)
    limited = False
    for style, each in zip(_styles(shown), shown, strict=True):
        _points(panel, each.rows, [_times(row) for row in each.rows], style)
        ranks = [1, *(row["ranks"] for row in each.rows if row["ranks"] > 1)]
        if each.alone:
            one = 1e3 * each.last["fluid_cells"] / each.alone / 1e9
            panel.plot(ranks, [one / n for n in ranks], ":", color=style["color"], lw=1)
        _model_line(panel, each, style, lambda known, n: 1e3 * known.seconds(n))
        limit = 0.0  # ms of a step without cells, launches and exchange
        if each.model is not None:
            model = each.model.at(max(each.model.ranks, default=1))
            limit = 1e3 * (2 * model.overhead + model.exchange())
        if limit > NEAR * 1e3 * step_seconds(each.last):
            panel.axhline(limit, color=style["color"], lw=0.8, ls="-.")
            limited = True
    panel.set(yscale="log", ylabel="time of a step, ms")
    _ranks_axis(panel, shown, least=1)
    text = "A box of fixed size on N ranks. Dotted: the time of one rank alone divided by N. "
    if limited:
        text += (
            "Dash-dotted: the limit, the time of a step of the model without cells: launches and "
            "the exchange. "
        )
    text += _shown(shown, found)
    return Drawn("scaling_strong", "Strong scaling: how short can a step be?", text, figure)


def transports(found: Sequence[Series]) -> Drawn | None:
    """Efficiency of the halo transports side by side, for boxes measured with several."""
    several = []
    for group in by_box(each for each in found if each.halo and each.last["efficiency"]):
        most = max(each.last["ranks"] for each in group)
        alike = [each for each in group if each.last["ranks"] == most]
        several += [alike] if len(alike) > 1 else []
    several = sorted(several, key=lambda group: -len(group))[:MOST]
    if not several:
        return None
    firsts = [group[0] for group in several]
    halos = list(dict.fromkeys(each.halo for group in several for each in group))
    figure, panel = _figure(1.0 + 0.22 * sum(map(len, several)) + 0.13 * len(several))
    place, ticks, right = 0.0, [], 100.0
    for group in several:
        ticks.append(place + (len(group) - 1) / 2)
        for each in sorted(group, key=lambda one: halos.index(one.halo)):
            middle, low, high = _shares(each.last)
            errors: dict[str, Any] = {"xerr": [[low], [high]], "error_kw": {"lw": 0.8}}
            colour = COLOURS[halos.index(each.halo)]
            panel.barh(place, middle, 0.8, color=colour, label=each.halo, **errors)
            right, place = max(right, middle + high), place + 1
        place += 0.6
    panel.set_yticks(ticks, _lines(firsts))
    panel.axvline(100, color="0.6", lw=0.8, zorder=0)
    panel.set(xlabel="efficiency, %", xlim=(0, right * 1.03))
    panel.invert_yaxis()
    _legend(panel)
    text = (
        "The same box with each halo transport, at the largest number of ranks. Bars: the slowest "
        f"and the fastest repeat. All: {common(firsts)}."
    )
    return Drawn("scaling_transports", "Which halo transport is fastest?", text, figure)


def parts(found: Sequence[Series]) -> Drawn | None:
    """The time of a step by its parts, at the largest number of ranks."""
    split = [each for each in found if each.last.get("split")]
    shown = chosen(split)
    if not shown:
        return None
    figure, panel = _figure(1.4 + 0.4 * len(shown))
    most = 100.0
    for place, each in enumerate(shown):
        times, left = each.last["split"], 0.0
        total = sum(times[part] for part in PARTS)
        for colour, part in zip(COLOURS, PARTS, strict=False):
            share = 100 * times[part] / total
            label = None if place else PARTS[part]
            panel.barh(place, share, 0.6, left=left, color=colour, label=label)
            left += share
        host = 100 * times["host"] / total
        panel.plot(host, place, "|k", ms=11, mew=2, label=None if place else "host, concurrent")
        beside = panel.get_yaxis_transform()
        text = f"{1e3 * total:.3g} ms"
        panel.text(1.02, place, text, va="center", fontsize=8.5, transform=beside)
        most = max(most, host)
    panel.set_yticks(range(len(shown)), _lines(shown))
    panel.set(xlabel="share of a step, %", xlim=(0, 1.02 * most))
    panel.invert_yaxis()
    _legend(panel)
    text = (
        "Steps that were launched one by one, and their time at the right. The exchange runs while "
        "the other planes are computed; visible is what takes longer. "
        f"{_shown(shown, split, bars=False)}"
    )
    return Drawn("scaling_parts", "Where does the time of a step go?", text, figure)


# ------------------------------------------------------------------------------------- parts


def _figure(height: float) -> tuple[Any, Any]:
    """A figure with one panel."""
    figure = canvas.empty(SIZE, height)
    panel = figure.add_subplot()
    panel.spines[["top", "right"]].set_visible(False)
    panel.tick_params(labelsize=8.5)
    return figure, panel


def _panel(shown: Sequence[Series]) -> tuple[Any, Any]:
    figure, panel = _figure(3.3 + 0.2 * len(shown))
    panel.grid(alpha=0.25)
    return figure, panel


def _styles(shown: Sequence[Series]) -> list[dict[str, Any]]:
    each = zip(COLOURS, MARKERS, labels(shown), strict=False)
    return [{"color": c, "marker": m, "label": name, "zorder": 3} for c, m, name in each]


def _lines(shown: Sequence[Series]) -> list[str]:
    """Names of bars, on several lines."""
    names = zip(shown, labels(shown, halo=False), strict=True)
    return [fill(f"{each.kind}, {each.last['ranks']} ranks: {name}", 30) for each, name in names]


def _legend(panel: Any) -> None:
    """The legend below the figure, each name once, in as many columns as fit."""
    handles, names = panel.get_legend_handles_labels()
    known = dict(zip(names, handles, strict=True))
    columns = max(1, min(4, LETTERS // (6 + max(map(len, known)))))
    style = {"loc": "outside lower center", "fontsize": 8, "frameon": False}
    panel.figure.legend(known.values(), known, ncols=columns, **style)


Point = tuple[float, float, float]  # a value, and its distances to the lowest and highest repeat


def _shares(row: Row) -> Point:
    """Efficiency in percent."""
    return _point(row, lambda glups: 100 * row["efficiency"] * glups / row["glups"])


def _times(row: Row) -> Point:
    """Milliseconds of a step."""
    return _point(row, lambda glups: 1e3 * row["fluid_cells"] / glups / 1e9)


def _point(row: Row, value: Callable[[float], float]) -> Point:
    """A value that depends on the speed, for the median and for the ends of the repeats."""
    middle = value(row["glups"])
    low, high = sorted(map(value, row["spread"]))
    return middle, max(0.0, middle - low), max(0.0, high - middle)


def _points(
    panel: Any, rows: Sequence[Row], points: Sequence[Point], style: dict[str, Any]
) -> None:
    middles, lows, highs = zip(*points, strict=True)
    beside = 2 ** (APART * (MARKERS.index(style["marker"]) - MOST / 2))
    ranks = [beside * row["ranks"] for row in rows]
    panel.errorbar(ranks, middles, (lows, highs), lw=1.2, ms=4.5, capsize=2, **style)


def _model_line(
    panel: Any, each: Series, style: dict[str, Any], value: Callable[[Any, int], float]
) -> list[float]:
    """Draw the model where it holds beyond the measurements, dashed; returns its values."""
    known, last = each.model, each.last["ranks"]
    ranks = [n for n in known.ranks if n >= last] if known else []
    if known is None or len(ranks) < 2:
        return []
    values = [value(known, n) for n in ranks]
    panel.plot(ranks, values, "--", color=style["color"], lw=1)
    return values


def _ranks_axis(panel: Any, shown: Sequence[Series], least: int = 0) -> None:
    """Ticks at the numbers of ranks of measurements and models, also at `least` if given."""
    ranks = sorted({row["ranks"] for each in shown for row in each.rows})
    modelled = {n for each in shown if each.model for n in each.model.ranks if n > ranks[-1]}
    ticks = sorted({*ranks, *modelled, least} - {0})
    panel.set_xscale("log", base=2)
    panel.set_xticks(ticks, [str(n) for n in ticks])
    panel.set_xticks([], minor=True)
    panel.set_xlabel("ranks")
    _legend(panel)


def _shown(shown: Sequence[Series], found: Sequence[Series], bars: bool = True) -> str:
    """What all curves have in common, the meaning of marks, and how many are in tables only."""
    text = "Vertical bars: the slowest and the fastest repeat. " if bars else ""
    if bars and any(
        each.model and max(each.model.ranks, default=0) > each.last["ranks"] for each in shown
    ):
        text += "Dashed: the model. "
    if same := common(shown):
        text += f"All: {same}. "
    if more := len(found) - len(shown):
        text += f"{more} more series are in the tables."
    return text.strip()
