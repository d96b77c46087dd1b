// What a person decided: kept in this browser for these data, exported as CSV.

const storage = {
  // A page inside another one, or a private window, may have no storage: then decisions last as long as the page.
  read(key) {
    try {
      return window.localStorage.getItem(key);
    } catch {
      return null;
    }
  },
  write(key, value) {
    try {
      window.localStorage.setItem(key, value);
      return true;
    } catch {
      return false;
    }
  },
};

class Decisions {
  // `taken`: pairs of a bag and its label that the page came with, null for none of these.
  constructor(key, taken, none) {
    this.key = "mipl-decisions-" + key;
    this.none = none;
    this.taken = new Map(taken);
    this.kept = true;
    this.made = new Map(); // undefined: an earlier decision was taken back
    try {
      this.made = new Map(JSON.parse(storage.read(this.key) || "[]").map(([bag, label]) => [bag, label.undone ? undefined : label.is]));
    } catch {
      // Something else wrote under this key; begin anew.
    }
  }

  // The label, null for none of these, undefined where nothing is decided.
  of(bag) {
    return this.made.has(bag) ? this.made.get(bag) : this.taken.get(bag);
  }

  decide(bag, label) {
    this.made.set(bag, label);
    this.save();
  }

  forgetAll() {
    for (const [bag] of this.all()) this.made.set(bag, undefined);
    this.save();
  }

  save() {
    const pairs = [...this.made].map(([bag, label]) => [bag, label === undefined ? { undone: true } : { is: label }]);
    this.kept = storage.write(this.key, JSON.stringify(pairs));
  }

  all() {
    const every = new Map([...this.taken, ...this.made]);
    return [...every].filter(([, label]) => label !== undefined);
  }

  csv() {
    // What a spreadsheet runs, as in mipl.io.tables; mipl.io.decisions takes the apostrophe off again.
    const formula = /^(?:'|[\t\r\n]|[\s\x1c-\x1f\x85]*[=+\-@\uff1d\uff0b\uff0d\uff20])/;
    const cell = (text, guard) => {
      const escaped = guard || text === "" || formula.test(text) ? "'" + text : text;
      return /[",;\n\r\t']/.test(escaped) ? '"' + escaped.replaceAll('"', '""') + '"' : escaped;
    };
    const lines = this.all().map(([bag, label]) =>
      cell(bag) + "," + (label === null ? this.none : cell(label, label === this.none)));
    return "\ufeff" + ["bag_id,decision", ...lines].join("\r\n") + "\r\n";
  }
}
