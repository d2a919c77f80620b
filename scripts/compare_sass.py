# Prints the table of compare_sass.sh: compare_sass.py OLD NEW [--rename s/PATTERN/REPLACEMENT/]... Needs cuobjdump,
# nvdisasm and c++filt in PATH.
import argparse
import re
import subprocess
import sys
from dataclasses import dataclass, field


@dataclass
class Kernel:
    code: list = field(default_factory=list)  # The instructions and their encodings, as printed.
    instructions: int = 0
    registers: int = 0
    stack: int = 0
    spills: int = 0  # Instructions that load or store local memory.
    shared: int = 0


def dump(option, path):
    return subprocess.run(["cuobjdump", option, path], check=True, capture_output=True, text=True).stdout


def kernels_of(path):
    """The kernels of a file by (architecture, mangled name)."""
    kernels, key, arch = {}, None, ""
    for line in dump("--dump-sass", path).splitlines():
        if match := re.match(r"arch = (\w+)", line):
            arch, key = match[1], None
        elif match := re.match(r"\s*Function : (\S+)", line):
            key = arch, match[1]
            kernels[key] = Kernel()
        elif key and re.match(r"\s*/\*", line):
            # cuobjdump pads the instructions to the longest one in the file.
            kernels[key].code.append(" ".join(line.split()))
            kernels[key].instructions += bool(re.match(r"\s*/\*[0-9a-f]+\*/", line))
            kernels[key].spills += bool(re.search(r"\b(LDL|STL)\b", line))
    for line in dump("--dump-resource-usage", path).splitlines():
        if match := re.match(r"arch = (\w+)", line):
            arch = match[1]
        elif match := re.match(r"\s*Function (\S+):", line):
            key = arch, match[1]
        elif key in kernels and (numbers := dict(re.findall(r"(REG|STACK|SHARED):(\d+)", line))):
            kernel = kernels[key]
            kernel.registers, kernel.stack, kernel.shared = (int(numbers[name]) for name in ("REG", "STACK", "SHARED"))
    return named(kernels)


def named(kernels):
    """The kernels by (architecture, readable name). Drops the file hash that mangled anonymous namespaces contain."""
    names = sorted({name for _, name in kernels})
    plain = subprocess.run(["c++filt"], input="\n".join(names), check=True, capture_output=True, text=True).stdout
    readable = dict(zip(names, plain.splitlines()))
    result = {}
    for (arch, name), kernel in kernels.items():
        text = re.sub(r"_GLOBAL__N__\w+", "(anonymous namespace)", readable[name])
        text = re.sub(r"_INTERNAL_\w+", "(anonymous namespace)", text)
        result[arch, text.removeprefix("void ").replace("cgc::", "").replace("(anonymous namespace)::", "")] = kernel
    return result


def cell(old, new):
    return str(new) if old == new else f"{old} -> {new}"


def substitution(text):
    """The pattern and the replacement of s/PATTERN/REPLACEMENT/, with any character as the delimiter."""
    parts = text.split(text[1]) if len(text) > 1 else []
    if text[:1] != "s" or len(parts) != 4 or not parts[1] or parts[3]:
        raise argparse.ArgumentTypeError(f"'{text}' is not of the form s/PATTERN/REPLACEMENT/")
    try:
        re.compile(parts[1])
    except re.error as error:
        raise argparse.ArgumentTypeError(f"'{parts[1]}' is no regular expression: {error}") from error
    return parts[1], parts[2]


def renamed(kernels, renames):
    """The kernels with the substitutions applied to their readable names, in order."""
    result = {}
    for (arch, name), kernel in kernels.items():
        for pattern, replacement in renames:
            name = re.sub(pattern, replacement, name)
        if (arch, name) in result:
            sys.exit(f"compare_sass: --rename gives two kernels of OLD the name {name}")
        result[arch, name] = kernel
    return result


def main():
    parser = argparse.ArgumentParser(prog="compare_sass.sh", allow_abbrev=False)
    parser.add_argument("old", metavar="OLD")
    parser.add_argument("new", metavar="NEW")
    parser.add_argument("--rename", metavar="s/PATTERN/REPLACEMENT/", type=substitution, action="append", default=[],
                        help="substitute in the kernel names of OLD before pairing; may be repeated")
    options = parser.parse_args()
    old, new = kernels_of(options.old), kernels_of(options.new)
    if not old or not new:
        sys.exit(f"compare_sass: {options.new if old else options.old} has no device code")
    old = renamed(old, options.rename)
    rows, same = [("registers", "spills", "stack", "shared", "instructions", "SASS", "kernel")], 0
    for key in sorted(old.keys() | new.keys()):
        name = f"{key[0]} {key[1]}"
        if key not in old or key not in new:
            rows.append(("", "", "", "", "", "only in NEW" if key in new else "only in OLD", name))
            continue
        a, b = old[key], new[key]
        identical = a.code == b.code
        same += identical
        figures = [cell(getattr(a, name), getattr(b, name)) for name in rows[0][:5]]
        rows.append((*figures, "identical" if identical else "DIFFERS", name))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths)), row[-1], sep="  ")
    print(f"{same} of {len(rows) - 1} kernels have identical SASS")
    sys.exit(same != len(rows) - 1)


main()
