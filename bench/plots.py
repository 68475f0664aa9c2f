"""The three plots, as SVG: speed-up by batch size, by request size, CPU per I/O.

matplotlib draws them: the one of this Python, else one installed into
build/venv from PyPI; where neither can be had there are no plots."""
import os
import re
import subprocess
import sys
import venv

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PINNED = "matplotlib==3.10.3"


def _matplotlib():
    try:
        import matplotlib
    except ImportError:
        home = os.path.join(TOP, "build", "venv")
        pip = [os.path.join(home, "bin", "python"), "-m", "pip", "install", "-q", PINNED]
        if not os.path.exists(pip[0]):
            venv.create(home, with_pip=True)
        if subprocess.run(pip).returncode:
            return None
        here = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
        sys.path.append(os.path.join(home, here))
        import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "libphoenix"  # the same picture is the same file
    return matplotlib


def _size(text):
    return int(text[:-1]) << {"K": 10, "M": 20}[text[-1]]


def _plot(mpl, path, title, label, series, xlabel, ticks):
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(7, 4))
    for name, points in series.items():
        points = sorted(points)
        axes.plot([p[0] for p in points], [p[1] for p in points], marker="o", label=name)
    axes.axhline(1, color="gray", linewidth=0.8)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xticks([t for t, _ in ticks], [n for _, n in ticks])
    axes.yaxis.set_major_formatter(mpl.ticker.FormatStrFormatter("%g"))
    axes.set(title=title, xlabel=xlabel, ylabel=label)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")
    pyplot.close(figure)


def draw(rows, folder, name):
    """[(path, what it shows)]"""
    mpl = _matplotlib()
    if not mpl:
        return []
    import matplotlib.ticker  # noqa: F401
    os.makedirs(folder, exist_ok=True)
    by_count, by_size, cpu = {}, {}, {}
    for r in rows:
        m = re.fullmatch(r"(\d+[KM])( page cache| O_DIRECT|),? ?n=(\d+)", r.cell.name)
        if not m or not r.cell.group.startswith(("sync batch", "sync engine")):
            continue
        size, where, n = m[1], m[2].strip(), int(m[3])
        kind = f"{r.cell.group.split(',')[0]}, {where or r.cell.group.split(', ')[-1]}"
        if size in ("4K", "64K") and not r.cell.extra:
            by_count.setdefault(f"{size}, {kind}", []).append((n, r.speed[0]))
            cpu.setdefault(f"{size}, {kind}", []).append((n, r.cpu))
        if n in (32, 256) and "O_DIRECT" not in kind and r.cell.engine == "io_uring" and size != "256M":
            by_size.setdefault(f"n={n}", []).append((_size(size), r.speed[0]))
    counts = [(n, str(n)) for n in (1, 8, 32, 256, 1024)]
    sizes = [(_size(s), s) for s in ("4K", "16K", "64K", "256K", "1M")]
    out = []
    for slug, title, label, series, xlabel, ticks in (
        ("speed-by-batch", "Speed-up over the baseline, by batch size", "times as fast (p50)", by_count, "requests of a batch", counts),
        ("speed-by-size", "Speed-up over the baseline, by request size", "times as fast (p50)", by_size, "bytes of a request", sizes),
        ("cpu-by-batch", "CPU time of one I/O against the baseline's", "ratio", cpu, "requests of a batch", counts),
    ):
        series = {k: v for k, v in series.items() if len(v) > 1}
        if series:
            path = os.path.join(folder, f"{name}-{slug}.svg")
            _plot(mpl, path, title, label, series, xlabel, ticks)
            out.append((path, title))
    return out
