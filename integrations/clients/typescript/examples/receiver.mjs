// Receives webhooks: WEBHOOK_SECRET=… node receiver.mjs. The project's webhookUrl leads here.
import { NotGenuine, verify } from "humanqa";
import { createServer } from "node:http";
import process from "node:process";

const { WEBHOOK_SECRET = "", PORT = "8000" } = process.env;

const server = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  try {
    const told = await verify(Buffer.concat(chunks), request.headers, WEBHOOK_SECRET);
    response.writeHead(204).end(); // within 10 seconds; the work comes after
    if (told.event === "job.completed") console.log(told.jobId, told.data.overallStatus);
    else console.log(told.event);
  } catch (error) {
    if (!(error instanceof NotGenuine)) throw error;
    response.writeHead(401).end();
  }
});
server.listen(Number(PORT), "127.0.0.1", () => {
  const address = server.address();
  console.log("listening on port", address.port);
});
