import { linkable, safe } from '../model/safe.ts'
import { Icon } from './icon.tsx'

/**
 * Text that came from outside (a key, a url, an error, a name): kept apart from the direction of the text around it,
 * control characters made visible, and wrapped or, with `clip`, cut to one line. The whole is in the title then.
 */
export function Text({ value, clip, mono }: { value: string; clip?: boolean; mono?: boolean }) {
  const shown = safe(value)
  const kinds = ['text', clip && 'text-clip', mono && 'mono'].filter(Boolean).join(' ')
  return (
    <bdi class={kinds} title={clip ? shown : undefined}>
      {shown}
    </bdi>
  )
}

/** An address from outside: a link if it is http(s), else only text. */
export function OutsideLink({ url, clip }: { url: string; clip?: boolean }) {
  const href = linkable(url)
  if (href === null) return <Text value={url} clip={clip ?? false} mono />
  return (
    <a class="outside" href={href} target="_blank" rel="noopener noreferrer">
      <Text value={url} clip={clip ?? false} mono />
      <Icon name="external" size={12} />
      <span class="visually-hidden">(opens another site)</span>
    </a>
  )
}
