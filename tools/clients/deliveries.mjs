// Verifies deliveries with the official library of Standard Webhooks:
//   node deliveries.mjs deliveries.json
// Each has the secrets that have to verify it, as the service gave them, and those that must not.
import { readFileSync } from "node:fs";
import { Webhook } from "standardwebhooks";

const verifies = (secret, { headers, body }) => {
  // A secret that the service made begins with whsec_; one of the client's own is taken as it is.
  const webhook = secret.startsWith("whsec_") ? new Webhook(secret) : new Webhook(secret, { format: "raw" });
  try {
    webhook.verify(body, headers);
    return true;
  } catch {
    return false;
  }
};

const told = { verified: 0, refused: 0, wrong: [] };
for (const delivery of JSON.parse(readFileSync(process.argv[2], "utf8"))) {
  for (const secret of delivery.secrets) {
    if (verifies(secret, delivery)) told.verified++;
    else told.wrong.push(`${delivery.event} does not verify`);
    if (verifies(secret, { ...delivery, body: `${delivery.body} ` })) told.wrong.push(`${delivery.event} verifies with another body`);
    else told.refused++;
  }
  for (const secret of delivery.others) {
    if (verifies(secret, delivery)) told.wrong.push(`${delivery.event} verifies with another secret`);
    else told.refused++;
  }
}
console.log(JSON.stringify(told));
