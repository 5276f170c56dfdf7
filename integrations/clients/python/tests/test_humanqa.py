"""Plays the client against a service that answers as it is told: python3 -m unittest, with the package in PYTHONPATH."""

import http.server
import json
import threading
import unittest
import unittest.mock

import humanqa

WAITING = {"jobId": "j", "status": "pending", "isFinal": False}
ENDED = {"jobId": "j", "status": "completed", "isFinal": True, "result": {"overallStatus": "pass"}}
BUSY = {"error": "the service restarts", "code": "UNAVAILABLE", "hint": "ask again", "requestId": "r1"}


class Service(http.server.ThreadingHTTPServer):
    """Service answers its requests one after the other; None cuts the connection."""

    def __init__(self, *answers):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers, self.asked = list(answers), []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def client(self):
        return humanqa.Client(f"http://127.0.0.1:{self.server_port}", "qa_live_x")


class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.asked.append(self)
        next_answer = self.server.answers.pop(0)
        if next_answer is None:
            self.close_connection = True
            return
        status, body, headers = next_answer
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if status != 304:
            self.wfile.write(json.dumps(body).encode())

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


class TestClient(unittest.TestCase):
    def setUp(self):
        self.slept = []
        patched = unittest.mock.patch("humanqa.time.sleep", self.slept.append)
        patched.start()
        self.addCleanup(patched.stop)

    def service(self, *answers):
        service = Service(*answers)
        self.addCleanup(service.server_close)
        self.addCleanup(service.shutdown)
        return service

    def test_a_wait_outlasts_a_service_that_is_gone(self):
        gone = [None, (503, BUSY, {"Retry-After": "1"})] * 20
        service = self.service((200, WAITING, {"ETag": '"1"'}), (304, None, {}), *gone, (200, ENDED, {}))
        seen = []
        ended = service.client().wait("j", changed=lambda now: seen.append(now["status"]))
        self.assertEqual(ended["result"]["overallStatus"], "pass")
        self.assertEqual(seen, ["pending", "completed"])
        self.assertIn("wait=25", service.asked[1].path)
        self.assertEqual(service.asked[1].headers["If-None-Match"], '"1"')

    def test_a_wait_ends_with_its_time_or_a_refusal(self):
        with self.assertRaises(TimeoutError):
            self.service((200, WAITING, {})).client().wait("j", timeout=0)
        with self.assertRaises(humanqa.Refused) as refused:
            self.service((404, {"error": "job not found", "code": "NOT_FOUND"}, {})).client().wait("j")
        self.assertEqual(refused.exception.code, "NOT_FOUND")

    def test_a_list_is_walked_by_cursors_and_offsets(self):
        for pages, asked in (
            ([{"jobs": "ab", "nextCursor": "c&1", "total": 3}, {"jobs": "c", "nextCursor": None, "total": 3}], "limit=2&cursor=c%261"),
            ([{"jobs": "ab", "next": "5"}, {"jobs": "c", "next": "6", "hasMore": False}], "limit=2&after=5"),
            ([{"jobs": "ab", "total": 3, "offset": 0}, {"jobs": "c", "total": 3, "offset": 2}], "limit=2&offset=2"),
        ):
            service = self.service(*((200, page, {}) for page in pages))
            self.assertEqual("".join(service.client().list("/v1/jobs", "jobs", {"limit": 2})), "abc")
            self.assertEqual([a.path for a in service.asked], ["/v1/jobs?limit=2", "/v1/jobs?" + asked])

    def test_a_post_is_sent_again_under_one_key(self):
        service = self.service(None, (503, BUSY, {}), (201, {"jobId": "j"}, {}))
        self.assertEqual(service.client().post("/v1/jobs", {})["jobId"], "j")
        self.assertEqual(len({a.headers["Idempotency-Key"] for a in service.asked}), 1)
        self.assertEqual(len(service.asked), 3)

    def test_a_refusal_has_its_hint_and_request(self):
        body = {"error": "5 credits are missing", "code": "INSUFFICIENT_CREDITS", "hint": "buy some", "requestId": "r2", "creditsShort": 5}
        with self.assertRaises(humanqa.Refused) as refused:
            self.service((402, body, {})).client().post("/v1/jobs", {}, key="mine")
        told = refused.exception
        self.assertEqual((told.status, told.hint, told.request_id, told.body["creditsShort"]), (402, "buy some", "r2", 5))
        with self.assertRaises(humanqa.Refused) as refused:
            self.service((302, None, {"Location": "http://127.0.0.1:1/"})).client().get("/v1/credits")
        self.assertEqual(refused.exception.code, "HTTP_302")

    def test_a_key_never_goes_out_in_the_clear(self):
        with self.assertRaises(ValueError):
            humanqa.Client("http://qa.example.com", "qa_live_x")

    def test_a_webhook_verifies_by_the_example_of_the_standard(self):
        body, secret = b'{"test": 2432232314}', "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        headers = {
            "Webhook-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330",
            "webhook-signature": "v1,AAAA v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        }
        with unittest.mock.patch("humanqa.time.time", lambda: 1614265330.0):
            self.assertEqual(humanqa.verify(body, headers, secret), {"test": 2432232314})
        with self.assertRaises(humanqa.NotGenuine):
            humanqa.verify(body, headers, secret)
        # printf '{"a":1}' | openssl dgst -sha256 -hmac secret
        alone = {"X-Service-Signature": "aa9e2e3575f5d7098b6caccd790888c36d5fdb63342a73bada2d6a51747a8494"}
        self.assertEqual(humanqa.verify(b'{"a":1}', alone, "secret"), {"a": 1})
        with self.assertRaises(humanqa.NotGenuine):
            humanqa.verify(b'{"a":2}', alone, "secret")


if __name__ == "__main__":
    unittest.main()
