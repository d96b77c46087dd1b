// The list of bags: filter, order, turn pages, decide. One page of the list is in the document at a time.

const ON_A_PAGE = 20;
const ONE = 10000; // probabilities of rows are whole numbers of this
const WORTH_A_MARK = 50; // of 1000: from here on the strongest instance of the second label is marked

class BagList {
  constructor(root, data) {
    this.root = root;
    this.data = data;
    this.drawer = new Drawer(data);
    this.decisions = new Decisions(data.key, data.decided, data.none);
    this.pair = null;
    this.page = 0;
    this.list = this.out("list");
    this.tools = Object.fromEntries([...root.querySelectorAll("[data-tool]")].map((tool) => [tool.dataset.tool, tool]));
    // What a search looks at: the bag and the names of its candidates.
    this.texts = data.rows.map((row) => [row[0], ...row[3].slice(0, 8).map((c) => data.names[c])].join("\n").toLowerCase());
    this.fillLabels();
    root.addEventListener("click", (event) => this.clicked(event));
    for (const tool of Object.values(this.tools)) tool.addEventListener(tool.options ? "change" : "input", () => this.show(0));
    root.querySelector(".tools").addEventListener("submit", (event) => event.preventDefault());
    this.list.addEventListener("keydown", (event) => this.pressed(event));
    for (const part of root.querySelectorAll(".tools, .decided, .pages")) part.hidden = false;
    this.show(0);
  }

  out(name) {
    return this.root.querySelector(`[data-out="${name}"]`);
  }

  fillLabels() {
    const used = [...new Set(this.data.rows.map((row) => row[3][0]))];
    const byName = new Intl.Collator(undefined, { numeric: true }).compare;
    used.sort((a, b) => byName(this.data.names[a], this.data.names[b]));
    this.tools.label.append(...used.map((c) => element("option", { value: c }, this.data.names[c])));
  }

  // ---------------------------------------------------------------- which bags, in which order

  matches(i) {
    const row = this.data.rows[i];
    const [id, , truth, [label, second], [probability]] = row;
    const { text, state, label: wanted } = this.tools;
    if (text.value && !this.texts[i].includes(text.value.trim().toLowerCase())) return false;
    if (wanted.value && label !== Number(wanted.value)) return false;
    if (this.pair) {
      const among = [label, second, truth].filter((c) => c !== undefined && c >= 0);
      if (!this.pair.includes(label) || !this.pair.every((c) => among.includes(c))) return false;
    }
    if (state.value === "doubtful") return probability < this.data.doubtful * ONE;
    if (state.value === "sure") return probability >= this.data.sure * ONE;
    if (state.value === "wrong") return truth >= 0 && truth !== label;
    if (state.value === "decided") return this.decisions.of(id) !== undefined;
    if (state.value === "open") return this.decisions.of(id) === undefined;
    return true;
  }

  chosen() {
    const { rows, names } = this.data;
    const found = rows.map((_, i) => i).filter((i) => this.matches(i));
    const text = new Intl.Collator(undefined, { numeric: true }).compare;
    const orders = {
      doubt: null, // as the rows are
      sure: (a, b) => b - a,
      id: (a, b) => text(rows[a][0], rows[b][0]),
      label: (a, b) => text(names[rows[a][3][0]], names[rows[b][3][0]]) || a - b,
      size: (a, b) => rows[b][1] - rows[a][1] || a - b,
    };
    const order = orders[this.tools.order.value];
    return order ? found.sort(order) : found;
  }

  show(page, focus) {
    this.found = this.chosen();
    const pages = Math.max(1, Math.ceil(this.found.length / ON_A_PAGE));
    this.page = Math.min(Math.max(page, 0), pages - 1);
    const first = this.page * ON_A_PAGE;
    const shown = this.found.slice(first, first + ON_A_PAGE);
    this.list.replaceChildren(...shown.map((i) => this.bag(i)));
    this.list.start = first + 1;
    if (!shown.length) this.list.append(element("li", { class: "empty" }, "No bag is like that. “Show all” takes the filters away."));
    this.out("page").textContent = `Page ${this.page + 1} of ${pages.toLocaleString("en")}`;
    this.root.querySelector('[data-action="previous"]').disabled = this.page === 0;
    this.root.querySelector('[data-action="next"]').disabled = this.page === pages - 1;
    this.tell();
    const items = this.list.querySelectorAll(".bag");
    if (items.length) items[0].tabIndex = 0;
    if (focus !== undefined && items.length) this.focus(items[focus < 0 ? items.length - 1 : focus]);
  }

  tell() {
    const first = this.page * ON_A_PAGE;
    const last = Math.min(first + ON_A_PAGE, this.found.length);
    const count = (number) => number.toLocaleString("en");
    const between = this.pair ? ` between ${this.pair.map((c) => this.data.names[c]).join(" and ")}` : "";
    const decided = this.decisions.all().length;
    const kept = this.decisions.kept ? "" : ", not kept by this browser: export them before you leave";
    this.out("status").textContent =
      `Bags ${last ? count(first + 1) : 0} to ${count(last)} of ${count(this.found.length)}${between}. ` +
      `${count(decided)} decided${kept}.`;
    for (const action of ["export", "clear"]) this.root.querySelector(`[data-action="${action}"]`).disabled = !decided;
  }

  // ---------------------------------------------------------------- one bag

  bag(i) {
    const [id, size, truth, ranked, probabilities] = this.data.rows[i];
    const name = (c) => this.data.names[c];
    const probability = probabilities[0] / ONE;
    const level = probability >= this.data.sure ? "sure" : probability < this.data.doubtful ? "doubtful" : "likely";
    const decision = this.decisions.of(id);
    const heading = element("h3", { id: `mipl-bag-${i}` }, "Bag ", nameOf(id));
    const answer = element("p", { class: "answer" }, nameOf(name(ranked[0]), "for-label"), " ",
      element("span", { class: "tag " + level }, `${percent(probability)} · ${level}`));
    if (truth >= 0) {
      const right = truth === ranked[0];
      answer.append(" ", element("span", { class: "tag " + (right ? "right" : "wrong") }, right ? "✓ true" : "✗ true: ", right ? null : nameOf(name(truth))));
    }
    const made = decision === undefined ? null : element("p", { class: "made-up" }, "Decided: ",
      decision === null ? "none of these" : nameOf(decision), " ", this.action("undo", "Undo", `Undo the decision on bag ${id}`));
    const item = element("li", { class: "bag " + level + (decision === undefined ? "" : " is-decided"), tabindex: -1, "data-row": i, "aria-labelledby": heading.id },
      element("div", { class: "found" }, heading, answer, this.choices(i), made),
      this.instances(i, size));
    return item;
  }

  action(name, text, description) {
    return element("button", { type: "button", class: "quiet", "data-action": name, "aria-label": description }, text);
  }

  choices(i) {
    const [id, , , ranked, probabilities] = this.data.rows[i];
    const decision = this.decisions.of(id);
    const group = element("div", { class: "choices", role: "group", "aria-label": `Decide on bag ${id}` });
    probabilities.forEach((value, k) => {
      const label = this.data.names[ranked[k]];
      const bar = element("span", { class: "bar " + (["after", "second"][k] || ""), "aria-hidden": "true" }, element("span"));
      bar.firstChild.style.width = (100 * value) / ONE + "%";
      group.append(element("button", { type: "button", class: "choice", "data-action": "choose", "data-class": ranked[k], "aria-pressed": String(decision === label) },
        nameOf(label, ["for-label", "for-second"][k]), bar, element("span", { class: "value" }, percent(value / ONE))));
    });
    group.append(...this.others(i));
    group.append(element("div", { class: "buttons" },
      element("button", { type: "button", class: "primary", "data-action": "confirm" }, "✓ Confirm ", nameOf(this.data.names[ranked[0]])),
      element("button", { type: "button", class: "quiet", "data-action": "none", "aria-pressed": String(decision === null) }, "None of these")));
    return group;
  }

  // Candidates beyond those with a bar; options are made when somebody reaches for them.
  others(i) {
    const [id, , , ranked, probabilities] = this.data.rows[i];
    const n = this.data.candidates ? ranked.length : this.data.classes;
    if (n <= probabilities.length) return [];
    const menu = element("select", { "aria-label": `Another label for bag ${id}` }, element("option", { value: "" }, `${n - probabilities.length} more …`));
    const fill = () => {
      if (menu.length > 1) return;
      const shown = new Set(ranked.slice(0, probabilities.length));
      const rest = this.data.candidates ? ranked : Array.from({ length: n }, (_, c) => c);
      menu.append(...rest.filter((c) => !shown.has(c)).map((c) => element("option", { value: c }, this.data.names[c])));
    };
    menu.addEventListener("focus", fill);
    menu.addEventListener("pointerdown", fill);
    menu.addEventListener("change", () => menu.value && this.decide(i, this.data.names[menu.value]));
    return [menu];
  }

  instances(i, size) {
    const detail = this.data.details[i];
    if (!detail) return element("p", { class: "undrawn" }, `${size} instance${size === 1 ? "" : "s"}, not drawn in this file.`);
    const [sheet, first, numbers, forLabel, forSecond] = detail;
    const [, , , [label, second = -1]] = this.data.rows[i];
    const strongest = forSecond ? forSecond.indexOf(Math.max(...forSecond)) : -1;
    const competes = strongest >= 0 && forSecond[strongest] >= WORTH_A_MARK;
    const figures = numbers.map((number, k) => {
      const marks = (forLabel && k === 0 ? " best" : "") + (competes && k === strongest ? " best-second" : "");
      const bars = [[forLabel, label, "after"], [forSecond, second, "second"]].filter(([values]) => values).map(([values, c, kind]) => {
        const bar = element("span", { class: "bar " + kind, "aria-hidden": "true" }, element("span"));
        bar.firstChild.style.width = values[k] / 10 + "%";
        return element("span", { class: "evidence", title: `${this.data.names[c]}: ${values[k] / 10} %` },
          bar, element("span", { class: "aside" }, this.data.names[c] + ": "), element("span", { class: "value" }, Math.round(values[k] / 10)));
      });
      return element("figure", { class: "instance" + marks },
        this.drawer.draw(sheet, first + k, label, second, `instance ${number}`),
        element("figcaption", {}, element("span", { class: "number", title: number }, typeof number === "number" ? "#" + number : number), ...bars));
    });
    const more = size - numbers.length;
    const background = this.data.names[label] === this.data.background;
    return element("div", { class: "instances " + this.data.kind },
      background ? element("p", { class: "unframed" }, "No instance shows ", element("bdi", {}, this.data.background), ", the background class: none is framed for it.") : null,
      ...figures,
      more > 0 ? element("p", { class: "more" }, `and ${more.toLocaleString("en")} more`) : null);
  }

  // ---------------------------------------------------------------- what a person does

  decide(i, label) {
    const focused = document.activeElement && document.activeElement.closest(".bag");
    this.decisions.decide(this.data.rows[i][0], label);
    const old = this.list.querySelector(`.bag[data-row="${i}"]`);
    if (old) {
      const fresh = this.bag(i); // the bag stays where it is even if the filter does not fit any more
      fresh.tabIndex = old.tabIndex;
      old.replaceWith(fresh);
      if (focused === old) this.focus(fresh);
    }
    this.tell();
  }

  focus(item) {
    for (const other of this.list.querySelectorAll('.bag[tabindex="0"]')) other.tabIndex = -1;
    item.tabIndex = 0;
    item.focus();
  }

  clicked(event) {
    const button = event.target.closest("[data-action]");
    if (!button) return;
    const item = button.closest(".bag");
    const i = item && Number(item.dataset.row);
    const names = this.data.names;
    const actions = {
      previous: () => this.show(this.page - 1, 0),
      next: () => this.show(this.page + 1, 0),
      reset: () => this.reset(),
      open: () => this.open(Number(button.dataset.row)),
      pair: () => this.between([Number(button.dataset.first), Number(button.dataset.second)]),
      confirm: () => this.decide(i, names[this.data.rows[i][3][0]]),
      choose: () => this.decide(i, button.getAttribute("aria-pressed") === "true" ? undefined : names[button.dataset.class]),
      none: () => this.decide(i, button.getAttribute("aria-pressed") === "true" ? undefined : null),
      undo: () => this.decide(i, undefined),
      export: () => this.export(),
      clear: () => {
        if (window.confirm("Forget all decisions on these bags?")) {
          this.decisions.forgetAll();
          this.show(this.page);
        }
      },
    };
    if (actions[button.dataset.action]) actions[button.dataset.action]();
  }

  pressed(event) {
    const item = event.target.closest(".bag");
    if (!item || event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select")) return;
    const i = Number(item.dataset.row);
    const [, , , ranked, probabilities] = this.data.rows[i];
    const label = (k) => this.data.names[ranked[k]];
    if (event.key === "j") item.nextElementSibling ? this.focus(item.nextElementSibling) : this.turn(1);
    else if (event.key === "k") item.previousElementSibling ? this.focus(item.previousElementSibling) : this.turn(-1);
    else if (event.key === "c") this.decide(i, label(0));
    else if (event.key === "n") this.decide(i, null);
    else if (event.key === "u") this.decide(i, undefined);
    else if (/^[1-9]$/.test(event.key) && probabilities.length >= Number(event.key)) this.decide(i, label(event.key - 1));
    else return;
    event.preventDefault();
  }

  turn(step) {
    const page = this.page + step;
    if (page >= 0 && page * ON_A_PAGE < this.found.length) this.show(page, step > 0 ? 0 : -1);
  }

  reset() {
    this.pair = null;
    for (const tool of Object.values(this.tools)) tool.value = tool.options ? tool.options[0].value : "";
    this.show(0);
  }

  open(i) {
    this.reset();
    this.show(Math.floor(i / ON_A_PAGE), i % ON_A_PAGE);
  }

  between(pair) {
    this.reset();
    this.pair = pair;
    this.show(0, 0);
  }

  export() {
    const address = URL.createObjectURL(new Blob([this.decisions.csv()], { type: "text/csv;charset=utf-8" }));
    const link = element("a", { href: address, download: "decisions.csv" });
    this.root.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  }
}

// ---------------------------------------------------------------- light, dark, or as the system has it

function colours(root) {
  const themes = { "": "as the system has them", light: "light", dark: "dark" };
  const button = root.querySelector('[data-action="theme"]');
  const use = (theme) => {
    root.dataset.theme = theme;
    button.textContent = { "": "◐", light: "☀", dark: "☾" }[theme];
    button.setAttribute("aria-label", "Colours: " + themes[theme]);
    button.title = "Colours: " + themes[theme];
  };
  const kept = storage.read("mipl-theme");
  use(kept in themes ? kept : "");
  button.addEventListener("click", () => {
    const order = Object.keys(themes);
    use(order[(order.indexOf(root.dataset.theme) + 1) % order.length]);
    storage.write("mipl-theme", root.dataset.theme);
  });
}

for (const root of document.querySelectorAll(".mipl-page:not([data-ready])")) {
  root.dataset.ready = "";
  colours(root);
  new BagList(root, JSON.parse(root.querySelector(".mipl-data").textContent));
}
