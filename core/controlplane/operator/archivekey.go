package operator

import (
	"context"
	"strings"

	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// ArchiveKey returns the passphrase of the archive of a server, with which all of its databases can be read as they were: for the
// recovery of a server that is lost. Who was shown it, and why, is in the log first. VALIDATION_ERROR on "server" or "reason".
func (o *Operator) ArchiveKey(ctx context.Context, of id.ServerID, reason string) (s server.Server, key string, err error) {
	if strings.TrimSpace(reason) == "" {
		return s, "", fault.Invalid("reason", "must not be empty")
	}
	err = o.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		if s, err = tx.Servers().Get(ctx, of); err != nil {
			return notFound(err, "server")
		}
		return o.record(ctx, tx, "", audit.ArchiveKeyShown, audit.Details{
			"serverId": string(s.ID), "server": s.Name, "reason": reason,
		})
	})
	if err != nil {
		return s, "", err
	}
	text, err := o.base.Secrets.Open(s.SealedArchiveKey, s.ArchiveContext())
	return s, string(text), err
}
