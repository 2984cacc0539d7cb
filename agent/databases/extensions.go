package databases

import (
	"context"
	"errors"
	"time"

	"github.com/pgherd/pgherd/agent/extensions"
	"github.com/pgherd/pgherd/core/command"
)

// catalogTime bounds the look at the extensions of one database, with the wait for a connection.
const catalogTime = 5 * time.Second

// Extensions lists how the extensions stand in a database.
func (x *Databases) Extensions(ctx context.Context, q command.Extensions) (list command.ExtensionList, err error) {
	ctx, cancel := context.WithTimeout(ctx, catalogTime)
	defer cancel()
	d, err := x.ledger.InService(ctx, string(q.DatabaseID))
	if err != nil {
		return list, err
	}
	err = x.ledger.Looking.Run(ctx, func() error {
		return x.ledger.Inside.Run(ctx, func() (err error) {
			conn, err := x.server.Open(d.Name)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, conn.Close()) }()
			list, err = extensions.List(ctx, conn)
			return err
		})
	})
	return list, err
}
