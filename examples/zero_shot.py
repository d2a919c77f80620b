"""Says which of some captions fits each picture: zero_shot.py MODEL_FOLDER PICTURE... -- CAPTION..."""
import sys

import cgc
import numpy

folder, *rest = sys.argv[1:] or [""]
if "--" not in rest[1:-1]:
    sys.exit(__doc__)
pictures, captions = rest[:rest.index("--")], rest[rest.index("--") + 1:]

with cgc.load(folder) as model:
    texts = model.encode_text([f"a photo of {caption}" for caption in captions])
    images = model.encode_image(pictures, errors="return")
    logits = model.card.logit_scale * model.similarity(images, texts)
    odds = numpy.exp(logits - logits.max(axis=1, keepdims=True))
    for index, (picture, row) in enumerate(zip(pictures, odds / odds.sum(axis=1, keepdims=True))):
        if index in images.errors:
            print(f"{picture}: {images.errors[index]}")
        else:
            print(f"{picture}: {captions[row.argmax()]} ({row.max():.0%})")
