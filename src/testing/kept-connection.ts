import pg from 'pg'

type Row = Record<string, unknown>
/** The declared types leave these two out. */
type Client = pg.Client & { ref(): void; unref(): void }

/** Statements on one connection that is kept. It does not keep the process alive, and is replaced when it is lost. */
export class KeptConnection {
  readonly #url: string
  #idle: Client | null = null

  constructor(url: string) {
    this.#url = url
  }

  /** While another statement runs, this one gets a connection of its own. */
  async query(text: string): Promise<Row[]> {
    const kept = this.#idle
    this.#idle = null
    if (!kept) return this.#run(await this.#connect(), text)
    kept.ref()
    try {
      return await this.#run(kept, text)
    } catch (error) {
      if (!isDisconnect(error)) throw error
      return this.#run(await this.#connect(), text)
    }
  }

  async close(): Promise<void> {
    const client = this.#idle
    this.#idle = null
    await client?.end()
  }

  async #connect(): Promise<Client> {
    const client = new pg.Client({ connectionString: this.#url }) as Client
    client.on('error', () => {
      if (this.#idle === client) this.#idle = null
    })
    await client.connect()
    return client
  }

  async #run(client: Client, text: string): Promise<Row[]> {
    try {
      const { rows } = await client.query<Row>(text)
      if (this.#idle) {
        await client.end()
      } else {
        client.unref()
        this.#idle = client
      }
      return rows ?? []
    } catch (error) {
      // It may be inside a transaction.
      await client.end().catch(() => {})
      throw error
    }
  }
}

/** The server ended the session before this statement. */
function isDisconnect(error: unknown): boolean {
  const { code, message } = error as Error & { code?: string }
  return code === '57P01' || code === 'ECONNRESET' || message.startsWith('Connection terminated')
}
