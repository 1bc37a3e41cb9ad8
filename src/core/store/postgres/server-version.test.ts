import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UnusableStoreError } from '../../model/errors.ts'
import { refuseOldServer } from './server-version.ts'

test('PostgreSQL older than 14 is refused by name, compatible engines are not', () => {
  const refuse = (number: number, text: string) => () =>
    refuseOldServer({ version_number: number, version_text: text })
  refuse(140_000, 'PostgreSQL 14.0 (Debian 14.0-1) on x86_64-pc-linux-gnu')()
  refuse(180_004, 'PostgreSQL 18.4 on x86_64-pc-linux-gnu')()
  refuse(130_000, 'CockroachDB CCL v25.2.1 (x86_64-pc-linux-gnu)')()
  assert.throws(
    refuse(130_023, 'PostgreSQL 13.23 on x86_64-pc-linux-gnu'),
    (error: unknown) =>
      error instanceof UnusableStoreError &&
      /PostgreSQL 13\.23, and 14 or newer/.test(error.message),
  )
})
