// Has the sign-up of https://example.com tested: BASE_URL=… API_KEY=… node first-test.mjs
import { Client } from "humanqa";
import process from "node:process";

const { BASE_URL = "", API_KEY = "" } = process.env;
const client = new Client(BASE_URL, API_KEY);
const job = await client.post("/v1/jobs", {
  url: "https://example.com", title: "Sign-up", jobType: "Custom", description: "Can a new user sign up?",
  checklistItems: [{ description: "The form accepts a valid address", severity: "critical" }],
});
console.log("submitted", job.jobId);
if (API_KEY.startsWith("qa_test_")) { // in a sandbox a robot tests
  await client.post("/v1/sandbox/jobs/{id}/play", { summary: "Works." }, { path: { id: job.jobId } });
}

const ended = await client.wait(job.jobId);
if (ended.status === "completed") console.log(ended.result.overallStatus, ended.result.summary);
else console.log(ended.status, ended.statusMessage);
for await (const tested of client.list("/v1/jobs", "jobs", { query: { status: "completed", limit: 1 } })) {
  console.log("tested", tested.id, tested.title);
}
