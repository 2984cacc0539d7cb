package ledger

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/protocol"
	"github.com/pgherd/pgherd/core/command"
)

// ForgetTold are the statements by which the ledger forgets what it was told of a database outside of operations, with all
// generations: another one of the same ID is told anew, as one that comes back.
func ForgetTold(db string) []string {
	resource := DatabaseResource(db)
	about := "(resource = " + pg.Quote(resource) + " OR starts_with(resource, " + pg.Quote(resource+"/") + "))"
	return []string{
		"DELETE FROM ledger.command WHERE operation_id = '' AND " + about,
		"DELETE FROM ledger.generation WHERE " + about,
	}
}

// withGenerations adds to a refusal that is about generations what they are here: who sent the command may have been restored
// from a backup, and has to know what it must surpass. The command's resource is still locked.
func (l *Ledger) withGenerations(ctx context.Context, c protocol.Command, err error) error {
	const query = `SELECT g.applied, g.generation, coalesce((SELECT p.credential_generation FROM ledger.role p WHERE p.name = $3), 0)
		FROM ledger.generation g WHERE g.kind = $1 AND g.resource = $2`
	var no *command.Refusal
	if !errors.As(err, &no) || no.Reason != command.ReasonStale && no.Reason != command.ReasonConflict {
		return err
	}
	_, login, _ := strings.Cut(c.Resource, "/login/")
	var g command.Generations
	unread := l.db.QueryRowContext(ctx, query, string(c.Kind), c.Resource, login).Scan(&g.Applied, &g.Admitted, &g.Credential)
	switch {
	case errors.Is(unread, sql.ErrNoRows):
		return err
	case unread != nil:
		return unread
	}
	return &command.Refusal{Reason: no.Reason, Message: no.Message, Generations: &g, Cause: no.Cause}
}
