#!/usr/bin/env python3
"""render.py RESULT.json...: from what `compare --save` and `scale --save` wrote,
a section of RESULTS.md for each machine (an earlier one of the same machine is
replaced, what others wrote in the file stays) and plots in plots/."""
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import plots  # noqa: E402
import table  # noqa: E402

RESULTS = os.path.join(HERE, "RESULTS.md")


def machine(result):
    """The library's first line says where it ran."""
    return result["cells"][0]["lines"]["ours"][0]


def key(result):
    return f"{machine(result)['cpus']}-cpus"


def engines(result):
    return sorted({line["engine"] for e in result["cells"] for line in e["lines"]["ours"]})


def section(result, pictures):
    m = machine(result)
    yield f"## {m['cpus']} CPUs, {m['machine']}, Linux {m['kernel']}\n"
    yield f"{result['date']}, commit {result['commit']}, `{result['command']}`, {result['seconds']} s. Engines: {', '.join(engines(result))}.\n"
    yield table.honest(result) + "\n" if result["honesty"] else ""
    for line in table.load_lines(result):
        yield f"- {line}"
    bad = table.missed(result)
    yield "\n### What misses its floor\n"
    yield "\n".join(f"- {b}" for b in bad) if bad else "Nothing."
    if result["skipped"]:
        yield "\nNot measured: " + "; ".join(result["skipped"]) + "."
    yield "\n### Table"
    yield from table.markdown(result)
    if pictures:
        yield "\n### Plots\n"
        for path, what in pictures:
            yield f"![{what}](plots/{os.path.basename(path)})"


def scaling(result):
    m = result["machine"]
    yield f"## Scaling on {m['cpus']} CPUs, {m['machine']}, Linux {m['kernel']}\n"
    yield f"{result['date']}, commit {result['commit']}, `{result['command']}`, {result['seconds']} s.\n"
    for s in result["series"]:
        yield f"\n**{s['title']}**\n\n| {s['what']} | IO/s | MB/s | CPU us/IO | p50 us | p99 us |\n|--:|--:|--:|--:|--:|--:|"
        for r in s["rows"]:
            yield (f"| {r['value']} | {r['iops']:.0f} | {r['iops'] * r['size'] / 1e6:.0f} | {r['cpu_us_per_io']:.3f} "
                   f"| {r['p50_us']:.1f} | {r['p99_us']:.1f} |")
    h = result["huge"]
    yield (f"\nOne request of {h['size'] / 2**30:.0f} GiB (sparse file, O_DIRECT): {h['seconds']:.1f} s; the process grew by "
           f"{h['grown_kib']} KiB." if h else "")
    yield f"\n{result['collections']['text']}" if result["collections"] else ""


def put(name, body):
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    with open(RESULTS) as f:
        text = f.read()
    block = f"{begin}\n{body.strip()}\n{end}"
    old = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.S)
    text = old.sub(lambda _: block, text) if old.search(text) else text.rstrip() + "\n\n" + block + "\n"
    with open(RESULTS, "w") as f:
        f.write(text)


def main():
    for path in sys.argv[1:]:
        with open(path) as f:
            result = json.load(f)
        if "series" in result:
            name = f"{result['machine']['cpus']}-cpus-scale"
            put(name, "\n".join(scaling(result)))
            print(f"bench/RESULTS.md: section {name}")
            continue
        if not result["cells"]:
            print(f"{path}: nothing was measured", file=sys.stderr)
            continue
        name = key(result)
        pictures = plots.draw(table.rows(result), os.path.join(HERE, "plots"), name)
        put(name, "\n".join(section(result, pictures)))
        print(f"bench/RESULTS.md: section {name}, {len(pictures)} plots")
    return 0


if __name__ == "__main__":
    sys.exit(main())
