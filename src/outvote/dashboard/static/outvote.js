// Keeps a page up to date: it hears what has changed, fetches the page again, and changes only what differs.
// Without this script every page works; it then shows what was known when it was loaded.

import { morph } from "./morph.js";

const LEAST_PAUSE = 1000; // milliseconds between two looks
const live = document.getElementById("live");
const topics = document.body.dataset.topics;

// ---- how long ago, in the zone of who looks

function since(seconds) {
  for (const [unit, length] of [["d", 86400], ["h", 3600], ["min", 60]]) {
    if (seconds >= 2 * length) return `${Math.floor(seconds / length)} ${unit} ago`;
  }
  return `${Math.max(Math.floor(seconds), 0)} s ago`;
}

let ahead = 0; // seconds that the server's clock is ahead of this one

function tellTimes(root = document) {
  const now = Date.now() / 1000 + ahead;
  for (const each of root.querySelectorAll("time[data-since]")) {
    const text = since(now - Number(each.dataset.since));
    if (each.textContent !== text) each.textContent = text;
  }
  for (const each of root.querySelectorAll("time[data-moment]")) {
    const text = new Date(each.dateTime).toLocaleString();
    if (each.textContent !== text) each.textContent = text;
  }
}

// ---- look again

let busy = false, again = false, last = 0, timer = null;

function refreshSoon() {
  if (document.hidden) { again = true; return; }
  if (timer === null) timer = setTimeout(refresh, Math.max(LEAST_PAUSE - (performance.now() - last), 0));
}

async function refresh() {
  timer = null;
  if (busy) { again = true; return; }
  busy = true;
  again = false;
  try {
    const response = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (response.redirected) { location.assign(response.url); return; } // to log in again
    const found = new DOMParser().parseFromString(await response.text(), "text/html");
    const said = Date.parse(response.headers.get("date")) / 1000;
    if (said) ahead = said - Date.now() / 1000;
    tellTimes(found);
    document.title = found.title;
    morph(document.getElementById("main"), found.getElementById("main"));
  } catch { /* the server is away: the next connection looks again */ }
  busy = false;
  last = performance.now();
  if (again) refreshSoon();
}

// ---- hear what has changed

const SAYS = { on: "live", off: "reconnecting…", still: "" };

function show(state) {
  live.dataset.state = state;
  live.textContent = SAYS[state];
}

// A browser has six connections to a server: a page that nobody sees holds none of them.
let events = null, heard = false;

function listen() {
  if (events !== null || document.hidden) return;
  show("off");
  events = new EventSource("/v1/events");
  let lost = heard;
  heard = true;
  events.onopen = () => {
    show("on");
    if (lost) refreshSoon();
    lost = false;
  };
  events.onmessage = (event) => {
    const changed = JSON.parse(event.data);
    if (changed.length && (topics === "*" || changed.includes(topics) || changed.includes("fleet"))) refreshSoon();
  };
  events.onerror = () => {
    show("off");
    lost = true;
    if (events.readyState === EventSource.CLOSED) { // an answer that was none
      rest();
      refreshSoon(); // one may have to log in again
      setTimeout(listen, 1000);
    }
  };
}

function rest() {
  events?.close();
  events = null;
}

// ---- the theme

const theme = document.getElementById("theme");
const THEMES = { "": "Theme: auto", light: "Theme: light", dark: "Theme: dark" };
const order = Object.keys(THEMES);

function wear(name) {
  if (name) { document.documentElement.dataset.theme = name; localStorage.setItem("theme", name); }
  else { delete document.documentElement.dataset.theme; localStorage.removeItem("theme"); }
  theme.textContent = THEMES[name];
}

theme.hidden = false;
theme.textContent = THEMES[document.documentElement.dataset.theme ?? ""];
theme.addEventListener("click", () => {
  const now = document.documentElement.dataset.theme ?? "";
  wear(order[(order.indexOf(now) + 1) % order.length]);
});

// ---- filters show at once what they find

for (const form of document.querySelectorAll("form[data-live]")) {
  const look = () => {
    const asked = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    history.replaceState(null, "", asked.size ? `?${asked}` : location.pathname);
    refreshSoon();
  };
  form.addEventListener("input", look);
  form.addEventListener("submit", (event) => { event.preventDefault(); look(); });
}

// ---- the planner beside the form

const plan = document.getElementById("plan");
if (plan) {
  const form = document.getElementById("new-task");
  let waiting = null, asked = 0;
  const ask = async () => {
    const number = ++asked;
    plan.setAttribute("aria-busy", "true");
    try {
      const given = new URLSearchParams([...new FormData(form)].filter(([, value]) => value.trim()));
      const response = await fetch(`${plan.dataset.source}?${given}`);
      const text = await response.text();
      if (number !== asked) return; // something else was asked meanwhile
      const found = document.createElement("aside");
      found.innerHTML = text;
      morph(plan, found, { children: true });
    } catch { /* the server is away: what was said before stays */
    } finally {
      if (number === asked) plan.removeAttribute("aria-busy");
    }
  };
  const soon = () => { clearTimeout(waiting); waiting = setTimeout(ask, 600); };
  form.addEventListener("input", soon);
  form.querySelector("button[name=plan]").addEventListener("click", (event) => { event.preventDefault(); ask(); });
  plan.addEventListener("click", (event) => {
    const choice = event.target.closest("[data-choose]");
    if (!choice) return;
    event.preventDefault();
    for (const [name, value] of Object.entries(JSON.parse(choice.dataset.choose))) {
      const field = form.elements[name];
      field.value = value;
      if (value) field.closest("details")?.setAttribute("open", "");
    }
    form.elements.name.focus();
    ask();
  });
  ask();
  document.getElementById("problem")?.focus();
}

// ---- begin

tellTimes();
setInterval(tellTimes, 1000);
if (topics) {
  listen();
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) rest();
    else listen();
    if (!document.hidden && again) refreshSoon();
  });
  // What nobody tells: a site falls silent, days pass.
  setInterval(refreshSoon, 30000);
} else show("still");
