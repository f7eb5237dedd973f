// Filters, keys, theme and the copy button; starts the page.

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
    event.searched ??= `${sentence(event)} ${wordsOf(event).name} ${event.place} ${event.step}`.toLowerCase();
    return wanted.every((word) => event.searched.includes(word));
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
    c: () => !byId("copy").parentElement.hidden && byId("copy").click(),
    t: () => byId("theme").click(),
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
const terminal = byId("report");
if (terminal) terminal.hidden = false;
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
