"""Tests for test_skips.py, which runs some of them in a pytest of its own: pytest finds none here by itself."""

import pytest


def test_passes() -> None:
    pass


def test_fails() -> None:
    assert not pytest


def test_has_no_moon() -> None:
    pytest.skip("there is no moon")


@pytest.mark.skipif("True", reason="there is no sun")
def test_has_no_sun() -> None:
    pass
