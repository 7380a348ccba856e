"""Command line: python -m tunnel_lab.relay."""

from __future__ import annotations

import sys

from tunnel_lab.relay.config import parse
from tunnel_lab.relay.detach import detached
from tunnel_lab.relay.errors import RelayError
from tunnel_lab.relay.serve import serve


def main(argv: list[str] | None = None) -> int:
    """Exit code: 0 done (or, with --daemonize, up), 1 cannot start or a defect, 2 wrong arguments."""
    config = parse(argv)
    try:
        if not config.daemonize:
            return serve(config, ready=lambda: None)
        detached(lambda ready: serve(config, ready), config.log_file)
    except RelayError as error:
        print(f"tunnel-lab relay: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
