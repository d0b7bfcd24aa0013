import os
import sys
from pathlib import Path

from hypothesis import settings

# Some virtual machines announce matrix instructions (AMX) that they do not run: products in bf16 would end the process.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

# Oracles and generators that tests of several folders share stand beside this file.
sys.path.insert(0, str(Path(__file__).parent))

# A slow machine is no reason to fail. `make fuzz` comes with a profile of its own.
if settings.get_current_profile_name() == "default":
    settings.register_profile("unhurried", deadline=None)
    settings.load_profile("unhurried")
