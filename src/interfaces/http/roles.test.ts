import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../core/model/id.ts'
import { createHttpTestContext, type HttpTestContext } from '../../testing/http-test-context.ts'
import { ROLES, type Role } from '../../lib/http/role.ts'
import type { Route } from '../../contracts/route.ts'
import { ALL_ROUTES } from '../../testing/all-routes.ts'

/** A call of the route about something that is not there: it gets as far as its handler, and changes nothing. */
async function statusOf(ctx: HttpTestContext, { method, path }: Route, as?: Role): Promise<number> {
  const about = path.replace(/:(\w+)/g, (_, name: string) =>
    name === 'run' || name === 'target' ? newId() : 'nothing',
  )
  const left = new AbortController()
  const response = await fetch(`${ctx.url}${about}`, {
    method,
    signal: left.signal,
    headers: {
      ...(as && { authorization: `Bearer ${ctx.tokens[as]}` }),
      ...(method !== 'GET' && { 'content-type': 'application/json' }),
    },
    ...(method !== 'GET' && { body: '{"dryRun":true}' }),
  })
  left.abort()
  return response.status
}

test('every call of the table is closed without a token, and open to its role and those above', async () => {
  await using ctx = await createHttpTestContext()
  assert.ok(ALL_ROUTES.length > 0)
  for (const route of ALL_ROUTES) {
    const call = `${route.method} ${route.path}`
    assert.equal(await statusOf(ctx, route), 401, `${call} without a token`)
    for (const role of ROLES) {
      const status = await statusOf(ctx, route, role)
      const isEnough = ROLES.indexOf(role) >= ROLES.indexOf(route.role)
      if (isEnough) assert.ok(![401, 403, 500].includes(status), `${call} as ${role}: ${status}`)
      else assert.equal(status, 403, `${call} as ${role}`)
    }
  }
})

test('everything that changes something needs more than a viewer, and is refused read-only', async () => {
  const changes = ALL_ROUTES.filter(({ method }) => method !== 'GET')
  assert.deepEqual(
    changes.filter(({ role }) => role === 'viewer').map(({ path }) => path),
    [],
  )
  await using ctx = await createHttpTestContext({ auth: { readOnly: true } })
  for (const route of changes) {
    assert.equal(await statusOf(ctx, route, 'admin'), 403, `${route.method} ${route.path}`)
  }
})

test('no call is in the table twice', () => {
  const calls = ALL_ROUTES.map(({ method, path }) => `${method} ${path}`)
  assert.deepEqual(calls, [...new Set(calls)])
})
