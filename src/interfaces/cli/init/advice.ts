import { basename, extname } from 'node:path'
import process from 'node:process'
import { nearestPackage } from '../package-type.ts'
import type { Project } from './detect.ts'
import type { SupervisorName } from './supervisors.ts'

/** What is missing for the files to work, in a sentence, with the commands that mend it. */
export type Advice = { readonly note: string; readonly commands: readonly string[] }

const SET_TYPE = 'npm pkg set type=module'

export function adviceFor(project: Project, wanted: readonly SupervisorName[]): Advice[] {
  return [packageAdvice(project), installAdvice(project), windowsAdvice(wanted)].filter(
    (advice) => advice !== null,
  )
}

/** Node reads a .ts file as a module or not by the nearest package.json. It is the user's, so only they change it. */
function packageAdvice({ facts: { folder, module } }: Project): Advice | null {
  if (/\.m[jt]s$/.test(module)) return null
  const found = nearestPackage(folder)
  if (found === null) {
    return {
      note: `There is no package.json. ${module} needs one with "type": "module".`,
      commands: ['npm init -y', SET_TYPE],
    }
  }
  if (found.isModule) return null
  const other = `${basename(module, extname(module))}.mts`
  return {
    note: `${found.path} has no "type": "module", which ${module} needs. If other code there is CommonJS, name this file ${other} instead.`,
    commands: [SET_TYPE],
  }
}

function installAdvice({ facts: { module }, installed }: Project): Advice | null {
  if (installed) return null
  const note = `unstuck is not installed in this folder, and ${module} imports it. Install it here first, as its README says.`
  return { note, commands: [] }
}

function windowsAdvice(wanted: readonly SupervisorName[]): Advice | null {
  if (!wanted.includes('windows') || process.platform === 'win32') return null
  const note =
    'The file for Windows holds the paths and the user of this machine. Make it on the machine where it is to run.'
  return { note, commands: [] }
}
