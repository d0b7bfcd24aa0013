"""What setup.cfg cannot say: the kernels in C, which an installation does without where they cannot be compiled."""

import sys
from pathlib import Path

from setuptools import Extension, setup

NATIVE = Path("tkg_incremental") / "ops" / "native"

kernels = Extension(
    "tkg_incremental.ops.native._kernels",
    sources=sorted(map(str, NATIVE.glob("*.c"))),
    depends=sorted(map(str, NATIVE.glob("*.h"))),
    # No flag lets the compiler reorder sums; a product and a sum may be rounded once, as one instruction. The two about
    # mathematics give up what nobody asks for, errno and traps, without which there are no vectors of square roots,
    # rounded or chosen numbers.
    extra_compile_args=[
        *("-O3", "-std=c11", "-fopenmp", "-fvisibility=hidden"),
        *("-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math"),
    ],
    extra_link_args=["-fopenmp"],
    optional=True,
)

# Elsewhere compilers come without OpenMP: torch, with all threads, is faster than kernels with one.
setup(ext_modules=[kernels] if sys.platform == "linux" else [])
