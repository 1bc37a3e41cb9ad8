/** Who may look and act: ask your own sessions here. Nobody is let in unless this says so. */
export function access({ headers }) {
  if (process.env.NODE_ENV === 'development') return { name: 'developer', role: 'operator' }
  const role = headers.get('x-role')
  return role === 'viewer' || role === 'operator' ? { name: `a ${role}`, role } : null
}
