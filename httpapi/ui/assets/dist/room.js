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
      announce("It was not marked: load the page again.");
      return;
    }
    if (note !== null) note.value = "";
    announce("Marked for all");
    document.dispatchEvent(new Event("humanqa:refresh"));
  } catch {
    announce("It was not marked: the service does not answer.");
  }
}
function announce(text) {
  const at = document.getElementById("announcer");
  if (at !== null) at.textContent = text;
}
var room = document.getElementById("room");
if (room !== null) start(room);
