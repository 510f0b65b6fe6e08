// The points of one curve, as many as fit: a page that stays open for days must not grow.

/** How many of the latest points are kept as they came. */
export const RECENT = 5000;
/** How many of those before them are kept, evenly thinned. */
export const OLDER = 2500;

/** Points in ascending order of x. Memory: at most RECENT + OLDER of them. */
export class Series {
  #recent = { x: [], y: [] };
  #older = { x: [], y: [] };
  #stride = 1; // one in so many of the older points is kept
  #passed = 0; // how many have left the recent ones

  get length() {
    return this.#older.x.length + this.#recent.x.length;
  }

  /** The last value; undefined before the first. */
  get last() {
    return this.#recent.y.at(-1) ?? this.#older.y.at(-1);
  }

  /** Both coordinates as uPlot takes them: [[x, ...], [y, ...]]. */
  get points() {
    return [this.#older.x.concat(this.#recent.x), this.#older.y.concat(this.#recent.y)];
  }

  /** Add a point. What stood at its x or beyond goes: a run that went back to a checkpoint was never there. */
  add(x, y) {
    for (const part of [this.#recent, this.#older]) {
      while (part.x.at(-1) >= x) part.x.pop(), part.y.pop();
    }
    this.#recent.x.push(x);
    this.#recent.y.push(y);
    if (this.#recent.x.length > RECENT) this.#age(this.#recent.x.shift(), this.#recent.y.shift());
  }

  #age(x, y) {
    if (this.#passed++ % this.#stride !== 0) return;
    this.#older.x.push(x);
    this.#older.y.push(y);
    if (this.#older.x.length <= OLDER) return;
    this.#older.x = this.#older.x.filter(even);
    this.#older.y = this.#older.y.filter(even);
    this.#stride *= 2;
  }
}

const even = (_, place) => place % 2 === 0;
