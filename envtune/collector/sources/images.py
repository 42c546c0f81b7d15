"""What the image checks read: parts of Pillow, and what building it needs."""

# In Pillow's RECORD and below its directory; nothing else of it is kept.
RECORDED_PILLOW_FILES = r"^PIL/(_version\.py|Image\.py|ImageFile\.py|_imaging[^/]*\.so)$"
# Packages for building pillow-simd: per requirement, any of these satisfies it and the first is installed; from the
# porting guide's lists, 003:1436 and 1440.
PILLOW_BUILD_DEBIAN = (
    ("libtiff5-dev", "libtiff-dev"),
    ("libjpeg8-dev", "libjpeg62-turbo-dev", "libjpeg-turbo8-dev"),
    ("libopenjp2-7-dev",),
    ("zlib1g-dev",),
    ("libfreetype6-dev", "libfreetype-dev"),
    ("liblcms2-dev",),
    ("libwebp-dev",),
    ("tcl8.6-dev",),
    ("tk8.6-dev",),
    ("python3-tk",),
    ("libharfbuzz-dev",),
    ("libfribidi-dev",),
    ("libxcb1-dev",),
)
PILLOW_BUILD_RHEL = (
    "libtiff-devel", "libjpeg-devel", "openjpeg2-devel", "zlib-devel", "freetype-devel", "lcms2-devel", "libwebp-devel",
    "tcl-devel", "tk-devel", "harfbuzz-devel", "fribidi-devel", "libraqm-devel", "libimagequant-devel", "libxcb-devel",
)  # fmt: skip
PILLOW_BUILD_QUERY = ("rpm", "-q", "--whatprovides") + PILLOW_BUILD_RHEL  # also matches renamed packages
DPKG_STATUS = "/var/lib/dpkg/status"
BUILD_HEADERS = ("jpeglib.h", "zlib.h")
