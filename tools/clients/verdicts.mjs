// How many verdicts fell on each day, from the log itself:
//   node verdicts.mjs "esdb://reader:…@127.0.0.1:2113?tlsCaFile=…"
import { EventStoreDBClient } from "@eventstore/db-client";

const log = EventStoreDBClient.connectionString(process.argv[2]);
const days = new Map();
let position; // of the last event: where a later run may go on from

for await (const { event, commitPosition } of log.readAll()) {
  if (!event) continue;
  position = commitPosition ?? event.position?.commit;
  if (event.type !== "job.item_checked") continue; // docs/event-zero.md lists the types
  const day = event.metadata.time.slice(0, "2026-11-21".length);
  const counts = days.get(day) ?? {};
  counts[event.data.status] = (counts[event.data.status] ?? 0) + 1;
  days.set(day, counts);
}
console.log(JSON.stringify({ days: Object.fromEntries(days), upTo: String(position) }));
