//go:build !linux

package pooler

import "context"

// Memory is how many bytes PgBouncer has in memory, which is known on Linux only.
func (c *Console) Memory(context.Context) (resident int64, known bool) { return 0, false }
