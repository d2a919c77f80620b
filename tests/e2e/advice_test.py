"""Tests that what messages advise exists: advice_test.py --program CGC

It reads the string literals of the sources. A flag must be one of cgc, a command `cgc VERB ... --flag` one of that
verb, and a member such as SessionOptions::executor one of a public header. Neither the tool nor the Python package may
advise members of C++, nor may the Python package advise a flag.
"""
import argparse
import ast
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("frontend", "driver", "runtime", "passes", "backend", "tuner", "ir", "support", "tools")
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
COMMAND = re.compile(r"(?:`|\()cgc ([a-z]+)([^`);]*)|\bcgc ([a-z]+)((?: [A-Z]\w*(?:\.\w+)?)* --[^`);]*)")
MEMBER = re.compile(r"\b(\w+(?:Options|_options))::(\w+)")
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\((?:.*?)\)\1"|\'(?:\\.|[^\'\\\n])\'|"(?:\\.|[^"\\\n])*"', re.DOTALL)


def literals(path):
    """The messages in a C++ source: adjacent literals are one."""
    text, parts, end = path.read_text(), [], None
    for token in TOKEN.finditer(text):
        if not token[0].startswith('"') or text[text.rfind("\n", 0, token.start()) + 1:].startswith("#include"):
            continue
        if end is not None and not text[end:token.start()].strip():
            parts[-1] += token[0][1:-1]
        else:
            parts.append(token[0][1:-1])
        end = token.end()
    return parts


def python_literals(path):
    """The string constants of a Python source without docstrings."""
    tree = ast.parse(path.read_text())
    docs = {id(node.body[0].value) for node in ast.walk(tree)
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and isinstance(node.body[0], ast.Expr)}
    return [node.value for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs]


def help_of(*verb):
    return subprocess.run([arguments.program, *verb, "--help"], check=True, capture_output=True, text=True).stdout


parser = argparse.ArgumentParser()
parser.add_argument("--program", required=True)
arguments = parser.parse_args()
verbs = re.findall(r"^  ([a-z]+) ", help_of().split("Subcommands:")[1].split("Examples:")[0], re.MULTILINE)
assert "compile" in verbs and "train" in verbs, verbs
flags = {verb: set(FLAG.findall(help_of(verb))) for verb in verbs}
known = set().union(*flags.values(), FLAG.findall(help_of()))
headers = "\n".join(path.read_text() for path in (ROOT / "runtime").rglob("*.h"))
wrong, seen = [], 0


def check(path, text, holds, what):
    global seen
    seen += 1
    if not holds:
        wrong.append(f"{path.relative_to(ROOT)}: {what}: {text!r}")


for path in sorted(path for layer in LAYERS for path in (ROOT / layer).rglob("*") if path.suffix in (".cpp", ".h")):
    for text in literals(path):
        for flag in FLAG.findall(text):
            check(path, text, flag in known, f"cgc has no flag {flag}")
        for match in COMMAND.finditer(text):
            verb, rest = match[1] or match[3], match[2] or match[4] or ""
            check(path, text, verb in flags, f"cgc has no verb {verb}")
            for flag in FLAG.findall(rest) if verb in flags else []:
                check(path, text, flag in flags[verb], f"cgc {verb} has no flag {flag}")
        for struct, member in MEMBER.findall(text):
            declared = re.search(rf"struct {struct} \{{(.*?)^\}}", headers, re.DOTALL | re.MULTILINE)
            check(path, text, path.parts[len(ROOT.parts)] != "tools", f"the tool advises {struct}::{member}")
            check(path, text, declared and re.search(rf"\b{member}\b", declared[1]), f"there is no {struct}::{member}")
for path in sorted((ROOT / "python/cgc").glob("*.py")):
    for text in python_literals(path):
        is_argument = FLAG.fullmatch(text)  # Of the command that cgc.compile runs.
        for flag in FLAG.findall(text):
            check(path, text, is_argument and flag in flags["compile"] | known, f"Python advises {flag}")
        check(path, text, not re.search(r"\w::\w", text), "Python advises a name of C++")
scripts = "\n".join(path.read_text() for path in (ROOT / "scripts").glob("*.py"))
for path in sorted((ROOT / "scripts").glob("*openclip*.py")):
    for text in python_literals(path):
        for flag in FLAG.findall(text):
            own = re.search(rf"""add_argument\(["']{flag}["']|["']{flag}["'],""", scripts)
            # --local-dir is of `hf download`.
            check(path, text, own or flag in known or flag == "--local-dir", f"no script has the flag {flag}")
print(f"{seen} pieces of advice, {len(wrong)} of them wrong")
assert seen > 300 and not wrong, "\n".join(wrong)
