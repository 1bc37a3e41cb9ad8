import { spawnSync } from 'node:child_process'
import { delimiter, join } from 'node:path'
import process from 'node:process'

/** Returns a Node that is too old: any in PATH, or where systems keep theirs. */
export function findOldNode(): string | null {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/bin', '/usr/local/bin']
  for (const folder of new Set(folders)) {
    const node = join(folder, 'node')
    const { stdout } = spawnSync(node, ['--version'], { encoding: 'utf8' })
    if (stdout && !isSupported(stdout.trim().slice(1))) return node
  }
  return null
}

export function isSupported(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > 24 || (major === 24 && minor >= 15)
}
