import assert from 'node:assert/strict'
import { appendFileSync, renameSync, writeFileSync } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../../testing/sqlite-engine.ts'
import { followFile } from './follow-file.ts'

/** Calls `then` right after the first read that found the end of the file. */
function afterFirstEnd(file: FileHandle, then: () => void): FileHandle {
  const read = file.read.bind(file) as (...args: unknown[]) => Promise<{ bytesRead: number }>
  let isDone = false
  const patched = async (...args: unknown[]): Promise<{ bytesRead: number }> => {
    const result = await read(...args)
    if (result.bytesRead === 0 && !isDone) {
      isDone = true
      then()
    }
    return result
  }
  return Object.assign(file, { read: patched })
}

test('lines that are written between the last read and a rotation are read', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'a.log')
  writeFileSync(path, 'one\n')
  const file = afterFirstEnd(await open(path), () => {
    appendFileSync(path, 'two\n')
    renameSync(path, `${path}.1`)
    writeFileSync(path, 'three\n')
  })
  let text = ''
  const enough = new AbortController().signal
  for await (const chunk of followFile(path, file, 0, {
    signal: enough,
    isFinished: async () => true,
  })) {
    text += chunk.toString()
  }
  assert.deepEqual(text.split(/\n+/), ['one', 'two', 'three', ''])
})
