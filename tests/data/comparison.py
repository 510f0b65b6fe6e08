"""Batches that are compared in value, kind and dtype, all the way down."""


def assert_same(got, expected):
    assert type(got) is type(expected)
    if isinstance(expected, dict):
        assert list(got) == list(expected)
        for name in expected:
            assert_same(got[name], expected[name])
    elif isinstance(expected, tuple):
        for one, other in zip(got, expected, strict=True):
            assert_same(one, other)
    elif hasattr(expected, "shape"):
        assert (got.dtype, got.tolist()) == (expected.dtype, expected.tolist())
    else:
        assert got == expected
