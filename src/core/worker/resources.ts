import type { CrawlDefinition } from './crawl.ts'

/** What `setup` of a crawl returned, for as long as its process works. */
export class CrawlResources {
  readonly #crawl: CrawlDefinition
  #isReady = false
  /** Undefined before `setup`. */
  value: unknown

  constructor(crawl: CrawlDefinition) {
    this.#crawl = crawl
  }

  async setup(signal: AbortSignal): Promise<void> {
    this.value = await this.#crawl.setup({ signal })
    this.#isReady = true
  }

  /** Calls `teardown` and disposes what can be disposed; does nothing if `setup` did not succeed. */
  async release(): Promise<void> {
    if (!this.#isReady) return
    const value = this.value as Partial<AsyncDisposable & Disposable> | null | undefined
    try {
      await this.#crawl.teardown(value)
    } finally {
      if (value?.[Symbol.asyncDispose]) await value[Symbol.asyncDispose]!()
      else value?.[Symbol.dispose]?.()
    }
  }
}
