"""Runs and trains models that cgc compiled: launch plans, replayed as CUDA graphs.

    import cgc
    session = cgc.load("clip.cgplan", device=0)
    features = session.run("encode_image", images)  # f32[N,3,224,224] -> f32[N,512]

    model = cgc.load("vit-b-32/")  # A folder of `cgc export`: plan, preprocessing and tokenizer.
    model.similarity(model.encode_image(["a.jpg"]), model.encode_text(["a cat"]))

    fast = cgc.compile(model.eval(), precision="fp16")  # Called like the model.
    step = cgc.train(model.train(), example, optimizer="adamw,lr=5e-4")  # step(batch) trains.

load() gives a Session of a plan, or a Model of a folder, which take any batch from any thread. NumPy arrays go in and come
out; torch tensors and other arrays with DLPack are used in place. compile() makes a plan of a torch module, or a module
that compiles itself; train() makes a Trainer of a module that computes a loss.
"""
from . import huggingface, openclip
from ._compile import compile
from ._errors import (BusyError, Code, DeviceError, Error, InvalidFileError, OutOfMemoryError, UnsupportedError,
                      UsageError)
from ._model import InputError, Model, Vectors
from ._module import CompiledModule
from ._plan import Bucket, Entry, TensorInfo
from ._runtime import version as _version
from ._session import Session, load
from ._train import Trainer, train
from .preprocess import Images, Preprocess

__version__ = _version()
__all__ = ["Bucket", "BusyError", "Code", "CompiledModule", "DeviceError", "Entry", "Error", "Images", "InputError",
           "InvalidFileError", "Model", "OutOfMemoryError", "Preprocess", "Session", "TensorInfo", "Trainer", "UnsupportedError",
           "UsageError", "Vectors", "compile", "huggingface", "load", "openclip", "train"]
