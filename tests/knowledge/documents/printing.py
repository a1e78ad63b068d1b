"""Writes PDF files for tests, object by object."""

from collections.abc import Sequence


def print_pdf(pages: Sequence[Sequence[str]], extra: str = "") -> bytes:
    """Return a PDF whose pages show these lines."""
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        f"<< /Type /Catalog /Pages 2 0 R {extra} >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, lines in enumerate(pages):
        shown = " ".join(f"({line}) Tj 0 -20 Td" for line in lines)
        stream = f"BT /F1 12 Tf 50 700 Td {shown} ET"
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] "
            f"/Resources << /Font << /F1 3 0 R >> >> /Contents {5 + 2 * number} 0 R >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    return file_of(objects)


def file_of(objects: Sequence[str]) -> bytes:
    """Return a PDF of these objects, numbered from 1; the first is its catalogue."""
    body, offsets = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n".encode()
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    tail = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R >>\n"
    return body + tail.encode() + f"startxref\n{len(body)}\n%%EOF\n".encode()


def print_tagged(
    blocks: Sequence[tuple[str, str, tuple[int, int]]], annotations: str = ""
) -> bytes:
    """Return a tagged PDF of one page: the kind, the text and the place of each block, in order."""
    shown = " ".join(
        f"/{kind} << /MCID {number} >> BDC 1 0 0 1 {left} {base} Tm ({text}) Tj EMC"
        for number, (kind, text, (left, base)) in enumerate(blocks)
    )
    stream = f"BT /F1 12 Tf {shown} ET"
    elements = [f"{number} 0 R" for number in range(9, 9 + len(blocks))]
    return file_of([
        "<< /Type /Catalog /Pages 2 0 R /MarkInfo << /Marked true >> /StructTreeRoot 6 0 R >>",
        "<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /StructParents 0 "
        "/Resources << /Font << /F1 3 0 R >> >> /Contents 5 0 R "
        f"/Annots [{annotations}] >>",
        f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        "<< /Type /StructTreeRoot /K 7 0 R /ParentTree 8 0 R >>",
        f"<< /Type /StructElem /S /Document /P 6 0 R /K [{' '.join(elements)}] >>",
        f"<< /Nums [0 [{' '.join(elements)}]] >>",
        *(
            f"<< /Type /StructElem /S /{kind} /P 7 0 R /Pg 4 0 R /K {number} >>"
            for number, (kind, _, _) in enumerate(blocks)
        ),
    ])  # fmt: skip
