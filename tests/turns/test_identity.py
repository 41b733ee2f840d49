"""What is known of objects by which object it is."""

import dataclasses
import gc

from ledger.turns.identity import ByIdentity


@dataclasses.dataclass
class Unhashable:
    """Equal to others, and not hashable."""

    n: int = 0


def test_equal_objects_are_told_apart():
    """Two equal objects have a value each, though they are not hashable."""
    known, one, other = ByIdentity(), Unhashable(), Unhashable()
    known.set(one, "one")

    assert (known.get(one), known.get(other)) == ("one", None)


def test_it_goes_with_its_object():
    """Nothing is kept of an object that is gone."""
    known, one = ByIdentity(), Unhashable()
    known.set(one, "one")
    del one
    gc.collect()

    assert not known._kept


def test_what_cannot_be_referred_to_weakly_is_kept():
    """An object without weak references is known too."""
    known, thing = ByIdentity(), (1, 2)
    known.set(thing, "x")

    assert known.get(thing) == "x"
