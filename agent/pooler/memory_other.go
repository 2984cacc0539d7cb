//go:build !linux

package pooler

import (
	"context"
	"errors"
	"net"
)

// Memory is what PgBouncer's process has, which is known on Linux only.
func (c *Console) Memory(context.Context) (m Memory, known bool) { return m, false }

// processBehind is PgBouncer's process, which is known on Linux only.
func (c *Console) processBehind(net.Conn) int { return 0 }

func (c *Console) killProcess(int) error { return errors.ErrUnsupported }
