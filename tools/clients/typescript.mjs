// The types of the client in TypeScript, out of the API's document:
//   node typescript.mjs openapi-3.1.json types.ts
// Refusals and headers stay out: the client reads them itself.
import { readFileSync, writeFileSync } from "node:fs";
import openapiTS, { astToString } from "openapi-typescript";

const [from, to] = process.argv.slice(2);
const document = JSON.parse(readFileSync(from, "utf8"));
const query = ({ $ref, in: place }) => (place ?? document.components.parameters[$ref.split("/").at(-1)].in) !== "header";
for (const item of [...Object.values(document.paths), ...Object.values(document.webhooks)]) {
  for (const operation of Object.values(item).filter(({ responses }) => responses)) {
    operation.parameters = operation.parameters?.filter(query);
    for (const [status, response] of Object.entries(operation.responses)) {
      if (status.startsWith("2")) delete response.headers;
      else delete operation.responses[status];
    }
  }
}
const ast = await openapiTS(document, { defaultNonNullable: false, silent: true });
writeFileSync(to, `// Generated from the API's document. Do not edit.\n${astToString(ast)}`);
