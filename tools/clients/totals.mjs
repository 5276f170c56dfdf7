// What readers that are not ours find in files that humanqa export wrote: rows, the
// sum of a column, and of Parquet the columns' types.
//   node totals.mjs jobs.parquet:credits_used ledger.csv:change …
import { readFile } from "node:fs/promises";
import { parse } from "csv-parse/sync";
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects, parquetSchema } from "hyparquet";
import { compressors } from "hyparquet-compressors";

async function parquet(name) {
  const file = await asyncBufferFromFile(name);
  const { children } = parquetSchema(await parquetMetadataAsync(file));
  const columns = children.map(({ element: e }) => [e.name, e.logical_type?.type ?? e.type]);
  return { rows: await parquetReadObjects({ file, compressors }), columns: Object.fromEntries(columns) };
}

const csv = async (name) => ({ rows: parse(await readFile(name), { columns: true }) });

const totals = {};
for (const argument of process.argv.slice(2)) {
  const [name, column] = argument.split(":");
  const { rows, columns } = await (name.endsWith(".csv") ? csv : parquet)(name);
  totals[name] = { rows: rows.length, sum: rows.reduce((sum, row) => sum + Number(row[column]), 0), columns };
}
console.log(JSON.stringify(totals));
