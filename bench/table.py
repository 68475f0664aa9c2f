"""From the lines of a cell to a row of the table, as text and as Markdown."""
from dataclasses import dataclass
import statistics

import cells
from rounds import middle, ratios


@dataclass
class Row:
    cell: object
    ours_us: float
    base_us: float
    speed: tuple  # median and quartiles
    again: float  # A/A: a second run of the library against the first
    cpu: float  # of one I/O, against the baseline's
    p99: float  # likewise

    def misses(self):
        """What it falls short of, in words."""
        c, out = self.cell, []
        if c.extra:
            return out
        if round(self.speed[0], 2) < round(c.floor, 2):
            out.append(f"speed {self.speed[0]:.2f}, floor {c.floor:.2f}: {100 * (1 - self.speed[0] / c.floor):.0f} % short")
        if round(self.cpu, 2) > cells.CPU_FLOOR:
            out.append(f"CPU per I/O {self.cpu:.2f} of the baseline's")
        if c.tail and round(self.p99, 2) > 1:
            out.append(f"p99 {self.p99:.2f} of the baseline's")
        return out

    def verdict(self):
        if self.cell.extra:
            return ""
        if self.misses():
            return "MISS"
        return "aim" if self.speed[0] >= self.cell.aim else "ok"


def judge(cell, lines):
    if cell.metric == "iops":
        speed, again = ratios(lines, "ours", "baseline", "iops"), ratios(lines, "again", "ours", "iops")
    else:
        speed, again = ratios(lines, "baseline", "ours", "p50_us"), ratios(lines, "ours", "again", "p50_us")
    half = lambda name: statistics.median(line["p50_us"] for line in lines[name])
    return Row(cell, half("ours"), half("baseline"), middle(speed), middle(again)[0],
               middle(ratios(lines, "ours", "baseline", "cpu_us_per_io"))[0],
               middle(ratios(lines, "ours", "baseline", "p99_us"))[0])


def _fields(r):
    c = r.cell
    return (c.name, f"{r.ours_us:.4g}", f"{r.base_us:.4g}", f"{r.speed[0]:.2f}", f"{r.speed[1]:.2f}..{r.speed[2]:.2f}",
            f"{r.again:.2f}", "" if c.extra else f"{c.floor:.2f}", "" if c.extra else f"{c.aim:.2f}",
            f"{r.cpu:.2f}", f"{r.p99:.2f}", r.verdict())


TITLES = ("case", "p50 us", "baseline us", "speed-up", "quartiles", "A/A", "floor", "aim", "CPU/IO", "p99", "")
WIDTHS = (-30, 9, 11, 8, 14, 5, 6, 6, 6, 6, -4)


def _text(fields):
    return " ".join(f.ljust(-w) if w < 0 else f.rjust(w) for f, w in zip(fields, WIDTHS))


def heading():
    return _text(TITLES)


def line(row):
    return _text(_fields(row)) + ("" if row.cell.engine == "io_uring" else " (sync engine)")


def rows(result):
    known = {(c.group, c.name): c for c in cells.CELLS}
    return [judge(known[key], e["lines"]) for e in result["cells"] if (key := (e["group"], e["name"])) in known]


def honest(result):
    """A sentence about the baseline, or an empty one."""
    h = result["honesty"]
    if not h:
        return ""
    ratio = middle(ratios(h["lines"], "baseline", "ceiling", "p50_us"))[0]
    word = "honest" if ratio <= h["most"] else "TOO SLOW: the table is worth nothing"
    return f"The baseline takes {ratio:.2f} of the ceiling's time at {h['cell']} (at most {h['most']:.2f}): {word}."


def load_lines(result):
    for key, most, what in cells.LOAD:
        if result["load"]:
            got = statistics.median(line[key] for line in result["load"])
            yield f"{what}: {got:.0f}, at most {most}: {'ok' if got <= most else 'MISS'}"


def missed(result):
    return [f"{r.cell.group}, {r.cell.name}: {'; '.join(r.misses())}" for r in rows(result) if r.misses()]


def closing(result):
    out = [honest(result), *load_lines(result)]
    bad = missed(result)
    out += [f"{len(bad)} of {sum(not r.cell.extra for r in rows(result))} cells miss something:"] + [f"  {b}" for b in bad] if bad else ["Every floor holds."]
    return "\n".join(x for x in out if x)


def markdown(result):
    group = None
    for r in rows(result):
        if r.cell.group != group:
            group = r.cell.group
            yield f"\n**{group}**\n"
            yield "| " + " | ".join(TITLES) + " |"
            yield "|---|" + "--:|" * (len(TITLES) - 2) + "---|"
        f = _fields(r)
        yield "| " + " | ".join(f[:-1] + (f"**{f[-1]}**" if f[-1] == "MISS" else f[-1],)) + " |"
