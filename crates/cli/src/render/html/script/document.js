// Reads the embedded document and makes texts and elements of it.
//
// Texts of the program may contain markup, so they enter the page only as text nodes. Tests read the data attributes of
// the root element.

const ROW = 26; // The height of a row in pixels, as in the style sheet.
const SPARE = 10; // Rows beyond each end of the view, so that scrolling shows no gaps.
const GUTTER = 78; // The width of the step numbers, with room for arrows.
const LAST_LANE = 290; // Enough for a usual event: the last lane cannot overflow into another.
const MAX_LANE = 230;
const MIN_LANE = 34;
const NAMED_LANE = 90; // A narrower lane has no room for the start function of its thread.
const MAX_ARROWS = 200; // More than that in one view cannot be told apart.
const MAX_PRINTED = 1000;
const MAX_OBJECTS = 1000;
const MAX_READERS = 6;
const CONTEXT = 12; // Lines of source before and after the place of an event.
const HUES = [215, 25, 150, 285, 340, 185, 50, 255, 100, 310];

const root = document.documentElement;
const byId = (id) => document.getElementById(id);

function report(message) {
  root.dataset.errors = [root.dataset.errors, message].filter(Boolean).join("; ");
  const note = byId("error");
  note.textContent = `The script of this page failed: ${message}. The summary above is complete.`;
  note.hidden = false;
}
addEventListener("error", (event) => report(`${event.message} (line ${event.lineno})`));
addEventListener("unhandledrejection", (event) => report(String(event.reason)));

// ---- Texts ----

/** Shows control characters, invisible ones and those that change the direction of text. */
function visible(text) {
  const hidden = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
  return String(text).replace(hidden, (c) => `\\u{${c.charCodeAt(0).toString(16)}}`);
}

/** An element with attributes and children. Strings become text nodes, never markup. */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("--")) made.style.setProperty(name, value);
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.map((child) => (typeof child === "object" ? child : visible(child))));
  return made;
}

function number(n) {
  return String(n).replace(/\B(?=(\d{3})+$)/g, " ");
}

function count(n, what) {
  return `${number(n)} ${what}${n === 1 ? "" : "s"}`;
}

// ---- The document ----

function read(id) {
  // Numbers above 2^53 would lose digits. Inside a string the quotes would be escaped, so only fields match.
  return JSON.parse(byId(id).textContent.replace(/"value":(\d{16,})/g, '"value":"$1"'));
}

const words = read("words");
const finding = read("document") ?? {};
const explanation = finding.explanation ?? {};
const sources = finding.sources ?? {}; // By file: the lines near the places of events, by number.
const newer = finding.newer ?? [];
const starts = new Map((finding.threads ?? []).map(({ thread, start }) => [thread, start]));

const wordsOf = (event) => words[event.op] ?? { name: event.op, verb: event.op, kind: "other operations" };
const isRead = (event) => ["MemRead", "AtomicLoad", "AtomicRmw", "AtomicCas"].includes(event.op);
const differs = (event) => event.only_here || event.flow_differs;
const hasValue = (event) => Boolean(event.text);

function what(event) {
  const object = event.object ? ` ${event.object}` : "";
  const value = hasValue(event) ? ` = ${event.text}` : "";
  return `${wordsOf(event).verb}${object}${value}`;
}

const sentence = (event) => `T${event.thread} ${what(event)}`;

const threads = [];
for (const event of [explanation.failing ?? [], explanation.passing ?? []].flat()) threads[event.thread] = true;
const lanes = Object.keys(threads).map(Number);
const laneOf = new Map(lanes.map((thread, lane) => [thread, lane]));
const hueOf = (thread) => HUES[(laneOf.get(thread) ?? thread) % HUES.length];
