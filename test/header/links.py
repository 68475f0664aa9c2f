"""links.py FILE...: every relative link of these Markdown files leads to a file
of the tree, and to one of its headings where it names one."""
import os
import re
import sys


def anchors(path):
    """The anchors of a Markdown file's headings, as the usual viewers make them."""
    with open(path) as f:
        text = re.sub(r"^```.*?^```", "", f.read(), flags=re.S | re.M)
    for heading in re.findall(r"^#+ +(.*)$", text, re.M):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def broken(path):
    with open(path) as f:
        text = f.read()
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
        if not os.path.exists(file):
            yield "%s: no file %s" % (path, target)
        elif anchor and anchor not in anchors(file):
            yield "%s: no heading %s" % (path, target)


if __name__ == "__main__":
    found = [line for path in sys.argv[1:] for line in broken(path)]
    print("\n".join(found))
    sys.exit(1 if found else 0)
