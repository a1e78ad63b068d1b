"""Adds files that ship with the product but are not Python packages to a software bill of
materials: `python -m deploy.supply_chain.vendored FILE`.
"""

import json
import sys
from importlib.resources import files
from pathlib import Path


def main(bill_path: Path) -> None:
    """Add Swagger UI as a component to the bill of materials at `bill_path`."""
    record = json.loads(files("gateway.http").joinpath("swagger_ui/component.json").read_text())
    bill = json.loads(bill_path.read_text())
    component = {
        "bom-ref": record["purl"],
        "components": [
            {"hashes": [{"alg": "SHA-256", "content": digest}], "name": name, "type": "file"}
            for name, digest in record["sha256"].items()
        ],
        "licenses": [{"license": {"id": record["license"]}}],
        "name": record["name"],
        "purl": record["purl"],
        "type": "library",
        "version": record["version"],
    }
    bill["components"].append(component)
    bill_path.write_text(f"{json.dumps(bill, indent=2)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
