# Writes a TorchScript file with a method for each op of PyTorch's Core ATen opset and for ops that the import
# composes of others, and a table of what cgc does with each: core_ops.py FOLDER. Fails if an op of the opset has no
# row here.
import sys
import warnings
from pathlib import Path

import torch
from torch import nn

warnings.simplefilter("ignore")
aten = torch.ops.aten


def y(x):
    return x.flip([0]) + 0.5


def integers(x):
    return (x * 4).to(torch.int64)


def matrix(x):
    return x[0, 0]


def index(n, bound):
    return torch.arange(n) % bound


def weights(x, *sizes):
    """The first elements of x, repeated, as a tensor of these sizes."""
    count = torch.Size(sizes).numel()
    return x.flatten().repeat(count // x.numel() + 1)[:count].reshape(sizes)


def images(x):
    """x as [N, C, D, H, W]."""
    return x.unsqueeze(0)


# Ops of one tensor [2, 3, 4, 5].
UNARY = """abs acos acosh alias asin asinh atan atanh ceil clone cos cosh erf exp expm1 floor isinf isnan log log10
    log1p log2 logical_not neg reciprocal relu round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc elu gelu hardtanh
    leaky_relu any any.dims argmax argmin amax amin mean prod var.correction sort""".split()
# Ops of two tensors, and of a tensor and a number.
BINARY = """add.Tensor atan2 div.Tensor eq.Tensor fmod.Tensor ge.Tensor gt.Tensor le.Tensor logical_and logical_or
    logical_xor lt.Tensor maximum minimum mul.Tensor ne.Tensor pow.Tensor_Tensor remainder.Tensor sub.Tensor""".split()
WITH_NUMBER = """add.Scalar div.Scalar eq.Scalar fmod.Scalar ge.Scalar gt.Scalar le.Scalar lt.Scalar mul.Scalar ne.Scalar
    pow.Tensor_Scalar remainder.Scalar sub.Scalar""".split()

# Arguments of all other ops, from x [2, 3, 4, 5]; keyword arguments are in a dict at the end.
ARGUMENTS = {
    "_adaptive_avg_pool2d": lambda x: (x, [2, 2]),
    "_embedding_bag": lambda x: (matrix(x), index(6, 4), index(3, 3) * 2, False, 0, False, weights(x, 6), False),
    "_adaptive_avg_pool3d": lambda x: (x, [2, 2, 2]),
    "_cdist_forward": lambda x: (x, y(x), 2.0, None),
    "_log_softmax": lambda x: (x, 1, False),
    "_softmax": lambda x: (x, 1, False),
    "_native_batch_norm_legit": lambda x: (x, None, None, weights(x, 3), weights(x, 3).exp(), False, 0.1, 1e-5),
    "_native_batch_norm_legit.no_stats": lambda x: (x, weights(x, 3), None, True, 0.1, 1e-5),
    "_native_batch_norm_legit_no_training":
        lambda x: (x, weights(x, 3), None, weights(x, 3), weights(x, 3).exp(), 0.1, 1e-5),
    "_pdist_forward": lambda x: (matrix(x), 2.0),
    "_to_copy": lambda x: (x, {"dtype": torch.float64}),
    "adaptive_avg_pool1d": lambda x: (x[0], [2]),
    "addmm": lambda x: (weights(x, 5), matrix(x), weights(x, 5, 5)),
    "any.dim": lambda x: (x > 1, 1, True),
    "arange.start_step": lambda x: (2, 9, 3),
    "avg_pool1d": lambda x: (x[0], [2], [], [1], True),
    "avg_pool2d": lambda x: (x, [2, 2]),
    "avg_pool3d": lambda x: (images(x), [2, 2, 2]),
    "bitwise_not": lambda x: (integers(x),),
    "bmm": lambda x: (x[0], weights(x, 3, 5, 6)),
    "cat": lambda x: ([x, y(x)], 1),
    "clamp": lambda x: (x, -0.5, 0.5),
    "clamp.Tensor": lambda x: (x, y(x), None),
    "col2im": lambda x: (weights(x, 2, 12, 12), [4, 5], [2, 2], [1, 1], [0, 0], [1, 1]),
    "constant_pad_nd": lambda x: (x, [1, 2], 0.5),
    "convolution":
        lambda x: (x, weights(x, 3, 3, 2, 2), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
    "copy": lambda x: (x, y(x)),
    "cumsum": lambda x: (x, 1),
    "diagonal": lambda x: (x, 1, 0, 2),
    "div.Scalar_mode": lambda x: (x, 2, {"rounding_mode": "floor"}),
    "div.Tensor_mode": lambda x: (x, y(x), {"rounding_mode": "trunc"}),
    "embedding": lambda x: (matrix(x), index(6, 4)),
    "empty.memory_format": lambda x: ([2, 3],),
    "empty_strided": lambda x: ([2, 3], [3, 1]),
    "rand": lambda x: ([2, 3],),
    "randn": lambda x: ([2, 3],),
    "expand": lambda x: (x[:, :1], [2, 3, 4, 5]),
    "flip": lambda x: (x, [0, 2]),
    "full": lambda x: ([2, 3], 1.5),
    "full_like": lambda x: (x, 1.5),
    "gather": lambda x: (matrix(x), 1, index(8, 5).view(4, 2)),
    "grid_sampler_2d": lambda x: (x, weights(x, 2, 3, 3, 2), 0, 0, False),
    "index.Tensor": lambda x: (x, [None, index(4, 3)]),
    "index_put": lambda x: (x, [index(2, 2), index(2, 3)], weights(x, 4, 5), True),
    "index_select": lambda x: (x, 1, index(5, 3)),
    "masked_scatter": lambda x: (x, x > 0, y(x)),
    "max.dim": lambda x: (x, 1),
    "max_pool2d_with_indices": lambda x: (x, [2, 2]),
    "max_pool3d_with_indices": lambda x: (images(x), [2, 2, 2]),
    "mean.dim": lambda x: (x, [1, 2], True),
    "min.dim": lambda x: (x, 1),
    "mm": lambda x: (matrix(x), weights(x, 5, 6)),
    "native_dropout": lambda x: (x, 0.5, False),
    "native_group_norm": lambda x: (x, weights(x, 3), None, 2, 3, 20, 3, 1e-5),
    "native_layer_norm": lambda x: (x, [5], weights(x, 5), None, 1e-5),
    "permute": lambda x: (x, [1, 0, 3, 2]),
    "pow.Scalar": lambda x: (2, x),
    "prod.dim_int": lambda x: (x, 1),
    "reflection_pad1d": lambda x: (x[0], [1, 2]),
    "reflection_pad2d": lambda x: (x, [1, 2, 1, 0]),
    "reflection_pad3d": lambda x: (x, [1, 2, 1, 0, 1, 1]),
    "repeat": lambda x: (x, [1, 2, 1, 1]),
    "replication_pad2d": lambda x: (x, [1, 2, 1, 0]),
    "replication_pad3d": lambda x: (x, [1, 2, 1, 0, 1, 1]),
    "scalar_tensor": lambda x: (2,),
    "scatter.src": lambda x: (matrix(x), 1, index(4, 5).view(4, 1), matrix(y(x))),
    "scatter.value": lambda x: (matrix(x), 1, index(4, 5).view(4, 1), 0.5),
    "scatter_add": lambda x: (matrix(x), 0, index(10, 4).view(2, 5), matrix(y(x))),
    "scatter_reduce.two":
        lambda x: (matrix(x), 0, index(10, 4).view(2, 5), matrix(y(x)), "amax", {"include_self": False}),
    "select.int": lambda x: (x, 1, -1),
    "select_scatter": lambda x: (x, x[:, 0], 1, 2),
    "slice.Tensor": lambda x: (x, 3, 1, 4, 2),
    "slice_scatter": lambda x: (x, x[:, :2], 1, 1),
    "split_with_sizes": lambda x: (x, [1, 2], 1),
    "squeeze.dim": lambda x: (x[:, :1], 1),
    "squeeze.dims": lambda x: (x[:, :1], [0, 1]),
    "sum.dim_IntList": lambda x: (x, [1, 2]),
    "topk": lambda x: (x, 2),
    "unsqueeze": lambda x: (x, 1),
    "upsample_bilinear2d.vec": lambda x: (x, [8, 9], False, None),
    "upsample_nearest2d.vec": lambda x: (x, None, [2.0, 2.0]),
    "var.dim": lambda x: (x, [1], False),
    "view": lambda x: (x, [6, 20]),
    "where.self": lambda x: (x > 0, x, y(x)),
}
ARGUMENTS |= {name: (lambda x: (x,)) for name in UNARY}
ARGUMENTS |= {name: (lambda x: (x, y(x))) for name in BINARY}
ARGUMENTS |= {name: (lambda x: (x, 2)) for name in WITH_NUMBER}
ARGUMENTS |= {f"bitwise_{op}.Tensor": (lambda x: (integers(x), integers(y(x)))) for op in ("and", "or", "xor")}
ARGUMENTS |= {f"bitwise_{op}.Scalar": (lambda x: (integers(x), 6)) for op in ("and", "or", "xor")}

def row(x):
    return x[0, 0, 0]


def signs(x):
    """Numbers with zeros and NaN."""
    return torch.where(x > 1, torch.nan, (x * 2).trunc())


def rising(x):
    return x[0, 0].cumsum(1) * 0 + torch.arange(5)


# Other ops, which the import composes of cgc's. An op may have several calls.
COMPOSED = [
    ("adaptive_max_pool1d", lambda x: (x[0], [2])),
    ("adaptive_max_pool2d", lambda x: (x, [2, 5])),
    ("adaptive_max_pool2d", lambda x: (x, [3, 2])),
    ("adaptive_max_pool2d", lambda x: (x[0], [7, 1])),
    ("adaptive_max_pool3d", lambda x: (images(x), [2, 2, 3])),
    ("aminmax", lambda x: (x,)),
    ("aminmax", lambda x: (x, {"dim": 1, "keepdim": True})),
    ("atleast_1d", lambda x: (x[0, 0, 0, 0],)),
    ("atleast_2d", lambda x: (row(x),)),
    ("atleast_3d", lambda x: (x[0, 0, 0, 0],)),
    ("atleast_3d", lambda x: (row(x),)),
    ("atleast_3d", lambda x: (matrix(x),)),
    ("atleast_3d", lambda x: (x,)),
    ("atleast_3d.Sequence", lambda x: ([row(x), matrix(x)],)),
    ("bilinear", lambda x: (x[0], y(x)[0], weights(x, 2, 5, 5), weights(x, 2))),
    ("bilinear", lambda x: (row(x), row(y(x)), weights(x, 2, 5, 5), None)),
    ("block_diag", lambda x: ([matrix(x), x[0, 0, 0, 0], row(x), integers(matrix(x))],)),
    ("bucketize.Tensor", lambda x: (signs(x), row(x).sort()[0])),
    ("bucketize.Tensor", lambda x: (integers(x), torch.arange(-2, 3), {"out_int32": True, "right": True})),
    ("bucketize.Scalar", lambda x: (0, integers(row(x)).sort()[0])),
    ("cartesian_prod", lambda x: ([row(x), x[0, 0, :, 0], row(x)],)),
    ("cartesian_prod", lambda x: ([row(x)],)),
    ("chain_matmul", lambda x: ([matrix(x), matrix(x).t(), matrix(x)],)),
    ("channel_shuffle", lambda x: (x.transpose(1, 2), 2)),
    ("column_stack", lambda x: ([x[0, 0, :, 0], matrix(x)],)),
    ("corrcoef", lambda x: (matrix(x),)),
    ("corrcoef", lambda x: (row(x),)),
    ("count_nonzero", lambda x: (signs(x),)),
    ("count_nonzero", lambda x: (signs(x), 1)),
    ("count_nonzero.dim_IntList", lambda x: (integers(x), [0, -1])),
    ("cov", lambda x: (matrix(x),)),
    ("cov", lambda x: (row(x), {"correction": 0})),
    ("cov", lambda x: (integers(matrix(x)), {"correction": 7})),
    ("cross", lambda x: (x, y(x), 1)),
    ("linalg_cross", lambda x: (x[:, :, :3], y(x)[:1, :, :3], {"dim": -2})),
    ("deg2rad", lambda x: (x,)),
    ("rad2deg", lambda x: (integers(x),)),
    ("diag", lambda x: (row(x), -2)),
    ("diag", lambda x: (matrix(x), 1)),
    ("diagflat", lambda x: (matrix(x), 1)),
    ("diff", lambda x: (x,)),
    ("diff", lambda x: (x, 3, 1, y(x)[:, :1], None)),
    ("diff", lambda x: (x > 0, 1, -2, None, x[:, :, :1] > 1)),
    ("diff", lambda x: (x, 9)),
    ("diff", lambda x: (x, 0)),
    ("dist", lambda x: (x, y(x)[0], 3)),
    ("dsplit.int", lambda x: (x, 2)),
    ("dstack", lambda x: ([row(x), row(y(x))],)),
    ("embedding_bag", lambda x: (matrix(x), index(6, 4), torch.tensor([0, 2, 2, 5]))),
    ("embedding_bag", lambda x: (matrix(x), index(6, 4), torch.tensor([0, 2, 2, 6]), False, 1, False, None, True)),
    ("embedding_bag.padding_idx", lambda x: (matrix(x), index(6, 4), torch.tensor([0, 2, 2]), False, 2, False, None, False, None)),
    ("fix", lambda x: (x,)),
    ("frobenius_norm.dim", lambda x: (x, [1, 2], True)),
    ("hsplit.array", lambda x: (x, [1, 2])),
    ("hsplit.array", lambda x: (row(x), [2, -1])),
    ("hstack", lambda x: ([x, y(x)],)),
    ("hstack", lambda x: ([row(x), x[0, 0, 0, 0]],)),
    ("isin.Tensor_Tensor", lambda x: (integers(x), integers(x[0]))),
    ("isin.Tensor_Tensor", lambda x: (signs(x), signs(x[0]), {"invert": True})),
    ("isin.Tensor_Tensor", lambda x: (x, x[:0])),
    ("isin.Tensor_Scalar", lambda x: (integers(x), 2)),
    ("isin.Scalar_Tensor", lambda x: (2, integers(x))),
    ("isneginf", lambda x: (x.relu().log(),)),
    ("isposinf", lambda x: (1 / x.relu(),)),
    ("linalg_diagonal", lambda x: (x, {"offset": 1})),
    ("linalg_matrix_norm", lambda x: (x, 1)),
    ("linalg_matrix_norm", lambda x: (x, -torch.inf, [0, 2], True)),
    ("linalg_matrix_norm.str_ord", lambda x: (x,)),
    ("linalg_multi_dot", lambda x: ([matrix(x), matrix(x).t(), matrix(x)],)),
    ("linalg_multi_dot", lambda x: ([row(x), matrix(x).t(), x[0, 0, :, 0]],)),
    ("linalg_norm", lambda x: (x,)),
    ("linalg_norm", lambda x: (x, 3, [1], True)),
    ("linalg_norm", lambda x: (matrix(x), -1)),
    ("linalg_norm", lambda x: (row(x), 2)),
    ("linalg_norm", lambda x: (row(x), torch.inf)),
    ("linalg_norm.ord_str", lambda x: (matrix(x), "fro", {"dtype": torch.float64})),
    ("linalg_vander", lambda x: (x, {"N": 4})),
    ("linalg_vecdot", lambda x: (x, y(x), {"dim": 1})),
    ("median", lambda x: (x,)),
    ("median", lambda x: (signs(x),)),
    ("median.dim", lambda x: (signs(x), 1)),
    ("median.dim", lambda x: (integers(x), -1, True)),
    ("meshgrid", lambda x: ([row(x), x[0, 0, :, 0], x[0, 0, 0, 0]],)),
    ("meshgrid.indexing", lambda x: ([row(x), x[0, 0, :, 0], x[0, :, 0, 0]], {"indexing": "xy"})),
    ("nansum", lambda x: (signs(x), [1], True)),
    ("nansum", lambda x: (integers(x),)),
    ("native_channel_shuffle", lambda x: (x.transpose(1, 2), 2)),
    ("pad", lambda x: (x, [1, 2, 3, 0], "circular")),
    ("pad", lambda x: (images(x), [0, 5, 1, 0, 0, 2], "circular")),
    ("rot90", lambda x: (x,)),
    ("rot90", lambda x: (x, -1, [1, -1])),
    ("rot90", lambda x: (x, 6, [1, 2])),
    ("rot90", lambda x: (x, 4)),
    ("rrelu", lambda x: (x,)),
    ("searchsorted.Tensor", lambda x: (rising(x), matrix(x) * 4)),
    ("searchsorted.Tensor", lambda x: (rising(x)[0], signs(x), {"side": "right", "out_int32": True})),
    ("searchsorted.Tensor", lambda x: (row(x), x[0, 0, 0, 0], {"right": True, "sorter": row(x).argsort()})),
    ("searchsorted.Scalar", lambda x: (rising(x)[0], 2)),
    ("tensor_split.indices", lambda x: (x, [1, 2, -1], 3)),
    ("tensor_split.sections", lambda x: (x, 3, 3)),
    ("trace", lambda x: (matrix(x),)),
    ("trace", lambda x: (integers(matrix(x)),)),
    ("_upsample_nearest_exact1d.vec", lambda x: (x[0], None, [1.7])),
    ("_upsample_nearest_exact2d.vec", lambda x: (x, [7, 3], None)),
    ("_upsample_nearest_exact3d.vec", lambda x: (images(x), None, [2.0, 1.5, 0.7])),
    ("upsample_linear1d.vec", lambda x: (x[0], None, False, [1.7])),
    ("upsample_nearest1d.vec", lambda x: (x[0], [7], None)),
    ("upsample_nearest3d.vec", lambda x: (images(x), None, [2.0, 1.5, 0.7])),
    ("upsample_trilinear3d.vec", lambda x: (images(x), [5, 6, 4], True, None)),
    ("vander", lambda x: (row(x),)),
    ("vander", lambda x: (integers(row(x)), 3, True)),
    ("vsplit.int", lambda x: (x, 2)),
    ("vstack", lambda x: ([row(x), matrix(x)],)),
]

# The ops that are refused: their cause and arguments.
REFUSED = {
    "_adaptive_avg_pool2d_backward": ("autograd", lambda x: (x[..., :1, :1], x)),
    "_fft_c2r": ("complex", lambda x: (aten._fft_r2c(x, [3], 0, True), [3], 0, 5)),
    "_fft_r2c": ("complex", lambda x: (x, [3], 0, True)),
    "as_strided": ("memory-layout", lambda x: (x, [2, 2], [1, 2])),
    "avg_pool2d_backward": ("autograd", lambda x: (x[..., :2, :2], x, [2, 2], [], [0, 0], False, True, None)),
    "embedding_dense_backward": ("autograd", lambda x: (weights(x, 6, 5), index(6, 4), 4, -1, False)),
    "max_pool2d_with_indices_backward":
        ("autograd", lambda x: (x[..., :2, :2], x, [2, 2], [], [0, 0], [1, 1], False, integers(x[..., :2, :2]) * 0)),
    "nonzero": ("data-shape", lambda x: (x,)),
    "randperm": ("random", lambda x: (5,)),
}
# Ops that torch.jit.trace cannot record: it yields numbers or unrelated tensors, takes no mask of bools, or writes a fill as an op that does
# not exist. tests/filetests/offenders/every_op.cgir has the causes of the refused ones.
UNTRACED = ["_local_scalar_dense", "convolution_backward", "fill.Scalar", "native_group_norm_backward",
            "native_layer_norm_backward", "resize_", "sym_is_contiguous", "sym_numel", "sym_size.int",
            "sym_storage_offset", "sym_stride.int"]
# Ops whose elements are undefined or random, and views whose other form changes metadata.
FILLED = ["empty.memory_format", "empty_strided", "rand", "randn"]
# Ops of which cgc computes the first result.
FIRST = ["_embedding_bag", "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d", "embedding_bag",
         "embedding_bag.padding_idx", "median.dim", "_native_batch_norm_legit", "_native_batch_norm_legit.no_stats",
         "_native_batch_norm_legit_no_training", "max_pool2d_with_indices", "max_pool3d_with_indices", "native_dropout", "native_group_norm", "native_layer_norm"]


def core_ops():
    """The overloads with the tag `core`, but for those that write to an `out`."""
    names = set()
    for full in torch._C._dispatch_get_all_op_names():
        space, _, name = full.partition("::")
        packet, _, overload = name.partition(".")
        op = getattr(getattr(aten, packet, None), overload or "default", None) if space == "aten" else None
        if op is not None and torch.Tag.core in op.tags and overload != "out":
            names.add(name)
    return names


def overload_of(name):
    packet, _, overload = name.partition(".")
    return getattr(getattr(aten, packet, None), overload or "default", None)


def call(name, arguments, x, inplace=False):
    args = list(arguments(x))
    kwargs = args.pop() if isinstance(args[-1], dict) else {}
    if inplace:
        args[0] = args[0] + 0
    result = overload_of(name)(*args, **kwargs)
    if name in FILLED:
        result.fill_(1)
    is_size = isinstance(args[0], int) or isinstance(args[0], list) and isinstance(args[0][0], int)
    if is_size and not any(isinstance(arg, torch.Tensor) for arg in args):
        return result + x[0, 0, 0, 0]  # A trace takes no result that is independent of its inputs.
    return result[0] if name in FIRST else tuple(result) if isinstance(result, (list, tuple)) else result


def inplace_form(name, arguments, x):
    """The name of the form that overwrites its first argument, if it takes these arguments; else None."""
    packet, dot, overload = name.partition(".")
    form = f"{packet}_{dot}{overload}"
    op = overload_of(form)
    if op is None or torch.Tag.inplace_view in op.tags:
        return None
    result, first = call(name, arguments, x), arguments(x)[0]
    if not isinstance(first, torch.Tensor) or (result.shape, result.dtype) != (first.shape, first.dtype):
        return None
    return form


def main(folder):
    listed = [*ARGUMENTS, *REFUSED, *UNTRACED]
    missing, extra = core_ops() - set(listed), set(listed) - core_ops()
    extra |= {name for name, _ in COMPOSED} & core_ops()
    if missing or extra or len(listed) != len(set(listed)):
        sys.exit(f"core_ops.py: ops without a row: {sorted(missing)}; rows without an op: {sorted(extra)}")
    torch.manual_seed(1)
    x = torch.randn(2, 3, 4, 5)
    rows, methods = [], {}

    def add(name, arguments, state, inplace=False, suffix=""):
        method = name.replace(".", "_").strip("_") + ("_in_place" if inplace else "") + suffix
        methods[method] = lambda self, x: call(name, arguments, x, inplace)
        rows.append(f"{method} aten::{name} {state}")

    for name, arguments in ARGUMENTS.items():
        add(name, arguments, "computed")
        if form := inplace_form(name, arguments, x):
            add(form, arguments, "computed", inplace=True)
    for number, (name, arguments) in enumerate(COMPOSED):
        add(name, arguments, "computed", suffix=f"_composed{number}")
    for name, (cause, arguments) in REFUSED.items():
        add(name, arguments, cause)
    model = type("CoreOps", (nn.Module,), methods)().eval()
    traced = torch.jit.trace_module(model, {method: x for method in methods}, check_trace=False)
    torch.jit.save(traced, folder / "core_ops.pt")
    (folder / "core_ops.txt").write_text("\n".join(rows) + "\n")


main(Path(sys.argv[1]))
