"""The verdicts as they are printed."""

from __future__ import annotations

import pandas as pd
import pytest
from test_verdicts import SIX, SSH, VPN, rows, value

from tunnel_lab import verdicts, verdictview
from tunnel_lab.claims import Source
from tunnel_lab.summary import summarise


def shown(capsys: pytest.CaptureFixture[str], *found: list[dict[str, object]]) -> list[str]:
    """Return what is printed of three claims, of a value, of a cell that was not run and of one that cannot be."""
    claims = {
        "fast": value(10),
        "near": value(10, conditions={"rtt_ms": {"at_most": 1, "because": "near"}}),
        "other": {**value(10), "cell": SSH},
    }
    given = {name: {"says": "s", "place": "p", **claim} for name, claim in claims.items()}
    source = Source.model_validate({"title": "A post", "published": "2020", "claims": given})
    runs = pd.DataFrame([row for each in found for row in each]).infer_objects()
    verdictview.show_verdicts(verdicts.judge(runs, summarise(runs), {"post": source}), {"post": source})
    return capsys.readouterr().out.splitlines()


def test_a_line_for_each_verdict_and_a_note_for_what_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, rows(VPN, SIX[:3]))
    assert lines[0] == "A post (2020)"
    assert max(len(line) for line in lines[:5]) <= 100
    fast = next(line for line in lines if line.startswith("fast"))
    assert fast.split() == ["fast", "x", "10.0", "10.1", "(10.0-10.2)", "3", "reproduced*", "10.1", "old"]
    assert any(line.startswith("1 reproduced, 1 not comparable, 1 not measured;") for line in lines)
    assert any(line.startswith("* provisional: ") and "75 %" in line for line in lines)
    assert any(line.startswith("not comparable: near: rtt_ms of vpn.old.copy is 80, not at most 1") for line in lines)
    assert "not measured: other; claims.csv says why" in lines


def test_a_source_of_which_nothing_was_measured_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, rows("none.bare.copy", SIX))
    assert lines[1].startswith("  none of its 3 claims was measured: this run has no vpn.old.copy")
