from slug import slug


def test_words_are_joined() -> None:
    assert slug("Hello, World!") == "hello-world"


def test_a_long_text_is_cut() -> None:
    assert len(slug("x" * 100)) == 60
