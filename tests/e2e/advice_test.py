"""Tests that what messages advise exists: advice_test.py --build BUILD

It reads the string literals of the sources, by the programs that link them: cgc, whose users have its flags, and the runtime, in
programs in C, C++ and Python. A flag must be one of cgc, and one of `cgc compile` if the runtime prints it; a command
`cgc VERB ... --flag` has one of that verb. A name such as SessionOptions::executor must be in a header and is an advice for C++
only: cgc may not give it, nor may the runtime if C has the same struct. A name such as cgc_plan_load must be in cgc.h. An
environment variable must be one that the program reads, and a file of scripts or docs one of the repository.
"""
import argparse
import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from compile_commands import sources as sources_of  # noqa: E402

LAYERS = ("frontend", "driver", "runtime", "passes", "backend", "tuner", "ir", "support", "tools", "python", "triton", "tests")
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
COMMAND = re.compile(r"(?:`|\()cgc ([a-z]+)([^`);]*)|\bcgc ([a-z]+)((?: [A-Z]\w*(?:\.\w+)?)* --[^`);]*)")
MEMBER = re.compile(r"\b([A-Z]\w*)::(\w+)")
C_NAME = re.compile(r"(?<![\w./])(cgc_[a-z]\w*)(?:::(\w+))?")
VARIABLE = re.compile(r"\bCGC_[A-Z_]+\b(?!\()")
FILE = re.compile(r"(?<![\w/.])(?:scripts|docs|examples)/[\w/.-]*\w(?![\w*])")
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\((?:.*?)\)\1"|\'(?:\\.|[^\'\\\n])\'|"(?:\\.|[^"\\\n])*"', re.DOTALL)


def literals(text):
    """The messages in C++: adjacent literals are one."""
    parts, end = [], None
    for token in TOKEN.finditer(text):
        if not token[0].startswith('"') or text[text.rfind("\n", 0, token.start()) + 1:].startswith("#include"):
            continue
        if end is not None and not text[end:token.start()].strip():
            parts[-1] += token[0][1:-1]
        else:
            parts.append(token[0][1:-1])
        end = token.end()
    return parts


def python_literals(text):
    """The string constants of Python without docstrings."""
    tree = ast.parse(text)
    docs = {id(node.body[0].value) for node in ast.walk(tree)
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and isinstance(node.body[0], ast.Expr)}
    return [node.value for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs]


def shell_literals(text):
    """What a shell script says."""
    return re.findall(r"""\b(?:fail|say|echo) ("(?:\\.|[^"\\])*"|'[^']*')""", text)


def help_of(*verb):
    return subprocess.run([build / "bin/cgc", *verb, "--help"], check=True, capture_output=True, text=True).stdout


def linked_in(target):
    """The sources of the objects in a target, those of libraries that it opens included."""
    inputs = subprocess.run(["ninja", "-C", build, "-t", "inputs", target], check=True, capture_output=True, text=True).stdout
    objects = re.findall(r"^(\S+)/CMakeFiles/(\S+)\.dir/(\S+\.(?:cpp|cu))\.o$", inputs, re.MULTILINE)
    compiled = [(folder, source) for folder, of, source in objects if of != "cgc_generate_op_views"]
    return {Path(path) for folder, source in compiled
            for path in sources_of(str((build if "_unity_" in source else ROOT) / folder / source))} & written


def with_headers(sources):
    """The sources and the headers beside them."""
    folders = {source.parent for source in sources}
    return sources | {header for folder in folders for pattern in ("*.h", "*.cuh") for header in folder.glob(pattern)}


def variables_read(sources):
    """The environment variables that sources in C++ or Python read."""
    texts = [source.read_text() for source in sources]
    constants = {}
    for text in texts:
        for value in re.finditer(r"""["'](CGC_\w+)["']""", text):
            if name := re.search(r"(\w+)(?:\[\])? = $", text[max(0, value.start() - 60):value.start()]):
                constants[name[1]] = value[1]
    reads = {name for text in texts for name in re.findall(r"""(?:getenv\(|environ\.get\(|environ\[)["']?(\w+)""", text)}
    return {constants.get(name, name) for name in reads}


parser = argparse.ArgumentParser()
parser.add_argument("--build", required=True, type=Path)
build = parser.parse_args().build
verbs = re.findall(r"^  ([a-z]+) ", help_of().split("Subcommands:")[1].split("Examples:")[0], re.MULTILINE)
assert "compile" in verbs and "train" in verbs, verbs
flags = {verb: set(FLAG.findall(help_of(verb))) for verb in verbs}
known = set().union(*flags.values(), FLAG.findall(help_of()))
written = {path for layer in LAYERS for path in (ROOT / layer).rglob("*") if path.suffix in (".cpp", ".cu")}
binding = set((ROOT / "python/src").glob("*.cpp"))
package = set((ROOT / "python/cgc").glob("*.py"))
runtime = set().union(binding, *map(linked_in, (f"lib/lib{name}.so" for name in ("cgc_runtime", "cgc_aten", "cgc_reference", "triton_cgc"))))
tool = linked_in("bin/cgc") - runtime
assert ROOT / "runtime/exec/engine.cpp" in runtime and ROOT / "frontend/load.cpp" in tool and ROOT / "tools/cgc/verbs/run.cpp" in tool
runtime, tool = with_headers(runtime), with_headers(tool) - with_headers(runtime)
api = (ROOT / "runtime/cgc.h").read_text()
headers = "\n".join(path.read_text() for layer in ("runtime", "ir", "passes") for path in (ROOT / layer).rglob("*.h"))
read_by_runtime = variables_read(runtime | package)
read_by_tool = variables_read(runtime | tool)
read_by_any = variables_read(package | written)
assert "CGC_LIBTORCH" in read_by_runtime and "CGC_PROGRESS_AFTER" in read_by_tool - read_by_runtime, (read_by_runtime, read_by_tool)
wrong, seen = [], 0


def check(path, text, holds, what):
    global seen
    seen += 1
    if not holds:
        wrong.append(f"{path.relative_to(ROOT)}: {what}: {text!r}")


def check_common(path, text, variables):
    """What holds for the messages of every program."""
    for name in VARIABLE.findall(text):
        check(path, text, name in variables, f"the program reads no variable {name}")
    for file in FILE.findall(text):
        check(path, text, (ROOT / file).exists(), f"there is no {file}")
    for match in COMMAND.finditer(text):
        verb, rest = match[1] or match[3], match[2] or match[4] or ""
        check(path, text, verb in flags, f"cgc has no verb {verb}")
        for flag in FLAG.findall(rest) if verb in flags else []:
            check(path, text, flag in flags[verb], f"cgc {verb} has no flag {flag}")


def words_of(text):
    """`text` without the struct of words that each interface replaces by its own, and without what a bug of cgc says."""
    return re.sub(r"^struct TrainerWords \{.*?^\};|\bCGC_CHECK\(.*?\);", "", text, flags=re.DOTALL | re.MULTILINE)


for path in sorted(runtime | tool):
    in_runtime = path in runtime
    for text in literals(words_of(path.read_text())):
        check_common(path, text, read_by_runtime if in_runtime else read_by_tool)
        commands = " ".join(match[0] for match in COMMAND.finditer(text))
        for flag in FLAG.findall(text):
            has_it = flag in flags["compile"] or flag in commands or "to the tool " in text if in_runtime else True
            check(path, text, flag in known and has_it, f"cgc {'compile ' if in_runtime else ''}has no flag {flag}")
        for owner, member in MEMBER.findall(text):
            in_c = "cgc" + re.sub(r"([A-Z])", r"_\1", owner).lower()
            check(path, text, in_runtime, f"cgc advises {owner}::{member}")
            check(path, text, not re.search(rf"\b{in_c}\b", api), f"a program in C or Python has no {owner}::{member}")
            declared = re.search(rf"\b(?:class|struct)(?: CGC_API)? {owner}\b[^;]*?\{{(.*?)^\}};", headers, re.DOTALL | re.MULTILINE)
            check(path, text, declared and re.search(rf"\b{member}\b", declared[1]), f"there is no {owner}::{member}")
        for name, member in C_NAME.findall(text):
            check(path, text, path.parent.name == "c_api", f"only the C API may advise {name}")
            declared = re.search(rf"\b{name}\b", api) if not member else re.search(rf"struct {name} \{{[^}}]*\b{member}\b", api)
            check(path, text, declared, f"cgc.h has no {name}{'::' + member if member else ''}")
for interface in ("runtime/c_api/trainer.cpp", "tools/cgc/verbs/train.cpp"):
    assert ".words = {" in (ROOT / interface).read_text(), f"{interface} prints the TrainerWords of C++"
of_commands = set(re.findall(r'add_argument\("(--[a-z-]+)"', (ROOT / "python/cgc/_commands.py").read_text()))
for path in sorted(package):
    own = set(re.findall(r'add_argument\("(--[a-z-]+)"', path.read_text()))  # Of the commands of Python.
    for text in python_literals(path.read_text()):
        check_common(path, text, read_by_runtime)
        is_argument = FLAG.fullmatch(text)  # Of the command that cgc.compile runs.
        for flag in FLAG.findall(text):
            serves_both = flag in of_commands and f"{flag[2:]} ({flag})" in text  # The parameter's name stands before.
            check(path, text, flag in own or serves_both or is_argument and flag in flags["compile"] | known, f"Python advises {flag}")
        is_op = re.fullmatch("cgc::[a-z_]+", text)  # For torch.library.
        check(path, text, is_op or not re.search(r"\w::\w", text), "Python advises a name of C++")
        check(path, text, not FILE.search(text), "a wheel has no files of the repository")
scripts = "\n".join(path.read_text() for path in (ROOT / "scripts").glob("*.py"))
for path in sorted((ROOT / "scripts").iterdir()):
    if path.suffix not in (".py", ".sh"):
        continue
    for text in (python_literals if path.suffix == ".py" else shell_literals)(path.read_text()):
        check_common(path, text, read_by_any)
        for flag in FLAG.findall(text) if "openclip" in path.name else []:
            own = re.search(rf"""add_argument\(["']{flag}["']|["']{flag}["'],""", scripts)
            # --local-dir is of `hf download`.
            check(path, text, own or flag in known or flag == "--local-dir", f"no script has the flag {flag}")
print(f"{seen} pieces of advice, {len(wrong)} of them wrong")
assert seen > 300 and not wrong, "\n".join(wrong)
