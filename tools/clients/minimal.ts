// The least that may be sent, as the types of openapi-typescript see it: whatever may be
// left out, is. make contract compiles it.
import type { paths } from "./generated/types.js";

type Post<P extends keyof paths> = paths[P] extends {
  post: { requestBody?: { content: { "application/json": infer Body } } };
}
  ? Body
  : never;

const job: Post<"/v1/jobs"> = {
  url: "https://shop.example.com/",
  title: "Checkout",
  description: "Buy something",
  jobType: "Custom",
};
const checked: Post<"/v1/jobs"> = { ...job, checklistItems: [{ description: "The button works" }], credentials: {} };
const bulk: Post<"/v1/jobs/bulk"> = { jobs: [job, checked] };
const estimate: Post<"/v1/estimate"> = job;
const hosted: Post<"/v1/hosted/test"> = { url: "https://shop.example.com/" };
const session: Post<"/v1/hosted/sessions"> = { url: "https://shop.example.com/", slots: [{}, {}] };
const prepared: Post<"/v1/hosted/prepare-next"> = { projectId: "p", fixedDescriptions: ["The button works"] };
const deploy: Post<"/v1/hooks/deploy/{token}"> = {};
const project: Post<"/v1/projects"> = { name: "Shop" };
const rotation: Post<"/v1/projects/{id}/webhook/rotate-secret"> = {};
const rating: Post<"/v1/jobs/{id}/rating"> = { rating: 5 };

export const bodies = [bulk, estimate, hosted, session, prepared, deploy, project, rotation, rating];
