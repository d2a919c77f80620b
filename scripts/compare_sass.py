# Prints the table of compare_sass.sh: compare_sass.py OLD NEW. Needs cuobjdump, nvdisasm and c++filt in PATH.
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
            kernels[key].code.append(line.strip())
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
    """The kernels by (architecture, readable name), without the hash of the file in names of anonymous namespaces."""
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


def main(old_path, new_path):
    old, new = kernels_of(old_path), kernels_of(new_path)
    if not old or not new:
        sys.exit(f"compare_sass: {new_path if old else old_path} has no device code")
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


main(*sys.argv[1:])
