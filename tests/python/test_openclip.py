"""openclip.accelerate(): a live CLIP model computes the same with compiled towers, and can be restored."""
import copy
import warnings

import cgc
import open_clip
import pytest
import torch
from numpy.testing import assert_allclose

TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}


def clip():
    torch.manual_seed(0)
    return open_clip.CLIP(embed_dim=16, vision_cfg={"image_size": 32, "patch_size": 16, "layers": 1, "width": 32, "head_width": 16},
                          text_cfg={"context_length": 8, "vocab_size": 64, "width": 32, "heads": 2, "layers": 1}).eval()


def test_a_live_model_is_accelerated_and_restored():
    model, image, text = clip(), torch.rand(2, 3, 32, 32), torch.randint(64, (2, 8))
    own = {name: getattr(model, name) for name in cgc.openclip.METHODS}
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        want = [model.encode_image(image, normalize=True), model.encode_text(text), *model(image, text)]
        with cgc.openclip.accelerate(model, target="cpu", shapes="wait") as fast:
            got = [model.encode_image(image, normalize=True), model.encode_text(text), *model(image, text)]
            assert "normalize" not in repr(fast) and "for batches [2]" in repr(fast)
            with pytest.raises(cgc.UsageError, match="restore"):
                cgc.openclip.accelerate(model)
            with torch.enable_grad():
                model.encode_text(text).sum().backward()
            assert model.text_projection.grad is not None
    for one, other in zip(got, want):
        assert_allclose(one, other, **TOLERANCE)
    fast.restore()
    assert {name: getattr(model, name) for name in cgc.openclip.METHODS} == own


def test_copies_are_refused_and_restore_is_for_its_own():
    model = clip()
    first = cgc.openclip.accelerate(model, target="cpu")
    with pytest.raises(cgc.UsageError, match="cannot be copied"):
        copy.deepcopy(model)
    first.restore()
    with cgc.openclip.accelerate(model, target="cpu"):
        first.restore()
        assert "encode_image" in vars(model)
    copy.deepcopy(model)


def test_what_is_no_clip_model_is_refused():
    with pytest.raises(cgc.UsageError, match="Linear has no method 'encode_image'"):
        cgc.openclip.accelerate(torch.nn.Linear(2, 2))
    with pytest.raises(cgc.UsageError, match="in training mode"):
        cgc.openclip.accelerate(clip().train())
