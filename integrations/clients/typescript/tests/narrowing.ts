// What a customer's compiler has to know of the types; tsc holds it.
import { Client, type Status, type Webhook } from "humanqa";

const client = new Client("https://qa.example.com", "qa_live_x");

export function verdict(now: Status): string {
  // @ts-expect-error a test that goes on has no result
  now.result.overallStatus;
  if (now.status === "completed") return now.result.overallStatus;
  return now.statusMessage;
}

export function told(webhook: Webhook): string | null {
  switch (webhook.event) {
    case "job.completed":
      return `${webhook.jobId}: ${webhook.data.failCount} failed`;
    case "job.question_asked":
      return webhook.data.until;
    case "account.credits_low":
      return `${webhook.data.available} credits are left`;
    default:
      // @ts-expect-error only completed jobs have counts
      return webhook.data.failCount;
  }
}

export async function calls(): Promise<void> {
  const report = await client.get("/v1/jobs/{id}/ai-report", { path: { id: "j" } });
  if (report.status === "completed") report.healthScore.toFixed();
  // @ts-expect-error one that is being written has no score
  else report.healthScore;
  // @ts-expect-error there is no such path
  await client.get("/v1/job");
  // @ts-expect-error a job has a title
  await client.post("/v1/jobs", { url: "https://example.com", description: "Look", jobType: "Custom" });
  for await (const job of client.list("/v1/jobs", "jobs")) job.title.toUpperCase();
  for await (const entry of client.list("/v1/credits/ledger", "entries")) entry.amount.toFixed();
}
