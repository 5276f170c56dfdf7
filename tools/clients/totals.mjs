// What DuckDB reads in files that humanqa export wrote: rows and sums of each.
//   node totals.mjs jobs.parquet:credits_used ledger.csv:change …
import { DuckDBInstance } from "@duckdb/node-api";

const db = await (await DuckDBInstance.create(":memory:")).connect();
const totals = {};
for (const argument of process.argv.slice(2)) {
  const [file, column] = argument.split(":");
  const from = file.endsWith(".csv") ? `read_csv('${file}', header = true)` : `read_parquet('${file}')`;
  const about = await db.runAndReadAll(`SELECT count(*), sum(${column}) FROM ${from}`);
  const columns = await db.runAndReadAll(`DESCRIBE SELECT * FROM ${from}`);
  const [rows, sum] = about.getRows()[0];
  totals[file] = { rows: Number(rows), sum: Number(sum), columns: Object.fromEntries(columns.getRows().map(([name, type]) => [name, type])) };
}
console.log(JSON.stringify(totals));
