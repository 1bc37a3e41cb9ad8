import assert from 'node:assert/strict'
import { test } from 'node:test'
import { COMMANDS, resolveCommand } from './commands.ts'
import type { CommandEntry } from '../../contracts/command.ts'
import type { Option } from '../../contracts/options.ts'

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

test('a flag has one meaning: one description, one value and one short form in all commands', async () => {
  const meanings = new Map<string, Map<string, string[]>>()
  for (const entry of leaves(COMMANDS)) {
    for (const [name, flag] of Object.entries<Option<unknown>>(
      (await entry.load()).command.options ?? {},
    )) {
      // With several values the description is in the plural.
      const key = `${flag.negated ? 'no-' : ''}${name}${flag.many ? ' (several)' : ''}`
      const value = flag.choices ? 'choice' : flag.value
      const meaning = JSON.stringify([flag.description, value, flag.short ?? null])
      const known = meanings.get(key) ?? new Map<string, string[]>()
      meanings.set(key, known.set(meaning, [...(known.get(meaning) ?? []), entry.name]))
    }
  }
  const several = [...meanings].filter(([, known]) => known.size > 1)
  assert.deepEqual(Object.fromEntries(several), {})
  // The help appends the default to the description.
  for (const meaning of [...meanings.values()].flatMap((known) => [...known.keys()]))
    assert.doesNotMatch(meaning, /default:/)
})

test('a meaning has one flag: no description is used twice', async () => {
  const names = new Map<string, Set<string>>()
  for (const entry of leaves(COMMANDS)) {
    for (const [name, { description }] of Object.entries<Option<unknown>>(
      (await entry.load()).command.options ?? {},
    ))
      names.set(description, (names.get(description) ?? new Set()).add(name))
  }
  const doubles = [...names].filter(([, known]) => known.size > 1)
  assert.deepEqual(doubles, [])
})

test('every command that an operator changes something with takes --yes', async () => {
  for (const entry of leaves(COMMANDS)) {
    const { options = {} } = (await entry.load()).command
    if ('because' in options || entry.name === 'enqueue') assert.ok('yes' in options, entry.name)
  }
})
