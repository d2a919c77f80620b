#!/usr/bin/env python3
"""Fails if a name stands twice in the unnamed namespaces of a library, or a constant would hide one of an enclosing namespace.

The sources of a library or a test are compiled in batches (cgc_batch_sources() in cmake/cgc_add_library.cmake). The compiler
finds a second constant, type or function with the same parameters only in the batch of the first, and a new file moves others
to the next batch. A constant in an unnamed namespace would hide the constant of a header with the same name from the sources
behind it in the batch, which would compute with another value. The same holds for constants of headers in nested namespaces.
"""
import re
import sys
from collections import defaultdict
from pathlib import Path

FOLDERS = "runtime support ir passes backend frontend driver tuner tools triton tests".split()


def statements(path):
    """Yields (namespace, statement) at namespace scope, each up to its body or value; an unnamed namespace ends in '::'."""
    scopes = []
    statement = ""
    for number, line in enumerate(path.read_text("utf-8", "replace").split("\n"), 1):
        if opened := re.match(r"(?:inline )?namespace ?([\w:]*) ?\{$", line):
            scopes.append(opened[1])
        elif line.startswith("} // namespace"):
            if not scopes:
                sys.exit(f"{path}:{number}: check_names.py has not seen this namespace open; write 'namespace NAME {{' in a line of its own")
            scopes.pop()
        elif statement or re.match(r"[A-Za-z].*[^:]$", line):
            statement += " " + line.strip()
        is_enum = re.match(r" enum (?!class)", statement)
        if re.search(r"};" if is_enum else r"[;{]", statement):
            yield "::".join(scopes), statement.strip() if is_enum else re.sub(r"\{.*", "{", statement).strip()
            statement = ""


def constants(statement):
    """The constants that a statement declares."""
    if not re.match(r"(?:inline |static )*(?:constexpr|const) |enum (?!class)", statement) or re.match(r"[^={]*\(", statement):
        return []
    return re.findall(r"[ ,*](k[A-Z]\w*)(?:\[\w*\])? ?[={,}]", statement)


def names(statement):
    """What a statement declares and no other may: constants, types, and functions with the types of their parameters."""
    if found := re.match(r"(?:struct|class|union|enum(?: class)?) (\w+)[^;]*\{", statement):
        return [found[1]]
    if found := re.match(r"[^=]*[ *&](\w+)\((.*)\)(?: noexcept)? \{$", statement):
        types = [re.sub(r"( |(?<=[&*]))\w+( =.*)?$", "", parameter.strip()) for parameter in found[2].split(",")]
        return [f"{found[1]}({', '.join(types)})"]
    return constants(statement)


TESTS = re.findall(r"cgc_add_test\((\w+) DIR ([a-z_/ \n]+)", Path("tests/CMakeLists.txt").read_text())


def libraries(path):
    """The libraries and tests that have the source."""
    tests = [name for name, folders in TESTS if any(path.is_relative_to(f"tests/{folder}") for folder in folders.split())]
    return tests or [next(parent for parent in path.parents if (parent / "CMakeLists.txt").exists())]


declared = defaultdict(set)  # By constant: the namespace and the file of each declaration.
unnamed = defaultdict(set)  # By library, namespace and name: the files.
for path in (path for folder in FOLDERS for path in Path(folder).rglob("*") if path.suffix in (".h", ".cpp")):
    for namespace, statement in statements(path):
        for name in constants(statement):
            if path.suffix == ".h" or namespace.endswith("::"):
                declared[name].add((namespace, str(path)))
        for name in names(statement) if namespace.endswith("::") else ():
            for library in libraries(path):
                unnamed[library, namespace, name].add(str(path))
failures = {f"{', '.join(sorted(files))}: {name} stands in each of them, but may be in one batch; name them differently"
            for (_, _, name), files in unnamed.items() if len(files) > 1}
for name, places in declared.items():
    for outer, header in places:
        for inner, path in places:
            if header.endswith(".h") and outer and inner.startswith(outer + "::"):
                failures.add(f"{path}: {name} hides that of {header}; name it otherwise")
print(*sorted(failures), sep="\n", end="\n" if failures else "", file=sys.stderr)
sys.exit(bool(failures))
