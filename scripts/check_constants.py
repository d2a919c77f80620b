#!/usr/bin/env python3
"""Fails if a constant would hide one of an enclosing namespace from other sources of its batch.

The sources of a library or a test are compiled in batches (cgc_batch_sources() in cmake/cgc_add_library.cmake). A constant in an
unnamed namespace of one would hide the constant of a header with the same name, so that the sources behind it would
compute with another value. The same holds for constants of headers in nested namespaces.
"""
import re
import sys
from collections import defaultdict
from pathlib import Path

FOLDERS = "runtime support ir passes backend frontend driver tuner tools tests".split()


def constants(path):
    """Yields (namespace, name) for the constants at namespace scope; an unnamed namespace ends in '::'."""
    scopes = []
    statement = ""
    for line in Path(path).read_text().split("\n"):
        if opened := re.match(r"namespace ?([\w:]*) ?\{$", line):
            scopes.append(opened[1])
        elif line.startswith("} // namespace"):
            scopes.pop()
        elif re.match(r"(?:inline |static )*(?:constexpr|const) |enum (?!class)", line) or statement:
            statement += " " + line
        if re.search(r"};" if statement.startswith(" enum") else r"[;{(]", statement):
            if not statement.startswith(" enum"):
                statement = re.sub(r"\{.*", "{", statement)  # Without the values.
            for name in re.findall(r"[ ,*](k[A-Z]\w*)(?:\[\w*\])? ?[={,}]", statement):
                yield "::".join(scopes), name
            statement = ""


declared = defaultdict(set)  # By name: the namespace and the file of each declaration.
for path in (str(path) for folder in FOLDERS for path in Path(folder).rglob("*") if path.suffix in (".h", ".cpp")):
    for namespace, name in constants(path):
        if path.endswith(".h") or namespace.endswith("::"):
            declared[name].add((namespace, path))
failed = False
for name, places in sorted(declared.items()):
    for outer, header in places:
        for inner, path in places:
            if header.endswith(".h") and outer and inner.startswith(outer + "::"):
                print(f"{path}: {name} hides that of {header}; name it otherwise", file=sys.stderr)
                failed = True
sys.exit(failed)
