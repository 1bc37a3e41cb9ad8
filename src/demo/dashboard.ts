import { makeSettings } from '../surfaces/config.ts'
import { createApp } from '../surfaces/http/app.ts'
import { hostCheck } from '../surfaces/http/host-check.ts'
import { HttpServer } from '../surfaces/http/server.ts'
import { TokenBook } from '../surfaces/http/token-book.ts'
import type { Store } from '../store/store.ts'

const HOST = '127.0.0.1'

/** The dashboard on a free port of this machine, for as long as the story goes. */
export async function openDashboard(
  store: Store,
  dataFolder: string,
): Promise<{ url: string; close(): Promise<void> }> {
  const gate = {
    tokens: new TokenBook(null, undefined, () => {}),
    isPrivate: true,
    isKnownHost: hostCheck(HOST, []),
    trustProxy: false,
    readOnly: false,
    path: '/',
  }
  const settings = makeSettings({}, null)
  const app = createApp({
    gate,
    open: async () => store,
    settings: async () => settings,
    dataFolder: async () => dataFolder,
  })
  const server = new HttpServer(app, { host: HOST, port: 0 })
  return { url: await server.start(), close: () => server.stop() }
}
