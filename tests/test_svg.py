from onion.svg import fitted


def test_a_label_that_is_too_wide_is_cut():
    assert fitted("体育") == "体育"
    assert fitted("中" * 30) == "中" * 14 + "…"
