"""Receives webhooks: WEBHOOK_SECRET=… python3 receiver.py. The project's webhookUrl leads here."""

import http.server
import os

import humanqa


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            told = humanqa.verify(body, dict(self.headers.items()), os.environ["WEBHOOK_SECRET"])
        except humanqa.NotGenuine:
            self.send_response(401)
            self.end_headers()
            return
        self.send_response(204)  # within 10 seconds; the work comes after
        self.end_headers()
        if told["event"] == "job.completed":  # here told["data"] is that of a completed job
            print(told["jobId"], told["data"]["overallStatus"], flush=True)
        else:
            print(told["event"], flush=True)

    def log_message(self, format: str, *args: object) -> None:
        """Writes no line a request."""


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8000"))), Receiver)
print("listening on port", server.server_port, flush=True)
server.serve_forever()
