import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../core/model/id.ts'
import { plainText } from '../lib/text/sentence.ts'
import { auditSentence, auditSubject } from './history.ts'

test('an entry about a row that is a run names the row, not the run and target that stand for it', () => {
  const entry = {
    id: 1,
    at: 0,
    actor: 'ada',
    action: 'resume',
    because: 'its process has ended',
    source: 'rome',
    run: newId(),
    target: newId(),
    key: null,
    evidence: null,
    before: { status: 'in_progress', table: 'crawl_jobs', key: '3', kind: 'runs' },
    after: { status: 'planned' },
  }
  assert.equal(
    plainText(auditSentence(entry, 0, auditSubject(entry))),
    '- now: resume run crawl_jobs:3 of rome, by ada: its process has ended.',
  )
})
