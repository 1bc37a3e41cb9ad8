import assert from 'node:assert/strict'
import type { Json, Project } from './project.ts'

/** Commands that change nothing. Of the others a dry run shows that they are accepted. */
const READS = ['doctor', 'explain', 'history', 'show', 'workers']

/** What a dry run has found: that for which it is named. */
const COUNT_OF: Readonly<Record<string, (data: Json) => number>> = {
  recover: ({ count }) => count,
  clean: ({ count, runs }) => count ?? runs.length,
  unpark: ({ items, count }) => items?.length ?? count,
}

/** Asserts that the command named for something that needs attention is accepted, and is about that. */
export async function assertAccepted(project: Project, item: Json): Promise<void> {
  const { command, source } = item
  const [program, verb, ...args] = command.split(' ')
  assert.equal(program, 'unstuck', command)
  if (verb === 'run' || verb === 'work') {
    // It would start: nothing is in the way.
    const { data } = await project.cli('check', source)
    assert.notEqual(data.action, 'wait', `${command}: ${data.because}`)
    return
  }
  // It prints lines.
  if (verb === 'logs') return assert.notEqual(await project.text(verb, ...args), '', command)
  const rest = READS.includes(verb) ? args : [...args.filter(isNotYes), '--dry-run']
  const { code, data } = await project.cli(verb, ...rest)
  assert.ok(
    [0, 3].includes(code) || verb === 'doctor',
    `${command}: ${code} ${JSON.stringify(data)}`,
  )
  const count = COUNT_OF[verb]
  if (count) assert.ok(count(data) > 0, `${command} finds nothing: ${JSON.stringify(data)}`)
}

const isNotYes = (arg: string): boolean => arg !== '--yes'
