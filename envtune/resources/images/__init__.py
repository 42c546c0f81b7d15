"""Pillow, pillow-simd, OpenCV and torchvision of the job's Python."""
