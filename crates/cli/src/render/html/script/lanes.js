// Draws the swim lanes of one execution. It may have 100 000 events, so only the rows in view are elements.

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
    this.byThread = new Map(); // By thread: the indices of its events.
    events.forEach((event, index) => {
      if (!this.byThread.has(event.thread)) this.byThread.set(event.thread, []);
      this.byThread.get(event.thread).push(index);
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

  /** By thread, except that of the event: the last event that happens before it, if it is in this panel. */
  before(index) {
    const { thread, clock } = this.events[index];
    const last = [];
    (clock ?? []).forEach((known, other) => {
      const events = this.byThread.get(other) ?? [];
      if (other === thread || known === 0 || events.length === 0) return;
      // The clock counts from the beginning of the execution, the panel from the first difference.
      const at = known - (this.events[events[0]].clock?.[other] ?? 1);
      if (at >= 0 && at < events.length) last.push(events[at]);
    });
    return last;
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
    // The name begins with the text in view, so that speech control finds the row.
    const place = (event.place ?? "").replace(/^.*\//, ""); // The details have the path.
    const label = [
      `${event.step} ${what(event)} ${place}`.trim(),
      `T${event.thread}`,
      preempts ? preemption : "",
      changes ? "another thread runs" : "",
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
      // The preempted thread of the first event is in the common beginning: its lane is unknown here.
      mark.style.left = `${changes ? this.x(laneOf.get(before.thread)) - 4 : GUTTER - 20}px`;
      if (position === 0) mark.style.top = "0";
      row.append(mark);
    }
    const chip = element("span", { class: "chip", "--x": `${x}px`, "--hue": hueOf(event.thread) },
      element("span", { class: "what" }, what(event)));
    if (place) chip.append(" ", element("span", { class: "place" }, place));
    row.append(element("span", { class: "step" }, String(event.step)), " ", chip);
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

  /** Draws the data flows that begin or end in view: those that differ and those of the current event, or all. */
  drawArrows(first, last) {
    const flows = new Map();
    const all = byId("flows").checked;
    const add = (index) => {
      const event = this.events[index];
      const wanted = all || event.flow_differs || index === this.cursor || event.from === this.cursor;
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
