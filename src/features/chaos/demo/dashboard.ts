import { makeSettings } from '../../../app/config.ts'
import { createApp } from '../../../interfaces/http/app.ts'
import { makeHostCheck } from '../../../lib/http/host-check.ts'
import { HttpServer } from '../../../interfaces/http/server.ts'
import { TokenFile } from '../../../app/token-file.ts'
import type { Store } from '../../../core/store/store.ts'

const HOST = '127.0.0.1'

/** The dashboard on a free port of this machine, for as long as the story goes. */
export async function openDashboard(
  store: Store,
  dataFolder: string,
): Promise<{ url: string; close(): Promise<void> }> {
  const gate = {
    tokens: new TokenFile(null, undefined, () => {}),
    isPrivate: true,
    isKnownHost: makeHostCheck(HOST, []),
    trustProxy: false,
    readOnly: false,
    path: '/',
  }
  const settings = makeSettings({}, null)
  const app = createApp({
    auth: gate,
    open: async () => store,
    settings: async () => settings,
    dataFolder: async () => dataFolder,
  })
  const server = new HttpServer(app, { host: HOST, port: 0 })
  return { url: await server.start(), close: () => server.stop() }
}
