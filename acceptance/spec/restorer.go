package spec

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// Reserve reserves a managed restore.
func (c Client) Reserve(of id.DatabaseID, file backup.Filename, key string) (wire.OperationWithMessage, error) {
	return c.Restores.Reserve(ctx, of, wire.ReserveRestore{BackupFilename: file}, apiclient.IdempotencyKey(key))
}

// Reserves reserves a managed restore, and returns its operation as it is then.
func (c *Customer) Reserves(of Created, file backup.Filename, key string) wire.Operation {
	c.stage.Helper()
	return must(c.Reserve(of.ID, file, key))(c.stage).Operation
}

// Advance does one step of a managed restore. Where the key has asked too often, it waits for its turn: each step is a write, and
// on a busy machine there are more of them than a key has in a minute.
func (c *Customer) Advance(o wire.Operation) (wire.Operation, error) {
	for {
		next, err := c.Restores.Advance(ctx, o.ID)
		var no *apiclient.Error
		if !errors.As(err, &no) || no.Code != fault.RateLimited {
			return next, err
		}
		c.stage.Pass(no.RetryAfter)
	}
}

// Advances does one step of a managed restore that is not refused.
func (c *Customer) Advances(o wire.Operation) wire.Operation {
	c.stage.Helper()
	return must(c.Advance(o))(c.stage)
}

// RestoresManaged reserves a restore, and advances it until it has succeeded.
func (c *Customer) RestoresManaged(of Created, file backup.Filename, key string) wire.Operation {
	c.stage.Helper()
	o := c.Reserves(of, file, key)
	c.stage.Eventually("restore "+string(o.ID)+" has succeeded", func() bool {
		o = c.Advances(o)
		return o.Status == "succeeded"
	})
	return o
}

// RestoresPlain restores a database that has a single login, and returns the operation as it ended.
func (c *Customer) RestoresPlain(of Created, file backup.Filename) wire.Operation {
	c.stage.Helper()
	queued := must(c.Restores.Restore(ctx, of.ID, file, consent))(c.stage)
	return c.Follows(queued.Operation)
}

// restoredTo reports whether the result of a restore begins so, and says that it changes so many rows to so many.
func restoredTo(o wire.Operation, begins string, before, after int) bool {
	return o.Result != nil && strings.HasPrefix(string(*o.Result), begins) &&
		strings.Contains(string(*o.Result), fmt.Sprintf(`"rows":{"before":%d,"after":%d}`, before, after))
}
