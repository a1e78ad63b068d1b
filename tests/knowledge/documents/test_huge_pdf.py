"""A PDF of ten thousand pages is bounded in time and memory, and costs no other document."""

import io
import time

import pytest
from reportlab.pdfgen.canvas import Canvas

from tests.knowledge.documents.conftest import Desk

pytestmark = pytest.mark.slow


async def test_a_pdf_of_ten_thousand_pages_costs_itself_alone(desk: Desk) -> None:
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pageCompression=0)
    for number in range(10_000):
        canvas.drawString(72, 720, f"Page {number} names the part {number}.")
        canvas.showPage()
    canvas.save()
    desk.write("huge.pdf", buffer.getvalue())
    desk.write("good.md", "# Good\n\nThis page is read whatever the other one costs.")
    began = time.monotonic()

    result = await desk.ingest()

    assert "docs/good" in desk.index.documents
    assert [source for source, _ in result.failed] in ([], ["huge.pdf"])
    assert "docs/huge.pdf" in desk.index.documents or result.failed
    assert time.monotonic() - began < 3 * desk.reader.limits.seconds + 10
