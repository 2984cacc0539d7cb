package operator

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/rebuilds"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// Recovery asks for the databases of a server that is gone for good on others.
type Recovery struct {
	Server id.ServerID
	// On are the servers that take them: each database goes to the first that has room for it, and no database of its name.
	On []id.ServerID
	// Storage is where the server kept backups and archive, as the agents of On see it; empty: where it said that it did.
	Storage string
	// First are databases that come before the others, in this order. The others follow by their age.
	First []id.DatabaseID
	Order operation.Order
}

// Recovering is what becomes of a database of a server that is gone.
type Recovering struct {
	database.Record
	On        string // the name of the server that takes it
	Operation operation.Operation
	// Err says why it stays with the server that is gone: it can be asked for again. nil: it is made anew.
	Err error
}

// RecoverServer ends what is open on a server that is gone for good, and queues that its databases are made anew on others. Asked
// again it goes on with those that are left. Left is what each of the others found.
//
// VALIDATION_ERROR on "server", "on", "storage", "reason" or "serverGone": nothing is done then, but that the server takes no new
// databases. AGENT_ERROR: an agent of "on" does not answer.
func (o *Operator) RecoverServer(ctx context.Context, q Recovery) (list []Recovering, left []rebuilds.Left, err error) {
	if err := q.Order.Check(); err != nil {
		return nil, nil, err
	}
	q.Order.ServerGone = true
	from, err := o.gone(ctx, q.Server)
	if err != nil {
		return nil, nil, err
	}
	if len(q.On) == 0 {
		return nil, nil, fault.Invalid("on", "needs a server that takes the databases")
	}
	for _, on := range q.On {
		to, err := o.serverOf(ctx, on)
		if err != nil {
			return nil, left, err
		}
		found, err := o.rebuilds.Look(ctx, from, to, q.Storage)
		if err != nil {
			return nil, left, err
		}
		left = append(left, found)
	}
	stuck, err := o.endAll(ctx, from.ID, q.Order)
	if err != nil {
		return nil, left, err
	}
	for i := range left {
		if left[i], err = o.rebuilds.Standing(ctx, left[i]); err != nil {
			return nil, left, err
		}
	}
	all, err := ports.Read(ctx, o.base.Store, func(ctx context.Context, tx ports.Tx) ([]database.Record, error) {
		return tx.Storage().Between(ctx, from.ID, "", "") // a move that has ended may have taken one back
	})
	if err != nil {
		return nil, left, err
	}
	for _, r := range inOrder(all, q.First) {
		one := Recovering{Record: r, Err: stuck[r.ID]}
		if one.Err == nil {
			one = o.recoverOne(ctx, left, r, q.Order)
		}
		list = append(list, one)
	}
	return list, left, nil
}

// gone is a server, once it is sure that it is gone for good. It takes no new databases from then on.
func (o *Operator) gone(ctx context.Context, of id.ServerID) (server.Server, error) {
	from, err := o.serverOf(ctx, of)
	if err != nil {
		return from, err
	}
	enable := func(on bool) error {
		whatever := func(context.Context, ports.Tx) error { return nil } // leads there
		_, err := o.changeServer(ctx, of, func(s *server.Server) { s.Enabled = on }, whatever)
		return err
	}
	if from.Enabled {
		if err := enable(false); err != nil {
			return from, err
		}
	}
	if err := o.base.CheckGone(ctx, of); err != nil {
		if from.Enabled {
			err = errors.Join(err, enable(true))
		}
		return from, err
	}
	return from, nil
}

func (o *Operator) serverOf(ctx context.Context, of id.ServerID) (server.Server, error) {
	s, err := ports.Read(ctx, o.base.Store, func(ctx context.Context, tx ports.Tx) (server.Server, error) {
		return tx.Servers().Get(ctx, of)
	})
	return s, notFound(err, "server")
}

// endAll ends the operations that are open on a server that is gone, and returns those that could not be ended now, by database.
func (o *Operator) endAll(ctx context.Context, of id.ServerID, by operation.Order) (map[id.DatabaseID]error, error) {
	open, err := o.FindOperations(ctx, ports.OperationFilter{
		ServerID: of, Statuses: []operation.Status{operation.Queued, operation.Running},
	}, ports.Page{})
	stuck := map[id.DatabaseID]error{}
	for _, op := range open {
		if op.Logins {
			_, err = o.EndChange(ctx, op.DatabaseID, op.ID, by)
		} else {
			_, err = o.FailOperation(ctx, op.ID, by)
		}
		if err != nil {
			stuck[op.DatabaseID] = err
		}
	}
	return stuck, err
}

// recoverOne has a database made anew on the first server that takes it.
func (o *Operator) recoverOne(ctx context.Context, left []rebuilds.Left, r database.Record, by operation.Order) Recovering {
	one := Recovering{Record: r}
	for _, l := range left {
		one.On = l.On.Name
		if one.Operation, one.Err = o.rebuilds.Order(ctx, l, r.ID, by); !fault.Has(one.Err, fault.ValidationError) {
			break
		}
	}
	one.Err = base.NotFound(one.Err, base.ErrDatabaseNotFound())
	return one
}

// inOrder has the first in front, and then the others by their age.
func inOrder(all []database.Record, first []id.DatabaseID) []database.Record {
	place := func(r database.Record) int {
		if at := slices.Index(first, r.ID); at >= 0 {
			return at
		}
		return len(first)
	}
	return slices.SortedFunc(slices.Values(all), func(a, b database.Record) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
}
