package copies

import (
	"context"
	"database/sql"
	"errors"

	"github.com/pgherd/pgherd/agent/diskroom"
	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/load"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/rehearsal"
)

// Tried is what a rehearsal has found.
type Tried struct {
	breaks []rehearsal.Break
	notes  []string
}

// Rehearse does to a copy all that a load does, and removes it whatever came of that. It tells what of the database does not work
// at this server, and the notes of the load where there was one. Another attempt makes a copy of its own, and the sweep removes
// one that was left.
//
// Errors: BACKUP_NOT_VERIFIED (the file itself is damaged, or the copy took longer than it may), BACKUP_NOT_FOUND,
// BACKUP_STORAGE_FULL. After any other error the outcome is open: call Rehearse again.
func (x *Copies) Rehearse(ctx context.Context, req Request, tell jobs.Tell) (found Tried, err error) {
	done, err := x.Turn(ctx, req.OperationID)
	if err != nil {
		return found, err
	}
	defer done()
	set, err := x.openSource(ctx, req)
	if err != nil {
		return found, err
	}
	defer set.close()
	tell = jobs.Rising(tell)
	c, err := x.claim(ctx, req, set, tell)
	defer c.End()
	if err != nil {
		return found, err
	}
	err = c.OnceMore(ctx, func() (err error) {
		found, err = x.rehearse(ctx, c, req, set, tell)
		return err
	})
	return found, noRoomToLoad(err)
}

func (x *Copies) rehearse(
	ctx context.Context, c *diskroom.Claim, req Request, set *fileSet, tell jobs.Tell,
) (found Tried, err error) {
	err = x.Server.Admin(req.OperationID, func(admin *sql.DB) (err error) {
		copied := x.copyFor(verification, req.OperationID, req.DatabaseID, admin)
		if err := copied.Drop(ctx, func(string) {}); err != nil {
			return err
		}
		here, err := pg.One[int](ctx, admin, version)
		if err != nil {
			return err
		}
		var whole bool
		if found.breaks, whole, err = unfit(ctx, admin, set.manifest.Manifest, here); err != nil || !whole {
			return err
		}
		defer x.removeCopy(ctx, copied)
		began, err := recovered(ctx, admin)
		if err != nil {
			return err
		}
		limited, cancel := x.limitLoad(ctx, set)
		defer cancel()
		if err := copied.Create(limited, set.manifest.Contents.Locale, x.crashLoad); err != nil {
			return err
		}
		err = copied.watched(limited, c, func(ctx context.Context) error {
			loaded, err := x.fill(ctx, copied, req, set, tell)
			found.notes = loaded.Notes
			return err
		})
		newer := here > pg.Major(set.manifest.ServerVersion)
		more, err := broken(unlessRecovered(ctx, admin, began, unverifiedInTime(limited, err)), newer)
		found.breaks = append(found.breaks, more...)
		return err
	})
	return found, err
}

// broken makes breaks of what a copy at a server was found to lack, which is of a newer version than the database or not; other
// errors stay.
func broken(err error, newer bool) ([]rehearsal.Break, error) {
	if !fault.Has(err, fault.BackupNotVerified) {
		return nil, err
	}
	var statement *load.StatementError
	var syntax *dumpsql.SyntaxError
	var unlike *unlikeError
	switch {
	case errors.As(err, new(*damagedError)), errors.As(err, new(*jobs.TooLongError)):
		return nil, err
	case errors.As(err, &statement):
		return []rehearsal.Break{ofStatement(statement, newer)}, nil
	case errors.As(err, &syntax):
		return []rehearsal.Break{{Kind: rehearsal.Statement, What: syntax.Error(), Remedy: changeIt}}, nil
	case errors.As(err, &unlike):
		return unlike.breaks(), nil
	}
	var known *fault.Error
	errors.As(err, &known)
	return []rehearsal.Break{{Kind: rehearsal.Different, What: known.Message, Remedy: changeIt}}, nil
}

const changeIt = "change it in the database so that both versions take it, and rehearse again"

// kindsOfStates are what PostgreSQL says by SQLSTATE that it does not know.
var kindsOfStates = map[string]rehearsal.Kind{
	"42704": rehearsal.Type, // undefined_object
	"42601": rehearsal.Word, // syntax_error
	"42939": rehearsal.Word, // reserved_name
}

// ofStatement is what a statement breaks. Only a newer server has words that an older one has not: to an older one, what it
// cannot read is a statement that it does not know.
func ofStatement(e *load.StatementError, newer bool) rehearsal.Break {
	kind, known := kindsOfStates[e.SQLState]
	if !known || kind == rehearsal.Word && !newer {
		kind = rehearsal.Statement
	}
	return rehearsal.Break{Kind: kind, Object: e.Object, What: e.Error(), Remedy: changeIt}
}

// unlikeError says in what a copy differs from the database.
type unlikeError struct{ list []backup.Difference }

func (e *unlikeError) Error() string { return backup.Explain(e.list) }

func (e *unlikeError) breaks() (list []rehearsal.Break) {
	for _, d := range e.list {
		list = append(list, rehearsal.Break{Kind: rehearsal.Different, Object: d.Object, What: d.String(), Remedy: changeIt})
	}
	return list
}

// removeRehearsal removes what a rehearsal has left. It must not be running.
func (x *Copies) removeRehearsal(ctx context.Context, op id.OperationID) error {
	done, err := x.Turn(ctx, op)
	if err != nil {
		return err
	}
	defer done()
	return x.RemoveVerification(ctx, op)
}

// rehearsed is what became of a rehearsal. An error means that this is open.
func rehearsed(found Tried, err error) (command.LoadReport, error) {
	if err == nil {
		return command.LoadReport{
			State: command.LoadReady, Stage: "done", Progress: 100, Breaks: rehearsal.Bounded(found.breaks), Notes: found.notes,
		}, nil
	}
	return reported(Loaded{}, err)
}
