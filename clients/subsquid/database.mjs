// A database for Subsquid's processor that holds everything in memory and takes back what blocks have done when they are
// replaced.
import assert from 'node:assert/strict'

/** What handlers write to: tables, of which every change is noted for the case that its block is undone. */
class Store {
  constructor(tables, changes) {
    this.tables = tables
    this.changes = changes
  }

  get(table, key) {
    return this.tables[table].get(key)
  }

  set(table, key, value) {
    const rows = this.tables[table]
    const had = rows.has(key)
    const before = rows.get(key)
    this.changes.push(() => (had ? rows.set(key, before) : rows.delete(key)))
    rows.set(key, value)
  }
}

/** Implements HotDatabase of @subsquid/util-internal-processor-tools. */
export class MemoryDatabase {
  supportsHotBlocks = true
  tables
  /** Blocks that were undone. */
  undone = 0
  // The newest final block, and above it those that may be undone, with their changes.
  #final = { height: -1, hash: '0x' }
  #hot = []
  #waiting = []

  constructor(...names) {
    this.tables = Object.fromEntries(names.map((name) => [name, new Map()]))
  }

  get head() {
    return this.#hot.at(-1) ?? this.#final
  }

  async connect() {
    return { ...this.#final, top: this.#hot.map(({ height, hash }) => ({ height, hash })) }
  }

  /** Final blocks, up to nextHead. */
  async transact({ prevHead, nextHead }, write) {
    assert.deepEqual({ height: prevHead.height, hash: prevHead.hash }, this.#final)
    assert(nextHead.height > prevHead.height)
    this.#undoTo(prevHead)
    await write(new Store(this.tables, []))
    this.#final = { height: nextHead.height, hash: nextHead.hash }
    this.#wake()
  }

  /** New blocks over baseHead, of which those up to finalizedHead are final. */
  async transactHot2({ finalizedHead, baseHead, newBlocks }, write) {
    this.#undoTo(baseHead)
    for (const [i, { height, hash }] of newBlocks.entries()) {
      assert.equal(height, this.head.height + 1)
      const changes = []
      await write(new Store(this.tables, changes), i, i + 1)
      this.#hot.push({ height, hash, changes })
    }
    while (this.#hot.length > 0 && this.#hot[0].height <= finalizedHead.height) {
      const { height, hash } = this.#hot.shift()
      this.#final = { height, hash }
    }
    assert.deepEqual({ height: finalizedHead.height, hash: finalizedHead.hash }, this.#final)
    this.#wake()
  }

  #undoTo(base) {
    while (this.#hot.length > 0 && this.head.hash !== base.hash) {
      this.#hot.pop().changes.reverse().forEach((undo) => undo())
      this.undone++
    }
    assert.equal(this.head.hash, base.hash, `block ${base.height} is not part of the chain`)
  }

  /** Resolves once a block is the head. */
  reached(hash) {
    if (this.head.hash === hash) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.push({ hash, resolve }))
  }

  #wake() {
    this.#waiting = this.#waiting.filter(({ hash, resolve }) => this.head.hash !== hash || resolve())
  }
}
