//go:build !linux

package pooler

import "context"

// Memory is what PgBouncer's process has, which is known on Linux only.
func (c *Console) Memory(context.Context) (m Memory, known bool) { return m, false }
