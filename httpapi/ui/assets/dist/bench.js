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
var signedOut = "You are signed out: sign in again in another tab.";
async function send(entry) {
  let url = entry.url;
  let body;
  if (entry.file !== void 0) {
    body = new FormData();
    body.set("file", entry.file);
    url += "?" + new URLSearchParams({ token: entry.token, command: entry.command }).toString();
  } else {
    body = new URLSearchParams({ ...entry.fields, token: entry.token, command: entry.command });
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
    return { kind: "refused", why: await reason(answer) };
  } catch {
    return { kind: "later", why: navigator.onLine ? "The service does not answer." : "There is no network." };
  }
}
async function reason(answer) {
  try {
    const said = await answer.json();
    return [said.error, said.hint].filter(Boolean).join(" ");
  } catch {
    return "The service said " + answer.status + ".";
  }
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
function drafts(at, key) {
  const read = () => JSON.parse(localStorage.getItem(key) ?? "{}");
  const write = (kept) => {
    if (Object.keys(kept).length === 0) localStorage.removeItem(key);
    else localStorage.setItem(key, JSON.stringify(kept));
  };
  at.addEventListener("input", (event) => {
    const field = event.target;
    if (!(field instanceof HTMLTextAreaElement || field instanceof HTMLInputElement && field.type === "text") || field.id === "") return;
    const kept = read();
    if (field.value === field.defaultValue) delete kept[field.id];
    else kept[field.id] = field.value;
    write(kept);
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
      write(kept);
    },
    clear() {
      localStorage.removeItem(key);
    }
  };
}

// src/leftovers.ts
async function leftovers(outbox, such, job = "") {
  const at = document.getElementById("leftovers");
  if (at === null) return;
  const entries = (await outbox.all()).filter(such);
  at.hidden = entries.length === 0;
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
      for (const [name, text] of [["User name", said.username], ["Password", said.password], ["Notes", said.notes], ["Access", said.accessInstructions]]) {
        if (text) lines.append(
          Object.assign(document.createElement("dt"), { textContent: name }),
          Object.assign(document.createElement("dd"), { textContent: text, className: "keep" })
        );
      }
      at.replaceChildren(lines);
      await new Promise((over) => setTimeout(over, said.seconds * 1e3));
      at.replaceChildren();
      at.hidden = true;
    } catch {
      at.textContent = "The service does not answer.";
    } finally {
      button.disabled = false;
    }
  });
}

// src/clock.ts
function clock(at) {
  const words = at.querySelector("span");
  let due = NaN;
  const tick = () => {
    if (Number.isNaN(due)) return;
    const left = Math.round((due - performance.now()) / 1e3);
    at.classList.toggle("soon", left > 0 && left < 300);
    at.classList.toggle("over", left <= 0);
    const text = left <= 0 ? "Over: it goes back to the queue" : `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")} left`;
    if (words.textContent !== text) words.textContent = text;
  };
  setInterval(tick, 1e3);
  return {
    set(dueAt, now) {
      if (document.getElementById("lobby") !== null) return;
      due = performance.now() + Date.parse(dueAt) - Date.parse(now);
      tick();
    }
  };
}

// src/bench.ts
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
}
function start(bench2) {
  const { person, job, token } = bench2.dataset;
  const byID = (id) => document.getElementById(id);
  const all = () => [...document.querySelectorAll("li[data-item]")];
  const row = (item) => document.querySelector(`li[data-item="${item}"]`);
  const noteOf = (li) => li.querySelector("textarea");
  const saidOf = (li) => ({ status: li.dataset.status, note: li.dataset.note, severity: li.dataset.severity, reason: li.dataset.reason });
  const notes = drafts(bench2, "humanqa:draft:" + person + ":" + job);
  const previews = /* @__PURE__ */ new Map();
  const undo = [];
  let current = "";
  let asking = "";
  let frozen = false;
  let unsaved = [];
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
      if (["complete", "release", "untestable"].includes(entry.kind)) {
        notes.clear();
        location.assign(next);
      } else document.dispatchEvent(new Event("humanqa:refresh"));
    },
    refused: (entry, why) => void refused(entry, why)
  });
  const list = () => leftovers(outbox, (e) => frozen || e.refused !== void 0 || e.job !== job || e.token !== token, job);
  const time = clock(byID("clock"));
  const gone = () => !bench2.isConnected;
  function tell(how, text) {
    if (gone()) return;
    const at = byID("saved");
    at.className = how;
    at.textContent = text;
  }
  const complain = (text) => tell("refused", text);
  function keep(entry) {
    outbox.add(entry).catch((problem) => complain("This browser could not keep it: " + problem.message));
  }
  async function refused(entry, why) {
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
        time.set(said.dueAt, said.now);
      }
      if (answer.status === 409 || answer.status === 404) freeze(await reason(answer));
    } catch {
    }
  }
  function freeze(why) {
    frozen = true;
    outbox.stop();
    if (gone()) return;
    const at = byID("frozen");
    at.querySelector("[data-why]").textContent = why;
    at.hidden = false;
    tell("muted", "");
    for (const field of bench2.querySelectorAll("form button, form select, form input")) field.disabled = true;
    for (const field of bench2.querySelectorAll("textarea")) field.readOnly = true;
    void list();
  }
  function paint() {
    if (gone()) return;
    for (const li2 of all()) li2.querySelectorAll(".ask, .sending").forEach((e) => e.remove());
    for (const entry of unsaved) overlay(entry);
    for (const [id, url] of previews) if (!unsaved.some((e) => e.id === id)) {
      URL.revokeObjectURL(url);
      previews.delete(id);
    }
    const left = all().filter((li2) => li2.dataset.status === "pending").length;
    byID("left").textContent = left === 0 ? "Nothing left" : left === 1 ? "1 item left" : left + " items left";
    for (const li2 of all()) li2.classList.toggle("current", li2.dataset.item === current);
    bench2.classList.add("scripted");
    const li = row(current);
    if (li !== null && asking === "skip") {
      const ask = document.createElement("p");
      ask.className = "ask";
      const reasons = [...li.querySelectorAll("[name=reason] option")];
      ask.textContent = "Skip it because: " + reasons.map((r, n) => `${n + 1} ${r.text}`).join(", ");
      li.querySelector(".say").before(ask);
    }
    notes.restore();
  }
  function overlay(entry) {
    const li = entry.item === void 0 ? null : row(entry.item);
    if (entry.kind === "check" && li !== null) show(li, entry.fields);
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
  function show(li, said) {
    li.classList.remove("pass", "fail", "skip", "pending");
    li.classList.add(said.status);
    Object.assign(li.dataset, said);
    const mark = byID("marks");
    li.querySelector(".slot").replaceChildren(mark.content.querySelector(`[data-mark="${said.status}"]`).firstElementChild.cloneNode(true));
    const note = li.querySelector(".said");
    note.textContent = said.note;
    note.hidden = said.note === "";
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
    show(li, said);
    asking = "";
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
    say(li, last.said, false);
    go(li);
  }
  function picture(li, file) {
    keep({
      kind: "picture",
      url: `/workbench/jobs/${job}/items/${li.dataset.item}/pictures`,
      item: li.dataset.item,
      fields: {},
      file,
      label: "A picture of " + li.getAttribute("aria-label").toLowerCase()
    });
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
    const open2 = (li) => li.dataset.status === "pending";
    go(rows.slice(at + 1).find(open2) ?? rows.find(open2) ?? rows[at]);
  }
  function move(by) {
    const rows = all();
    const at = rows.findIndex((li) => li.dataset.item === current);
    go(rows[Math.min(Math.max(at + by, 0), rows.length - 1)]);
  }
  function askNote(li, what) {
    asking = what;
    li.querySelector("details").open = true;
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
  const help = byID("help");
  byID("help-open").addEventListener("click", () => help.showModal());
  document.addEventListener("keydown", (event) => {
    const target = event.target;
    if (frozen || gone() || help.open || event.isComposing) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      finish(target);
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const li = target.closest("li[data-item]");
    if (target instanceof HTMLTextAreaElement && li !== null) {
      inNote(event, target, li);
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
    } else if (asking === "fail" && keysOn && field.value === field.defaultValue && "123".includes(event.key)) {
      event.preventDefault();
      li.querySelector("[name=severity]").selectedIndex = Number(event.key) - 1;
    }
  }
  function single(key) {
    const li = row(current);
    if (asking === "skip" && li !== null) {
      const option = li.querySelectorAll("[name=reason] option")[Number(key) - 1];
      if (option !== void 0) {
        say(li, { status: "skip", reason: option.value });
        advance();
        return true;
      }
      asking = "";
      paint();
      if (key === "escape") return true;
    }
    switch (key) {
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
    }
    if (li === null) return false;
    switch (key) {
      case "p":
        say(li, { status: "pass" });
        advance();
        return true;
      case "f":
        askNote(li, "fail");
        return true;
      case "s":
        asking = "skip";
        paint();
        return true;
      case "n":
        askNote(li, "note");
        return true;
    }
    return false;
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
      say(li, fields);
    } else if (kind === "picture" && li !== null && file instanceof File) {
      picture(li, file);
      form.reset();
    } else {
      if (kind === "complete") {
        const open2 = all().find((one) => one.dataset.status === "pending");
        if (open2 !== void 0) {
          complain(byID("left").textContent + ": give each a verdict first");
          go(open2);
          return;
        }
      }
      const labels = { finding: "Found: " + fields.description, hide: "A picture taken away", complete: "The summary: " + (fields.summary ?? "") };
      keep({ kind, url: new URL(form.action).pathname, item: li?.dataset.item, fields, label: labels[kind] ?? "Ending the test" });
      if (kind === "finding") {
        form.querySelectorAll("input:not([type=hidden]), textarea").forEach((f) => {
          f.value = "";
          notes.forget(f);
        });
        go(row(current));
      } else if (kind !== "hide") form.querySelector("button").disabled = true;
    }
  });
  const images = (data) => [...data?.files ?? []].filter((f) => f.type.startsWith("image/"));
  document.addEventListener("paste", (event) => {
    const li = row(current);
    const files = images(event.clipboardData);
    if (frozen || li === null || files.length === 0) return;
    event.preventDefault();
    for (const file of files) picture(li, file);
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
    for (const file of images(event.dataTransfer)) picture(li, file);
  });
  let pressed = false;
  document.addEventListener("pointerdown", () => {
    pressed = true;
  }, true);
  for (const end of ["pointerup", "pointercancel"]) {
    document.addEventListener(end, () => {
      pressed = false;
      setTimeout(paint);
    }, true);
  }
  bench2.addEventListener("focusin", (event) => {
    const li = event.target.closest("li[data-item]");
    if (li === null || li.dataset.item === current) return;
    current = li.dataset.item;
    asking = "";
    if (!pressed) paint();
  });
  document.addEventListener("humanqa:signedout", (event) => {
    if (gone()) return;
    event.preventDefault();
    complain(signedOut);
  });
  document.addEventListener("humanqa:refreshed", () => {
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
