// Plays the client against answers that come one after the other: node --test, where the package is installed.
import { Client, NotGenuine, Refused, verify } from "humanqa";
import assert from "node:assert/strict";
import { test } from "node:test";

// The pauses pass at once.
const later = globalThis.setTimeout;
globalThis.setTimeout = (then, _, ...rest) => later(then, 0, ...rest);

function service(...answers) {
  const asked = [];
  const answering = async (url, { headers, method }) => {
    asked.push({ url, headers, method });
    const next = answers.shift();
    assert.ok(next !== undefined, `it asks once more: ${url}`);
    if (next === null) throw new TypeError("fetch failed");
    const [status, body, given = {}] = next;
    return new Response(status === 304 ? null : JSON.stringify(body), { status, headers: given });
  };
  return { asked, client: new Client("https://qa.example.com", "qa_live_x", { fetch: answering }) };
}

const waiting = { jobId: "j", status: "pending", isFinal: false };
const ended = { jobId: "j", status: "completed", isFinal: true, result: { overallStatus: "pass" } };
const busy = { error: "the service restarts", code: "UNAVAILABLE", hint: "ask again", requestId: "r1" };

test("a wait outlasts a service that is gone", async () => {
  const gone = Array.from({ length: 20 }, () => [null, [503, busy, { "retry-after": "1" }]]).flat();
  const { client, asked } = service([200, waiting, { etag: '"1"' }], [304], ...gone, [200, ended]);
  const seen = [];
  const last = await client.wait("j", { changed: ({ status }) => seen.push(status) });
  assert.equal(last.result.overallStatus, "pass");
  assert.deepEqual(seen, ["pending", "completed"]);
  assert.equal(asked[1].url.search, "?wait=25");
  assert.equal(asked[1].headers["If-None-Match"], '"1"');
});

test("a wait ends with its signal, or a refusal", async () => {
  const stop = new AbortController();
  await assert.rejects(service([200, waiting]).client.wait("j", { signal: stop.signal, changed: () => stop.abort() }), { name: "AbortError" });
  await assert.rejects(service([404, { error: "job not found", code: "NOT_FOUND" }]).client.wait("j"), { code: "NOT_FOUND" });
});

test("a list is walked by cursors and offsets", async () => {
  for (const [pages, second] of [
    [[{ jobs: ["a", "b"], nextCursor: "c&1", total: 3 }, { jobs: ["c"], nextCursor: null, total: 3 }], "&cursor=c%261"],
    [[{ jobs: ["a", "b"], next: "5" }, { jobs: ["c"], next: "6", hasMore: false }], "&after=5"],
    [[{ jobs: ["a", "b"], total: 3, offset: 0 }, { jobs: ["c"], total: 3, offset: 2 }], "&offset=2"],
  ]) {
    const { client, asked } = service(...pages.map((page) => [200, page]));
    const got = [];
    for await (const job of client.list("/v1/jobs", "jobs", { query: { limit: 2 } })) got.push(job);
    assert.deepEqual(got, ["a", "b", "c"]);
    assert.deepEqual(asked.map(({ url }) => url.search), ["?limit=2", `?limit=2${second}`]);
  }
});

test("a post is sent again under one key", async () => {
  const { client, asked } = service(null, [503, busy], [201, { jobId: "j" }]);
  assert.equal((await client.post("/v1/jobs", {})).jobId, "j");
  assert.equal(asked.length, 3);
  assert.equal(new Set(asked.map(({ headers }) => headers["Idempotency-Key"])).size, 1);
});

test("a refusal has its hint and request", async () => {
  const body = { error: "5 credits are missing", code: "INSUFFICIENT_CREDITS", hint: "buy some", requestId: "r2", creditsShort: 5 };
  const told = await service([402, body]).client.post("/v1/jobs", {}, { key: "mine" }).catch((error) => error);
  assert.ok(told instanceof Refused);
  assert.deepEqual([told.status, told.hint, told.requestId, told.body.creditsShort], [402, "buy some", "r2", 5]);
  await assert.rejects(service([302, "elsewhere"]).client.get("/v1/credits"), { code: "HTTP_302" });
});

test("a key never goes out in the clear", () => {
  assert.throws(() => new Client("http://qa.example.com", "qa_live_x"), TypeError);
});

test("a webhook verifies by the example of the standard", async (t) => {
  const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  const headers = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,AAAA v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
  };
  t.mock.method(Date, "now", () => 1614265330_000);
  assert.deepEqual(await verify('{"test": 2432232314}', headers, secret), { test: 2432232314 });
  assert.deepEqual(await verify('{"test": 2432232314}', new Headers(headers), secret), { test: 2432232314 });
  t.mock.restoreAll();
  await assert.rejects(verify('{"test": 2432232314}', headers, secret), NotGenuine);
  // printf '{"a":1}' | openssl dgst -sha256 -hmac secret
  const alone = { "x-service-signature": "aa9e2e3575f5d7098b6caccd790888c36d5fdb63342a73bada2d6a51747a8494" };
  assert.deepEqual(await verify('{"a":1}', alone, "secret"), { a: 1 });
  await assert.rejects(verify('{"a":2}', alone, "secret"), NotGenuine);
});
