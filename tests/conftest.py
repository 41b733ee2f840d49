# Two Hypothesis profiles. Neither has a deadline: a busy machine is no counterexample.
import os

from hypothesis import settings

settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=300, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")
