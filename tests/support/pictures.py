"""Small pictures for documents."""

import io

from PIL import Image


def make_picture(
    colour: str = "green", *, form: str = "PNG", size: tuple[int, int] = (120, 80)
) -> bytes:
    """Return a picture of one colour."""
    file = io.BytesIO()
    Image.new("RGB", size, colour).save(file, form)
    return file.getvalue()
