// Package retire ends roles that nobody uses any more.
//
// Any customer can grant something in their own database to a role whose name they know, and so keep PostgreSQL from dropping it
// for as long as they like. Such a role is retired instead: it loses its log-in, its password and its name at once, which no
// grant can prevent, and stands in ledger.dead_role. A Sweeper takes the rights that it still has, and drops it when nothing
// refers to it any more; nobody waits for that.
package retire

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"slices"

	"github.com/lib/pq"

	"github.com/pgherd/pgherd/agent/pg"
)

// Ending is how roles end, together and in one transaction.
type Ending struct {
	Roles []string
	// TakeBack are statements about what the platform gave the roles, and without which they could not be dropped.
	TakeBack []string
	// Forget are statements that remove what is known of the roles, whichever way they end.
	Forget []string
}

// Run carries out statements in one transaction, in which none waits long for a lock.
type Run func(ctx context.Context, statements ...string) error

// End drops the roles or, where something keeps one of them, retires all of them.
func (e Ending) End(ctx context.Context, run Run) (retired bool, err error) {
	if err := run(ctx, e.Drop()...); !IsKept(err) {
		return false, err
	}
	return true, run(ctx, e.Retire()...)
}

// Drop are the statements that drop the roles.
func (e Ending) Drop() []string {
	statements := slices.Clone(e.TakeBack)
	for _, r := range e.Roles {
		statements = append(statements, "DROP ROLE "+pq.QuoteIdentifier(r))
	}
	return append(statements, e.Forget...)
}

// Retire are the statements that retire the roles. They change the rows of the roles alone: only who changes a role itself can be
// in their way.
func (e Ending) Retire() (statements []string) {
	for _, r := range e.Roles {
		statements = append(statements, retirement(r)...)
	}
	return append(statements, e.Forget...)
}

// mark begins the comment on a retired role; the role's name follows.
const mark = "pgherd dead login "

// retirement gives a role a name that nobody can know before.
func retirement(role string) []string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	name, quoted := "pgh_dead_"+hex.EncodeToString(random[:]), pq.QuoteIdentifier(role)
	return []string{
		"ALTER ROLE " + quoted + " NOLOGIN NOBYPASSRLS PASSWORD NULL", "ALTER ROLE " + quoted + " RENAME TO " + name,
		"COMMENT ON ROLE " + name + " IS " + pq.QuoteLiteral(mark+name),
		"INSERT INTO ledger.dead_role (name, oid) SELECT rolname, oid FROM pg_roles WHERE rolname = " + pq.QuoteLiteral(name),
	}
}

// IsKept reports whether a role was not dropped because something refers to it, or an open transaction is about to: what is not
// committed shows nowhere.
func IsKept(err error) bool {
	const dependentObjects = "2BP01"
	return pq.As(err, dependentObjects) != nil || pg.InTheWay(err)
}
