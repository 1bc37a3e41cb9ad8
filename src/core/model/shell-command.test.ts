import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import fc from 'fast-check'
import { HOSTILE_TEXTS } from '../../testing/hostile-text.ts'
import { runCommand, shellWord, unstuckCommand } from './shell-command.ts'

/** The arguments that a real shell makes of each command, without its first word. */
function parsed(commands: readonly string[]): string[][] {
  const script = ['unstuck() { printf "%s\\0" "$#" "$@"; }', ...commands].join('\n')
  const words = execFileSync('sh', ['-c', script], { encoding: 'utf8' }).split('\0')
  return commands.map(() => {
    const count = Number(words.shift())
    return words.splice(0, count)
  })
}

const HARD = [
  ...HOSTILE_TEXTS,
  '',
  "a'b; touch x",
  '-rf',
  '--yes',
  '$(id)',
  '`id`',
  '=ls',
  '~root',
  '!!',
  '\\',
  'a\nb',
  'a\n\n',
  '\n',
  '%s%%\\n',
  '\u001b[201~;id\n',
  '\u202eabc',
  'é 漢字 👩‍👧',
].filter((text) => !text.includes('\0') && text.isWellFormed())

test('S41 a shown command parses back to exactly its arguments, in a real shell', () => {
  const commands = HARD.flatMap((text) => [
    unstuckCommand('logs', [text, 'b']),
    unstuckCommand('recover', [], { yes: true, group: [text, 'b'] }),
    runCommand('feed', ['sh', '-c', text]),
  ])
  const wanted = HARD.flatMap((text) => [
    ['logs', ...(text.startsWith('-') ? ['--'] : []), text, 'b'],
    ['recover', '--yes', `--group=${text}`, '--group=b'],
    ['run', 'feed', '--', 'sh', '-c', text],
  ])
  assert.deepEqual(parsed(commands), wanted)
})

test('S41 any text is one word to a real shell', () => {
  const text = fc.string({ unit: 'binary' })
  const fit = text.filter((one) => !one.includes('\0') && one.isWellFormed())
  const words = fc.array(fit, { minLength: 1 })
  fc.assert(
    fc.property(words, (texts) => {
      assert.deepEqual(parsed([unstuckCommand('x', [...texts])])[0]!.slice(-texts.length), texts)
    }),
    { numRuns: 30 },
  )
})

test('S41 nothing in a shown command acts on the terminal that it is pasted into', () => {
  for (const text of HARD) {
    // A line feed at the very end cannot be had from printf; within quotes it is harmless.
    assert.doesNotMatch(shellWord(text.trimEnd()), /[\p{Cc}\p{Cf}]/u)
  }
})

test('what begins with a dash stays an argument, and flags without a value are left out', () => {
  assert.equal(unstuckCommand('logs', ['-f'], { lines: 5 }), 'unstuck logs --lines=5 -- -f')
  assert.equal(runCommand('-f', ['ls']), 'unstuck run -- -f ls')
  assert.equal(
    unstuckCommand('clean', ['4f2a91bc'], { yes: true, age: undefined, delete: false }),
    'unstuck clean 4f2a91bc --yes',
  )
  assert.equal(
    unstuckCommand('reset-failed', [], { maxAttempts: 0, group: [] }),
    'unstuck reset-failed --max-attempts=0',
  )
})
