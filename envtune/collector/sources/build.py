"""What the compiler checks read: every installed gcc, the hdf5 for dumps, and a gcc source tree."""

import os
from typing import Any

from .tables import Table, quietly, stat_matches

HDF5_HOME = "/usr/local/hdf5"
HDF5_SETTINGS = HDF5_HOME + "/lib/libhdf5.settings"
# The compiler proper of a gcc: of the system, or built here (porting guide 003:2803-2860).
GCC_VERSIONS = (
    "/usr/lib/gcc/*/*/cc1",
    "/usr/libexec/gcc/*/*/cc1",
    "/usr/local/libexec/gcc/*/*/cc1",
    "/usr/local/*gcc*/libexec/gcc/*/*/cc1",
    "/opt/*gcc*/libexec/gcc/*/*/cc1",
    "/opt/rh/*/root/usr/libexec/gcc/*/*/cc1",  # devtoolset and gcc-toolset of CentOS and RHEL
    "/opt/openEuler/*/root/usr/lib*/gcc/*/*/cc1",  # gcc-toolset of openEuler
)
LOCAL = "/usr/local/libexec/gcc"
# What contrib/download_prerequisites of gcc 7.3.0 downloads, by the directory it unpacks to.
PREREQUISITES = {
    "gmp": "gmp-6.1.0.tar.bz2",
    "mpfr": "mpfr-3.1.4.tar.bz2",
    "mpc": "mpc-1.0.3.tar.gz",
    "isl": "isl-0.16.1.tar.bz2",
}
SOURCE_FOLDERS = ("/usr/local/src/gcc-7.3.0", "/root/gcc-7.3.0")
BUILD = Table(stats=GCC_VERSIONS + (HDF5_HOME, LOCAL), files=(HDF5_SETTINGS,))


def record_build(recorder: Any) -> None:
    """Record which archives a gcc source tree has, if there is one."""
    homes = [recorder.environ.get("HOME", ""), recorder.cwd]
    folders = list(SOURCE_FOLDERS) + [home + "/gcc-7.3.0" for home in homes if home.startswith("/")]
    for folder in dict.fromkeys(folders):
        quietly(recorder.stat, folder + "/configure")
        if recorder.files.get(folder + "/configure") is not None:
            stat_matches(recorder, [folder + "/*.[0-9]"])
            for library, archive in PREREQUISITES.items():
                quietly(recorder.stat, os.path.join(folder, library))
                quietly(recorder.stat, os.path.join(folder, archive))
