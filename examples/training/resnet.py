"""Exports the training step of a residual network with cross entropy: resnet.py --model 18 --out resnet18.pt

small is a network of four blocks for small images.

    cgc compile resnet18.pt --train forward --input 'image=f32[8,3,224,224]' --input 'label=i64[8]' \
        --optimizer sgd,lr=0.1,momentum=0.9,weight_decay=0.0001 -o resnet18.cgplan
    cgc train resnet18.cgplan --data image=image.npy label=label.npy --shuffle
"""
import argparse

import torch
from torchvision.models import resnet
from torchvision.models.resnet import BasicBlock, ResNet

MODELS = {"18": resnet.resnet18, "50": resnet.resnet50,
          "small": lambda: ResNet(BasicBlock, [1, 1, 1, 1], num_classes=10)}
parser = argparse.ArgumentParser()
parser.add_argument("--model", choices=tuple(MODELS), default="18")
parser.add_argument("--out", required=True)
args = parser.parse_args()
torch.manual_seed(0)
model = MODELS[args.model]().train()
compute = model.forward
# The method of the model itself, so that parameters keep their names and torchvision loads a checkpoint.
model.forward = lambda image, label: torch.nn.functional.cross_entropy(compute(image), label)
start = {name: value.clone() for name, value in model.state_dict().items()}
step = torch.jit.trace(model, (torch.randn(2, 3, 64, 64), torch.randint(10, (2,))), check_trace=False)
step.load_state_dict(start)  # tracing has updated the running statistics
step.save(args.out)
