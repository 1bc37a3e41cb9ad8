import process from 'node:process'
import { shellWord } from '../../../core/model/shell-command.ts'

/** One word for the shell a person types into. In Windows' names there are no quotes to escape. */
export function shellQuote(text: string, platform: NodeJS.Platform = process.platform): string {
  if (platform !== 'win32') return shellWord(text)
  return /^[\w@+=:,.\\/-]+$/.test(text) ? text : `"${text}"`
}

/** As the value of a name: lower case, digits and hyphens, which units, images and pods all take. */
export function slugify(text: string): string {
  const plain = text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, 40)
    .replaceAll(/^-+|-+$/g, '')
  return plain || 'crawl'
}
