// src/replay.ts
var slack = 0.3;
function replay() {
  let at = 0;
  let playing = false;
  let last = 0;
  const bar = () => document.getElementById("replay");
  const films = () => [...document.querySelectorAll("video[data-from]")];
  const into = (film) => at - Number(film.dataset.from);
  const shows = (film) => into(film) >= 0 && !(into(film) >= film.duration);
  const inside = (film) => Math.min(Math.max(0, into(film)), Number.isFinite(film.duration) ? film.duration : Infinity);
  const lead = (film) => {
    film.currentTime = inside(film);
  };
  const end = () => Number(bar()?.dataset.seconds ?? 0);
  function show() {
    const here = bar();
    if (here === null) return;
    here.hidden = false;
    here.querySelector("button").textContent = playing ? "Pause all" : "Play all";
    here.querySelector("input").value = String(at);
    const whole = Math.floor(at);
    here.querySelector("output").textContent = `${String(Math.floor(whole / 60)).padStart(2, "0")}:${String(whole % 60).padStart(2, "0")}`;
  }
  function seek(to) {
    at = Math.max(0, Math.min(end(), to));
    for (const film of films()) {
      lead(film);
      if (!shows(film) || !playing) film.pause();
    }
    show();
  }
  function step() {
    const now = performance.now();
    if (playing) at = Math.min(end(), at + (now - last) / 1e3);
    last = now;
    if (!playing) return;
    for (const film of films()) {
      if (Math.abs(film.currentTime - inside(film)) > slack) lead(film);
      if (!shows(film)) film.pause();
      else if (film.paused) void film.play().catch(() => {
      });
    }
    if (at >= end()) stop();
    show();
  }
  function stop() {
    playing = false;
    for (const film of films()) film.pause();
  }
  document.addEventListener("click", (event) => {
    const target = event.target;
    const moment = target.closest("[data-into]");
    if (moment !== null && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      seek(Number(moment.dataset.into));
      document.querySelector(".films")?.scrollIntoView({ block: "nearest" });
    }
    if (target.closest("#replay button") !== null) {
      if (playing) stop();
      else {
        playing = true;
        last = performance.now();
        if (at >= end()) at = 0;
      }
      seek(at);
    }
  });
  document.addEventListener("input", (event) => {
    const slider = event.target;
    if (slider.closest("#replay") !== null) seek(Number(slider.value));
  });
  setInterval(step, 200);
  show();
  document.addEventListener("humanqa:refreshed", show);
}

// src/voice.ts
var pauses = [500, 1e3, 2e3, 5e3, 1e4];
var lastWords = {
  over: "The session has ended, or you are no longer part of it.",
  replaced: "You are in the voice chat in another tab.",
  full: "The voice chat is full."
};
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
    }, pauses[Math.min(this.tries++, pauses.length - 1)]);
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

// src/room.ts
var beatEvery = 6e4;
function start(room2) {
  marks();
  void beat(room2);
  setInterval(() => void beat(room2), beatEvery);
}
async function beat(room2) {
  const { job, token } = room2.dataset;
  if (job === void 0 || token === void 0 || !room2.isConnected) return;
  try {
    const answer = await post(`/workbench/jobs/${job}/heartbeat`, { token });
    if (answer.status === 404 || answer.status === 409) document.dispatchEvent(new Event("humanqa:refresh"));
  } catch {
  }
}
function post(url, fields) {
  return fetch(url, {
    method: "POST",
    body: new URLSearchParams({ ...fields, command: crypto.randomUUID?.() ?? "" }),
    headers: { Accept: "application/json" },
    redirect: "manual",
    signal: AbortSignal.timeout(3e4)
  });
}
var offKey = "humanqa:mark-key-off";
function marks() {
  const off = () => localStorage.getItem(offKey) !== null;
  const show = () => {
    const at = document.getElementById("mark-key");
    if (at === null) return;
    at.hidden = false;
    at.setAttribute("aria-pressed", String(!off()));
  };
  show();
  document.addEventListener("humanqa:refreshed", show);
  document.addEventListener("click", (event) => {
    if (event.target.closest("#mark-key") === null) return;
    if (off()) localStorage.removeItem(offKey);
    else localStorage.setItem(offKey, "1");
    show();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "m" || event.ctrlKey || event.metaKey || event.altKey || event.repeat || off()) return;
    if (event.target.closest("input, textarea, select, [contenteditable]") !== null) return;
    const form = document.querySelector("form#mark");
    if (form === null) return;
    event.preventDefault();
    void mark(form);
  });
}
async function mark(form) {
  const note = form.querySelector("[name=note]");
  try {
    const answer = await post(form.action, { note: note?.value ?? "" });
    if (!answer.ok) {
      announce("The moment was not marked. Load the page again.");
      return;
    }
    if (note !== null) note.value = "";
    announce("Marked for everyone");
    document.dispatchEvent(new Event("humanqa:refresh"));
  } catch {
    announce("The moment was not marked. The service does not answer.");
  }
}
function announce(text) {
  const at = document.getElementById("announcer");
  if (at !== null) at.textContent = text;
}
voice();
replay();
var room = document.getElementById("room");
if (room !== null) start(room);
