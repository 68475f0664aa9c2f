"""standin.py HEADER FOLDER: writes, from nothing but the header,
standin.c (a library whose functions return distinct constants) and
standin_values.h (a STANDIN_CALLS list for a client that checks them)."""
import re
import sys

PROTOTYPE = re.compile(r"^([a-z][\w ]*?[ *]+)(phxfs_\w+)\s*\(([^()]*)\)\s*;", re.M)

NAME = re.compile(r"\w+$")  # of a parameter


def prototypes(header):
    """[(return type, name, [parameter, ...])] in the order of the header."""
    text = re.sub(r"/\*.*?\*/", " ", header, flags=re.S)
    for result, name, parameters in PROTOTYPE.findall(text):
        parameters = " ".join(parameters.split())
        yield result.strip(), name, [] if parameters == "void" else parameters.split(", ")


def main(header, folder):
    library = ['#include "phoenix.h"']
    calls = []
    with open(header) as f:
        found = list(prototypes(f.read()))
    for number, (result, name, parameters) in enumerate(found, start=1001):
        call = f"{name}({', '.join('0' for _ in parameters)})"
        unused = "".join(f" (void){NAME.search(p).group()};" for p in parameters)
        if result == "const char *":
            value, seen = f'"stand-in {number}"', f'strcmp({call}, "stand-in {number}") == 0 ? {number} : 0'
        elif result.endswith("*"):
            value, seen = f"({result})(uintptr_t){number}", f"(long)(intptr_t){call}"
        else:
            value, seen = str(number), f"(long){call}"
        library.append(f"{result} {name}({', '.join(parameters) or 'void'}) {{{unused} return {value}; }}")
        calls.append(f'\tX("{name}", {seen}, {number})')
    with open(f"{folder}/standin.c", "w") as f:
        f.write("\n".join(library) + "\n")
    with open(f"{folder}/standin_values.h", "w") as f:
        f.write("#define STANDIN_CALLS(X) \\\n" + " \\\n".join(calls) + "\n")
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
