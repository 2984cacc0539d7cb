package executor

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/agent/pooler"
)

// Pooler is what the executor needs of PgBouncer; *pooler.Pooler implements it.
type Pooler interface {
	Sync(ctx context.Context, read pooler.Read) error
	SyncSoon(read pooler.Read)
	Evict(ctx context.Context, who pooler.Who) error
	Expel(ctx context.Context, who pooler.Who) (closed int, err error)
	Prove(ctx context.Context, entry, login, password string) error
	ProveRefused(ctx context.Context, entry, login, password string) error
	Full(ctx context.Context, entry string) (bool, error)
	EnterOutside(ctx context.Context) error
	Reconnect(ctx context.Context, database string) error
	Keeping(ctx context.Context, databases []string) (map[string][]string, error)
	EndIdle(ctx context.Context, ids []string, quiet time.Duration) (left []string, err error)
}
