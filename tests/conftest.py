import sys
from pathlib import Path

from hypothesis import settings

# Oracles and generators that tests of several folders share stand beside this file.
sys.path.insert(0, str(Path(__file__).parent))

# A slow machine is no reason to fail. `make fuzz` comes with a profile of its own.
if settings.get_current_profile_name() == "default":
    settings.register_profile("unhurried", deadline=None)
    settings.load_profile("unhurried")
