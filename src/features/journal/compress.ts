import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream, existsSync } from 'node:fs'
import { open, rename, stat, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import process from 'node:process'
import { pipeline } from 'node:stream/promises'
import { createZstdCompress, createZstdDecompress } from 'node:zlib'
import { UsageError } from '../../core/model/errors.ts'

export type Compressed = { readonly path: string; readonly before: number; readonly after: number }

/**
 * Replaces a journal by its compressed form. The original goes last: after the new file was read back, found
 * equal, and is on the disk. Interrupted anywhere and called again, it finishes what it began.
 */
export async function compressJournal(file: string): Promise<Compressed> {
  const path = `${file}.zst`
  const original = await stat(file)
  const digest = await digestOf(createReadStream(file))
  if (!existsSync(path)) await compress(file, path)
  if ((await digestOf(createReadStream(path).pipe(createZstdDecompress()))) !== digest) {
    throw new UsageError(
      `${path} is there already and holds something else. Move it away first; ${file} was kept.`,
    )
  }
  const now = await stat(file)
  if (now.size !== original.size || now.mtimeMs !== original.mtimeMs) {
    await unlink(path)
    throw new UsageError(
      `${file} was written to meanwhile: its worker lives. It was kept as it is.`,
    )
  }
  await unlink(file)
  return { path, before: original.size, after: (await stat(path)).size }
}

/** Renames the finished file, so that no reader sees a part of it. */
async function compress(file: string, path: string): Promise<void> {
  const partial = `${path}.${process.pid}.part`
  try {
    await pipeline(
      createReadStream(file),
      createZstdCompress(),
      createWriteStream(partial, { flags: 'wx', mode: 0o600, flush: true }),
    )
    await rename(partial, path)
  } catch (error) {
    await unlink(partial).catch(() => {})
    throw error
  }
  await using folder = await open(dirname(path))
  await folder.sync()
}

async function digestOf(content: AsyncIterable<Buffer>): Promise<string | null> {
  const hash = createHash('sha256')
  try {
    for await (const chunk of content) hash.update(chunk)
  } catch {
    return null
  }
  return hash.digest('hex')
}
