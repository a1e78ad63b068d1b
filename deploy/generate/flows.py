"""Records the flows of a release: `python -m deploy.generate.flows` writes `released.json`."""

import json
import sys
from pathlib import Path

from manager.flows import EVERY
from manager.flows.released import Table, describe_flow

RELEASED = Path(__file__).parent.parent.parent / "manager" / "flows" / "released.json"


def main() -> int:
    """Write the current flows, after which a changed flow becomes a new version."""
    RELEASED.write_text(render({flow.name: describe_flow(flow) for flow in EVERY}), "utf-8")
    return 0


def render(tables: dict[str, Table]) -> str:
    """Return tables of flows as JSON, with one line per row."""
    flows = []
    for name, table in tables.items():
        rows = ",\n".join(json.dumps(row) for row in table["rows"])
        head = json.dumps({key: value for key, value in table.items() if key != "rows"})
        flows.append(f'{json.dumps(name)}: {head[:-1]}, "rows": [\n{rows}]}}')
    return "{" + ",\n".join(flows) + "}\n"


if __name__ == "__main__":
    sys.exit(main())
