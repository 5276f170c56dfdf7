# BASE_URL=… API_KEY=… WEBHOOK_URL=https://… WEBHOOK_SECRET=… python3 quickstart.py
import hashlib, hmac, http.server, json, os, threading, urllib.request, uuid

env = os.environ
secret = env["WEBHOOK_SECRET"]


def call(method, path, body=None):
    request = urllib.request.Request(
        env["BASE_URL"] + path, method=method, data=json.dumps(body).encode() if body else None,
        headers={"Authorization": "Bearer " + env["API_KEY"], "Idempotency-Key": str(uuid.uuid4())})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


# Receive: WEBHOOK_URL leads here. Verify the raw bytes before you parse them.
def verify(body, signature):
    want = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(want.encode(), signature.encode())


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        genuine = verify(body, self.headers.get("X-Service-Signature", ""))
        self.send_response(204 if genuine else 401)  # within 10 seconds; the work comes after
        self.end_headers()
        if genuine and (event := json.loads(body))["event"] == "job.completed":
            threading.Thread(target=read, args=[event["jobId"]]).start()


def read(job_id):
    report = call("GET", f"/v1/jobs/{job_id}/report")
    print(report["overallStatus"], report["checkerSummary"], flush=True)


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(env.get("PORT", "8000"))), Receiver)
print("listening on port", server.server_port, flush=True)
job = call("POST", "/v1/hosted/test", {
    "url": "https://example.com/", "feature": "sign in", "webhookUrl": env["WEBHOOK_URL"], "webhookSecret": secret})
print("submitted", job["jobId"], flush=True)
server.serve_forever()
