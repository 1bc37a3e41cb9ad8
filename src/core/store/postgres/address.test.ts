import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withConnections } from '../../../lib/files/database-address.ts'
import { UsageError } from '../../model/errors.ts'
import { parseAddress, withDatabase } from './address.ts'

const LOGIN = 'me:secret%2C@'

for (const [hosts, where] of [
  ['one', 'one:5432'],
  ['one:6000', 'one:6000'],
  ['one,two', 'one:5432,two:5432'],
  ['one:6000,two:6001,three', 'one:6000,two:6001,three:5432'],
  ['[::1]:6000,[2001:db8::1]', '[::1]:6000,[2001:db8::1]:5432'],
  ['10.0.0.1,two:6001', '10.0.0.1:5432,two:6001'],
] as const) {
  test(`the hosts of ${hosts} are ${where}, each with the login, database and parameters`, () => {
    const parameters = 'target_session_attrs=read-write&connection_limit=7'
    const address = parseAddress(`postgres://${LOGIN}${hosts}/shop?${parameters}`)

    assert.equal(address.where, `postgres://${where}/shop`)
    assert.equal(address.connections, 7)
    const names = where.split(',')
    assert.deepEqual(
      address.hosts.map(({ name }) => name),
      names,
    )
    for (const { config } of address.hosts) {
      assert.match(config.connectionString!, /^postgres:\/\/me:secret%2C@[^,]+\/shop\?target/)
    }
  })
}

test('an address that cannot be read is explained without its password', () => {
  for (const [address, because] of [
    ['postgres://me:hunter2@one,,two/shop', /a comma without a host/],
    ['postgres://me:hunter2@one,two:port/shop', /cannot be read/],
    ['postgres://me:hunter2@one,two/shop?target_session_attrs=standby', /read-write or primary/],
    ['postgres://me:hunter2@one/shop?connection_limit=0', /whole number from 1 to 1000/],
    ['postgres://me:hunter2@one/shop?connection_limit=', /whole number from 1 to 1000/],
  ] as const) {
    assert.throws(
      () => parseAddress(address),
      (error) => {
        assert.ok(error instanceof UsageError)
        assert.match(error.message, because)
        assert.doesNotMatch(error.message, /hunter2/)
        return true
      },
    )
  }
})

test('another database on the same servers keeps login, hosts and parameters', () => {
  for (const [address, other] of [
    ['postgres://me@one,two:1/shop?sslmode=require', 'postgres://me@one,two:1/x?sslmode=require'],
    ['postgresql://one', 'postgresql://one/x'],
    ['postgres:///shop?host=/run/postgresql', 'postgres:///x?host=/run/postgresql'],
  ] as const) {
    assert.equal(withDatabase(address, 'x'), other)
  }
})

test('a number of connections is added to an address of PostgreSQL that names none', () => {
  assert.equal(withConnections('postgres://h/x', 4), 'postgres://h/x?connection_limit=4')
  assert.equal(withConnections('postgres://h/x?a=b', 4), 'postgres://h/x?a=b&connection_limit=4')
  assert.equal(
    withConnections('postgres://h/x?connection_limit=9', 4),
    'postgres://h/x?connection_limit=9',
  )
  assert.equal(withConnections('sqlite:x.db', 4), 'sqlite:x.db')
  assert.equal(withConnections('postgres://h/x', undefined), 'postgres://h/x')
})
