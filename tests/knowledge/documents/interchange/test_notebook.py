import json

from knowledge.documents.interchange import notebook


def test_outputs_are_read_as_they_are_displayed() -> None:
    table = "<table><tr><th></th><th>lot</th></tr><tr><th>0</th><td>A-01</td></tr></table>"
    outputs = [
        {"output_type": "stream", "text": ["\x1b[0;31m00007\x1b[0m\n"]},
        {"output_type": "execute_result", "data": {"text/html": [table], "text/plain": "lot A-01"}},
        {
            "output_type": "display_data",
            "data": {"text/markdown": "Limit **5**", "text/plain": "<o>"},
        },
        {"output_type": "error", "ename": "ZeroDivisionError", "evalue": "division by zero"},
    ]
    cell = {"cell_type": "code", "source": "run()", "outputs": outputs}

    page = notebook.read(json.dumps({"cells": [cell]}).encode(), "a.ipynb")

    assert [block.text for block in page.blocks[1:]] == [
        "```\n00007\n```",
        "|  | lot |\n|---|---|\n| 0 | A-01 |",
        "Limit 5",
        "```\nZeroDivisionError: division by zero\n```",
    ]
