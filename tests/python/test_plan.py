"""PlanShapes: which outputs belong to which inputs, for plans whose buckets differ in more than the batch."""
from types import SimpleNamespace

from cgc._plan import Bucket, PlanShapes, TensorInfo


def bucket(batch, size):
    """A batch of pictures of this size, a scale without batch, and an output that depends on both."""
    return ((("image", "f32", (batch, 3, size, size), 0), ("scale", "f32", (2,), -1)),
            (("tokens", "bf16", (size * size, batch, 8), 1), ("count", "i64", (), -1)))


def shapes(any_batch, *buckets):
    return PlanShapes(SimpleNamespace(entries=(("encode", any_batch, buckets),)))


def test_sizes_and_batches():
    plan = shapes(True, bucket(1, 4), bucket(8, 4), bucket(2, 6))
    assert plan.outputs("encode", [(5, 3, 4, 4), (2,)]) == [(16, 5, 8), ()]
    assert plan.outputs("encode", [(5, 3, 6, 6), (2,)]) == [(36, 5, 8), ()]
    for wrong in ([(5, 3, 5, 5), (2,)], [(5, 3, 4, 4), (3,)], [(5, 3, 4), (2,)], [(), (2,)]):
        assert plan.outputs("encode", wrong) is None
    entry = plan.entries["encode"]
    assert entry.inputs == (TensorInfo("image", "float32", ("N", 3, "*", "*")), TensorInfo("scale", "float32", (2,)))
    assert entry.outputs == (TensorInfo("tokens", "bfloat16", ("*", "N", 8)), TensorInfo("count", "int64", ()))
    assert entry.buckets[2] == Bucket(2, ((2, 3, 6, 6), (2,)), ((36, 2, 8), ()))


def test_dependent_rows_take_the_buckets_only():
    plan = shapes(False, bucket(1, 4), bucket(8, 4))
    assert plan.outputs("encode", [(8, 3, 4, 4), (2,)]) == [(16, 8, 8), ()]
    assert plan.outputs("encode", [(5, 3, 4, 4), (2,)]) is None
    assert [bucket.batch for bucket in plan.entries["encode"].buckets] == [1, 8]


def test_an_entry_without_batch():
    plan = shapes(True, (((("x", "u8", (4,), -1)),), ((("y", "bool", (4,), -1)),)))
    assert plan.outputs("encode", [(4,)]) == [(4,)]
    assert plan.entries["encode"].buckets == (Bucket(None, ((4,),), ((4,),)),)
