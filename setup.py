"""What setup.cfg cannot say: the kernels in C, which an installation does without where they cannot be compiled."""

import hashlib
import sys
from pathlib import Path

from setuptools import Extension, setup

NATIVE = Path("tkg_incremental") / "ops" / "native"

# Compared with the sources when the kernels are loaded: old kernels with new arguments would write anywhere.
digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(NATIVE.glob("*.[ch]")))).hexdigest()

kernels = Extension(
    "tkg_incremental.ops.native._kernels",
    sources=sorted(map(str, NATIVE.glob("*.c"))),
    depends=sorted(map(str, NATIVE.glob("*.h"))),
    define_macros=[("SOURCES", f'"{digest}"')],
    # No flag lets the compiler reorder sums; a product and a sum may be rounded once, as one instruction. The last two
    # flags leave out errno and traps, which the kernels do not read; otherwise square roots, rounding and choices are
    # not vectorized.
    extra_compile_args=[
        *("-O3", "-std=c11", "-fopenmp", "-fvisibility=hidden"),
        *("-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math"),
    ],
    extra_link_args=["-fopenmp"],
    optional=True,
)

# Elsewhere compilers come without OpenMP: torch, with all threads, is faster than kernels with one.
setup(ext_modules=[kernels] if sys.platform == "linux" else [])
