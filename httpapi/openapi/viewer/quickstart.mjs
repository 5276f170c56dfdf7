// BASE_URL=… API_KEY=… WEBHOOK_URL=https://… WEBHOOK_SECRET=… node quickstart.mjs
import { createHmac, randomUUID, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const { BASE_URL, API_KEY, WEBHOOK_URL, WEBHOOK_SECRET, PORT = "8000" } = process.env;

async function call(method, path, body) {
  const answer = await fetch(BASE_URL + path, {
    method,
    headers: { Authorization: `Bearer ${API_KEY}`, "Idempotency-Key": randomUUID() },
    body: body && JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

// Receive: WEBHOOK_URL leads here. Verify the raw bytes before you parse them.
function verify(body, signature = "") {
  const want = Buffer.from(createHmac("sha256", WEBHOOK_SECRET).update(body).digest("hex"));
  const got = Buffer.from(signature);
  return got.length === want.length && timingSafeEqual(got, want);
}

const server = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  if (!verify(body, request.headers["x-service-signature"])) {
    response.writeHead(401).end();
    return;
  }
  response.writeHead(204).end(); // within 10 seconds; the work comes after
  const { event, jobId } = JSON.parse(body);
  if (event !== "job.completed") return;
  const report = await call("GET", `/v1/jobs/${jobId}/report`);
  console.log(report.overallStatus, report.checkerSummary);
});

server.listen(Number(PORT), "127.0.0.1", async () => {
  console.log("listening on port", server.address().port);
  const job = await call("POST", "/v1/hosted/test", {
    url: "https://example.com/", feature: "sign in", webhookUrl: WEBHOOK_URL, webhookSecret: WEBHOOK_SECRET,
  });
  console.log("submitted", job.jobId);
});
