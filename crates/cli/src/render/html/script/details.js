// Shows the details of an event: values, locks, clock, stack and source.

const details = byId("details");

function address(panel, index) {
  return panel === failing ? `#event=${index}` : `#passing=${index}`;
}

function open(panel, index) {
  if (panel.position(index) < 0) {
    byId("filters").reset();
    refilter();
  }
  details.hidden = false;
  document.body.classList.add("with-details");
  panel.move(index);
  // Opening the details makes the panels smaller.
  panel.scrollTo(index);
  if (document.activeElement !== panel.view) panel.view.focus({ preventScroll: true });
  reveal(panel, index);
}

/** Scrolls the page, if necessary, until an event is above the details. */
function reveal(panel, index) {
  const row = panel.rows.get(panel.position(index))?.getBoundingClientRect();
  const edge = details.hidden ? innerHeight : details.getBoundingClientRect().top;
  if (row && (row.bottom > edge || row.top < 0)) scrollBy(0, row.bottom - edge + ROW * 3);
}

function close() {
  if (details.hidden) return;
  details.hidden = true;
  document.body.classList.remove("with-details");
  delete root.dataset.open;
  setAddress(location.pathname + location.search);
  current.view.focus({ preventScroll: true });
}

function setAddress(text) {
  // Some browsers forbid this for files or limit how often; the page works without.
  try {
    history.replaceState(null, "", text);
  } catch {}
}

function show(panel, index) {
  const event = panel.events[index];
  const start = starts.get(`T${event.thread}`);
  const facts = [
    ["Thread", start ? `T${event.thread} (${start})` : `T${event.thread}`],
    ["Step", `${number(event.step)}: ${wordsOf(event).name}`],
    ["Value", hasValue(event) ? longValue(event) : ""],
    ["Place", event.function && event.function !== event.place ? `${event.function} at ${event.place || "an unknown line"}` : event.place || "unknown"],
    ["Locks held", (event.locks ?? []).join(", ") || "none"],
  ].filter(([, text]) => text);
  if (isRead(event)) {
    const write = panel.events[event.from];
    facts.push(["Read from", write ? link(panel, event.from) : "no write among these events"]);
  }
  const readers = panel.readers.get(index) ?? [];
  if (readers.length > 0) {
    const more = readers.length - MAX_READERS;
    const links = readers.slice(0, MAX_READERS).map((reader) => link(panel, reader));
    facts.push(["Read by", element("span", {}, ...links, more > 0 ? `and ${number(more)} more` : "")]);
  }
  const notes = [
    event.only_here && "The other execution does not have this event.",
    event.flow_differs && "In the other execution this read does not see this write.",
  ].filter(Boolean);
  if (notes.length > 0) facts.push(["Difference", notes.join(" ")]);
  if (typeof event.partner === "number" && other(panel).events[event.partner]) {
    facts.push(["Other execution", link(other(panel), event.partner)]);
  }
  if (event.preempts) facts.push(["Preemption", "Another thread was preempted just before this event."]);
  const clock = (event.clock ?? []).map((known, thread) => (known > 0 ? `T${thread}: ${number(known)}` : "")).filter(Boolean);
  if (clock.length > 0) {
    const title = "For each thread, how many of its events happen before this event, or are this event";
    facts.push(["Vector clock", element("span", { title }, clock.join(", "))]);
    const before = panel.before(index).map((last) => link(panel, last));
    if (before.length > 0) facts.push(["Happens after", element("span", {}, ...before)]);
  }
  const frames = event.stack ?? [];
  facts.push(["Stack", frames.length > 0
    ? element("ol", { class: "stack" }, ...frames.map((frame) => element("li", {}, frame)))
    : "not recorded: stacks are taken where the schedule switches threads"]);
  const list = element("dl", { tabindex: "0", "aria-label": "Facts" });
  for (const [term, fact] of facts) list.append(element("dt", {}, term), element("dd", {}, fact));
  details.replaceChildren(
    element("div", { class: "bar" },
      element("h2", {}, element("span", { class: "thread", "--hue": hueOf(event.thread) }, `T${event.thread}`), ` ${what(event)}`),
      element("span", { class: "faint" }, panel.title),
      element("button", { type: "button", onclick: close, "aria-label": "Close the details" }, "Close")),
    list,
    source(event.place),
  );
  const here = details.querySelector(".here");
  if (here) here.parentElement.scrollTop = here.offsetTop - here.parentElement.offsetTop - here.parentElement.clientHeight / 2;
  root.dataset.open = `${panel.id}:${index}`;
  setAddress(address(panel, index));
}

function longValue({ value, size, text }) {
  const exact = BigInt(value);
  const forms = new Set([text, String(exact), `0x${exact.toString(16)}`]);
  const [first, ...rest] = forms;
  const bytes = size > 0 ? `, ${count(size, "byte")}` : "";
  return `${first}${rest.length > 0 ? ` (${rest.join(", ")})` : ""}${bytes}`;
}

function link(panel, index) {
  const event = panel.events[index];
  const text = `step ${event.step}: ${sentence(event)}${event.place ? ` at ${event.place}` : ""}`;
  return element("button", { type: "button", onclick: () => open(panel, index) }, text);
}

/** The lines of source around a place such as `account.c:27`. */
function source(place) {
  const box = element("div", { class: "source", role: "group", "aria-label": "Source", tabindex: "0" });
  const [, file, digits] = /^([^]*?):(\d+)(?::\d+)?$/.exec(place) ?? [];
  const lines = file !== undefined && Object.hasOwn(sources, file) ? sources[file] : {};
  const here = Number(digits);
  if (!Object.hasOwn(lines, here)) {
    const words = place ? `The source of ${place} was not found.` : "The place is unknown.";
    box.append(element("div", { class: "empty" }, words));
    return box;
  }
  if (newer.includes(file)) {
    box.append(element("div", { class: "note" }, `${file} is newer than the program. These lines may be wrong.`));
  }
  for (let line = Math.max(1, here - CONTEXT); line <= here + CONTEXT && Object.hasOwn(lines, line); line++) {
    const mine = line === here;
    box.append(element("div", { class: mine && "here", "aria-current": mine && "location" },
      element("span", { class: "number" }, `${mine ? "▸ " : ""}${line}`), lines[line]));
  }
  return box;
}
