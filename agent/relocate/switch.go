package relocate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pgherd/pgherd/agent/crash"
	"github.com/pgherd/pgherd/agent/databases"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
)

// switchOver puts the copy of an operation in the place of the database. Before the one transaction that does so, whatever fails
// leads back: the database is open again as it was. After it, there is only forward.
func (x *Relocator) switchOver(ctx context.Context, e protocol.Command, c command.Switch) (done command.Switched, err error) {
	d, err := x.ledger.InService(ctx, string(c.DatabaseID))
	if err != nil {
		return done, err
	}
	s, err := x.readyCopy(ctx, e.OperationID, d)
	if err != nil {
		return done, err
	}
	crash.Point(crash.SwitchAdmitted)
	if !s.switched() {
		if c.Moving {
			if s.brought, err = x.brought(ctx, d, s.whole); err != nil {
				return done, err
			}
		}
		if err := x.replace(ctx, d, s); err != nil {
			return done, err
		}
	}
	if d, err = x.ledger.InService(ctx, d.ID); err != nil {
		return done, err
	}
	in, err := x.inForce(ctx, d, c.Passwords)
	if err == nil && len(in) > 0 {
		err = x.ledger.Insist(ctx, in...)
	}
	if err != nil {
		return done, err
	}
	if err := x.serve(ctx, d, s, c.Open); err != nil {
		const message = "the copy has the database's place, but customers are not let in yet; send the command again"
		return done, ledger.Unavailable(message, err)
	}
	x.Replaced(c.DatabaseID)
	done = command.Switched{DatabaseOID: int64(d.OID), SizeBytes: s.bytes}
	if !c.Moving {
		return ledger.Conclude(ctx, x.ledger, e, done, crash.SwitchReply)
	}
	return concludeDiscarding(ctx, x, e, s, done, crash.SwitchReply)
}

const (
	// switchTime bounds how long customers are kept out before the database serves them again or its place is taken.
	switchTime = 15 * time.Second
	// aloneTime is how long others than customers are waited for, such as the agent's own looks. A rename waits 5 s more.
	aloneTime = 2 * time.Second
	backTime  = time.Minute
	// exchangeTries bounds how often others may change what belongs to the database as a whole in the moment in which it is read.
	exchangeTries = 3
)

// replace does what can be done while customers are served, then shuts them out and has the copy take the database's place.
func (x *Relocator) replace(ctx context.Context, d ledger.Database, s copyRow) error {
	err := x.buryIn(ctx, d, s)
	if err == nil {
		err = x.overlayIn(ctx, d, s)
	}
	if err == nil {
		crash.Point(crash.SwitchOverlaid)
		err = x.canBeReplaced(ctx, d, s)
	}
	if err == nil {
		limited, cancel := context.WithTimeout(ctx, switchTime)
		err = x.exchange(limited, d, s)
		cancel()
	}
	if err != nil {
		return x.goBack(ctx, d, err, s.operation)
	}
	crash.Point(crash.SwitchRenamed)
	return nil
}

// overlayIn gives the group roles of a database that has opted in their rights in a copy where they were not whole: of a backup
// from before or during the opt-in, or of a dump that was made elsewhere. From any other the owner gets back what the backup has.
func (x *Relocator) overlayIn(ctx context.Context, d ledger.Database, s copyRow) error {
	groups, err := x.overlay.StandingGroups(ctx, d)
	if err != nil || d.RoleModel != string(database.SingleLogin) || len(groups) < 2 {
		return err
	}
	return x.overlay.InTurns(ctx, func(ctx context.Context) (string, error) { return x.overlay.SpreadInCopy(ctx, d, s.name) })
}

// otherwiseNow is the SQLSTATE of the ledger's functions for what is not any more as it was read.
const otherwiseNow = "PGH03"

// exchange shuts the database, and has the copy take its place in one transaction.
func (x *Relocator) exchange(ctx context.Context, d ledger.Database, s copyRow) error {
	begin := fmt.Sprintf("SELECT ledger.begin_place(%s, %t)", pg.Quote(s.name), d.Open)
	err := pg.Atomically(ctx, x.db, begin, databases.GateStatement(d, false))
	if err != nil {
		return err
	}
	crash.Point(crash.SwitchGateClosed)
	if err := x.databases.EmptyAtOnce(ctx, d); err != nil {
		return err
	}
	if err := x.awaitAlone(ctx, d); err != nil {
		return err
	}
	crash.Point(crash.SwitchAlone)
	for range exchangeTries {
		var w whole
		if w, err = x.wholeOf(ctx, d); err != nil {
			return err
		}
		err = x.ledger.PushThrough(ctx, func() error { return x.ledger.EndVisible(ctx, d) }, switchPlan{d, s, w}.statements()...)
		if pg.State(err) != otherwiseNow {
			break
		}
	}
	return err
}

// goBack opens the database again as it was, unless its place is taken after all: the answer to the commit may have been lost.
func (x *Relocator) goBack(ctx context.Context, d ledger.Database, why error, operation string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), backTime)
	defer cancel()
	s, err := x.readyCopy(ctx, operation, d)
	if err == nil && s.switched() {
		return nil
	}
	if err == nil {
		err = x.reopen(ctx, d, s)
	}
	if err != nil {
		return ledger.Unavailable("the database is not open again yet; send the command again", errors.Join(why, err))
	}
	crash.Point(crash.SwitchUndone)
	switch {
	case command.RefusedFor(why, command.ReasonBusy): // it says who is in the way
	case ledger.InTheWay(why), pg.State(why) == ledger.ObjectInUse, errors.Is(why, context.DeadlineExceeded):
		return busy(why, "")
	}
	return why
}

// reopen ends a switch that was begun and not made. The gates are as they were before, but of a database that is out of service
// since.
func (x *Relocator) reopen(ctx context.Context, d ledger.Database, s copyRow) error {
	giveUp := "SELECT ledger.give_up_place(" + pg.Quote(s.name) + ")"
	if !s.reopen.Bool || !d.InService() {
		return pg.Atomically(ctx, x.db, giveUp)
	}
	return x.databases.LetIn(ctx, d, giveUp, databases.GateStatement(d, true))
}

// undoSwitch is for the close of an operation.
func (x *Relocator) undoSwitch(ctx context.Context, operation string) error {
	const query = `SELECT c.database_id FROM ledger.copy c JOIN ledger.database d ON d.id = c.database_id
		WHERE c.operation_id = $1 AND c.reopen IS NOT NULL AND c.replaced IS NULL`
	ids, err := pg.Column(ctx, x.db, query, operation)
	for _, id := range ids {
		err = errors.Join(err, x.undoSwitchOf(ctx, operation, id))
	}
	return err
}

func (x *Relocator) undoSwitchOf(ctx context.Context, operation, id string) error {
	release, err := x.ledger.Locks.Take(ctx, ledger.DatabaseResource(id))
	if err != nil {
		return err
	}
	defer release()
	d, _, err := x.ledger.Database(ctx, id)
	if err != nil {
		return err
	}
	s, err := x.readyCopy(ctx, operation, d)
	if err != nil {
		return err
	}
	if err := x.reopen(ctx, d, s); err != nil {
		return err
	}
	crash.Point(crash.SwitchUndone)
	return nil
}

// serve has customers served from the database that has the place now.
func (x *Relocator) serve(ctx context.Context, d ledger.Database, s copyRow, open bool) error {
	if err := x.ledger.Reconnecting.Run(ctx, func() error { return x.pooler.Reconnect(ctx, d.Name) }); err != nil {
		return err
	}
	crash.Point(crash.SwitchReconnected)
	if err := x.isAt(ctx, d, s.oid); err != nil {
		return err
	}
	if open {
		if err := x.databases.LetIn(ctx, d, databases.GateStatement(d, true)); err != nil {
			return err
		}
	}
	crash.Point(crash.SwitchOpened)
	return nil
}

// isAt proves that who connects by the database's name comes to the one of this oid. No customer's password is known here.
func (x *Relocator) isAt(ctx context.Context, d ledger.Database, is uint32) error {
	return x.ledger.Inside.Run(ctx, func() (err error) {
		conn, err := x.server.Open(d.Name)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, conn.Close()) }()
		oid, err := pg.One[uint32](ctx, conn, "SELECT oid FROM pg_database WHERE datname = current_database()")
		if err == nil && (oid != is || d.OID != is) {
			err = fmt.Errorf("%s leads to database %d, the ledger has %d, it is to be %d", d.Name, oid, d.OID, is)
		}
		return err
	})
}

// discard gives up what a switch has replaced, which the sweep drops, and removes what only the operation needed: the file that a
// clone was made from.
func (x *Relocator) discard(ctx context.Context, e protocol.Command, c command.Discard) (none command.None, err error) {
	d, err := x.ledger.InService(ctx, string(c.DatabaseID))
	if err != nil {
		return none, err
	}
	s, err := x.readyCopy(ctx, e.OperationID, d)
	if err == nil && !s.switched() {
		err = command.Refuse(command.ReasonNotFound, "the operation has switched nothing")
	}
	if err != nil {
		return none, err
	}
	return concludeDiscarding(ctx, x, e, s, none, crash.DiscardReply)
}

// concludeDiscarding stores the outcome of a command after which what the copy has replaced goes, and the file that it was made
// from. Until the outcome is stored, the ledger knows of both.
func concludeDiscarding[R any](
	ctx context.Context, x *Relocator, e protocol.Command, s copyRow, result R, reply string,
) (R, error) {
	if err := x.ledger.DiscardPassing(ctx, e.OperationID); err != nil {
		return result, err
	}
	crash.Point(crash.DiscardPassing)
	result, err := ledger.Conclude(ctx, x.ledger, e, result, reply,
		"UPDATE ledger.copy SET until_closed = false WHERE name = "+pg.Quote(s.name),
		"DELETE FROM ledger.job WHERE operation_id = "+pg.Quote(e.OperationID)+" AND "+ledger.Passing)
	x.AskForSweep()
	return result, err
}
