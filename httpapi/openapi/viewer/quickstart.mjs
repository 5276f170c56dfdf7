// BASE_URL=… API_KEY=… WEBHOOK_URL=https://… WEBHOOK_SECRET=… node quickstart.mjs
// Ends with the report: at once with the key of a sandbox (qa_test_…), else when a checker has tested.
import { createHmac, randomUUID, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const { BASE_URL, API_KEY, WEBHOOK_URL, WEBHOOK_SECRET, PORT = "8000" } = process.env;

async function call(method, path, body) {
  const answer = await fetch(BASE_URL + path, {
    method,
    headers: { Authorization: `Bearer ${API_KEY}`, "Idempotency-Key": randomUUID() },
    body: body && JSON.stringify(body),
  });
  const said = await answer.json();
  if (answer.ok) return said;
  console.error(`${method} ${path}: ${answer.status} ${said.error}\n${said.hint ?? ""}`);
  process.exit(1);
}

// Receive: WEBHOOK_URL leads here. Verify the raw bytes before you parse them. One of the
// signatures (Standard Webhooks) has to be right: there are two while a secret is rotated.
function verify(body, { "webhook-id": id, "webhook-timestamp": at, "webhook-signature": signatures = "" }) {
  const key = WEBHOOK_SECRET.startsWith("whsec_") ? Buffer.from(WEBHOOK_SECRET.slice(6), "base64") : WEBHOOK_SECRET;
  const want = Buffer.from("v1," + createHmac("sha256", key).update(`${id}.${at}.`).update(body).digest("base64"));
  const same = (got) => got.length === want.length && timingSafeEqual(got, want);
  return Math.abs(Date.now() / 1000 - at) < 300 && signatures.split(" ").some((s) => same(Buffer.from(s)));
}

const completed = new Set();
let wake = () => {};

const server = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  const genuine = verify(body, request.headers);
  response.writeHead(genuine ? 204 : 401).end(); // within 10 seconds; the work comes after
  if (!genuine) return;
  const { event, jobId } = JSON.parse(body);
  if (event === "job.completed") completed.add(jobId);
  wake();
});

server.listen(Number(PORT), "127.0.0.1", async () => {
  console.log("listening on port", server.address().port);
  const { jobId } = await call("POST", "/v1/hosted/test", {
    url: "https://example.com/", feature: "sign in", webhookUrl: WEBHOOK_URL, webhookSecret: WEBHOOK_SECRET,
  });
  console.log("submitted", jobId);
  if (API_KEY.startsWith("qa_test_")) await call("POST", `/v1/sandbox/jobs/${jobId}/play`, { summary: "Works." });
  while (!completed.has(jobId)) await new Promise((resolve) => (wake = resolve));
  const report = await call("GET", `/v1/jobs/${jobId}/report`);
  console.log(report.overallStatus, report.checkerSummary);
  process.exit(0);
});
