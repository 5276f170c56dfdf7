// One human test by the official client of the Model Context Protocol. Asked for by make contract.
//
//	node agent.mjs <url of /mcp> <API key>
import {Client, StreamableHTTPClientTransport} from '@modelcontextprotocol/client';

const [url, key] = process.argv.slice(2);
const client = new Client({name: 'contract', version: '1.0.0'}, {versionNegotiation: {mode: 'auto'}});
await client.connect(new StreamableHTTPClientTransport(new URL(url), {requestInit: {headers: {authorization: `Bearer ${key}`}}}));

const call = async (name, args) => {
	const result = await client.callTool({name, arguments: args});
	if (result.isError) throw new Error(`${name}: ${result.content[0].text}`);
	return result.structuredContent;
};
const target = {url: 'https://shop.example.com/', feature: 'Pay by card'};
const {tools} = await client.listTools();
const price = await call('estimate', target);
const test = await call('test_with_a_human', {...target, checks: ['pay by card'], idempotencyKey: 'contract'});
const now = await call('wait_for_report', {jobId: test.jobId, seconds: 1});
const gone = await call('cancel_test', {jobId: test.jobId});
console.log(JSON.stringify({
	tools: tools.length, price: price.creditsRequired, charged: test.creditsCharged, done: now.done, refunded: gone.creditsRefunded,
}));
await client.close();
