// The main job by the client of orval, with what httpapi's test gives it.
import { checkItem, claimJob, completeJob, getReport, projectHistory, submitJob } from "../generated/orval.js";

declare const process: { env: Record<string, string> };
const { BASE_URL, API_KEY, CHECKER_KEY, PROJECT_ID } = process.env as Record<"BASE_URL" | "API_KEY" | "CHECKER_KEY" | "PROJECT_ID", string>;
const { fetch } = globalThis; // its functions call the path alone
globalThis.fetch = (path, init) => fetch(BASE_URL + path, init);
const client = { headers: { Authorization: `Bearer ${API_KEY}` } };

const checklistItems = [{ description: "The page loads" }, { description: "The button works", severity: "critical" as const }];
const job = { url: "https://shop.example.com/", title: "Checkout", description: "Buy something", jobType: "Custom" };
const submitted = await submitJob({ ...job, projectId: PROJECT_ID, checklistItems }, client);
if (submitted.status !== 201) throw new Error(submitted.data.error);
const { jobId } = submitted.data;
const claimed = await claimJob({ jobId }, { headers: { Authorization: `Bearer ${CHECKER_KEY}` } });
if (claimed.status !== 201) throw new Error("the job cannot be claimed");
const checker = { headers: { Authorization: `Bearer ${CHECKER_KEY}`, "X-Claim-Token": claimed.data.claimToken } };
for (const { id, severity } of claimed.data.checklist) {
  await checkItem(jobId, id, severity === "critical" ? { status: "fail", note: "It is dead." } : { status: "pass" }, checker);
}
await completeJob(jobId, { summary: "One of two works." }, checker);
const { status, data: report } = await getReport(jobId, {}, client);
if (status !== 200 || !("overallStatus" in report)) throw new Error("there is no report");
const history = await projectHistory(PROJECT_ID, {}, client);
if (history.status !== 200) throw new Error(history.data.error);
console.log(report.overallStatus, report.passCount, report.failCount, report.checkerSummary);
console.log(history.data.totalTests, history.data.latestFailures[0]?.description);
