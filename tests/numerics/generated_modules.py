"""Writes random modules for tests of the frontend: generated_modules.py FOLDER COUNT SEED

Each module is a file N.pt, a trace or a script, beside its source N.py; FOLDER/index.txt has a line for each: N, "trace" or "script", and the
inputs as NAME=DTYPE[SIZES]. A module is made statement by statement: one that PyTorch cannot run is dropped, so that every module runs. Most
modules are what people write by hand: sizes taken apart and put together, casts, views, in-place ops, tuples, submodules, loops over sizes.
"""
import importlib.util
import random
import sys
import warnings
from pathlib import Path

import torch
from torch import nn

warnings.simplefilter("ignore")
torch.set_num_threads(1)

HEADER = '''from typing import Dict, List, Optional, Tuple
import torch
from torch import nn
from torch.nn import functional as F


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x, shift: Optional[torch.Tensor] = None):
        n = x.shape[0]
        y = self.fc(x)
        if shift is not None:
            y = y + shift
        return y * n, y.mean(-1)


class Generated(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()
        self.emb = nn.Embedding(7, 4)
        self.norm = nn.LayerNorm(4)
        self.weight = nn.Parameter(torch.arange(4.0) / 3)
        self.register_buffer("table", torch.arange(24.0).reshape(6, 4) / 7)
        self.register_buffer("steps", torch.arange(6))
        self.width = 4
'''
INPUTS = {"x": "torch.randn(2, 6, 4)", "y": "torch.randn(2, 4)", "ids": "torch.randint(0, 3, (2, 3))", "flags": "torch.rand(2, 6) > 0.5"}

# By what a statement makes: I an int, S a float, Z a tensor of one number, T a tensor. {i}, {s}, {z}, {t} are what it takes, {k} a small int,
# {d} a dimension.
BOTH = {
    "I": ["{t}.shape[{d}]", "{t}.size({d})", "{t}.dim()", "{t}.numel()", "{i} + {k}", "{i} - {k}", "{i} * {k}", "{i} // {k}", "{i} % {k}",
          "-{i}", "max({i}, {k})", "min({i}, {i})", "abs({i} - {k})", "int({i} / {k})", "int({i} ** 0.5)", "{i} // {i}", "len({t})", "self.width",
          "{i} + {i}", "int({s})", "({i} + {k} - 1) // {k}"],
    "S": ["{i} / {k}", "{i} ** 0.5", "float({i})", "{s} * {k}", "1.0 / {i}", "{s} + {i}", "{i} * 0.25", "{i} ** -0.5"],
    "Z": ["torch.tensor({i})", "torch.tensor({s})", "torch.tensor(float({i}))", "{z} + {k}", "{z} * {i}", "({z} * 0.5).to(torch.int64)",
          "{z}.float().sqrt()", "{z}.float().floor()", "{z} // {k}", "{t}.sum()", "{t}.float().mean()", "{t}.amax()", "{z} % {k}", "-{z}",
          "torch.ceil({z} / {k})"],
    "T": ["{t} + {t}", "{t} * {t}", "{t} - {k}", "{t} * {s}", "{t} / {i}", "{t} + {z}", "{t} * {i}", "-{t}", "{t}.abs()", "torch.relu({t})",
          "torch.sigmoid({t})", "torch.tanh({t})", "{t}.clamp(-1, {k})", "{t}.clamp(min={s})", "(-{t}.abs()).exp()", "({t}.abs() + 1).sqrt()",
          "({t}.abs() + 1).log()", "{t}.square()", "{t} ** 2", "F.gelu({t})", "F.silu({t})", "{t} > {t}", "{t} <= {k}", "{t} == {t}",
          "torch.where({t} > 0, {t}, {t})", "{t}.masked_fill({t} > 0, {s})", "torch.maximum({t}, {t})", "{t}.bool()", "~({t} > 0)",
          "({t} > 0) & ({t} < {k})", "{t}.softmax(-1)", "{t}.softmax({d})", "F.layer_norm({t}, [{t}.shape[-1]])", "{t}.sum({d})", "{t}.sum(-1, keepdim=True)",
          "{t}.float().mean({d})", "{t}.amax({d})", "{t}.argmax({d})", "{t}.cumsum({d})", "{t}.float().var(-1, unbiased=False)", "{t}.max({d})[0]", "{t}.min({d}).values",
          "{t}.float().norm(dim=-1, keepdim=True)", "F.normalize({t}, dim=-1)", "{t}.any({d})", "{t}.prod({d})",
          "{t}.reshape(-1)", "{t}.reshape({t}.shape[0], -1)", "{t}.view({t}.shape[0], -1, {k})", "{t}.reshape({i}, -1)", "{t}.flatten({d})", "{t}.flatten(0, 1)",
          "{t}.transpose({d}, -1)", "{t}.permute(1, 0)", "{t}.permute(0, 2, 1)", "{t}.permute(2, 0, 1)", "{t}.t()", "{t}.mT", "{t}.unsqueeze({d})", "{t}.unsqueeze(-1)", "{t}.squeeze({d})", "{t}.squeeze()",
          "{t}.expand({i}, -1, -1)", "{t}.unsqueeze(0).expand({k}, -1, -1)", "{t}.expand_as({t})", "{t}.repeat({k}, 1)", "{t}.repeat(1, {k}, 1)", "{t}.flip({d})", "{t}.roll({k}, {d})",
          "{t}[0]", "{t}[-1]", "{t}[:, 0]", "{t}[:, -1]", "{t}[:, {k}:]", "{t}[:, :-{k}]", "{t}[..., ::2]", "{t}[:, None]", "{t}[..., {d}]", "{t}[:, :{i}]", "{t}[-{k}:]", "{t}[{i} - 1]", "{t}[:, 1::2]",
          "{t}.narrow({d}, 0, {k})", "{t}.select({d}, {k})", "{t}.chunk(2, {d})[1]", "{t}.split({k}, {d})[0]", "{t}.unbind({d})[0]", "{t}.tensor_split(2, -1)[0]",
          "torch.cat([{t}, {t}], {d})", "torch.cat(({t}, {t}), -1)", "torch.stack([{t}, {t}], {d})", "torch.stack(({t}, {t})).sum(0)", "F.pad({t}, (1, {k}))", "F.pad({t}, (0, 0, 1, 0))",
          "torch.arange({i})", "torch.arange({i}).float() / {k}", "torch.arange({t}.shape[1]).unsqueeze(0)", "torch.zeros({i}, {k})", "torch.ones({i})", "torch.full(({i},), {s})", "torch.full([{i}, {k}], {k})",
          "torch.zeros_like({t})", "torch.ones_like({t}) * {i}", "{t}.new_zeros({i})", "{t}.new_full([{i}, {i}], {s})", "torch.eye({i})", "torch.linspace(0, 1, {i})", "torch.ones({i}, {i}).tril()", "torch.ones({i}, {i}).triu(1)",
          "torch.empty({i}, {k}).fill_({s})", "{t}.long()", "{t}.to(torch.int32)", "{t}.float()", "{t}.double()", "{t}.to(torch.float64)", "{t}.half().float()", "{t}.type_as({t})", "{t}.to({t}.dtype)", "{t}.int()",
          "{t} @ {t}", "{t} @ {t}.transpose(-1, -2)", "torch.matmul({t}, {t})", "torch.einsum('bij,bkj->bik', {t}, {t})", "torch.einsum('ij,kj->ik', {t}, {t})", "torch.bmm({t}, {t}.transpose(1, 2))",
          "F.scaled_dot_product_attention({t}, {t}, {t})", "F.linear({t}, {t})", "{t} * self.weight", "{t} + self.table", "{t} + self.table[:{t}.shape[1]]", "self.table[{i} - 1]", "self.table[self.steps % {k}]", "self.weight.expand({k}, -1)",
          "self.emb({t})", "self.emb(self.steps)", "self.norm({t})", "self.part({t})[0]", "self.part({t})[1]", "self.part({t}, {t})[0]", "self.part.fc({t})", "F.one_hot({t}, 7)",
          "{t}.index_select({d}, self.steps[:2])", "torch.gather({t}, {d}, {t})", "{t}[{t}.long() % 2]", "{t}[self.steps[:{k}]]", "{t}[torch.arange({t}.shape[0]), {t}.argmax(-1)]", "{t}.contiguous()", "{t}.detach()", "{t}.clone()",
          "torch.outer({t}, {t})", "{t}.mean((0, 1))", "{t}.std(-1)", "torch.floor({t})", "torch.round({t})", "{t}.sign()", "{t}.reciprocal()", "{t}.rsqrt()", "torch.topk({t}, 2)[0]", "{t}.sort(-1)[0]",
          "F.interpolate({t}.unsqueeze(1), scale_factor=2.0)", "F.avg_pool1d({t}, 2)", "F.max_pool2d({t}.unsqueeze(1), 2)", "F.conv1d({t}, torch.ones(3, {t}.shape[1], 1))", "F.adaptive_avg_pool1d({t}, {k})", "F.dropout({t}, 0.5, False)",
          "torch.log_softmax({t}, -1)", "{t}.logsumexp(-1)", "F.cross_entropy({t}, {t})", "torch.nan_to_num({t})", "{t}.remainder({k})", "{t} // {k}", "{t} % {k}", "torch.minimum({t}, {z})", "{t}.to({t}.device)",
          "{t}.movedim(0, -1)", "torch.atleast_2d({t})", "{t}.view_as({t})", "{t}.unflatten({d}, (2, -1))", "{t}.unfold({d}, 2, {k})", "torch.zeros({t}.shape)", "torch.ones({t}.shape[0], {t}.size(1))", "torch.broadcast_to({t}, {t}.shape)", "{t}.diagonal()", "torch.addmm({t}, {t}, {t})"],
    # What changes {v}, a tensor of the module's own, in place.
    "V": ["{v}.add_({k})", "{v}.mul_({s})", "{v}.zero_()", "{v}[:, 0] += 1", "{v}[0] = {s}", "{v}[..., 1:] *= 2", "{v}[:, -1] = {t}", "{v}.copy_({t})", "{v}.clamp_(min=0)", "torch.relu_({v})", "{v}.masked_fill_({v} > 0, 0.5)",
          "{v}[:, :{k}].add_(1)", "{v}.unfold({d}, 2, {k}).add_(1)", "{v}.diagonal().mul_(2)", "{v}.transpose(0, -1).mul_(2)", "{v}.view(-1)[0] = 3", "{v}[{k}].fill_({s})", "{v} += {t}", "{v} *= {i}", "{v}.sub_({t})", "{v}[:, 1::2] = 0", "{v}.fill_diagonal_(0)", "{v}.unsqueeze_(0)", "{v}.squeeze_(0)", "{v}.t_()",
          "{v}.index_fill_(0, self.steps[:1], 0.5)", "{v}.scatter_(0, self.steps[:1].expand(1, {v}.shape[-1]), 1)", "{v}.exp_()", "{v}.div_({i})", "{v}[self.steps[:2]] = 0", "{v}[{v} > 0] = 0"],
}
# Blocks that only code has. {n} is a new name.
SCRIPT = ["if {i} > {k}:\n    {n} = {t}\nelse:\n    {n} = {t} * 2", "{n} = {t}\nfor index in range({i}):\n    {n} = {n} + index", "{n} = {t}\nfor index in range({t}.shape[0]):\n    {n} = {n} * 0.5 + {t}[index].sum()",
          "parts: List[torch.Tensor] = []\nfor index in range({k}):\n    parts.append({t} * index)\n{n} = torch.stack(parts)", "{n} = {t}\ncount = 0\nwhile count < {k}:\n    {n} = {n} - count\n    count += 1",
          "{n} = {t} if {i} % 2 == 0 else {t} + 1", "assert {i} > -100\n{n} = {t}", "pair = ({t}, {i})\n{n} = pair[0] * pair[1]", "named: Dict[str, torch.Tensor] = {{'a': {t}}}\n{n} = named['a'] + 1",
          "maybe: Optional[torch.Tensor] = None\nif {i} > 1:\n    maybe = {t}\n{n} = {t} if maybe is None else maybe", "sizes = {t}.shape\n{n} = {t}.reshape(sizes[0], -1)", "a, b = self.part({t})\n{n} = a * b.unsqueeze(-1)",
          "{n} = {t}\nfor part in {t}.unbind(0):\n    {n} = {n} + part", "if {t}.dim() == 3:\n    {n} = {t}.sum(-1)\nelse:\n    {n} = {t}", "{n} = torch.zeros({t}.shape)\n{n}[0] = 1", "items = [{t}, {t}]\n{n} = items[-1] - items[0]",
          "sizes = [{i}, {k}]\n{n} = torch.ones(sizes)", "{n} = {t}\nif self.training:\n    {n} = {n} * 0", "{n} = {t}\nif {i} == {k}:\n    {n} = {n}[0]"]
RESULTS = ["({t}, {t}, {t}, {t})", "({t}, {t}, {t}, {t}, {t}, {t})", "[{t}, {t}, {t}]", "{t}", "({t}, {t})", "[{t}, {t}]", "{{'a': {t}, 'b': {t}}}", "({t}, ({t}, {t}))", "({t}, x)", "({t}, self.weight)", "x", "({t}, {t}.shape[0] * {t})", "{t}.sum()", "[{t}]"]


class Generator:
    def __init__(self, seed):
        self.random = random.Random(seed)
        torch.manual_seed(seed)
        self.is_script = self.random.random() < 0.4
        self.inputs = {name: eval(code) for name, code in INPUTS.items() if name == "x" or self.random.random() < 0.4}
        self.lines = []
        self.spaces = {"I": ["2", "3"], "S": ["0.5"], "Z": [], "V": [], "T": list(self.inputs)}
        self.scope = {"self": self.instance(HEADER), **self.inputs}

    @staticmethod
    def instance(source):
        scope = {}
        exec(source, scope)
        return scope["Generated"]().eval()

    def fill(self, template, new):
        def pick(kind):
            names = self.spaces[kind] or ["x" if kind == "T" else "2"]
            return self.random.choice(names[-6:] if self.random.random() < 0.7 else names)
        text, begin = "", 0
        while (at := template.find("{", begin)) >= 0:
            text += template[begin:at]
            if template[at + 1] == "{":
                text, begin = text + "{", at + 2
                continue
            key = template[at + 1]
            text += {"t": lambda: pick("T"), "i": lambda: pick("I"), "s": lambda: pick("S"), "z": lambda: pick("Z") if self.spaces["Z"] else "torch.tensor(2)",
                     "v": lambda: pick("V"), "k": lambda: str(self.random.randint(1, 3)), "d": lambda: str(self.random.choice([0, 1, -1, 2, -2])),
                     "n": lambda: new}[key]()
            begin = at + 3
        return (text + template[begin:]).replace("}}", "}")

    def runs(self, lines):
        """Runs the lines in the scope of the module. Returns whether it can."""
        scope = dict(self.scope)
        module_scope = {"torch": torch, "F": torch.nn.functional, "List": list, "Dict": dict, "Optional": object}
        code = "\n".join(line.replace(": List[torch.Tensor]", "").replace(": Dict[str, torch.Tensor]", "").replace(": Optional[torch.Tensor]", "") for line in lines)
        try:
            before = {name: value.clone() for name, value in self.inputs.items()}
            with torch.no_grad():
                exec(code, module_scope, scope)
            if any(not torch.equal(before[name], self.inputs[name]) for name in before):  # Inputs stay as they are.
                for name in before:
                    self.inputs[name].copy_(before[name])
                return None
        except Exception:
            return None
        return scope

    def statement(self):
        kind = self.random.choices(["I", "S", "Z", "T", "V", "block"], [22, 6, 9, 50, 10, 9 if self.is_script else 0])[0]
        new = f"{'t' if kind in ('T', 'V', 'block') else kind.lower()}{len(self.lines)}"
        lines = []
        if kind == "V":
            if not self.spaces["V"] or self.random.random() < 0.4:
                lines = [self.fill(f"{new} = {self.random.choice(['{t}.clone()', '{t} * 1.5', '{t} + 1', 'torch.zeros_like({t})'])}", new)]
                self.spaces["V"].append(new)
            lines.append(self.fill(self.random.choice(BOTH["V"]), new))
        elif kind == "block":
            lines = self.fill(self.random.choice(SCRIPT), new).split("\n")
        else:
            lines = [f"{new} = {self.fill(self.random.choice(BOTH[kind]), new)}"]
        scope = self.runs(lines)
        value = scope and scope.get(new)
        wanted = {"I": int, "S": float}.get(kind, torch.Tensor)
        if scope is None or (value is not None and not isinstance(value, wanted)) or (kind != "V" and value is None) or (
                isinstance(value, torch.Tensor) and (value.numel() > 5000 or value.numel() == 0 or value.is_complex())) or (isinstance(value, int) and abs(value) > 300):
            if new in self.spaces["V"]:
                self.spaces["V"].remove(new)
            return
        self.scope = scope
        self.lines += lines
        if kind == "V":
            if value is not None:
                self.spaces["T"].append(new)
        else:
            self.spaces["T" if kind == "block" else kind].append(new)

    def source(self):
        for _ in range(self.random.randint(4, 24)):
            self.statement()
        results = [self.fill(self.random.choice(RESULTS), "")]
        while (scope := self.runs([f"result = {results[-1]}"])) is None:
            results.append("x * 2")
        arguments = ", ".join(["self", *self.inputs])
        types = {"ids": "ids", "flags": "flags"}
        body = "\n".join(f"        {line}" for line in [*self.lines, f"return {results[-1]}"])
        return f"{HEADER}\n    def forward({', '.join(types.get(a, a) for a in arguments.split(', '))}):\n{body}\n"


def main():
    folder, count, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    index = []
    for number in range(count):
        generator = Generator(seed * 1_000_003 + number)
        path = folder / f"{number}.py"
        path.write_text(generator.source())
        spec = importlib.util.spec_from_file_location(f"generated{number}", path)
        module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
            model = module.Generated().eval()
            if generator.is_script:
                made = torch.jit.script(model)
            else:
                with torch.no_grad():
                    made = torch.jit.trace(model, tuple(generator.inputs.values()), check_trace=False, strict=False)
        except Exception:
            if not generator.is_script:
                continue
            try:  # What TorchScript's compiler does not take may still be traced.
                with torch.no_grad():
                    made = torch.jit.trace(model, tuple(generator.inputs.values()), check_trace=False, strict=False)
            except Exception:
                continue
            generator.is_script = False
        made.save(str(folder / f"{number}.pt"))
        dtypes = {torch.float32: "f32", torch.int64: "i64", torch.bool: "bool"}
        inputs = [f"{name}={dtypes[value.dtype]}[{','.join(map(str, value.shape))}]" for name, value in generator.inputs.items()]
        index.append(" ".join([str(number), "script" if generator.is_script else "trace", *inputs]))
    (folder / "index.txt").write_text("\n".join(index) + "\n")


main()
