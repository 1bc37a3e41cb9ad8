import assert from 'node:assert/strict'
import { test } from 'node:test'
import { COMMANDS, resolveCommand } from './commands.ts'
import type { CommandEntry } from '../../contracts/command.ts'

type Leaf = Extract<CommandEntry, { load: unknown }>

function leaves(entries: readonly CommandEntry[]): Leaf[] {
  return entries.flatMap((entry) => ('load' in entry ? [entry] : leaves(entry.commands)))
}

for (const entry of leaves(COMMANDS)) {
  test(`${entry.name} has a summary that fits into a line, and examples`, async () => {
    assert.ok(entry.summary.length <= 90, entry.summary)
    const { examples } = (await entry.load()).command
    assert.ok(examples.length > 0 && examples.every((example) => example.startsWith('unstuck ')))
  })
}

test('the command is found in arguments with mistakes', () => {
  assert.deepEqual(resolveCommand(['--db', 'x', 'journal', 'read', '--typ']), ['journal', 'read'])
  assert.deepEqual(resolveCommand(['statsu']), [])
})
