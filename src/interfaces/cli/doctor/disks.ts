import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { messageOf } from '../../../core/model/errors.ts'
import { dataFolderPath } from '../../../lib/files/data-folder.ts'
import type { Volume } from './storage.ts'

/** Returns the disks of the database and the journals, each once. */
export function volumesOf(address: string | null, cwd: string): Volume[] {
  const volumes = new Map<number, Volume>()
  for (const { holds, folder } of foldersOf(address, cwd)) {
    const there = nearestFolder(folder)
    const { dev } = statSync(there)
    const before = volumes.get(dev)
    const { bavail, bsize, blocks } = statfsSync(there)
    const space = { free: bavail * bsize, total: blocks * bsize }
    const both = before ? `${before.holds} and ${holds}` : holds
    volumes.set(dev, { holds: both, folder: before?.folder ?? there, ...space })
  }
  return [...volumes.values()]
}

function foldersOf(address: string | null, cwd: string): { holds: string; folder: string }[] {
  const folder = dataFolderPath(address ?? '', cwd)
  const journals = { holds: 'the journals', folder: join(folder, 'journal') }
  return address?.startsWith('sqlite:') ? [{ holds: 'the database', folder }, journals] : [journals]
}

/** Returns why no file can be created at a path, or null. */
export function obstacleTo(path: string): string | null {
  const folder = nearestFolder(dirname(resolve(path)))
  try {
    if (!statSync(folder).isDirectory()) return `${folder} is not a folder`
    accessSync(folder, constants.W_OK)
    return null
  } catch (error) {
    return messageOf(error)
  }
}

/** Returns the folder, or the nearest one above it that exists. */
function nearestFolder(folder: string): string {
  let there = folder
  while (!existsSync(there) && there !== dirname(there)) there = dirname(there)
  return there
}
