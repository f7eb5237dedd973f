// Draws the swim lanes of the two executions from the embedded document, and opens the details of events.
//
// Texts of the program may contain markup, so they enter the page only as text nodes. An execution may have
// 100 000 events, so only the rows in view are elements. Tests read the data attributes of the root element.
"use strict";

(() => {
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

  /** A value as the summary writes it: see `words::value`. */
  function valueText(value, size) {
    const exact = BigInt(value);
    const signed = BigInt.asIntN(8 * Math.min(size || 8, 8), exact);
    if (size >= 4 && signed < 0n && signed >= -65536n) return String(signed);
    return exact > 0xffffffffn ? `0x${exact.toString(16)}` : String(exact);
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
  const hasValue = (event) => event.value !== null && event.value !== undefined;

  function what(event) {
    const object = event.object ? ` ${event.object}` : "";
    const value = hasValue(event) ? ` = ${valueText(event.value, event.size)}` : "";
    return `${wordsOf(event).verb}${object}${value}`;
  }

  const sentence = (event) => `T${event.thread} ${what(event)}`;

  const threads = [];
  for (const event of [explanation.failing ?? [], explanation.passing ?? []].flat()) threads[event.thread] = true;
  const lanes = Object.keys(threads).map(Number);
  const laneOf = new Map(lanes.map((thread, lane) => [thread, lane]));
  const hueOf = (thread) => HUES[(laneOf.get(thread) ?? thread) % HUES.length];

  // ---- The swim lanes ----

  class Panel {
    constructor(id, events) {
      this.id = id;
      this.events = events;
      this.shown = events.map((_, index) => index);
      this.cursor = -1; // The index of the current event.
      this.rows = new Map(); // Elements by position in `shown`.
      this.title = byId(id).querySelector("h2").textContent;
      this.note = byId(id).querySelector("p");
      this.view = byId(id).querySelector(".lanes");
      this.ruler = byId(id).querySelector("canvas");
      this.names = element("div", { class: "names", "aria-hidden": "true" });
      this.content = element("div", { class: "rows", role: "presentation" });
      // The namespace comes from an element of the page, as a URL here would look like an external reference.
      this.svg = document.createElementNS(document.querySelector("svg").namespaceURI, "svg");
      this.svg.setAttribute("class", "arrows");
      this.svg.setAttribute("aria-hidden", "true");
      this.view.append(this.names, this.content);
      this.view.addEventListener("scroll", () => this.drawSoon());
      this.view.addEventListener("focus", () => {
        current = this;
        const first = Math.ceil(this.view.scrollTop / ROW);
        if (this.cursor < 0 && first < this.shown.length) this.move(this.shown[first]);
      });
      this.content.addEventListener("click", (click) => {
        const row = click.target.closest(".row");
        if (row) open(this, Number(row.dataset.index));
      });
      this.ruler.addEventListener("click", (click) => {
        const part = click.offsetY / this.ruler.clientHeight;
        this.view.scrollTop = part * this.shown.length * ROW - this.view.clientHeight / 2;
      });
      this.readers = new Map();
      events.forEach((event, index) => {
        if (typeof event.from !== "number") return;
        if (!this.readers.has(event.from)) this.readers.set(event.from, []);
        this.readers.get(event.from).push(index);
      });
      new ResizeObserver(() => this.resized()).observe(this.view);
    }

    /** The position of the first shown event that does not come before this one. */
    bound(index) {
      let [low, high] = [0, this.shown.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (this.shown[middle] < index) low = middle + 1;
        else high = middle;
      }
      return low;
    }

    /** The position of an event among the shown ones; -1 if a filter hides it. */
    position(index) {
      const position = this.bound(index);
      return this.shown[position] === index ? position : -1;
    }

    filter(matches) {
      this.shown = [];
      this.events.forEach((event, index) => {
        if (matches(event)) this.shown.push(index);
      });
      this.layout();
      if (this.cursor >= 0) this.scrollTo(this.cursor);
    }

    resized() {
      if (this.view.clientWidth !== this.width) this.layout();
      else {
        this.draw();
        this.drawRuler();
      }
    }

    x(lane) {
      return GUTTER + lane * this.lane;
    }

    layout() {
      this.ruler.hidden = this.shown.length < 100;
      this.width = this.view.clientWidth;
      const space = (this.width - GUTTER - LAST_LANE) / Math.max(1, lanes.length - 1);
      this.lane = Math.max(MIN_LANE, Math.min(MAX_LANE, Math.floor(space)));
      const least = this.x(lanes.length - 1) + LAST_LANE / 2;
      const width = least > this.width ? `${least}px` : "";
      this.names.style.width = this.content.style.width = width;
      this.names.replaceChildren(...lanes.map((thread, lane) => {
        const start = starts.get(`T${thread}`);
        const name = element("span", { class: "thread", "--hue": hueOf(thread) }, `T${thread}`);
        const last = lane + 1 === lanes.length;
        if (start && (last || this.lane >= NAMED_LANE)) name.append(" ", element("small", {}, start));
        name.title = visible(`T${thread} ${start ?? ""}`);
        name.style.left = `${this.x(lane)}px`;
        name.style.maxWidth = last ? `calc(100% - ${this.x(lane)}px)` : `${this.lane - 4}px`;
        return name;
      }));
      this.rows.clear();
      this.content.replaceChildren(...lanes.map((thread, lane) => {
        const line = element("div", { class: "lane", role: "presentation", "--hue": hueOf(thread) });
        line.style.left = `${this.x(lane) + 1}px`;
        return line;
      }), this.svg);
      if (this.shown.length === 0) {
        const words = this.events.length > 0 ? "No event matches the filter." : "There are no events of this execution.";
        this.content.append(element("p", { class: "empty" }, words));
      }
      const { common } = explanation;
      const some = this.shown.length < this.events.length ? `${number(this.shown.length)} of ` : "";
      const before = common > 0 ? `, after ${count(common, "event")} that both executions have` : "";
      this.note.textContent = `${some}${count(this.events.length, "event")}${before}`;
      root.dataset[`${this.id}Rows`] = this.shown.length;
      this.draw();
      this.drawRuler();
    }

    drawSoon() {
      this.frame ??= requestAnimationFrame(() => {
        this.frame = null;
        this.draw();
      });
    }

    /** Brings the rows in view into the document and removes the others; for print, all rows up to a limit. */
    draw(print = false) {
      const top = Math.floor(this.view.scrollTop / ROW) - SPARE;
      const bottom = Math.ceil((this.view.scrollTop + (this.view.clientHeight || 600)) / ROW) + SPARE;
      const first = print ? 0 : Math.max(0, top);
      const last = Math.min(this.shown.length, print ? MAX_PRINTED : bottom);
      this.content.style.height = this.shown.length > 0 ? `${(print ? last : this.shown.length) * ROW}px` : "";
      for (const [position, row] of this.rows) {
        if (position >= first && position < last) continue;
        row.remove();
        this.rows.delete(position);
      }
      const added = document.createDocumentFragment();
      for (let position = first; position < last; position++) {
        if (this.rows.has(position)) continue;
        const row = this.row(position);
        this.rows.set(position, row);
        added.append(row);
      }
      this.content.append(added);
      this.mark();
      this.drawArrows(first, last);
    }

    print() {
      this.draw(true);
      if (this.shown.length > MAX_PRINTED) this.note.append(`; only the first ${number(MAX_PRINTED)} are printed`);
    }

    row(position) {
      const index = this.shown[position];
      const event = this.events[index];
      const before = position > 0 ? this.events[this.shown[position - 1]] : event;
      const changes = before.thread !== event.thread;
      // A filter may hide the event before. The event before the first one is in the common beginning.
      const preempts = event.preempts && (index === 0 || this.shown[position - 1] === index - 1);
      const preemption = changes ? `T${before.thread} is preempted` : "another thread is preempted";
      const x = this.x(laneOf.get(event.thread));
      const label = [
        preempts ? preemption : "",
        changes ? `thread change to T${event.thread}` : "",
        `step ${event.step}: ${sentence(event)}`,
        event.place ? `at ${event.place}` : "",
        event.only_here ? "only in this execution" : "",
        event.flow_differs ? "other value than in the other execution" : "",
      ];
      const row = element("div", {
        class: ["row", event.only_here && "only", changes && "change", preempts && "preempts"].filter(Boolean).join(" "),
        role: "option",
        id: `${this.id}-${index}`,
        "data-index": index,
        "aria-label": visible(label.filter(Boolean).join(", ")),
        "aria-posinset": position + 1,
        "aria-setsize": this.shown.length,
        "aria-selected": "false",
      });
      row.style.top = `${position * ROW}px`;
      if (changes) {
        const from = this.x(laneOf.get(before.thread));
        const jump = element("span", { class: from < x ? "jump right" : "jump left" });
        jump.style.left = `${Math.min(from, x)}px`;
        jump.style.width = `${Math.abs(x - from)}px`;
        row.append(jump);
      }
      if (preempts) {
        const mark = element("span", { class: "preempt", title: preemption });
        mark.style.left = `${this.x(laneOf.get(before.thread)) - 4}px`;
        if (position === 0) mark.style.top = "0";
        row.append(mark);
      }
      const chip = element("span", { class: "chip", "--x": `${x}px`, "--hue": hueOf(event.thread) },
        element("span", { class: "what" }, what(event)));
      // The name of the file is enough here: the details have the path.
      if (event.place) chip.append(element("span", { class: "place" }, event.place.replace(/^.*\//, "")));
      row.append(element("span", { class: "step" }, String(event.step)), chip);
      return row;
    }

    /** Marks the current event, the write that it read and the reads of its value. */
    mark() {
      const linked = new Set(this.readers.get(this.cursor)).add(this.events[this.cursor]?.from);
      for (const row of this.rows.values()) {
        const index = Number(row.dataset.index);
        row.setAttribute("aria-selected", String(index === this.cursor));
        row.classList.toggle("linked", linked.has(index));
      }
      const row = this.rows.get(this.position(this.cursor));
      if (row) this.view.setAttribute("aria-activedescendant", row.id);
      else this.view.removeAttribute("aria-activedescendant");
    }

    /** Draws the data flows that differ and begin or end in view, and those of the current event. */
    drawArrows(first, last) {
      const flows = new Map();
      const add = (index) => {
        const event = this.events[index];
        const wanted = event.flow_differs || index === this.cursor || event.from === this.cursor;
        if (wanted && typeof event.from === "number" && flows.size < MAX_ARROWS) flows.set(index, event);
      };
      for (let position = first; position < last; position++) {
        add(this.shown[position]);
        for (const reader of (this.readers.get(this.shown[position]) ?? []).slice(0, MAX_ARROWS)) add(reader);
      }
      const parts = [];
      let track = 0;
      for (const [index, event] of flows) {
        const [to, from] = [this.position(index), this.position(event.from)];
        if (to < 0 || from < 0) continue;
        parts.push(...this.arrow(from, to, first, last, track++ % 4, event.flow_differs ? "" : "plain"));
      }
      this.svg.replaceChildren(...parts);
      this.svg.style.top = `${first * ROW}px`;
      this.svg.style.height = `${Math.max(0, last - first) * ROW}px`;
    }

    /** An arrow from one position to another. It runs left of the lanes, where no event hides it. */
    arrow(from, to, first, last, track, kind) {
      const lane = (position) => this.x(laneOf.get(this.events[this.shown[position]].thread));
      // Coordinates far outside the view are cut: browsers draw them badly.
      const y = (position) => (Math.max(first - 3, Math.min(last + 3, position)) - first + 0.5) * ROW;
      const [x1, y1, x2, y2] = [lane(from), y(from) + 4, lane(to), y(to)];
      const run = Math.min(x1, x2) - 9 - 4 * track;
      const turn = y2 > y1 ? 6 : -6;
      const shape = (tag, attribute, value) => {
        const made = document.createElementNS(this.svg.namespaceURI, tag);
        made.setAttribute(attribute, value);
        if (kind) made.setAttribute("class", kind);
        return made;
      };
      return [
        shape("path", "d", `M${x1} ${y1}H${run + 6}Q${run} ${y1} ${run} ${y1 + turn}V${y2 - turn}Q${run} ${y2} ${run + 6} ${y2}H${x2 - 5}`),
        shape("polygon", "points", `${x2 - 1},${y2} ${x2 - 8},${y2 - 4} ${x2 - 8},${y2 + 4}`),
      ];
    }

    /** Draws where the differences are in the whole execution. */
    drawRuler() {
      const { ruler, shown } = this;
      if (ruler.hidden) return;
      const height = (ruler.height = this.view.clientHeight);
      ruler.style.height = `${height}px`;
      ruler.width = 12;
      const context = ruler.getContext("2d");
      context.fillStyle = getComputedStyle(ruler).color;
      let drawn = -1;
      shown.forEach((index, position) => {
        const y = Math.floor((position / shown.length) * height);
        if (y === drawn || !differs(this.events[index])) return;
        context.fillRect(2, y, 8, 2);
        drawn = y;
      });
    }

    scrollTo(index) {
      const position = this.position(index);
      if (position < 0) return;
      const top = position * ROW;
      const inner = this.view.clientHeight - this.names.offsetHeight - ROW;
      if (top < this.view.scrollTop || top > this.view.scrollTop + inner) {
        this.view.scrollTop = top - inner / 2;
      }
      const x = this.x(laneOf.get(this.events[index].thread));
      if (x < this.view.scrollLeft + GUTTER || x + LAST_LANE > this.view.scrollLeft + this.width) {
        this.view.scrollLeft = x - this.width / 2;
      }
      this.draw();
    }

    /** Makes an event the current one. If the details are open, they show it. */
    move(index) {
      this.cursor = index;
      current = this;
      other(this).clear();
      this.scrollTo(index);
      if (!details.hidden) show(this, index);
    }

    clear() {
      this.cursor = -1;
      this.draw();
    }

    /** Moves by this number of events, or to the next difference in this direction. */
    step(by, onlyDifferences = false) {
      const { shown } = this;
      if (shown.length === 0) return;
      const at = this.bound(this.cursor);
      // If a filter hides the current event, the next shown one is already a move down.
      let position = by > 0 && shown[at] !== this.cursor ? at + by - 1 : at + by;
      if (onlyDifferences) {
        const sign = Math.sign(by);
        while (shown[position] !== undefined && !differs(this.events[shown[position]])) position += sign;
        if (shown[position] === undefined) return;
      }
      const index = shown[Math.max(0, Math.min(shown.length - 1, position))];
      this.move(index);
      if (document.activeElement === document.body) this.view.focus({ preventScroll: true });
      reveal(this, index);
    }
  }

  // ---- The details of an event ----

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
      ["Operation", wordsOf(event).name],
      ["Object", event.object],
      ["Value", hasValue(event) ? longValue(event) : ""],
      ["Step", number(event.step)],
      ["Place", event.place || "unknown"],
      ["Function", event.function],
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
    if (event.stack?.length > 0) {
      facts.push(["Stack", element("ol", { class: "stack" }, ...event.stack.map((frame) => element("li", {}, frame)))]);
    }
    const list = element("dl");
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

  function longValue({ value, size }) {
    const exact = BigInt(value);
    const forms = new Set([valueText(value, size), String(exact), `0x${exact.toString(16)}`]);
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

  // ---- Filters ----

  function option(value, text) {
    return element("option", { value }, text);
  }

  const objects = [];

  function fillFilters(events) {
    const uses = new Map();
    const kinds = new Set();
    for (const event of events) {
      if (event.object) uses.set(event.object, (uses.get(event.object) ?? 0) + 1);
      kinds.add(wordsOf(event).kind);
    }
    const most = [...uses].sort((a, b) => b[1] - a[1]).slice(0, MAX_OBJECTS).map(([object]) => object);
    objects.push(...most.sort());
    byId("thread").append(option("", "All threads"), ...lanes.map((thread) => {
      const start = starts.get(`T${thread}`);
      return option(thread, start ? `T${thread} ${start}` : `T${thread}`);
    }));
    byId("object").append(option("", "All objects"), ...objects.map((object, i) => option(i, object)));
    byId("kind").append(option("", "All operations"), ...[...kinds].sort().map((kind) => option(kind, kind)));
  }

  function refilter() {
    const wanted = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const [thread, object, kind] = ["thread", "object", "kind"].map((id) => byId(id).value);
    const onlyDifferences = byId("differences").checked;
    const matches = (event) => {
      if (thread !== "" && event.thread !== Number(thread)) return false;
      if (object !== "" && event.object !== objects[object]) return false;
      if (kind !== "" && wordsOf(event).kind !== kind) return false;
      if (onlyDifferences && !differs(event)) return false;
      if (wanted.length === 0) return true;
      event.text ??= `${sentence(event)} ${wordsOf(event).name} ${event.place} ${event.step}`.toLowerCase();
      return wanted.every((word) => event.text.includes(word));
    };
    failing.filter(matches);
    passing.filter(matches);
    const shown = failing.shown.length + passing.shown.length;
    const all = failing.events.length + passing.events.length;
    byId("count").textContent = shown < all ? `${number(shown)} of ${count(all, "event")}` : "";
  }

  let pending;
  function refilterSoon() {
    clearTimeout(pending);
    pending = setTimeout(refilter, 80);
  }

  // ---- Keys, theme and the rest of the page ----

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
    const { key } = event;
    const target = event.target instanceof Element ? event.target : document.body;
    if (key === "Escape") {
      if (target === byId("search") && target.value) {
        target.value = "";
        refilter();
      } else if (target === byId("search")) target.blur();
      else close();
      event.preventDefault();
      return;
    }
    const inSearch = target.matches("input[type=search]");
    if (inSearch && (key === "Enter" || key === "ArrowDown")) {
      event.preventDefault();
      clearTimeout(pending);
      refilter();
      const panel = current.shown.length > 0 ? current : other(current);
      panel.view.focus();
      return;
    }
    if (target.matches("input[type=search], select, textarea")) return;
    const inPanel = target.matches(".lanes");
    const page = Math.max(1, Math.floor(current.view.clientHeight / ROW) - 2);
    const everywhere = {
      j: () => current.step(1),
      k: () => current.step(-1),
      n: () => current.step(1, true),
      p: () => current.step(-1, true),
      h: () => failing.view.focus(),
      l: () => passing.view.focus(),
      o: () => toPartner(),
      g: () => current.step(-Infinity),
      G: () => current.step(Infinity),
      "/": () => byId("search").select(),
      "?": () => byId("help").showModal(),
    };
    const inPanelOnly = {
      ArrowDown: everywhere.j,
      ArrowUp: everywhere.k,
      ArrowLeft: everywhere.h,
      ArrowRight: everywhere.l,
      PageDown: () => current.step(page),
      PageUp: () => current.step(-page),
      Home: everywhere.g,
      End: everywhere.G,
      Enter: () => current.cursor >= 0 && open(current, current.cursor),
    };
    const atEnter = key === "Enter" && target === document.body;
    const action = everywhere[key] ?? (inPanel || atEnter ? inPanelOnly[key] : undefined);
    if (!action) return;
    event.preventDefault();
    action();
  }

  /** Goes to the same event of the other execution. */
  function toPartner() {
    const [panel, partner] = [other(current), current.events[current.cursor]?.partner];
    if (typeof partner !== "number" || panel.position(partner) < 0) return;
    panel.move(partner);
    panel.view.focus({ preventScroll: true });
    reveal(panel, partner);
  }

  function followAddress() {
    const [, name, digits] = /^#(event|passing)=(\d+)$/.exec(location.hash) ?? [];
    const panel = name === "passing" ? passing : failing;
    const index = Number(digits);
    if (name && index < panel.events.length) open(panel, index);
  }

  function themes() {
    const button = byId("theme");
    const system = matchMedia("(prefers-color-scheme: dark)");
    const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
    const update = () => {
      button.textContent = isDark() ? "Light" : "Dark";
      button.setAttribute("aria-label", `Use the ${isDark() ? "light" : "dark"} theme`);
      failing.drawRuler();
      passing.drawRuler();
    };
    // A browser may forbid storage for files.
    try {
      const stored = localStorage.getItem("heisen-theme");
      if (stored === "dark" || stored === "light") root.dataset.theme = stored;
    } catch {}
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      try {
        localStorage.setItem("heisen-theme", root.dataset.theme);
      } catch {}
      update();
    });
    system.addEventListener("change", update);
    button.hidden = false;
    update();
  }

  function copying() {
    const button = byId("copy");
    button.hidden = false;
    button.addEventListener("click", async () => {
      let done = true;
      try {
        await navigator.clipboard.writeText(byId("replay").textContent);
      } catch {
        // Without the permission, the older way works on a selection.
        getSelection().selectAllChildren(byId("replay"));
        done = document.execCommand("copy");
      }
      button.textContent = done ? "Copied" : "Press Ctrl-C";
      setTimeout(() => (button.textContent = "Copy"), 2000);
    });
  }

  copying();
  for (const thread of document.querySelectorAll("#story .thread")) {
    thread.style.setProperty("--hue", hueOf(Number(thread.dataset.thread.slice(1))));
  }
  let current;
  const failing = new Panel("failing", explanation.failing ?? []);
  const passing = new Panel("passing", explanation.passing ?? []);
  const other = (panel) => (panel === failing ? passing : failing);
  current = failing;
  themes();
  if (failing.events.length + passing.events.length > 0) {
    fillFilters([failing.events, passing.events].flat());
    byId("app").hidden = false;
    refilter();
    byId("filters").addEventListener("input", refilterSoon);
    byId("filters").addEventListener("submit", (event) => event.preventDefault());
    byId("filters").addEventListener("reset", () => setTimeout(refilter));
    byId("keys").addEventListener("click", () => byId("help").showModal());
    addEventListener("keydown", onKey);
    addEventListener("hashchange", followAddress);
    addEventListener("beforeprint", () => [failing, passing].forEach((panel) => panel.print()));
    addEventListener("afterprint", () => [failing, passing].forEach((panel) => panel.layout()));
    followAddress();
  }
  root.dataset.lanes = lanes.length;
  root.dataset.ready = "true";
})();
