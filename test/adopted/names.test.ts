import assert from 'node:assert/strict'
import { createServer, type AddressInfo } from 'node:net'
import { test } from 'node:test'
import { open } from '../../src/index.ts'
import { hostileNames } from '../../src/testing/hostile-names.ts'
import { isLong } from '../../src/testing/long-tests.ts'

test('S11 of many hostile names of tables and columns none gets as far as a connection', async () => {
  let connections = 0
  const server = createServer((socket) => {
    connections++
    socket.destroy()
  }).listen(0, '127.0.0.1')
  try {
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as AddressInfo
    const db = `postgres://user@127.0.0.1:${port}/app`
    const places = ['table', 'id', 'status', 'error'] as const
    for (const [at, name] of hostileNames(isLong ? 10_000 : 2_000).entries()) {
      const place = places[at % places.length]!
      const columns = { id: 'id', status: 'status', error: 'error', [place]: name }
      const { table: _, ...mapped } = columns as Record<string, string>
      const runs = {
        table: place === 'table' ? name : 'runs',
        columns: mapped as typeof columns,
        statuses: { active: 'running' },
      }
      await assert.rejects(open({ db, config: { adopted: { runs } } }), {
        code: 'E_USAGE',
        message: new RegExp(`adopted\\.runs\\.(columns\\.)?${place} must be a name`),
      })
    }
    assert.equal(connections, 0)
    const honest = { table: 'runs', columns: { id: 'id', status: 's' }, statuses: { active: 'a' } }
    await assert.rejects(open({ db, config: { adopted: { runs: honest } } }), {
      code: 'E_DB_UNREACHABLE',
    })
    assert.ok(connections > 0, 'an honest one does')
  } finally {
    server.close()
  }
})
