// The main job by the client of @hey-api/openapi-ts, with what httpapi's test gives it.
import { checkItem, claimJob, completeJob, getReport, projectHistory, submitJob } from "../generated/client/index.js";

declare const process: { env: Record<string, string> };
const { BASE_URL, API_KEY, CHECKER_KEY, PROJECT_ID } = process.env as Record<"BASE_URL" | "API_KEY" | "CHECKER_KEY" | "PROJECT_ID", string>;
const client = { baseUrl: BASE_URL, auth: API_KEY, throwOnError: true } as const;
const checker = { ...client, auth: CHECKER_KEY };

const checklistItems = [{ description: "The page loads" }, { description: "The button works", severity: "critical" as const }];
const job = { url: "https://shop.example.com/", title: "Checkout", description: "Buy something", jobType: "Custom" };
const { data: submitted } = await submitJob({ ...client, body: { ...job, projectId: PROJECT_ID, checklistItems } });
const path = { id: submitted.jobId };
const { data: claim } = await claimJob({ ...checker, body: { jobId: path.id } });
if (!claim) throw new Error("the job cannot be claimed");
const headers = { "X-Claim-Token": claim.claimToken };
for (const { id: itemId, severity } of claim.checklist) {
  const body = severity === "critical" ? { status: "fail" as const, note: "It is dead." } : { status: "pass" as const };
  await checkItem({ ...checker, path: { ...path, itemId }, headers, body });
}
await completeJob({ ...checker, path, headers, body: { summary: "One of two works." } });
const { data: report } = await getReport({ ...client, path });
const { data: history } = await projectHistory({ ...client, path: { id: PROJECT_ID } });
console.log(report.overallStatus, report.passCount, report.failCount, report.checkerSummary);
console.log(history.totalTests, history.latestFailures[0]?.description);
