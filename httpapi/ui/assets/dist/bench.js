// src/outbox.ts
var pauses = [500, 1e3, 2e3, 5e3, 1e4];
var Outbox = class {
  constructor(person, job, token, events) {
    this.person = person;
    this.job = job;
    this.token = token;
    this.events = events;
    this.db = open();
    addEventListener("online", () => this.wake());
  }
  person;
  job;
  token;
  events;
  db;
  running = false;
  stopped = false;
  wake = () => {
  };
  // all gives what of this person is not saved yet, the oldest first.
  async all() {
    const entries = await run((await this.db).transaction("entries").objectStore("entries").getAll());
    return entries.filter((e) => e.person === this.person);
  }
  // mine are those that belong to the page's claim and may be sent.
  async mine() {
    return (await this.all()).filter((e) => e.job === this.job && e.token === this.token && e.refused === void 0);
  }
  async add(entry) {
    await this.put({ ...entry, person: this.person, job: this.job, token: this.token, command: crypto.randomUUID() });
    this.events.changed(await this.mine());
    void this.drain();
  }
  async put(entry) {
    await run((await this.db).transaction("entries", "readwrite", { durability: "strict" }).objectStore("entries").put(entry));
  }
  async remove(entry) {
    await run((await this.db).transaction("entries", "readwrite").objectStore("entries").delete(entry.id));
  }
  // again sends an older claim's entry under the page's own.
  async again(entry) {
    await this.put({ ...entry, token: this.token, refused: void 0, command: crypto.randomUUID() });
    this.events.changed(await this.mine());
    void this.drain();
  }
  stop() {
    this.stopped = true;
    this.wake();
  }
  // drain sends until nothing is left. Of several tabs one does.
  async drain() {
    if (this.running || this.job === "" || this.token === "") return;
    this.running = true;
    const hold = async () => {
      let failures = 0;
      while (!this.stopped) {
        const entries = await this.mine();
        if (entries.length === 0) break;
        if (failures === 0) this.events.state("saving", entries.length, "");
        const outcome = await send(entries[0]);
        if (this.stopped && outcome.kind !== "done") break;
        if (outcome.kind === "later") {
          this.events.state("waiting", (await this.mine()).length, outcome.why);
          await this.pause(pauses[Math.min(failures++, pauses.length - 1)]);
          continue;
        }
        failures = 0;
        if (outcome.kind === "done") {
          await this.remove(entries[0]);
          this.events.done(entries[0], outcome.next);
        } else {
          await this.put({ ...entries[0], refused: outcome.why });
          this.events.refused(entries[0], outcome.why);
        }
        this.events.changed(await this.mine());
      }
    };
    try {
      if (navigator.locks) await navigator.locks.request("humanqa-outbox", hold);
      else await hold();
    } finally {
      this.running = false;
    }
    const left = await this.mine();
    if (this.stopped) return;
    if (left.length > 0) void this.drain();
    else this.events.state("saved", 0, "");
  }
  pause(ms) {
    return new Promise((go) => {
      const timer = setTimeout(go, ms);
      this.wake = () => {
        clearTimeout(timer);
        go();
      };
    });
  }
};
var signedOut = "You are signed out. Sign in again in another tab.";
async function send(entry) {
  let url = entry.url;
  let body;
  if (entry.file !== void 0) {
    body = new FormData();
    body.set("file", entry.file);
    url += "?" + new URLSearchParams({ token: entry.token, command: entry.command }).toString();
  } else {
    body = new URLSearchParams({ ...entry.fields, token: entry.token, command: entry.command });
    if (entry.pressed !== void 0) body.set("ago", String(Math.max(0, Date.now() - entry.pressed)));
  }
  try {
    const answer = await fetch(url, {
      method: "POST",
      body,
      headers: { Accept: "application/json" },
      redirect: "manual",
      signal: AbortSignal.timeout(entry.file === void 0 ? 3e4 : 3e5)
    });
    if (answer.type === "opaqueredirect") return { kind: "later", why: signedOut };
    if (answer.ok) return { kind: "done", next: (await answer.json()).next };
    if (answer.status >= 500 || answer.status === 429) return { kind: "later", why: "The service does not answer." };
    return { kind: "refused", why: await reason(answer, entry.file?.size) };
  } catch {
    return { kind: "later", why: navigator.onLine ? "The service does not answer." : "There is no network." };
  }
}
async function reason(answer, bytes = 0) {
  try {
    const said = await answer.json();
    return [said.error, said.hint].filter(Boolean).join(" ");
  } catch {
    if (answer.status !== 413) return "The service said " + answer.status + ".";
    return `A proxy in front of the service refused ${size(bytes)} (413). Ask the operator to raise its limit.`;
  }
}
function size(bytes) {
  return bytes < 1 << 20 ? Math.ceil(bytes / 1024) + " KB" : (bytes / (1 << 20)).toFixed(1) + " MB";
}
async function usable() {
  if (!isSecureContext) return false;
  return open().then((db) => {
    db.close();
    return true;
  }, () => false);
}
function open() {
  const asked = indexedDB.open("humanqa", 1);
  asked.onupgradeneeded = () => asked.result.createObjectStore("entries", { keyPath: "id", autoIncrement: true });
  return run(asked);
}
function run(asked) {
  return new Promise((done, failed) => {
    const of = asked.transaction;
    asked.onerror = () => failed(asked.error);
    if (of !== null && of.mode === "readwrite") of.oncomplete = () => done(asked.result);
    else asked.onsuccess = () => done(asked.result);
  });
}

// src/drafts.ts
function drafts(at, key2) {
  const read = () => JSON.parse(localStorage.getItem(key2) ?? "{}");
  const write2 = (kept) => {
    if (Object.keys(kept).length === 0) localStorage.removeItem(key2);
    else localStorage.setItem(key2, JSON.stringify(kept));
  };
  at.addEventListener("input", (event) => {
    const field = event.target;
    if (!(field instanceof HTMLTextAreaElement || field instanceof HTMLInputElement && field.type === "text") || field.id === "") return;
    const kept = read();
    if (field.value === field.defaultValue) delete kept[field.id];
    else kept[field.id] = field.value;
    write2(kept);
  });
  return {
    // restore puts back what nobody has typed over.
    restore() {
      for (const [id, text] of Object.entries(read())) {
        const field = document.getElementById(id);
        if (field !== null && field !== document.activeElement && field.value === field.defaultValue) {
          field.value = text;
          field.closest("details")?.setAttribute("open", "");
        }
      }
    },
    forget(field) {
      const kept = read();
      delete kept[field.id];
      write2(kept);
    },
    clear() {
      localStorage.removeItem(key2);
    }
  };
}

// src/leftovers.ts
async function leftovers(outbox, such, job = "") {
  const at = document.getElementById("leftovers");
  if (at === null) return 0;
  const entries = (await outbox.all()).filter(such);
  at.hidden = entries.length === 0;
  at.querySelector("[data-why]").textContent = entries.some((entry) => entry.refused === void 0) ? "Your claim had ended." : "";
  at.querySelector("ul").replaceChildren(...entries.map((entry) => Object.assign(document.createElement("li"), {
    className: "keep",
    textContent: entry.label + (entry.refused === void 0 ? "" : " (" + entry.refused + ")")
  })));
  const again = () => leftovers(outbox, such, job);
  const send2 = at.querySelector("[data-send]");
  const ours = entries.filter((entry) => entry.job === job);
  send2.hidden = ours.length === 0 || !document.getElementById("frozen")?.hidden;
  send2.onclick = async () => {
    for (const entry of ours) await outbox.again(entry);
    await again();
  };
  at.querySelector("[data-discard]").onclick = async () => {
    for (const entry of entries) await outbox.remove(entry);
    await again();
  };
  return entries.length;
}

// src/secrets.ts
function secrets(job, token) {
  const form = document.getElementById("secrets-form");
  const at = document.getElementById("secrets");
  if (!(form instanceof HTMLFormElement) || at === null) return;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button");
    button.disabled = true;
    at.hidden = false;
    login(true);
    try {
      const answer = await fetch(`/workbench/jobs/${job}/secrets`, {
        method: "POST",
        body: new URLSearchParams({ token, command: crypto.randomUUID() }),
        headers: { Accept: "application/json" },
        cache: "no-store",
        redirect: "manual"
      });
      if (!answer.ok) {
        at.textContent = answer.type === "opaqueredirect" ? "Sign in again first." : await reason(answer);
        return;
      }
      const said = await answer.json();
      const lines = document.createElement("dl");
      lines.className = "facts";
      const answers = (said.answers ?? []).map((a) => ["Answer to: " + a.question, a.secret]);
      for (const [name, text] of [["User name", said.username], ["Password", said.password], ["Notes", said.notes], ["Access", said.accessInstructions], ...answers]) {
        if (text) lines.append(
          Object.assign(document.createElement("dt"), { textContent: name }),
          Object.assign(document.createElement("dd"), { textContent: text, className: "keep" })
        );
      }
      at.replaceChildren(lines);
      await new Promise((over) => setTimeout(over, said.seconds * 1e3));
      at.replaceChildren();
      at.hidden = true;
      await painted();
    } catch {
      at.textContent = "The service does not answer.";
    } finally {
      button.disabled = false;
      login(false);
    }
  });
}
function login(shown) {
  document.dispatchEvent(new CustomEvent("humanqa:login", { detail: shown }));
}
var painted = () => new Promise((done) => setTimeout(done, 500));

// src/similar.ts
var rest = 400;
var least = 4;
function similar(job, ended) {
  const form = () => document.getElementById("finding");
  const field = (name) => form().querySelector(`#finding-${name}`);
  const part = (id) => document.getElementById(id);
  let asked = null;
  let timer = 0;
  let item = "";
  const panel = () => document.getElementById(item === "" ? "similar" : "similar-" + item);
  const note = () => document.getElementById(item === "" ? "finding-note" : "note-" + item);
  const typed = () => ((item === "" && form() !== null ? field("what").value + " " : "") + (note()?.value ?? "")).trim();
  function hide() {
    clearTimeout(timer);
    asked?.abort();
    const at = panel();
    if (at !== null) at.hidden = true;
  }
  async function ask2() {
    asked?.abort();
    const asking = asked = new AbortController();
    const text = typed();
    try {
      const answer = await fetch(`/workbench/jobs/${job}/open-failures?` + new URLSearchParams({ text }), {
        headers: { Accept: "application/json" },
        redirect: "manual",
        cache: "no-store",
        signal: asking.signal
      });
      const found = answer.ok ? await answer.json() : [];
      if (asking === asked && !asking.signal.aborted && !ended() && typed() === text) show2(found);
    } catch {
    }
  }
  function show2(found) {
    const at = panel();
    if (at === null) return;
    at.hidden = found.length === 0;
    at.querySelector("[role=status]").textContent = found.length === 0 ? "" : found.length === 1 ? "One open failure is similar:" : found.length + " open failures are similar:";
    at.querySelector("ul").replaceChildren(...found.map((one) => {
      const row = document.createElement("li");
      const words = document.createElement("div");
      words.append(
        Object.assign(document.createElement("span"), { textContent: one.description }),
        Object.assign(document.createElement("small"), { className: "muted", textContent: `${one.severity}, failing since ${day(one)}` })
      );
      row.append(words);
      if (item === "") row.append(press("This is the same", one, () => take(one)));
      row.append(press("Mention it in the note", one, () => cite(one)));
      return row;
    }));
  }
  function press(text, one, act) {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "btn btn-quiet", textContent: text });
    button.setAttribute("aria-label", `${text}: ${one.description}`);
    button.addEventListener("click", act);
    return button;
  }
  function fill(at, text) {
    at.value = text;
    at.dispatchEvent(new Event("input", { bubbles: true }));
  }
  function take(one) {
    const what = field("what").value.trim();
    if (what !== "" && what !== one.description && field("note").value.trim() === "") fill(field("note"), what);
    fill(field("what"), one.description);
    const severity = form().querySelector("#finding-severity");
    severity.value = one.severity;
    same(one.key, one.description);
    hide();
    field("note").focus();
  }
  function cite(one) {
    const at = note();
    if (at === null) return;
    const known = `Known: "${one.description}", failing since ${day(one)}.`;
    fill(at, [at.value.trim(), known].filter(Boolean).join("\n").slice(0, 2e3));
    hide();
    at.focus();
  }
  function same(key2, description) {
    const at = part("same");
    at.hidden = key2 === "";
    at.querySelector("input").value = key2;
    at.querySelector("b").textContent = description;
  }
  function of(target) {
    if (target.id === "finding-what" || target.id === "finding-note") return "";
    return target instanceof HTMLTextAreaElement ? target.closest("li[data-item]")?.dataset.item ?? null : null;
  }
  document.addEventListener("input", (event) => {
    const where = of(event.target);
    if (where === null || ended()) return;
    if (where !== item) hide();
    item = where;
    clearTimeout(timer);
    if (!event.isTrusted || item === "" && part("same").querySelector("input").value !== "") return;
    if (typed().length < least) hide();
    else timer = setTimeout(() => void ask2(), rest);
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("#same button") === null) return;
    same("", "");
    field("what").focus();
  });
  return {
    said(of2) {
      if (of2 === item) hide();
    },
    clear() {
      hide();
      if (form() !== null) same("", "");
    }
  };
}
var day = (one) => new Date(one.firstFailedAt).toLocaleDateString("en", { day: "numeric", month: "long", year: "numeric" });

// src/clock.ts
function clock(at, silence) {
  const words = at.querySelector("span");
  let due = NaN;
  let silent = NaN;
  let heard = NaN;
  let stands = false;
  const tick = () => {
    const seconds = (until) => Math.round((until - performance.now()) / 1e3);
    const time = (left2) => `${Math.floor(left2 / 60)}:${String(left2 % 60).padStart(2, "0")}`;
    if (!Number.isNaN(silent)) {
      const left2 = seconds(silent);
      const lost = performance.now() - heard > missed;
      silence.classList.toggle("waits", lost);
      write(silence, stands && !lost ? "In contact" : left2 <= 0 ? "No contact" : lost ? `No contact, ${time(left2)} to reconnect` : `In contact, ${time(left2)}`);
    }
    if (Number.isNaN(due)) return;
    if (stands) {
      at.classList.remove("soon", "over");
      write(words, "Paused until the answer");
      return;
    }
    const left = seconds(due);
    at.classList.toggle("soon", left > 0 && left < 300);
    at.classList.toggle("over", left <= 0);
    write(words, left <= 0 ? "Time is over. The test returns to the queue" : time(left) + " left");
  };
  setInterval(tick, 1e3);
  return {
    set(dueAt, silentAt, now, standsNow) {
      heard = performance.now();
      silent = heard + Date.parse(silentAt) - Date.parse(now);
      stands = standsNow;
      if (document.getElementById("lobby") === null) due = heard + Date.parse(dueAt) - Date.parse(now);
      tick();
    }
  };
}
var missed = 9e4;
function write(at, text) {
  if (at.textContent !== text) at.textContent = text;
}

// src/reels.ts
var head = 4096;
var gathered = 512 << 10;
var patience = 5e3;
var largest = 1 << 20;
var pauses2 = [500, 1e3, 2e3, 5e3, 1e4];
var inUse = (reel) => "humanqa-reel-" + reel;
var Reels = class {
  constructor(person, changed) {
    this.person = person;
    this.changed = changed;
    addEventListener("online", () => this.wake());
  }
  person;
  changed;
  db = open2();
  running = false;
  wake = () => {
  };
  async add(reel) {
    await this.write("reels", reel);
  }
  async append(reel, at, data) {
    await this.write("slices", { reel, at, data });
    void this.drain();
  }
  async write(store, what) {
    await run2((await this.db).transaction(store, "readwrite", { durability: "strict" }).objectStore(store).put(what));
  }
  async all() {
    const reels = await run2((await this.db).transaction("reels").objectStore("reels").getAll());
    return reels.filter((r) => r.person === this.person);
  }
  async slices(reel) {
    return run2((await this.db).transaction("slices").objectStore("slices").index("reel").getAll(reel.id));
  }
  async forget(slices) {
    const db = await this.db;
    for (const s of slices) await run2(db.transaction("slices", "readwrite").objectStore("slices").delete(s.id));
  }
  async drop(reel) {
    await this.forget(await this.slices(reel));
    await run2((await this.db).transaction("reels", "readwrite").objectStore("reels").delete(reel.id));
  }
  // drain sends until everything is there. Of several tabs one does.
  async drain() {
    if (this.running) {
      this.wake();
      return;
    }
    this.running = true;
    try {
      if (navigator.locks) await navigator.locks.request("humanqa-reels", () => this.send());
      else await this.send();
    } finally {
      this.running = false;
    }
  }
  async send() {
    let failures = 0;
    for (; ; ) {
      const reels = await this.all();
      if (reels.length === 0) {
        this.changed({ unsent: 0, reels: 0, waits: "", refused: "" });
        return;
      }
      const live = new Set((await navigator.locks?.query())?.held?.map((l) => l.name));
      let busy = false;
      let waits = "";
      let unsent = 0;
      for (const reel of reels) {
        const outcome = await this.step(reel, live.has(inUse(reel.id)));
        busy ||= outcome.busy;
        waits ||= outcome.waits;
        unsent += outcome.unsent;
      }
      failures = waits === "" ? 0 : failures + 1;
      this.changed({ unsent, reels: reels.length, waits, refused: "" });
      if (waits !== "") await this.pause(pauses2[Math.min(failures - 1, pauses2.length - 1)]);
      else if (!busy) await this.pause(1e3);
    }
  }
  // step does one thing for a recording. Until its tab ends it, small slices wait for
  // company.
  async step(reel, live) {
    const slices = await this.slices(reel);
    const end = slices.reduce((most, s) => Math.max(most, s.at + s.data.size), reel.acked);
    const unsent = end - reel.acked;
    const idle2 = { busy: false, waits: "", unsent };
    try {
      if (reel.remote === void 0) {
        if (unsent < head && live) return idle2;
        if (unsent === 0) {
          await this.drop(reel);
          return idle2;
        }
        const begun = await this.ask("POST", reel, "", new URLSearchParams({ token: reel.token, command: reel.id, ago: String(Math.max(0, Date.now() - reel.began)) }));
        reel.remote = begun.recordingId;
        await this.add(reel);
        return { ...idle2, busy: true };
      }
      if (unsent === 0) {
        if (live) return idle2;
        await this.ask("POST", reel, "/" + reel.remote + "/finish", new URLSearchParams({ token: reel.token }));
        await this.drop(reel);
        return { ...idle2, busy: true };
      }
      if (live && unsent < gathered && Date.now() - (this.since.get(reel.id) ?? 0) < patience) return idle2;
      const part = new Blob(slices.filter((s) => s.at + s.data.size > reel.acked).map((s) => s.data.slice(Math.max(0, reel.acked - s.at)))).slice(0, largest);
      const query = new URLSearchParams({ token: reel.token, offset: String(reel.acked) });
      const there = await this.ask("POST", reel, `/${reel.remote}/parts?${query}`, part);
      this.since.set(reel.id, Date.now());
      await this.reached(reel, slices, there.offset);
      return { ...idle2, busy: true, unsent: end - reel.acked };
    } catch (problem) {
      if (!(problem instanceof Refused)) return { ...idle2, waits: problem instanceof Later ? problem.message : navigator.onLine ? "The service does not answer." : "There is no network." };
      return this.refused(reel, slices, problem.message, idle2);
    }
  }
  since = /* @__PURE__ */ new Map();
  // when a recording's last part went
  // reached notes how much is there; what is behind it is needed no more.
  async reached(reel, slices, offset) {
    reel.acked = offset;
    await this.add(reel);
    await this.forget(slices.filter((s) => s.at + s.data.size <= offset));
  }
  // refused finds out what a refusal means: it goes on elsewhere, as when an answer
  // was lost, or it is over. What the service has, it finishes by itself.
  async refused(reel, slices, why, idle2) {
    try {
      const there = reel.remote === void 0 ? void 0 : await this.ask("GET", reel, "/" + reel.remote);
      const from = slices.length === 0 ? reel.acked : slices[0].at;
      if (there?.status === "open" && there.offset !== reel.acked && there.offset >= from) {
        await this.reached(reel, slices, there.offset);
        return { busy: true, waits: "", unsent: idle2.unsent };
      }
    } catch (problem) {
      if (!(problem instanceof Refused)) return { busy: false, waits: "The service does not answer.", unsent: idle2.unsent };
    }
    await this.drop(reel);
    this.changed({ unsent: 0, reels: 0, waits: "", refused: why });
    document.dispatchEvent(new CustomEvent("humanqa:reel-refused", { detail: reel.id }));
    return { busy: true, waits: "", unsent: 0 };
  }
  async ask(method, reel, path, body) {
    const answer = await fetch(`/workbench/jobs/${reel.job}/recordings${path}`, {
      method,
      body,
      headers: { Accept: "application/json" },
      redirect: "manual",
      cache: "no-store",
      signal: AbortSignal.timeout(body instanceof Blob ? 12e4 : 3e4)
    });
    if (answer.type === "opaqueredirect") throw new Later(signedOut);
    if (answer.status >= 500 || answer.status === 429) throw new Later("The service does not answer.");
    const proxys = !answer.headers.get("Content-Type")?.includes("json");
    if (answer.status === 413 && proxys) throw new Later(await reason(answer, body instanceof Blob ? body.size : 0));
    if (!answer.ok) throw new Refused(await reason(answer));
    return answer.json();
  }
  pause(ms) {
    return new Promise((go) => {
      const timer = setTimeout(go, ms);
      this.wake = () => {
        clearTimeout(timer);
        go();
      };
    });
  }
};
var Later = class extends Error {
};
var Refused = class extends Error {
};
function open2() {
  const asked = indexedDB.open("humanqa-reels", 1);
  asked.onupgradeneeded = () => {
    asked.result.createObjectStore("reels", { keyPath: "id" });
    asked.result.createObjectStore("slices", { keyPath: "id", autoIncrement: true }).createIndex("reel", "reel");
  };
  return run2(asked);
}
function run2(asked) {
  return new Promise((done, failed) => {
    const of = asked.transaction;
    asked.onerror = () => failed(asked.error);
    if (of !== null && of.mode === "readwrite") {
      of.oncomplete = () => done(asked.result);
      of.onabort = () => failed(of.error);
    } else asked.onsuccess = () => done(asked.result);
  });
}

// src/film.ts
var types = ["video/webm;codecs=vp9,opus", "video/webm;codecs=vp8,opus", "video/webm", "video/mp4"];
function film(person, job = "", token = "") {
  const reels = new Reels(person, (state) => {
    sent = { ...state, refused: state.refused || sent.refused };
    tell();
  });
  const at = () => document.getElementById("film-state");
  let sent = { unsent: 0, reels: 0, waits: "", refused: "" };
  let running = null;
  let hidden = false;
  let starting = false;
  let saved = false;
  function tell() {
    const line = at();
    if (line === null) return;
    let text = "";
    if (sent.refused !== "") text = "The recording was not accepted. " + sent.refused;
    else if (running !== null) text = hidden ? "Recording: black while the login is shown" : "Recording";
    else if (sent.reels > 0) {
      text = "Sending the recording";
      saved = true;
    } else if (saved) text = "The recording is saved";
    if (sent.waits !== "" && sent.refused === "") text += `. ${sent.waits} ${size(sent.unsent)} are kept in this browser.`;
    line.hidden = text === "";
    line.className = sent.refused !== "" ? "refused" : sent.waits !== "" ? "waits" : "muted";
    if (line.textContent !== text) line.textContent = text;
    const button = document.getElementById("film");
    if (button === null) return;
    button.classList.toggle("on", running !== null);
    button.lastElementChild.textContent = running === null ? "Record" : "Stop recording";
  }
  function complain(text) {
    const line = at();
    if (line === null) return;
    line.hidden = false;
    line.className = "refused";
    line.textContent = text;
  }
  async function start2() {
    if (running !== null || starting) return;
    starting = true;
    let stream;
    try {
      const screen = await navigator.mediaDevices.getDisplayMedia({ video: { frameRate: 10 }, audio: false });
      stream = new MediaStream(screen.getVideoTracks());
      if (document.getElementById("film-voice")?.checked) {
        const voice2 = await navigator.mediaDevices.getUserMedia({ audio: true });
        for (const track of voice2.getAudioTracks()) stream.addTrack(track);
      }
      await roll(stream);
    } catch (problem) {
      stream?.getTracks().forEach((t) => t.stop());
      complain(problem.name === "NotAllowedError" ? "Nothing is recorded, because the browser was not allowed to." : "This browser cannot record: " + problem.message);
    } finally {
      starting = false;
    }
  }
  async function roll(stream) {
    const options = { mimeType: types.find((t) => MediaRecorder.isTypeSupported(t)), videoBitsPerSecond: 12e5, videoKeyFrameIntervalDuration: 5e3 };
    const recorder = new MediaRecorder(stream, options);
    const id = crypto.randomUUID();
    let over = () => {
    };
    const ended = new Promise((done) => {
      over = done;
    });
    await seen(stream);
    const began = Date.now();
    await reels.add({ id, person, job, token, began, acked: 0 });
    if (navigator.locks) void navigator.locks.request(inUse(id), () => ended);
    let end = 0;
    let written = Promise.resolve();
    recorder.ondataavailable = (event) => {
      if (event.data.size === 0) return;
      const from = end;
      end += event.data.size;
      written = written.then(() => reels.append(id, from, event.data)).catch((problem) => {
        complain("This browser has no room for more of the recording: " + problem.message);
        if (recorder.state !== "inactive") recorder.stop();
      });
    };
    recorder.onstop = () => void written.then(() => {
      stream.getTracks().forEach((t) => t.stop());
      running = null;
      over();
      tell();
      void reels.drain();
    });
    stream.getVideoTracks()[0].addEventListener("ended", () => {
      if (recorder.state !== "inactive") recorder.stop();
    });
    running = { id, recorder, stream, began, ended };
    hide(hidden);
    sent.refused = "";
    recorder.start(1e3);
    tell();
    void reels.drain();
  }
  async function stop() {
    const now = running;
    if (now === null) return;
    if (now.recorder.state !== "inactive") now.recorder.stop();
    await now.ended;
  }
  function hide(yes) {
    hidden = yes;
    running?.stream.getTracks().forEach((t) => {
      t.enabled = !yes;
    });
    tell();
  }
  async function grab() {
    const own = running === null ? await navigator.mediaDevices.getDisplayMedia({ video: true, audio: false }) : null;
    try {
      const video = document.createElement("video");
      video.muted = true;
      video.srcObject = own ?? running.stream;
      await video.play();
      const canvas = document.createElement("canvas");
      canvas.width = video.videoWidth;
      canvas.height = video.videoHeight;
      canvas.getContext("2d").drawImage(video, 0, 0);
      video.srcObject = null;
      const picture = await new Promise((done) => canvas.toBlob(done, "image/png"));
      return picture === null ? null : new File([picture], "screen.png", { type: "image/png" });
    } finally {
      own?.getTracks().forEach((t) => t.stop());
    }
  }
  document.addEventListener("humanqa:login", (event) => hide(event.detail));
  document.addEventListener("humanqa:reel-refused", (event) => {
    if (running?.id === event.detail) void stop();
  });
  setInterval(() => {
    const clock2 = document.getElementById("film-clock");
    if (clock2 === null) return;
    const seconds = running === null ? -1 : Math.round((Date.now() - running.began) / 1e3);
    clock2.textContent = seconds < 0 ? "" : `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  }, 1e3);
  void reels.drain();
  return { start: start2, stop, grab, recording: () => running !== null };
}
async function seen(stream) {
  const video = document.createElement("video");
  video.muted = true;
  video.srcObject = stream;
  await Promise.race([video.play(), new Promise((late) => setTimeout(late, 2e3))]);
  video.srcObject = null;
}

// src/annotate.ts
var tools = ["arrow", "box", "blur"];
var largest2 = 10 << 20;
var area = 48 << 20;
var longest = 16e3;
function annotates(dialog) {
  const canvas = dialog.querySelector("canvas");
  const on = canvas.getContext("2d", { willReadFrequently: true });
  const told = dialog.querySelector("[role=status]");
  const button = (name) => dialog.querySelector(`[data-do=${name}]`);
  const base = document.createElement("canvas");
  const under = base.getContext("2d", { willReadFrequently: true });
  let picture;
  let marks = [];
  let tool = "arrow";
  let from = null;
  let at = { x: 0, y: 0 };
  let keyed = false;
  let kept = false;
  let line = Promise.resolve();
  function choose(next) {
    tool = next;
    for (const one of tools) button(one).setAttribute("aria-pressed", String(one === tool));
  }
  function paint() {
    on.clearRect(0, 0, canvas.width, canvas.height);
    on.drawImage(base, 0, 0);
    if (from !== null) draw(on, { tool, from, to: at }, true);
    if (!keyed || document.activeElement !== canvas) return;
    const arm = thick(canvas) * 5;
    stroke(on, thick(canvas) / 2, (path) => {
      path.moveTo(at.x - arm, at.y);
      path.lineTo(at.x + arm, at.y);
      path.moveTo(at.x, at.y - arm);
      path.lineTo(at.x, at.y + arm);
    });
  }
  function again() {
    under.clearRect(0, 0, base.width, base.height);
    under.drawImage(picture, 0, 0, base.width, base.height);
    for (const mark of marks) draw(under, mark, false);
    button("undo").disabled = marks.length === 0;
    paint();
  }
  function finish() {
    const mark = { tool, from, to: at };
    from = null;
    const least2 = thick(canvas);
    const wide = Math.abs(mark.to.x - mark.from.x);
    const high = Math.abs(mark.to.y - mark.from.y);
    if (tool === "arrow" ? wide + high < 2 * least2 : wide < least2 || high < least2) {
      paint();
      return;
    }
    marks.push(mark);
    again();
    told.textContent = { arrow: "An arrow is drawn.", box: "A box is drawn.", blur: "This part is unreadable now." }[tool];
  }
  function undo() {
    if (marks.pop() === void 0) return;
    again();
    told.textContent = "The last mark is removed.";
    if (marks.length === 0) canvas.focus();
  }
  async function show2(file) {
    try {
      picture = await createImageBitmap(file);
    } catch {
      return file;
    }
    const scale = Math.min(1, longest / Math.max(picture.width, picture.height), Math.sqrt(area / (picture.width * picture.height)));
    for (const one of [canvas, base]) {
      one.width = Math.max(1, Math.round(picture.width * scale));
      one.height = Math.max(1, Math.round(picture.height * scale));
    }
    at = { x: Math.round(canvas.width / 2), y: Math.round(canvas.height / 2) };
    marks = [];
    from = null;
    kept = keyed = false;
    told.textContent = "";
    choose("arrow");
    again();
    const closed = new Promise((done) => dialog.addEventListener("close", done, { once: true }));
    dialog.showModal();
    button("keep").focus();
    await closed;
    picture.close();
    if (!kept) return null;
    return marks.length === 0 ? file : await drawn(base, file);
  }
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    const within = (n, most) => Math.min(Math.max(Math.round(n), 0), most);
    return {
      x: within((event.clientX - box.left) * canvas.width / box.width, canvas.width),
      y: within((event.clientY - box.top) * canvas.height / box.height, canvas.height)
    };
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    keyed = false;
    from = at = place(event);
    paint();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (from === null || keyed) return;
    at = place(event);
    paint();
  });
  canvas.addEventListener("pointerup", (event) => {
    if (from === null || keyed) return;
    at = place(event);
    finish();
  });
  canvas.addEventListener("pointercancel", () => {
    from = null;
    paint();
  });
  canvas.addEventListener("blur", () => {
    if (keyed) {
      from = null;
      paint();
    }
  });
  canvas.addEventListener("focus", () => paint());
  for (const one of tools) button(one).addEventListener("click", () => choose(one));
  button("undo").addEventListener("click", undo);
  button("keep").addEventListener("click", () => {
    kept = true;
    dialog.close();
  });
  button("drop").addEventListener("click", () => dialog.close());
  const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  dialog.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      button("keep").click();
      event.preventDefault();
      return;
    }
    if (event.key.toLowerCase() === "z" && (event.ctrlKey || event.metaKey)) {
      undo();
      event.preventDefault();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key.toLowerCase() === "u") {
      undo();
      event.preventDefault();
      return;
    }
    const chosen = tools[Number(event.key) - 1];
    if (chosen !== void 0) {
      choose(chosen);
      canvas.focus();
      event.preventDefault();
      return;
    }
    if (event.target === canvas && drawing(event)) event.preventDefault();
  });
  function drawing(event) {
    const way = arrows[event.key];
    if (way !== void 0) {
      keyed = true;
      const step = event.shiftKey ? 1 : Math.max(canvas.width, canvas.height) / 50;
      at = {
        x: Math.min(Math.max(Math.round(at.x + way[0] * step), 0), canvas.width),
        y: Math.min(Math.max(Math.round(at.y + way[1] * step), 0), canvas.height)
      };
      told.textContent = `${Math.round(100 * at.x / canvas.width)} % from the left, ${Math.round(100 * at.y / canvas.height)} % from the top`;
    } else if (event.key === "Enter" || event.key === " ") {
      keyed = true;
      if (from === null) {
        from = at;
        told.textContent = "The mark begins here.";
      } else finish();
    } else if (event.key === "Escape" && from !== null) {
      from = null;
    } else return false;
    paint();
    return true;
  }
  return (file) => {
    const shown = line.then(() => show2(file));
    line = shown.then(() => {
    }, () => {
    });
    return shown;
  };
}
function thick(canvas) {
  return Math.max(3, Math.round(Math.max(canvas.width, canvas.height) / 320));
}
function draw(on, mark, sketch) {
  const { from, to, tool } = mark;
  const wide = thick(on.canvas);
  const [x, y] = [Math.min(from.x, to.x), Math.min(from.y, to.y)];
  const [w, h] = [Math.abs(to.x - from.x), Math.abs(to.y - from.y)];
  if (tool === "arrow") {
    const angle = Math.atan2(to.y - from.y, to.x - from.x);
    const head2 = wide * 5;
    stroke(on, wide, (path) => {
      path.moveTo(from.x, from.y);
      path.lineTo(to.x, to.y);
      for (const side of [-0.5, 0.5]) {
        path.moveTo(to.x, to.y);
        path.lineTo(to.x - head2 * Math.cos(angle + side), to.y - head2 * Math.sin(angle + side));
      }
    });
  } else if (tool === "box" || sketch) stroke(on, sketch && tool === "blur" ? wide / 2 : wide, (path) => path.rect(x, y, w, h));
  else destroy(on, x, y, w, h);
}
function stroke(on, wide, lines) {
  const path = new Path2D();
  lines(path);
  on.lineCap = on.lineJoin = "round";
  for (const [colour, width] of [["#ffffff", wide * 2], ["#d3281e", wide]]) {
    on.strokeStyle = colour;
    on.lineWidth = width;
    on.stroke(path);
  }
}
function destroy(on, x, y, w, h) {
  const { data } = on.getImageData(x, y, w, h);
  const columns = Math.min(4, Math.max(1, Math.floor(w / 48)));
  const rows = Math.min(4, Math.max(1, Math.floor(h / 48)));
  const sums = Array.from({ length: columns * rows }, () => [0, 0, 0, 0]);
  for (let j = 0; j < h; j++) {
    for (let i = 0; i < w; i++) {
      const sum = sums[Math.floor(j * rows / h) * columns + Math.floor(i * columns / w)];
      for (let k = 0; k < 3; k++) sum[k] += data[4 * (j * w + i) + k];
      sum[3]++;
    }
  }
  const few = document.createElement("canvas");
  few.width = columns;
  few.height = rows;
  const cells = new ImageData(columns, rows);
  sums.forEach((sum, n) => cells.data.set([...sum.slice(0, 3).map((all) => Math.round(all / sum[3] / 24) * 24), 255], 4 * n));
  few.getContext("2d").putImageData(cells, 0, 0);
  on.fillStyle = "#808080";
  on.fillRect(x, y, w, h);
  on.imageSmoothingEnabled = true;
  on.drawImage(few, x, y, w, h);
}
async function drawn(canvas, was) {
  const name = was.name.replace(/\.[^.]*$/, "") || "picture";
  const as = (type) => new Promise((done) => canvas.toBlob(done, type, 0.92));
  let blob = await as(was.type === "image/jpeg" ? "image/jpeg" : "image/png");
  if (blob !== null && blob.size > largest2) blob = await as("image/jpeg");
  if (blob === null) throw new Error("this browser cannot draw a picture of this size");
  return new File([blob], name + (blob.type === "image/jpeg" ? ".jpg" : ".png"), { type: blob.type });
}

// src/notice.ts
var refused = "This browser does not allow notifications.";
function possible() {
  return typeof Notification !== "undefined";
}
function allowed() {
  return possible() && Notification.permission === "granted";
}
async function ask() {
  return await Notification.requestPermission() === "granted" ? "" : refused;
}
function show(title, body, tag, href = "") {
  try {
    const shown = new Notification(title, { body, tag });
    shown.onclick = () => {
      window.focus();
      if (href !== "") location.assign(href);
      shown.close();
    };
    return "";
  } catch {
    return refused;
  }
}

// src/bell.ts
var rungAt = "humanqa:rung";
var remembered = 50;
function bell() {
  const at = document.getElementById("bell");
  if (at === null) return;
  const told = at.querySelector("[role=status]");
  const button = (name) => at.querySelector(`[data-bell=${name}]`);
  const wanted = (name) => localStorage.getItem("humanqa:bell:" + name) === "on";
  const urgent = () => [...document.querySelectorAll("[data-urgent]")].map((row) => ({ id: row.dataset.urgent, title: row.querySelector(".title").textContent }));
  const seen2 = new Set(urgent().map((one) => one.id));
  let audio = null;
  function set(name, on, why = "") {
    if (on) localStorage.setItem("humanqa:bell:" + name, "on");
    else localStorage.removeItem("humanqa:bell:" + name);
    draw2();
    told.textContent = why;
  }
  function draw2() {
    for (const name of ["notice", "sound"]) button(name).setAttribute("aria-pressed", String(wanted(name)));
  }
  async function notices() {
    if (wanted("notice")) {
      set("notice", false);
      return;
    }
    const refused2 = await ask();
    set("notice", refused2 === "", refused2);
  }
  async function awake() {
    audio ??= new AudioContext();
    if (audio.state !== "running") await Promise.race([audio.resume(), new Promise((late) => setTimeout(late, 500))]);
    told.textContent = audio.state === "running" ? "" : "The browser plays no sound before you click on this page.";
    return audio;
  }
  async function beep() {
    const { currentTime: now, destination } = await awake();
    for (const [after, pitch] of [[0, 880], [0.18, 1175]]) {
      const tone = audio.createOscillator();
      const volume = audio.createGain();
      tone.frequency.value = pitch;
      volume.gain.setValueAtTime(0.15, now + after);
      volume.gain.exponentialRampToValueAtTime(1e-3, now + after + 0.3);
      tone.connect(volume).connect(destination);
      tone.start(now + after);
      tone.stop(now + after + 0.3);
    }
  }
  function notice(came) {
    const refused2 = show("Urgent: " + came.title, "It waits in the queue.", came.id);
    if (refused2 !== "") set("notice", false, refused2);
  }
  async function ours(came) {
    const take = () => {
      const rung = JSON.parse(localStorage.getItem(rungAt) ?? "[]");
      const left = came.filter((one) => !rung.includes(one.id));
      localStorage.setItem(rungAt, JSON.stringify([...rung, ...left.map((one) => one.id)].slice(-remembered)));
      return left;
    };
    return navigator.locks ? await navigator.locks.request("humanqa-bell", take) : take();
  }
  document.addEventListener("humanqa:refreshed", async () => {
    const came = urgent().filter((one) => !seen2.has(one.id));
    for (const one of came) seen2.add(one.id);
    if (came.length === 0 || !wanted("notice") && !wanted("sound")) return;
    const left = await ours(came);
    if (left.length === 0) return;
    if (wanted("sound")) void beep();
    if (wanted("notice")) for (const one of left) notice(one);
  });
  button("notice").hidden = !possible();
  button("notice").addEventListener("click", () => void notices());
  button("sound").addEventListener("click", () => {
    set("sound", !wanted("sound"));
    if (wanted("sound")) void beep();
  });
  if (wanted("notice") && !allowed()) set("notice", false);
  draw2();
  at.hidden = false;
  if (wanted("sound")) {
    void awake();
    for (const press of ["pointerdown", "keydown"]) document.addEventListener(press, () => void awake(), { once: true });
  }
}

// src/float.ts
var size2 = { width: 400, height: 560 };
var taken = "psujkmv1234";
function floats(bench2) {
  let win = null;
  let asking = "";
  let about = "";
  const part = (name) => win.document.querySelector(`[data-f=${name}]`);
  const note = () => win.document.getElementById("floating-note");
  const severity = () => win.document.getElementById("floating-severity");
  async function open3() {
    if (win !== null && !win.closed) {
      win.focus();
      return;
    }
    const over = window.documentPictureInPicture;
    win = await over?.requestWindow(size2).catch(() => null) ?? window.open("", "humanqa-float", `popup,width=${size2.width},height=${size2.height}`);
    if (win === null) {
      bench2.complain("This browser opens no window: allow popups here.");
      return;
    }
    const at = win.document;
    at.documentElement.lang = "en";
    at.head.replaceChildren(...[...document.querySelectorAll("link[rel=stylesheet]")].map((sheet) => Object.assign(at.createElement("link"), { rel: "stylesheet", href: sheet.href })));
    at.head.append(Object.assign(at.createElement("meta"), { name: "color-scheme", content: "light dark" }));
    at.title = document.title;
    at.body.replaceChildren(at.importNode(document.getElementById("floating").content, true));
    at.addEventListener("keydown", pressed2);
    at.addEventListener("click", clicked);
    part("form").addEventListener("submit", (event) => {
      event.preventDefault();
      settle();
    });
    win.addEventListener("pagehide", () => {
      win = null;
    });
    asking = "";
    paint();
    part("item").focus();
  }
  function paint() {
    if (win === null || win.closed) return;
    const row = bench2.current();
    const over = bench2.over();
    if (asking !== "" && row?.dataset.item !== about) asking = "";
    tick();
    part("over").hidden = !over;
    for (const name of ["item", "list"]) part(name).hidden = over;
    part("verdicts").hidden = over || asking !== "";
    part("form").hidden = over || asking === "";
    if (row === null) return;
    part("verdict").replaceChildren(win.document.importNode(row.querySelector(".slot").firstElementChild, true));
    write2(part("title"), row.querySelector(".what > b").textContent);
    write2(part("expected"), [...row.querySelectorAll(".what > .asked, .what > .expected:not(.why)")].map((line) => line.textContent.trim()).join(" "));
    const ask3 = row.querySelector(".ask");
    part("ask").hidden = ask3 === null;
    if (ask3 !== null && part("ask").childElementCount === 0) part("ask").append(...[...ask3.children].map((button) => win.document.importNode(button, true)));
    const list = part("list");
    const rows = bench2.rows();
    while (list.children.length > rows.length) list.lastElementChild.remove();
    rows.forEach((one, n) => {
      if (n >= list.children.length) {
        list.append(win.document.createElement("li"));
        list.lastElementChild.append(Object.assign(win.document.createElement("button"), { type: "button", className: "link" }));
      }
      const button = list.children[n].firstElementChild;
      button.dataset.item = one.dataset.item;
      button.toggleAttribute("aria-current", one === row);
      const icon = one.querySelector(".slot .verdict");
      if (button.dataset.status !== one.dataset.status || button.lastChild?.textContent !== one.querySelector(".what > b").textContent) {
        button.dataset.status = one.dataset.status;
        button.replaceChildren(win.document.importNode(icon, true), one.querySelector(".what > b").textContent);
      }
    });
  }
  function write2(at, text) {
    if (at.textContent !== text) at.textContent = text;
  }
  function tick() {
    if (win === null || win.closed) return;
    const talk = document.querySelector("[data-voice] :is([data-join], [data-mute]):not([hidden])");
    part("talk").hidden = talk === null || bench2.over();
    if (talk !== null) {
      const button = part("talk").querySelector("button");
      write2(button, talk.textContent);
      button.setAttribute("aria-pressed", talk.getAttribute("aria-pressed") ?? "false");
      const now = [...document.querySelectorAll("[data-voice] .speaks.now")].map((name) => name.textContent);
      write2(part("talking"), now.length === 0 ? "" : now.join(", ") + (now.length === 1 ? " speaks" : " speak"));
    }
    for (const name of ["clock", "left", "saved"]) write2(part(name), document.getElementById(name)?.textContent?.trim() ?? "");
  }
  function ask2(what) {
    const row = bench2.current();
    if (row === null) return;
    asking = what;
    about = row.dataset.item;
    note().value = note().defaultValue = row.querySelector("textarea").value;
    severity().value = row.querySelector("[name=severity]").value;
    paint();
    note().focus();
  }
  function settle() {
    const row = bench2.current();
    const status = asking === "fail" ? "fail" : row?.dataset.status;
    if (row === null || status === void 0 || row.dataset.item !== about) return;
    asking = "";
    bench2.settle(row, status, note().value, severity().value);
    paint();
    part("item").focus();
  }
  function cancel() {
    asking = "";
    paint();
    part("item").focus();
  }
  function act(key2) {
    if (bench2.over()) return false;
    if (key2 === "f" || key2 === "n") {
      ask2(key2 === "f" ? "fail" : "note");
      return true;
    }
    if ("123".includes(key2) && bench2.current()?.querySelector(".ask") === null) {
      ask2("fail");
      severity().selectedIndex = Number(key2) - 1;
      return true;
    }
    if (key2 === ".") {
      win.close();
      return true;
    }
    if (!taken.includes(key2) && key2 !== "escape" || !bench2.press(key2)) return false;
    paint();
    return true;
  }
  function pressed2(event) {
    if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target;
    if (asking !== "" && event.key === "Escape") {
      event.preventDefault();
      cancel();
      return;
    }
    if (asking !== "" && event.key === "Enter" && !event.shiftKey && (target === note() || target === severity())) {
      event.preventDefault();
      settle();
      return;
    }
    if (target === severity() && bench2.keys() && severity().options[Number(event.key) - 1] !== void 0) {
      event.preventDefault();
      severity().selectedIndex = Number(event.key) - 1;
      return;
    }
    if (!bench2.keys() || target.closest("select, textarea") !== null) return;
    if (act(event.key.toLowerCase())) event.preventDefault();
  }
  function clicked(event) {
    const target = event.target;
    const key2 = target.closest("[data-key]")?.dataset.key;
    if (key2 !== void 0) {
      act(key2);
      return;
    }
    if (target.closest("[data-f=cancel]") !== null) {
      cancel();
      return;
    }
    const item = target.closest("[data-item]")?.dataset.item;
    const row = bench2.rows().find((one) => one.dataset.item === item);
    if (row !== void 0) {
      bench2.go(row);
      paint();
    }
  }
  setInterval(tick, 1e3);
  addEventListener("pagehide", () => win?.close());
  return { open: () => void open3(), paint };
}

// src/press.ts
var down = false;
var waiting = [];
addEventListener("pointerdown", (event) => {
  if (event.button === 0) down = true;
}, true);
for (const end of ["pointerup", "pointercancel", "keydown", "change"]) addEventListener(end, up, true);
addEventListener("pointermove", (event) => {
  if (event.buttons === 0) up();
}, true);
function up() {
  if (!down) return;
  down = false;
  setTimeout(() => {
    if (!down) for (const go of waiting.splice(0)) go();
  });
}
var pressed = () => down;
function released() {
  return down ? new Promise((go) => waiting.push(go)) : Promise.resolve();
}

// src/voice.ts
var pauses3 = [500, 1e3, 2e3, 5e3, 1e4];
var lastWords = {
  over: "The session has ended, or you are no longer part of it.",
  replaced: "You are in the voice chat in another tab.",
  full: "The voice chat is full."
};
function key() {
  const button = document.querySelector("[data-voice] :is([data-join], [data-mute]):not([hidden])");
  button?.click();
  return button !== null;
}
function voice() {
  let talk;
  const look = () => {
    const card = document.querySelector("[data-voice]");
    if (talk !== void 0 && talk.card !== card) {
      talk.leave();
      talk = void 0;
    }
    if (card !== null && talk === void 0 && card.querySelector("[data-join]") !== null) talk = new Talk(card);
  };
  look();
  document.addEventListener("humanqa:refreshed", look);
}
var Talk = class {
  // the browser plays nothing until somebody presses a button
  constructor(card) {
    this.card = card;
    this.watches = card.dataset.watches !== void 0;
    this.memory = "humanqa:voice:" + card.dataset.voice;
    this.on("[data-join]", () => void this.join());
    this.on("[data-mute]", () => void this.mute());
    this.on("[data-leave]", () => {
      this.leave();
      this.say("You have left the voice chat.");
    });
    card.addEventListener("click", (event) => {
      const button = event.target.closest("[data-let]");
      if (button !== null) this.send({ type: button.dataset.let, peer: button.dataset.peer });
    });
    this.paint();
    if (!this.watches && sessionStorage.getItem(this.memory) !== null) void this.join();
  }
  card;
  watches;
  memory;
  // that this tab is in it, over the pages of a session
  wanted = false;
  tries = 0;
  socket;
  pc;
  mic;
  uplink = "";
  // the media line of the microphone
  people = [];
  you = "";
  speaking = [];
  over = false;
  // nobody can join any more
  silent = false;
  at(selector) {
    return this.card.querySelector(selector);
  }
  on(selector, act) {
    this.at(selector).addEventListener("click", act);
  }
  say(text) {
    this.at("[data-say]").textContent = text;
  }
  me() {
    return this.people.find((p) => p.id === this.you);
  }
  async join() {
    if (this.wanted) {
      this.silent = false;
      for (const audio of this.card.querySelectorAll("audio")) void audio.play();
      return this.paint();
    }
    if (navigator.mediaDevices === void 0 || typeof RTCPeerConnection === "undefined") {
      return this.say("This browser allows no microphone on a page without HTTPS. The test continues without voice.");
    }
    if (!this.watches && !await this.open()) return;
    this.wanted = true;
    sessionStorage.setItem(this.memory, "1");
    this.say("Connecting");
    this.connect();
  }
  // open asks for the microphone.
  async open() {
    if (this.mic?.readyState === "live") return true;
    try {
      const stream = await navigator.mediaDevices.getUserMedia({ audio: { echoCancellation: true, noiseSuppression: true, autoGainControl: true } });
      this.mic = stream.getAudioTracks()[0];
      return true;
    } catch (problem) {
      const denied = problem.name === "NotAllowedError";
      this.say((denied ? "The browser was not allowed to use the microphone." : "No usable microphone was found.") + " The test continues without voice.");
      return false;
    }
  }
  leave() {
    this.wanted = false;
    sessionStorage.removeItem(this.memory);
    this.hangUp();
    this.mic?.stop();
    this.mic = void 0;
    this.paint();
  }
  hangUp() {
    const { socket, pc } = this;
    this.socket = this.pc = void 0;
    this.people = [];
    this.speaking = [];
    this.uplink = "";
    socket?.close();
    pc?.close();
    for (const audio of this.card.querySelectorAll("audio")) audio.remove();
  }
  connect() {
    const url = new URL(this.card.dataset.voice, location.href);
    url.protocol = url.protocol.replace("http", "ws");
    const socket = new WebSocket(url);
    this.socket = socket;
    let chain = Promise.resolve();
    socket.onmessage = (event) => {
      chain = chain.then(async () => {
        if (this.socket === socket) await this.heard(JSON.parse(event.data));
      }).catch(() => socket.close());
    };
    socket.onclose = () => {
      void chain.then(() => {
        if (this.socket === socket) this.again();
      });
    };
  }
  // again tries once more, later each time.
  again() {
    this.hangUp();
    this.paint();
    if (!this.wanted) return;
    this.say(this.tries > 2 ? "The voice chat has no connection right now. The test continues without it, and the page keeps trying." : "Connecting again");
    setTimeout(() => {
      if (this.wanted && this.socket === void 0) this.connect();
    }, pauses3[Math.min(this.tries++, pauses3.length - 1)]);
  }
  send(m) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(m));
  }
  async heard(m) {
    if (m.type === "peers") {
      this.people = m.peers ?? [];
      this.you = m.you ?? "";
      this.paint();
      if (this.people.length === 1 && this.pc === void 0) this.say("You are the first in the voice chat.");
    }
    if (m.type === "speaking") {
      this.speaking = m.speaking ?? [];
      this.paint();
    }
    if (m.type === "offer") await this.offered(m);
    if (m.type === "end") {
      if (m.why === "again") return this.again();
      this.over = m.why === "over";
      this.leave();
      this.say(lastWords[m.why ?? ""] ?? "The voice chat has ended.");
    }
  }
  async offered(m) {
    const pc = this.pc ?? this.call();
    await pc.setRemoteDescription({ type: "offer", sdp: m.sdp });
    if (m.mic !== void 0 && m.mic !== "" && this.uplink === "") {
      const line = pc.getTransceivers().find((t) => t.mid === m.mic);
      if (line !== void 0) {
        this.uplink = m.mic;
        line.direction = "sendonly";
        if (this.mic !== void 0) await line.sender.replaceTrack(this.mic);
      }
    }
    await pc.setLocalDescription(await pc.createAnswer());
    this.send({ type: "answer", sdp: pc.localDescription.sdp });
  }
  call() {
    const pc = new RTCPeerConnection({ bundlePolicy: "max-bundle" });
    this.pc = pc;
    pc.ontrack = (event) => this.play(event.streams[0]);
    pc.onconnectionstatechange = () => {
      if (this.pc !== pc) return;
      if (pc.connectionState === "connected") {
        this.tries = 0;
        this.say("You are in the voice chat.");
        this.paint();
      }
      if (pc.connectionState === "failed") this.socket?.close();
    };
    return pc;
  }
  // play lets somebody be heard. A stream's id is its speaker's.
  play(stream) {
    const audio = document.createElement("audio");
    audio.autoplay = true;
    audio.srcObject = stream;
    audio.dataset.of = stream.id;
    this.card.append(audio);
    audio.play().catch(() => {
      this.silent = true;
      this.paint();
    });
    stream.onremovetrack = () => audio.remove();
  }
  // mute turns the microphone off, and on; who was let speak opens it so.
  async mute() {
    if (this.mic === void 0) {
      if (!await this.open()) return;
      const line = this.pc?.getTransceivers().find((t) => t.mid === this.uplink);
      await line?.sender.replaceTrack(this.mic);
    } else {
      this.mic.enabled = !this.mic.enabled;
    }
    this.paint();
  }
  paint() {
    const inside = this.wanted && this.people.length > 0;
    const join = this.at("[data-join]"), mute = this.at("[data-mute]"), leave = this.at("[data-leave]");
    join.hidden = this.over || this.wanted && !this.silent;
    if (this.wanted) join.textContent = "Turn the sound on";
    else join.textContent = this.watches ? "Listen" : "Join the voice chat";
    leave.hidden = !this.wanted;
    mute.hidden = !inside || this.me()?.speaks !== true;
    const off = this.mic !== void 0 && !this.mic.enabled;
    mute.setAttribute("aria-pressed", String(off));
    mute.textContent = this.mic === void 0 ? "Speak (you were invited)" : off ? "Muted" : "Mute";
    if (this.watches && inside && this.me()?.speaks !== true) {
      this.mic?.stop();
      this.mic = void 0;
    }
    const rank = (p) => p.id === this.you ? 0 : p.speaks ? 1 : 2;
    const rows = inside ? [...this.people].sort((a, b) => rank(a) - rank(b)) : [];
    const list = this.at("[data-voices]");
    while (list.children.length > rows.length) list.lastElementChild.remove();
    rows.forEach((p, n) => {
      let row = list.children[n];
      if (row?.dataset.peer !== p.id) {
        const fresh = document.createElement("li");
        fresh.dataset.peer = p.id;
        fresh.append(document.createElement("span"), document.createElement("small"));
        if (row === void 0) list.append(fresh);
        else row.replaceWith(fresh);
        row = fresh;
      }
      const [name, how] = row.children;
      const now = this.speaking.includes(p.id);
      name.className = p.speaks ? "speaks" + (now ? " now" : "") : "";
      name.textContent = p.id === this.you ? `You (${p.label})` : p.label;
      how.textContent = !p.speaks ? "listens" : now ? "speaks" : "";
      this.offerToLet(row, p);
    });
  }
  // Who takes part lets those who watch speak.
  offerToLet(row, p) {
    let button = row.querySelector("[data-let]");
    if (this.watches || !p.watches) {
      button?.remove();
      return;
    }
    if (button === null) {
      button = document.createElement("button");
      button.type = "button";
      button.className = "btn btn-quiet";
      button.dataset.peer = p.id;
      row.append(button);
    }
    button.dataset.let = p.speaks ? "dismiss" : "invite";
    button.textContent = p.speaks ? "No longer" : "Let them speak";
  }
};

// src/bench.ts
voice();
var home = document.getElementById("home");
var bench = document.getElementById("bench");
void usable().then((yes) => {
  if (yes && home !== null) idle(home);
  if (yes && bench !== null) start(bench);
});
function idle(at) {
  const nothing = () => {
  };
  const outbox = new Outbox(at.dataset.person, "", "", { changed: nothing, state: nothing, done: nothing, refused: nothing });
  void leftovers(outbox, (e) => e.job !== at.dataset.job);
  film(at.dataset.person);
  bell();
}
function start(bench2) {
  const { person, job, token } = bench2.dataset;
  const byID = (id) => document.getElementById(id);
  const all = () => [...document.querySelectorAll("li[data-item]")];
  const row = (item) => document.querySelector(`li[data-item="${item}"]`);
  const same = (a, b) => a.status === b.status && a.note === b.note && a.severity === b.severity && a.reason === b.reason;
  const noteOf = (li) => li.querySelector("textarea");
  const saidOf = (li) => ({ status: li.dataset.status, note: li.dataset.note, severity: li.dataset.severity, reason: li.dataset.reason });
  const notes = drafts(bench2, "humanqa:draft:" + person + ":" + job);
  const previews = /* @__PURE__ */ new Map();
  const undo = [];
  let current = "";
  let asking = "";
  let frozen = false;
  let questioned = document.querySelector("[data-question=open]") !== null;
  let unsaved = [];
  const verdicts = /* @__PURE__ */ new Map();
  const outbox = new Outbox(person, job, token, {
    changed: (entries) => {
      unsaved = entries;
      paint();
    },
    state: (state, n, why) => {
      if (state === "waiting") tell("waits", `Waiting, ${n} not saved yet. ${why} It is kept in this browser.`);
      else tell("muted", state === "saved" ? "All saved" : "Saving");
    },
    done: (entry, next) => {
      const last = verdicts.get(entry.item ?? "");
      if (last !== void 0 && entry.kind === "check" && same(last.said, entry.fields)) last.saved = performance.now();
      if (["complete", "release", "untestable"].includes(entry.kind)) {
        notes.clear();
        location.assign(next);
      } else document.dispatchEvent(new Event("humanqa:refresh"));
    },
    refused: (entry, why) => void refused2(entry, why)
  });
  const list = () => leftovers(outbox, (e) => frozen || e.refused !== void 0 || e.job !== job || e.token !== token, job);
  const time = clock(byID("clock"), byID("silence"));
  const reel = film(person, job, token);
  const known = similar(job, () => frozen || gone());
  const annotate = annotates(byID("annotate"));
  const small = floats({
    rows: all,
    current: () => row(current),
    go,
    press: single,
    complain: (text) => complain(text),
    over: () => frozen || gone(),
    keys: () => keysOn,
    settle: (li, status, note, severity) => {
      noteOf(li).value = note;
      li.querySelector("[name=severity]").value = severity;
      settle(li, status);
    }
  });
  const gone = () => !bench2.isConnected;
  function tell(how, text) {
    if (gone()) return;
    const at = byID("saved");
    at.className = how;
    at.textContent = text;
  }
  const count = (n, one, many) => n === 1 ? "1 " + one : n + " " + many;
  const complain = (text) => tell("refused", text);
  function keep(entry) {
    tell("muted", "Saving");
    return outbox.add(entry).catch((problem) => complain("This browser could not keep the text: " + problem.message));
  }
  async function refused2(entry, why) {
    if (entry.item !== void 0) verdicts.delete(entry.item);
    await beat();
    if (!frozen && ["complete", "release", "untestable"].includes(entry.kind)) {
      const stored = (await outbox.all()).find((e) => e.command === entry.command);
      if (stored !== void 0) await outbox.remove(stored);
    }
    void list();
    if (frozen) return;
    document.querySelectorAll("aside form button").forEach((b) => {
      b.disabled = false;
    });
    complain("Refused: " + why);
    document.dispatchEvent(new Event("humanqa:refresh"));
  }
  document.addEventListener("humanqa:notfound", () => void beat());
  async function beat() {
    if (frozen || gone()) return;
    try {
      const answer = await fetch(`/workbench/jobs/${job}/heartbeat`, {
        method: "POST",
        body: new URLSearchParams({ token, command: crypto.randomUUID() }),
        headers: { Accept: "application/json" },
        redirect: "manual"
      });
      if (answer.ok) {
        const said = await answer.json();
        time.set(said.dueAt, said.silentAt, said.now, said.stands);
      }
      if (answer.status === 409 || answer.status === 404) freeze(await reason(answer));
    } catch {
    }
  }
  function freeze(why) {
    frozen = true;
    outbox.stop();
    void reel.stop();
    if (gone()) return;
    const at = byID("frozen");
    at.querySelector("[data-why]").textContent = why;
    at.hidden = false;
    tell("muted", "");
    byID("silence").textContent = "";
    const fields = [...bench2.querySelectorAll("textarea, input[type=text], input:not([type])")];
    const typed = fields.filter((field) => field.value !== field.defaultValue).length;
    for (const field of bench2.querySelectorAll("form button, form select, form input")) field.disabled = true;
    for (const field of fields) {
      field.disabled = false;
      field.readOnly = true;
    }
    void list().then((unsaved2) => {
      const kept = [unsaved2 > 0 ? count(unsaved2, "unsaved entry", "unsaved entries") : "", typed > 0 ? count(typed, "half-typed text", "half-typed texts") : ""];
      at.querySelector("[data-kept]").textContent = unsaved2 + typed === 0 ? "All your entries are saved." : `${kept.filter(Boolean).join(" and ")} ${unsaved2 + typed === 1 ? "is" : "are"} kept below.`;
    });
    small.paint();
  }
  function paint() {
    if (gone()) {
      small.paint();
      return;
    }
    if (pressed()) {
      void released().then(paint);
      return;
    }
    for (const li2 of all()) {
      li2.querySelectorAll(".sending").forEach((e) => e.remove());
      if (asking !== "skip" || li2.dataset.item !== current) li2.querySelector(".ask")?.remove();
    }
    for (const entry of unsaved) overlay(entry);
    for (const [item, last] of verdicts) {
      const li2 = row(item);
      if (li2 !== null) show2(li2, last.said);
    }
    for (const [id, url] of previews) if (!unsaved.some((e) => e.id === id)) {
      URL.revokeObjectURL(url);
      previews.delete(id);
    }
    const left = all().filter((li2) => li2.dataset.status === "pending").length;
    byID("left").textContent = left === 0 ? "Nothing left" : left === 1 ? "1 item left" : left + " items left";
    for (const li2 of all()) li2.classList.toggle("current", li2.dataset.item === current);
    bench2.classList.add("scripted");
    const li = row(current);
    if (li !== null) {
      if (asking === "skip" && li.querySelector(".ask") === null) li.querySelector(".say").before(reasons(li));
      const save = li.querySelector("[data-save]");
      save.textContent = asking === "fail" ? "Save as failed" : "Save notes";
    }
    notes.restore();
    small.paint();
  }
  function reasons(li) {
    const ask2 = document.createElement("div");
    ask2.className = "ask";
    ask2.setAttribute("role", "group");
    ask2.setAttribute("aria-label", "Reason for skipping");
    ask2.append(...[...li.querySelectorAll("[name=reason] option")].map((reason2, n) => {
      const button = Object.assign(document.createElement("button"), { type: "button", className: "btn btn-quiet" });
      button.dataset.key = String(n + 1);
      button.id = `skip-${li.dataset.item}-${n + 1}`;
      button.append(Object.assign(document.createElement("kbd"), { textContent: button.dataset.key }), " " + reason2.text);
      return button;
    }));
    return ask2;
  }
  document.addEventListener("click", (event) => {
    const key2 = event.target.closest("#checklist .ask [data-key]")?.dataset.key;
    if (key2 !== void 0 && !frozen && !gone()) single(key2);
  });
  function overlay(entry) {
    const li = entry.item === void 0 ? null : row(entry.item);
    if (entry.kind === "check" && li !== null) show2(li, entry.fields);
    if (entry.kind === "hide") document.querySelectorAll(".kept").forEach((kept) => {
      if (kept.closest("li") === li && kept.querySelector("[name=picture]")?.value === entry.fields.picture) kept.hidden = true;
    });
    if (entry.kind === "picture" && li !== null) {
      if (!previews.has(entry.id)) previews.set(entry.id, URL.createObjectURL(entry.file));
      const kept = document.createElement("div");
      kept.className = "kept sending";
      const img = document.createElement("img");
      img.src = previews.get(entry.id);
      img.alt = "A picture that is being saved";
      kept.append(img, Object.assign(document.createElement("small"), { textContent: "not saved yet" }));
      li.querySelector(".shots").append(kept);
    }
  }
  function show2(li, said) {
    li.classList.remove("pass", "fail", "skip", "pending");
    li.classList.add(said.status);
    Object.assign(li.dataset, said);
    const mark2 = byID("marks");
    li.querySelector(".slot").replaceChildren(mark2.content.querySelector(`[data-mark="${said.status}"]`).firstElementChild.cloneNode(true));
    const note = li.querySelector(".said");
    note.textContent = said.note;
    note.hidden = said.note === "";
    const field = noteOf(li);
    if (field.value === field.defaultValue) field.value = field.defaultValue = said.note;
    const why = li.querySelector(".why");
    why.hidden = said.reason === "";
    why.lastElementChild.textContent = li.querySelector(`[name=reason] option[value="${said.reason}"]`)?.text ?? "";
    const severity = li.querySelector(".side .severity");
    severity.textContent = said.severity;
    severity.className = "severity severity-" + said.severity;
  }
  function say(li, change, undoable = true) {
    const before = saidOf(li);
    const said = { ...before, note: noteOf(li).value.trim(), ...change };
    if (said.status !== "skip") said.reason = "";
    if (undoable) undo.push({ item: li.dataset.item, said: before });
    const field = noteOf(li);
    field.value = field.defaultValue = said.note;
    notes.forget(field);
    known.said(li.dataset.item);
    show2(li, said);
    asking = "";
    verdicts.set(li.dataset.item, { said: { ...said }, saved: Infinity });
    const words = { pass: "passes", fail: "fails", skip: "is skipped", pending: "has a note" }[said.status];
    keep({
      kind: "check",
      url: `/workbench/jobs/${job}/items/${li.dataset.item}`,
      item: li.dataset.item,
      fields: { ...said },
      label: `${li.getAttribute("aria-label")} ${words}${said.note === "" ? "" : ": " + said.note}`
    });
  }
  function takeBack() {
    const last = undo.pop();
    const li = last === void 0 ? null : row(last.item);
    if (last === void 0 || li === null) return;
    const field = noteOf(li);
    field.value = field.defaultValue = last.said.note;
    li.querySelector("[name=severity]").value = last.said.severity;
    say(li, last.said, false);
    go(li);
  }
  async function picture(li, came) {
    const { item } = li.dataset;
    const label = "A picture of " + li.getAttribute("aria-label").toLowerCase();
    try {
      const file = await annotate(came);
      if (file === null) return;
      await keep({ kind: "picture", url: `/workbench/jobs/${job}/items/${item}/pictures`, item, fields: {}, file, label });
      if (frozen) void list();
    } catch (problem) {
      complain("The picture was not kept: " + problem.message);
    }
  }
  function go(li) {
    if (li === void 0 || li === null) return;
    current = li.dataset.item;
    asking = "";
    li.focus();
    li.scrollIntoView({ block: "nearest" });
    paint();
  }
  function advance() {
    const rows = all();
    const at = rows.findIndex((li) => li.dataset.item === current);
    const open3 = (li) => li.dataset.status === "pending";
    go(rows.slice(at + 1).find(open3) ?? rows.find(open3) ?? rows[at]);
  }
  function move(by) {
    const rows = all();
    const at = rows.findIndex((li) => li.dataset.item === current);
    go(rows[Math.min(Math.max(at + by, 0), rows.length - 1)]);
  }
  function askNote(li, what) {
    asking = what;
    li.querySelector("details").open = true;
    paint();
    noteOf(li).focus();
  }
  function settle(li, status) {
    const severity = li.querySelector("[name=severity]").value;
    li.querySelector("details").open = false;
    say(li, { status, severity });
    if (status === "fail") advance();
    else go(li);
  }
  const keys = byID("keys");
  let keysOn = localStorage.getItem("humanqa:keys") !== "off";
  const showKeys = () => keys.setAttribute("aria-pressed", String(keysOn));
  byID("keys-bar").hidden = false;
  showKeys();
  keys.addEventListener("click", () => {
    keysOn = !keysOn;
    localStorage.setItem("humanqa:keys", keysOn ? "on" : "off");
    showKeys();
  });
  byID("float").addEventListener("click", () => small.open());
  const help = byID("help");
  byID("help-open").addEventListener("click", () => help.showModal());
  document.addEventListener("keydown", (event) => {
    const target = event.target;
    if (frozen || gone() || event.isComposing || document.querySelector("dialog[open]") !== null) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      finish(target);
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const li = target.closest("li[data-item]");
    if (target instanceof HTMLTextAreaElement && li !== null && target === noteOf(li)) {
      inNote(event, target, li);
      return;
    }
    if (target instanceof HTMLTextAreaElement && li !== null) {
      if (event.key === "Escape") {
        event.preventDefault();
        go(li);
      }
      return;
    }
    if (target instanceof HTMLSelectElement && target.name === "severity" && li !== null) {
      inSeverity(event, target, li);
      return;
    }
    if (event.key === "Escape" && li === null) {
      go(row(current));
      return;
    }
    if (!keysOn || target.closest("input, textarea, select") !== null || target.closest("#checklist") === null) return;
    if (single(event.key.toLowerCase())) event.preventDefault();
  });
  function inNote(event, field, li) {
    if (event.key === "Escape") {
      event.preventDefault();
      go(li);
    }
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      settle(li, asking === "fail" ? "fail" : li.dataset.status);
    }
  }
  function inSeverity(event, field, li) {
    if (event.key === "Escape") {
      event.preventDefault();
      go(li);
    }
    if (keysOn && field.options[Number(event.key) - 1] !== void 0) {
      event.preventDefault();
      field.selectedIndex = Number(event.key) - 1;
    }
    if (event.key === "Enter" && asking === "fail") {
      event.preventDefault();
      settle(li, "fail");
    }
  }
  function single(key2) {
    const li = row(current);
    if (asking === "skip" && li !== null) {
      const option = li.querySelectorAll("[name=reason] option")[Number(key2) - 1];
      if (option !== void 0) {
        say(li, { status: "skip", reason: option.value });
        advance();
        return true;
      }
      asking = "";
      paint();
      if (key2 === "escape") return true;
    }
    switch (key2) {
      case "j":
        move(1);
        return true;
      case "k":
        move(-1);
        return true;
      case "?":
        help.showModal();
        return true;
      case "o":
        document.getElementById("app")?.click();
        return true;
      case "c":
        document.getElementById("secrets-form")?.requestSubmit();
        return true;
      case "a":
        byID("finding-what").focus();
        return true;
      case "u":
        takeBack();
        return true;
      case "r":
        record();
        return true;
      case "m":
        mark();
        return true;
      case "v":
        return key();
      case ".":
        small.open();
        return true;
    }
    if (li === null) return false;
    switch (key2) {
      case "p":
        say(li, { status: "pass" });
        advance();
        return true;
      case "f":
        askNote(li, "fail");
        return true;
      case "1":
      case "2":
      case "3":
        li.querySelector("[name=severity]").selectedIndex = Number(key2) - 1;
        askNote(li, "fail");
        return true;
      case "s":
        asking = "skip";
        paint();
        return true;
      case "n":
        askNote(li, "note");
        return true;
      case "g":
        void grab(li);
        return true;
    }
    return false;
  }
  const filming = navigator.mediaDevices?.getDisplayMedia !== void 0 && typeof MediaRecorder !== "undefined";
  byID("film-bar").hidden = false;
  for (const part of ["film", "film-voice"]) byID(part).closest("button, label").hidden = !filming;
  byID("film").addEventListener("click", () => record());
  function record() {
    if (!filming) complain("This browser cannot record the screen here.");
    else if (reel.recording()) void reel.stop();
    else void reel.start();
  }
  function mark() {
    keep({ kind: "mark", url: `/workbench/jobs/${job}/marks`, fields: {}, label: "A moment was marked", pressed: Date.now() });
  }
  async function grab(li) {
    try {
      const file = await reel.grab();
      if (file !== null) void picture(li, file);
    } catch (problem) {
      complain("There is no picture of the screen: " + problem.message);
    }
  }
  function finish(target) {
    const summary = byID("summary");
    if (target === summary) byID("complete").requestSubmit();
    else summary.focus();
  }
  document.addEventListener("submit", (event) => {
    const form = event.target;
    const kind = form.dataset.outbox;
    if (kind === void 0) return;
    event.preventDefault();
    if (frozen) return;
    const data = new FormData(form, event.submitter);
    const fields = {};
    for (const [name, value] of data) if (typeof value === "string" && name !== "token" && name !== "command") fields[name] = value;
    const li = form.closest("li[data-item]");
    const file = data.get("file");
    if (kind === "check" && li !== null) {
      current = li.dataset.item;
      const opened = li.querySelector("details").open;
      if (fields.status === "skip") {
        asking = "skip";
        paint();
        li.querySelector(".ask button")?.focus();
      } else if (fields.status === "fail" && !opened) {
        askNote(li, "fail");
      } else if (fields.status === "fail" || asking === "fail" && event.submitter?.dataset.save !== void 0) {
        settle(li, "fail");
      } else {
        say(li, fields);
      }
    } else if (kind === "picture" && li !== null && file instanceof File) {
      void picture(li, file);
      form.reset();
    } else {
      if (kind === "complete") {
        const open3 = all().find((one) => one.dataset.status === "pending");
        if (open3 !== void 0) {
          complain(byID("left").textContent + ": give each a verdict first");
          go(open3);
          return;
        }
      }
      const about = form.closest("[data-finding]")?.querySelector("b")?.textContent ?? "";
      const labels = { finding: "Found: " + fields.description, edit: "Found: " + fields.description, ask: "Asked: " + fields.text, withdraw: "Withdrawn: " + about, hide: "A picture removed", complete: "The summary: " + (fields.summary ?? "") };
      const entry = { kind, url: new URL(form.action).pathname, item: li?.dataset.item, fields, label: labels[kind] ?? "Ending the test" };
      if (labels[kind] === void 0 || kind === "complete") void reel.stop().then(() => keep(entry));
      else keep(entry);
      if (kind === "finding" || kind === "ask") {
        form.reset();
        form.querySelectorAll("input:not([type=hidden]), textarea").forEach((f) => {
          f.value = "";
          notes.forget(f);
        });
        if (kind === "finding") known.clear();
        else form.closest("details").open = false;
        go(row(current));
      } else if (kind === "edit") {
        form.querySelectorAll("input:not([type=hidden]), textarea").forEach((f) => {
          f.defaultValue = f.value;
          notes.forget(f);
        });
        form.closest("details").open = false;
        go(row(current));
      } else if (kind === "withdraw") go(row(current));
      else if (kind !== "hide") form.querySelector("button").disabled = true;
    }
  });
  document.addEventListener("change", (event) => {
    const form = event.target.closest("form[data-outbox=picture]");
    if (form !== null && !frozen) form.requestSubmit();
  });
  const images = (data) => [...data?.files ?? []].filter((f) => f.type.startsWith("image/"));
  document.addEventListener("paste", (event) => {
    const li = row(current);
    const files = images(event.clipboardData);
    if (frozen || li === null || files.length === 0) return;
    event.preventDefault();
    for (const file of files) void picture(li, file);
  });
  const over = (event) => event.target.closest?.("li[data-item]") ?? null;
  document.addEventListener("dragover", (event) => {
    const li = over(event);
    all().forEach((one) => one.classList.toggle("dropping", one === li));
    if (li !== null) event.preventDefault();
  });
  document.addEventListener("drop", (event) => {
    const li = over(event);
    all().forEach((one) => one.classList.remove("dropping"));
    if (li === null || frozen) return;
    event.preventDefault();
    for (const file of images(event.dataTransfer)) void picture(li, file);
  });
  bench2.addEventListener("focusin", (event) => {
    const li = event.target.closest("li[data-item]");
    if (li === null || li.dataset.item === current) return;
    current = li.dataset.item;
    asking = "";
    paint();
  });
  document.addEventListener("humanqa:signedout", (event) => {
    if (gone()) return;
    event.preventDefault();
    complain(signedOut);
  });
  document.addEventListener("humanqa:refreshed", (event) => {
    const asked = event.detail;
    for (const [item, last] of verdicts) if (last.saved < asked) verdicts.delete(item);
    paint();
    const waits = document.querySelector("[data-question=open]") !== null;
    if (waits !== questioned) {
      questioned = waits;
      void beat();
    }
    if (!frozen) void outbox.mine().then((entries) => {
      unsaved = entries;
      paint();
    });
  });
  secrets(job, token);
  void outbox.mine().then((entries) => {
    unsaved = entries;
    paint();
    const first = all().find((li) => li.dataset.status === "pending") ?? all()[0];
    if (first !== void 0 && current === "") {
      current = first.dataset.item;
      if (document.activeElement === document.body && location.hash === "") first.focus();
      paint();
    }
    return outbox.drain();
  });
  void list();
  void beat();
  setInterval(() => void beat(), 6e4);
}
