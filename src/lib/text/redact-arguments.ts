import { MASK, redact, SECRET_FLAG } from '../../core/model/redact.ts'

/** The arguments of a command without secrets: also where name and value are two arguments, or `-pVALUE` is one. */
export function redactArguments(command: readonly string[]): string[] {
  const program = command[0]?.split(/[\\/]/).at(-1) ?? ''
  return command.map((part, n) => {
    const before = command[n - 1] ?? ''
    if (SECRET_FLAG.test(before) && !part.startsWith('-')) return MASK
    if (n > 0 && P_IS_PASSWORD.test(program)) {
      if (before === '-p' && program === 'sshpass') return MASK
      if (/^-p./.test(part)) return `-p${MASK}`
    }
    if (/^(-u|--user)$/.test(before) && part.includes(':')) return MASK
    return redact(part)
  })
}

const P_IS_PASSWORD = /^(mysql\w*|mariadb[\w-]*|sshpass)$/
