"""What errors say by themselves."""

from __future__ import annotations

import pickle

from everthread import MissingExtra


def test_a_missing_extra_is_also_named_as_it_is_installed_in_a_clone() -> None:
    said = "plots need an extra: pip install 'everthread[plots]' (in a clone: pip install '.[plots]')"
    error = MissingExtra("plots need an extra: pip install 'everthread[plots]'")
    assert str(error) == str(pickle.loads(pickle.dumps(error))) == said
    assert str(MissingExtra("no weights")) == "no weights"
