// Draws the figures of a page, with the colours of its theme. A figure is drawn again when its data have changed: one
// after the other, so that the page is never busy for long, and again not too often, and only if somebody can see it.

const PAUSE = 2000; // milliseconds between two drawings of one figure
const drawn = new WeakMap(); // what was drawn of an element, and when
const near = new WeakSet(); // those that can be seen, or soon will be
let waiting = null;

const seen = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) near[isIntersecting ? "add" : "delete"](target);
  drawAll();
}, { rootMargin: "200px" });

function colours() {
  const probe = document.body.appendChild(document.createElement("span")); // what a name stands for in this theme
  const found = new Map();
  const colour = (name) => {
    if (!found.has(name)) {
      probe.style.color = `var(--${name})`;
      found.set(name, getComputedStyle(probe).color);
    }
    return found.get(name);
  };
  return { colour, done: () => probe.remove() };
}

function painted(value, colour) {
  if (typeof value === "string") return value.startsWith("@") ? colour(value.slice(1)) : value;
  if (Array.isArray(value)) return value.map((each) => painted(each, colour));
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, painted(each, colour)]));
  }
  return value;
}

const pen = document.createElement("canvas").getContext("2d");

function widest(texts, family) {
  // Were Plotly to find out by itself, it would draw everything several times.
  pen.font = `13px ${family}`;
  return Math.max(...texts.map((text) => pen.measureText(text).width));
}

function draw(element) {
  const { colour, done } = colours();
  const family = getComputedStyle(document.body).fontFamily;
  const { data, layout } = painted(JSON.parse(element.dataset.chart), colour);
  const axis = { gridcolor: colour("line"), linecolor: colour("line"), tickcolor: colour("line"), fixedrange: true };
  const whole = {
    ...layout,
    xaxis: { ...axis, ...layout.xaxis },
    yaxis: { ...axis, ...layout.yaxis },
    font: { family, size: 13, color: colour("text") },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 14 + widest(layout.yaxis.ticktext, family), r: 16, t: 22, b: layout.xaxis.title.text ? 48 : 40 },
    showlegend: false,
    hoverlabel: { font: { family } },
  };
  done();
  window.Plotly.react(element, data, whole, { displayModeBar: false, responsive: true });
  drawn.set(element, { spec: element.dataset.chart, at: performance.now() });
}

function due(element) {
  const last = drawn.get(element);
  if (!last) return 0;
  return near.has(element) && last.spec !== element.dataset.chart ? last.at + PAUSE : Infinity;
}

export function drawAll({ again = false } = {}) {
  if (!window.Plotly) return;
  const elements = [...document.querySelectorAll("[data-chart]")];
  if (!elements.length) return;
  for (const element of elements) {
    if (again) drawn.delete(element);
    seen.observe(element);
  }
  if (waiting !== null) return;
  const next = elements.reduce((a, b) => (due(b) < due(a) ? b : a));
  if (due(next) === Infinity) return;
  waiting = setTimeout(() => {
    waiting = null;
    if (next.isConnected && due(next) !== Infinity) draw(next);
    drawAll();
  }, Math.max(due(next) - performance.now(), 0));
}
