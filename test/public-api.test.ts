import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { formatPublicApi, PINNED_API, readPublicApi } from '../src/testing/public-api.ts'

const api = readPublicApi()

test('the exports and their declared types are those of public-api.txt', () => {
  const pinned = readFileSync(PINNED_API, 'utf8')
  const update = 'A deliberate change of the public API: run `npm run api` and commit the result.'
  assert.equal(formatPublicApi(api), pinned, update)
})

test('every type in an exported declaration is exported too', () => {
  assert.deepEqual(api.unexported, [])
})

/** References, types whose comment describes their one field, and events: the source has a comment for each. */
const DESCRIBED_AS_A_WHOLE = [
  'NewTarget',
  'RunRef',
  'SchemaResult',
  'SourceRef',
  'TargetRef',
  'UnstuckEvent',
]

test('every export and every member of it has a doc comment', () => {
  const missing = [...api.byEntryPoint].flatMap(([entry, declarations]) =>
    declarations.flatMap(({ name, text }) => [
      ...(text.startsWith('/**') ? [] : [`${entry}: ${name}`]),
      ...(DESCRIBED_AS_A_WHOLE.includes(name) ? [] : undocumentedMembers(text)).map(
        (member) => `${entry}: ${name}.${member}`,
      ),
    ]),
  )
  assert.deepEqual(missing, [])
})

test('every option with a default names it', () => {
  const options = [...api.byEntryPoint.values()]
    .flat()
    .filter(({ name }) => /Options$|^Config$/.test(name))
  assert.ok(options.length > 20)
  const missing = options.flatMap(({ name, text }) =>
    [...text.matchAll(/(\/\*\*(?:(?!\*\/)[^])*\*\/)\n {4}(\w+)\?[:(]/g)]
      .filter(([, comment]) => !comment!.includes('@default'))
      .map(([, , member]) => `${name}.${member}`),
  )
  assert.deepEqual(missing, [])
})

/** Members of a class, an interface, an object, or of the objects of a union. */
function undocumentedMembers(text: string): string[] {
  const lines = text.split('\n')
  return lines.flatMap((line, n) => {
    const member = /^ {4}(?:static |readonly |get )*(\[?[\w.]+\]?)(?:<.*>)?\??[:(]/.exec(line)?.[1]
    return member !== undefined && !lines[n - 1]!.endsWith('*/') ? [member] : []
  })
}
