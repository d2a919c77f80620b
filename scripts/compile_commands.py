#!/usr/bin/env python3
"""compile_commands.py BUILD: prints BUILD/compile_commands.json with a command for each source of C++, in place of those for
batches of sources (cgc_batch_sources() in cmake/cgc_add_library.cmake). clang-tidy could read a header by a command for C."""
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def sources(file):
    """The sources that the compiled file includes, or itself."""
    if not re.search(r"_unity_\d+\.cpp$", file):
        return [file]
    return [str(ROOT / path) for path in re.findall(r'^#include "(.*)"$', Path(file).read_text(), re.M)]


if __name__ == "__main__":
    entries = json.loads(Path(sys.argv[1], "compile_commands.json").read_text())
    json.dump([entry | {"file": source, "command": entry["command"].replace(entry["file"], source)}
               for entry in entries for source in sources(entry["file"]) if not source.endswith(".c")], sys.stdout, indent=0)
