# BASE_URL=… API_KEY=… WEBHOOK_URL=https://… WEBHOOK_SECRET=… python3 quickstart.py
# Ends with the report: at once with the key of a sandbox (qa_test_…), else when a checker has tested.
import base64, hmac, http.server, json, os, queue, sys, threading, time, urllib.error, urllib.request, uuid

env = os.environ
secret = env["WEBHOOK_SECRET"]
completed = queue.Queue()


def call(method, path, body=None):
    request = urllib.request.Request(
        env["BASE_URL"] + path, method=method, data=json.dumps(body).encode() if body else None,
        headers={"Authorization": "Bearer " + env["API_KEY"], "Idempotency-Key": str(uuid.uuid4())})
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as refused:
        said = json.load(refused)
        sys.exit(f"{method} {path}: {refused.code} {said['error']}\n{said.get('hint', '')}")


# Receive: WEBHOOK_URL leads here. Verify the raw bytes before you parse them. One of the
# signatures (Standard Webhooks) has to be right: there are two while a secret is rotated.
def verify(body, headers):
    at, signatures = headers.get("webhook-timestamp", ""), headers.get("webhook-signature", "").split()
    if not at.isdecimal() or len(at) > 12 or abs(time.time() - int(at)) > 300:
        return False
    key = base64.b64decode(secret[6:]) if secret.startswith("whsec_") else secret.encode()
    signed = f"{headers.get('webhook-id')}.{at}.".encode() + body
    want = b"v1," + base64.b64encode(hmac.digest(key, signed, "sha256"))
    return any(hmac.compare_digest(want, got.encode()) for got in signatures)


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        genuine = verify(body, self.headers)
        self.send_response(204 if genuine else 401)  # within 10 seconds; the work comes after
        self.end_headers()
        if genuine and (event := json.loads(body))["event"] == "job.completed":
            completed.put(event["jobId"])


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(env.get("PORT", "8000"))), Receiver)
threading.Thread(target=server.serve_forever, daemon=True).start()
print("listening on port", server.server_port, flush=True)
job_id = call("POST", "/v1/hosted/test", {
    "url": "https://example.com/", "feature": "sign in", "webhookUrl": env["WEBHOOK_URL"], "webhookSecret": secret})["jobId"]
print("submitted", job_id, flush=True)
if env["API_KEY"].startswith("qa_test_"):
    call("POST", f"/v1/sandbox/jobs/{job_id}/play", {"summary": "Works."})
while completed.get() != job_id:
    pass
report = call("GET", f"/v1/jobs/{job_id}/report")
print(report["overallStatus"], report["checkerSummary"])
