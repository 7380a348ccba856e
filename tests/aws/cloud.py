"""A stand-in for AWS on loopback: moto's server in this process, and before it what moto does not do.

It answers dry runs, of which moto knows some, refuses actions, has quotas, and writes down what it is asked.
"""

from __future__ import annotations

import io
import json
import logging
import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

os.environ["MOTO_AMIS_PATH"] = str(Path(__file__).with_name("images.json"))  # read when moto is imported

import requests
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

logging.getLogger("werkzeug").setLevel(logging.ERROR)
QUOTAS = {"L-1216C47A": 64.0, "L-34B43A08": 64.0}
JSON = "application/x-amz-json-1.1"
DETAIL = "<Error><Code>CODE</Code><Message>MESSAGE</Message></Error>"
ERRORS = {
    "ec2": ("text/xml", f"<Response><Errors>{DETAIL}</Errors><RequestID>r</RequestID></Response>"),
    "sts": ("text/xml", f"<ErrorResponse>{DETAIL}</ErrorResponse>"),
    "servicequotas": (JSON, '{"__type": "CODE", "message": "MESSAGE"}'),
}
"""{service: (type of content, how it says what is wrong)}"""


class Cloud:
    """The server."""

    def __init__(self) -> None:
        self.asked: dict[str, list[dict[str, list[str]]]] = {}
        """{action: the arguments of each time that EC2 was asked for it}, dry runs left out."""
        self.errors: dict[str, tuple[str, str]] = {}
        """{action, `service:sts`, or `region:us-east-1`: (code, message) that it answers}"""
        self.quotas: dict[str, float] = {}
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.port}"

    def reset(self) -> None:
        """Forget everything that anybody has made."""
        requests.post(f"{self.url}/moto-api/reset", timeout=10).raise_for_status()
        self.asked, self.errors, self.quotas = {}, {}, dict(QUOTAS)

    def stop(self) -> None:
        """End it."""
        self._server.shutdown()
        self._thread.join(timeout=10)

    def _answer(self, environ: dict[str, Any], respond: Any) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        # moto has a name of its own for what EC2 calls elastic-ip, so that nobody would find the tags of one
        body = body.replace(b"&Filter.2.Value.1=elastic-ip", b"&Filter.2.Value.1=vpc-elastic-ip")
        environ.update({"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))})
        _, _, signed = environ.get("HTTP_AUTHORIZATION", "").partition("Credential=")
        region, service = signed.split("/")[2:4] if signed else ("", "")
        error = self.errors.get(f"service:{service}")
        if service == "ec2":
            error = self._ec2(parse_qs(body.decode("utf-8", "replace")), region)
        if error:
            kind, text = ERRORS[service]
            respond("403 Forbidden", [("Content-Type", kind)])
            return [text.replace("CODE", error[0]).replace("MESSAGE", error[1]).encode()]
        if service == "servicequotas":
            respond("200 OK", [("Content-Type", JSON)])
            return [json.dumps({"Quota": {"Value": self.quotas[json.loads(body)["QuotaCode"]]}}).encode()]
        answer: Iterable[bytes] = self._app(environ, respond)
        return answer

    def _ec2(self, said: dict[str, list[str]], region: str) -> tuple[str, str] | None:
        """Return the error that a request is answered with, None to let moto answer."""
        action = said["Action"][0]
        for refused in (action, f"region:{region}"):
            if refused in self.errors:
                return self.errors[refused]
        if "DryRun" in said:
            return "DryRunOperation", "Request would have succeeded, but DryRun flag is set."
        self.asked.setdefault(action, []).append(said)
        return None
