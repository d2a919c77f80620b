# Writes the training steps that tests/numerics compiles: training_models.py FOLDER
#
# The method of each returns the loss. Inputs are f32 but for the last, which is i64.
import json
import sys
import warnings
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import weight_norm

warnings.simplefilter("ignore")
DATA = Path(__file__).resolve().parents[1] / "data"
# OpenCLIP's RN50 with one block in each layer, an eighth of the width, and smaller images. In batches of 8, LibTorch
# itself turns a difference of 1e-7 in the images into 1e-3 of the loss within 100 steps.
RESNET = {"layers": [1, 1, 1, 1], "width": 8, "head_width": 64, "image_size": 64}


class Linear(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(32, 32)

    def forward(self, x, label):
        return (self.fc(x) - F.one_hot(label, 32).float()).pow(2).mean()


class Classifier(nn.Module):
    """A model with cross entropy."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, label):
        return F.cross_entropy(self.model(x), label)


class Tied(nn.Module):
    """An embedding whose table also is the last layer, a parameter without a path, one that is only detached, and a
    frozen one."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 20, bias=False)
        self.head.weight = self.embedding.weight
        self.unused = nn.Parameter(torch.ones(3))
        self.detached = nn.Parameter(torch.full((8,), 2.0))
        self.frozen = nn.Parameter(torch.full((8,), 0.5), requires_grad=False)

    def forward(self, x, tokens):
        hidden = self.norm(self.embedding(tokens) * self.frozen * self.detached.detach() + x)
        return F.cross_entropy(self.head(hidden + hidden.view(-1, 2, 4).detach().view(-1, 8).tanh()), tokens)


class Convolutions(nn.Module):
    """Convolutions, batch norms in training mode, pooling and residuals, as in a ResNet."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
                                  nn.MaxPool2d(3, stride=2, padding=1))
        self.block = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True),
                                   nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(8, 10)

    def forward(self, x):
        x = self.stem(x)
        return self.fc(self.pool(F.relu(self.block(x) + x)).flatten(1))


class Block(nn.Module):
    """A residual block of a transformer, with dropout."""

    def __init__(self, width):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = nn.MultiheadAttention(width, 4, batch_first=True)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.dropout = nn.Dropout(0.2)

    def forward(self, x):
        y = self.ln_1(x)
        x = x + self.dropout(self.attn(y, y, y, need_weights=False)[0])
        return x + self.dropout(self.mlp(self.ln_2(x)))


class Transformer(nn.Module):
    """Blocks in a list, as in OpenCLIP's towers, and a pooled result."""

    def __init__(self, width, layers):
        super().__init__()
        self.resblocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.ln_post = nn.LayerNorm(width)
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        for block in self.resblocks:
            x = block(x)
        return self.head(self.ln_post(x).mean(1))


def tiny():
    """The configuration of a small OpenCLIP model."""
    return json.loads((DATA / "tiny.json").read_text())


def wide():
    """The same with heads of 64 columns."""
    config = tiny()
    config["vision_cfg"].update(width=128, head_width=64)
    config["text_cfg"].update(width=128, heads=2)
    return config


class Clip(nn.Module):
    """An OpenCLIP model with its loss."""

    def __init__(self, config):
        super().__init__()
        from open_clip.model import CLIP
        self.clip = CLIP(**config)

    def forward(self, image, text):
        image_features, text_features, scale = self.clip(image, text)[:3]
        logits = scale * image_features @ text_features.T
        labels = torch.arange(logits.shape[0])
        return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)) / 2


class SigLip(nn.Module):
    """An OpenCLIP model with the sigmoid loss."""

    def __init__(self, config):
        super().__init__()
        from open_clip.loss import SigLipLoss
        from open_clip.model import CLIP
        self.clip = CLIP(**config, init_logit_bias=-10.0)
        self.loss = SigLipLoss()

    def forward(self, image, text):
        return self.loss(*self.clip(image, text))


class CoCa(nn.Module):
    """A small CoCa model of OpenCLIP with its loss, that of the captions included."""

    def __init__(self):
        super().__init__()
        from open_clip import CoCa as Model, CoCaLoss
        config = tiny()
        vision, text = config["vision_cfg"], config["text_cfg"]
        vision.update(attentional_pool=True, attn_pooler_queries=8, attn_pooler_heads=2, output_tokens=True)
        decoder = dict(text, layers=1, attn_pooler_heads=2)
        text.update(embed_cls=True, output_tokens=True)
        self.coca = Model(text["width"], decoder, text, vision)
        self.loss = CoCaLoss(caption_loss_weight=2.0, clip_loss_weight=1.0)

    def forward(self, image, text):
        outputs = self.coca(image, text)
        names = ("image_features", "text_features", "logits", "labels", "logit_scale")
        return sum(self.loss(**{name: outputs[name] for name in names}))


def resnet18():
    """Without zero_init_residual and with smaller images, LibTorch itself turns a difference of 1e-7 in the images into
    1e-2 of the loss within ten steps."""
    from torchvision.models import resnet18 as model
    return model(num_classes=10, zero_init_residual=True)


def mlp():
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 32),
                         nn.SiLU(), nn.Linear(32, 10))


def normalized():
    """Norms for rows, for columns and for a whole weight."""
    return nn.Sequential(weight_norm(nn.Linear(16, 32)), nn.GELU(), weight_norm(nn.Linear(32, 32), dim=1), nn.Tanh(),
                         weight_norm(nn.Linear(32, 10), dim=None))


def main(folder):
    torch.manual_seed(0)
    labels = torch.arange(4)
    image = torch.randn(4, 3, 32, 32)
    text = torch.arange(4 * 16).reshape(4, 16) % 60
    models = {
        "train_linear": (Linear(), (torch.randn(4, 32), labels)),
        "train_mlp": (Classifier(mlp()), (torch.randn(4, 16), labels)),
        "train_weight_norm": (Classifier(normalized()), (torch.randn(4, 16), labels)),
        "train_tied": (Tied(), (torch.randn(4, 8), labels)),
        "train_convolutions": (Classifier(Convolutions()), (image, labels)),
        "train_transformer": (Classifier(Transformer(128, 3)), (torch.randn(32, 64, 128), labels.repeat(8))),
        "train_clip": (Clip(tiny()), (image, text)),
        "train_clip_resnet": (Clip(tiny() | {"vision_cfg": RESNET}), (torch.randn(16, 3, 64, 64), text.repeat(4, 1))),
        "train_siglip": (SigLip(tiny()), (image, text)),
        "train_coca": (CoCa(), (image, text)),
        "train_resnet18": (Classifier(resnet18()), (torch.randn(8, 3, 64, 64), torch.arange(8))),
        "train_clip_wide": (Clip(wide()), (image, text)),
        "train_siglip_wide": (SigLip(wide()), (image, text)),
    }
    for name, (model, inputs) in models.items():
        torch.jit.trace(model.train(), inputs, check_trace=False).save(str(folder / f"{name}.pt"))


main(Path(sys.argv[1]))
