"""The bare link: payload in TCP segments, nothing else."""

from __future__ import annotations

from tunnel_lab.wire import Conditions, Prediction, tcp_stream


def predict(conditions: Conditions) -> Prediction:
    """Return the one unit: 1514 bytes for 1448 on an MTU of 1500."""
    return Prediction((tcp_stream(conditions),))
