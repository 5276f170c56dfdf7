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
// post is a request to the API, beside the protocol.
const post = async (path, body) => {
	const answer = await fetch(new URL(path, url), {method: 'POST', headers: {authorization: `Bearer ${key}`}, body: JSON.stringify(body)});
	if (!answer.ok) throw new Error(`${path}: ${await answer.text()}`);
	return answer.json();
};
const play = (jobId, body) => post(`/v1/sandbox/jobs/${jobId}/play`, body); // by a robot
const done = async jobId => {
	for (;;) {
		const now = await call('wait_for_report', {jobId});
		if (now.done) return now;
	}
};
const target = {url: 'https://shop.example.com/', feature: 'Pay by card'};
const {projectId} = await post('/v1/projects', {name: 'Shop'});
const checks = ['pay by card', 'a mail arrives'];
const {tools} = await client.listTools();
const price = await call('estimate', target);
const test = await call('test_with_a_human', {...target, projectId, checks, idempotencyKey: 'contract'});
const now = await call('wait_for_report', {jobId: test.jobId, seconds: 1});
await play(test.jobId, {
	question: {text: 'Which code came by mail?', kind: 'code'}, results: [{item: 'item-1', status: 'fail', note: 'The card is refused.'}],
});
const {question} = await call('wait_for_report', {jobId: test.jobId});
const answer = await call('answer_question', {jobId: test.jobId, questionId: question.id, secret: '483112'});
const first = await done(test.jobId);
const report = await call('get_report', {jobId: test.jobId});
const {failures} = await call('open_failures', {projectId});
const next = await call('prepare_next_test', {projectId, fixedDescriptions: ['cards work']});
const again = await call('retest', {jobId: test.jobId, idempotencyKey: 'again'});
await play(again.jobId, {});
const second = await done(again.jobId);
const third = await call('test_with_a_human', {...target, projectId, checks, idempotencyKey: 'third'});
const gone = await call('cancel_test', {jobId: third.jobId});
console.log(JSON.stringify({
	tools: tools.length, price: price.creditsRequired, charged: test.creditsCharged, done: now.done, answer: answer.status,
	first: first.passed, items: report.items.length, failures: failures.length, next: next.regressionItems, second: second.passed,
	refunded: gone.creditsRefunded,
}));
await client.close();
