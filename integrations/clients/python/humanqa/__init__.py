"""The client of the Human QA Testing Service. It needs Python 3.9 and its standard library only.

Requests outlast a lost network, refusals are of one class, wait follows a test to its end, list walks
the pages of a list, and verify checks webhooks. The module humanqa.types has the bodies and answers.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import http.client
import json
import random
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Union, cast

from . import types

__all__ = ["Client", "Refused", "Unreachable", "NotGenuine", "verify", "types"]

_ATTEMPT = 45  # seconds of one attempt; the service holds an answer for 25 at most
_PATIENCE = 60  # seconds within which a call is repeated
_HOLD = 25
_BETWEEN_LOOKS = 2  # a key has sixty requests a minute
_TOLERANCE = 300  # seconds that the clocks of sender and receiver may be apart

Query = Mapping[str, Union[str, int, bool]]


class Refused(Exception):
    """The service refused a call. Match its code or status, never its text."""

    def __init__(self, status: int, body: Dict[str, Any], retry_after: float = 0) -> None:
        self.status = status
        self.code: str = body["code"]
        self.hint: Optional[str] = body.get("hint")
        self.request_id: Optional[str] = body.get("requestId")
        self.details: List[types.ErrorDetail] = body.get("details", [])
        self.body = body  # with its further keys, such as creditsShort
        self.retry_after = retry_after
        super().__init__(body["error"] + (f": {self.hint}" if self.hint else ""))

    @property
    def passing(self) -> bool:
        """Whether the same call may succeed later. A 409 may while an earlier attempt is being answered."""
        return self.status == 429 or self.status >= 500 or (self.status == 409 and self.retry_after > 0)


class Unreachable(Exception):
    """There was no answer, or no whole one."""


class NotGenuine(Exception):
    """A webhook was not signed with the secret, or not over these bytes, or too long ago."""


class _Stay(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the key to an address that nobody named."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class Client:
    """Client calls the service at base, such as https://qa.example.com, with one key."""

    def __init__(self, base: str, key: str, agent: str = "humanqa-python") -> None:
        address = urllib.parse.urlsplit(base)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise ValueError(f"{base!r} is no service's URL: it is like https://qa.example.com")
        if address.scheme == "http" and address.hostname not in ("localhost", "127.0.0.1", "::1"):
            raise ValueError(f"the key would go to {address.netloc} in the clear: use an https:// URL")
        self._base = base.rstrip("/")
        self._headers = {"Authorization": "Bearer " + key, "User-Agent": agent, "Accept": "application/json"}
        self._opener = urllib.request.build_opener(_Stay)

    def get(self, path: str, query: Optional[Query] = None) -> Any:
        """Reads a path from /v1 on."""
        return self._call("GET", _with(path, query))

    def post(self, path: str, body: Any = None, key: Optional[str] = None) -> Any:
        """Posts a body. It has one effect under its Idempotency-Key, however often it is sent.

        Without a key of yours it gets one for this call and its repeats.
        """
        return self._call("POST", path, body, {"Idempotency-Key": key or str(uuid.uuid4())})

    def patch(self, path: str, body: Any) -> Any:
        """Changes the fields that the body has."""
        return self._call("PATCH", path, body)

    def wait(
        self, job_id: str, timeout: Optional[float] = None, changed: Optional[Callable[[types.HostedStatus], None]] = None
    ) -> types.HostedStatus:
        """Follows a test until it has ended, and gives its last state: with a result if it is completed.

        A lost network costs time and nothing else. After timeout seconds it raises TimeoutError, and the test
        goes on. changed hears of each state.
        """
        path = "/v1/hosted/status/" + urllib.parse.quote(job_id, safe="")
        until = None if timeout is None else time.monotonic() + timeout
        tag, hold, failures = "", 0, 0
        while True:
            left = float("inf") if until is None else until - time.monotonic()
            if left <= 0 and hold:
                raise TimeoutError(f"job {job_id} has not ended; it goes on")
            pause: float = _BETWEEN_LOOKS
            try:
                ask = _with(path, {"wait": int(max(0, min(hold, left)))}) if hold else path
                answer = self._once("GET", ask, None, {"If-None-Match": tag} if tag else {})
                hold, failures = _HOLD, 0
                if answer.status != 304:
                    tag = answer.headers.get("ETag") or ""
                    now = cast(types.HostedStatus, answer.json())
                    if changed:
                        changed(now)
                    if now["isFinal"]:
                        return now
            except (Refused, Unreachable) as error:
                if isinstance(error, Refused) and not error.passing:
                    raise
                failures, hold = failures + 1, hold or 1
                pause = _pause(error, failures)
            time.sleep(max(0, min(pause, left)))

    def list(self, path: str, part: str, query: Optional[Query] = None) -> Iterator[Any]:
        """Walks a list page by page: client.list("/v1/jobs", "jobs", {"status": "completed"})."""
        more: Optional[Dict[str, Any]] = dict(query or {})
        while more is not None:
            page = self.get(path, more)
            yield from page[part]
            more = _next(more, page, len(page[part]))

    def _call(self, method: str, path: str, body: Any = None, headers: Optional[Dict[str, str]] = None) -> Any:
        """Calls until it is answered. Each call here may be repeated: it reads, or has a key, or sets what it sets."""
        began, failures = time.monotonic(), 0
        while True:
            try:
                return self._once(method, path, body, headers or {}).json()
            except (Refused, Unreachable) as error:
                failures += 1
                passing = not isinstance(error, Refused) or error.passing
                if not passing or time.monotonic() - began > _PATIENCE:
                    raise
                time.sleep(_pause(error, failures))

    def _once(self, method: str, path: str, body: Any, headers: Dict[str, str]) -> "_Answer":
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            headers = {**headers, "Content-Type": "application/json"}
        request = urllib.request.Request(self._base + path, data, {**self._headers, **headers}, method=method)
        try:
            with self._opener.open(request, timeout=_ATTEMPT) as answer:
                return _Answer(answer.status, answer.headers, answer.read())
        except urllib.error.HTTPError as answer:
            with answer:
                whole = _Answer(answer.code, answer.headers, answer.read())
            if whole.status == 304:
                return whole
            raise whole.refusal() from None
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"the service cannot be reached at {self._base}: {error}") from error


class _Answer:
    def __init__(self, status: int, headers: Any, body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body

    def json(self) -> Any:
        return json.loads(self.body) if self.body else None

    def refusal(self) -> Refused:
        told: Dict[str, Any] = {"code": f"HTTP_{self.status}", "error": f"the answer was {self.status}"}
        try:
            told.update(self.json())
        except (TypeError, ValueError):
            pass  # a proxy's page, say
        after = self.headers.get("Retry-After") or ""
        return Refused(self.status, told, int(after) if after.isdecimal() else 0)


def _pause(error: Exception, failures: int) -> float:
    if isinstance(error, Refused) and error.retry_after:
        return min(error.retry_after, 60)
    return min(0.5 * 2 ** min(failures - 1, 10), 15) * random.uniform(0.5, 1)


def _with(path: str, query: Optional[Query]) -> str:
    if not query:
        return path
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in query.items()}
    return path + "?" + urllib.parse.urlencode(texts)


def _next(query: Dict[str, Any], page: Dict[str, Any], items: int) -> Optional[Dict[str, Any]]:
    """The query of the next page: behind the cursor that the page names, or behind its items."""
    for name, parameter in (("nextCursor", "cursor"), ("next", "after")):
        if name in page:
            ends = page[name] is None or page.get("hasMore") is False
            return None if ends else {**query, parameter: page[name]}
    offset = page.get("offset", 0) + items
    return {**query, "offset": offset} if items and offset < page.get("total", 0) else None


def verify(body: bytes, headers: Mapping[str, str], secret: str) -> types.Webhook:
    """Checks that the service sent a webhook, by the raw body and the headers as they came, and gives its event.

    While the secret is rotated the old one passes, and the new one does. Raises NotGenuine.
    """
    given = {name.lower(): value for name, value in headers.items()}
    sent, signatures = given.get("webhook-timestamp", ""), given.get("webhook-signature", "")
    if not sent and not signatures:  # without Standard Webhooks the header of the service's own decides
        signatures = given.get("x-service-signature", "")
        want = hmac.new(secret.encode(), body, "sha256").hexdigest()
    else:
        if not (sent.isascii() and sent.isdecimal() and len(sent) < 13 and abs(time.time() - int(sent)) <= _TOLERANCE):
            raise NotGenuine("the signature does not match")
        signed = f"{given.get('webhook-id', '')}.{sent}.".encode() + body
        want = "v1," + base64.b64encode(hmac.new(_key(secret), signed, "sha256").digest()).decode()
    if not any(hmac.compare_digest(want.encode(), one.encode()) for one in signatures.split()):
        raise NotGenuine("the signature does not match")
    return cast(types.Webhook, json.loads(body))


def _key(secret: str) -> bytes:
    """The key that Standard Webhooks make of a secret: base64 behind whsec_, or the text itself."""
    if not secret.startswith("whsec_"):
        return secret.encode()
    text = secret[6:].rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except binascii.Error:
        return secret.encode()
