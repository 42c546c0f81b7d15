"""Decode and resize images as a data loader does, with the Pillow or OpenCV of this Python.

    python images.py pillow|opencv DIRECTORY

Uses the images in the directory, and writes some if there are none. Prints CPU seconds of the median round as JSON:
CPU time, because it does not grow while others use the machine.
"""

import importlib
import io
import json
import os
import random
import sys
import time
from typing import Any, Callable, Dict, List, Tuple

MOST = 16  # images
MOST_BYTES = 1 << 24  # of one image
ROUNDS = 9
SIZE = (224, 224)
ENDINGS = (".jpg", ".jpeg", ".png", ".bmp")


def images(directory: str) -> List[bytes]:
    """Return the first images of a directory, by name."""
    names = sorted(name for name in os.listdir(directory) if name.lower().endswith(ENDINGS))
    paths = [os.path.join(directory, name) for name in names]
    found = []
    for path in [path for path in paths if 0 < os.path.getsize(path) <= MOST_BYTES][:MOST]:
        with open(path, "rb") as file:
            found.append(file.read())
    return found


def example() -> Tuple[int, int, bytes]:
    """Return the size and the pixels of an image that is always the same: smooth in places, detailed in others."""
    numbers = random.Random(0)
    return 64, 48, bytes(numbers.randrange(256) for _ in range(64 * 48 * 3))


def pillow(directory: str) -> Tuple[Callable[[bytes], Any], Callable[[Any], Any], str]:
    """Return the functions that decode and resize."""
    image: Any = importlib.import_module("PIL.Image")
    about = "Pillow " + getattr(importlib.import_module("PIL"), "__version__", "?")
    if not images(directory):
        width, height, pixels = example()
        large = image.frombytes("RGB", (width, height), pixels).resize((1024, 768), image.BICUBIC)
        large.save(os.path.join(directory, "example.jpg"), quality=90)
    return (
        lambda data: image.open(io.BytesIO(data)).convert("RGB"),
        lambda picture: picture.resize(SIZE, image.BICUBIC),
        about,
    )


def opencv(directory: str) -> Tuple[Callable[[bytes], Any], Callable[[Any], Any], str]:
    """Return the functions that decode and resize."""
    cv2: Any = importlib.import_module("cv2")
    numpy: Any = importlib.import_module("numpy")
    cv2.setNumThreads(1)
    if not images(directory):
        width, height, pixels = example()
        small = numpy.frombuffer(pixels, numpy.uint8).reshape(height, width, 3)
        cv2.imwrite(os.path.join(directory, "example.jpg"), cv2.resize(small, (1024, 768)))
    return (
        lambda data: cv2.imdecode(numpy.frombuffer(data, numpy.uint8), cv2.IMREAD_COLOR),
        lambda picture: cv2.resize(picture, SIZE, interpolation=cv2.INTER_AREA),
        "OpenCV " + str(cv2.__version__),
    )


def median(values: List[float]) -> float:
    """Return the middle value."""
    return sorted(values)[len(values) // 2]


def main(library: str, directory: str) -> Dict[str, Any]:
    """Return the result to print."""
    decode, resize, about = {"pillow": pillow, "opencv": opencv}[library](directory)
    files = images(directory)
    times: Dict[str, List[float]] = {"decode": [], "resize": []}
    for _ in range(ROUNDS):
        start = time.process_time()
        pictures = [decode(data) for data in files]
        between = time.process_time()
        for picture in pictures:
            resize(picture)
        times["decode"].append((between - start) / len(files))
        times["resize"].append((time.process_time() - between) / len(files))
    parts = {name: median(values) for name, values in times.items()}
    return {"seconds": sum(parts.values()), "parts": parts, "about": about}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(*sys.argv[1:])))
