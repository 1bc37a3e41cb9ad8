import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadPeer } from './optional-peer.ts'

const MISSING = 'no-such-package'

test('a missing peer is reported with the command that installs it', async () => {
  await assert.rejects(
    loadPeer(MISSING, 'E-mail', () => import(MISSING)),
    { code: 'E_USAGE', message: /^E-mail needs .*: npm install no-such-package$/ },
  )
})

test('an error of the peer itself is not taken for a missing peer', async () => {
  const broken = new Error('broken')
  await assert.rejects(
    loadPeer('peer', 'E-mail', () => Promise.reject(broken)),
    broken,
  )
  await assert.rejects(
    loadPeer('peer', 'E-mail', () => import(MISSING)),
    { code: 'ERR_MODULE_NOT_FOUND' },
  )
})

test('an installed peer is returned', async () => {
  const { createTransport } = await loadPeer('nodemailer', 'E-mail', () => import('nodemailer'))
  assert.equal(typeof createTransport, 'function')
})
