package artifact

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pgherd/pgherd/agent/joblogin"
)

// Discard removes everything of a request's backup: its sessions, its login, its isolated copy, partial files, and the file, even
// if that is verified. The file of another operation stays. The request must not be running.
func (b *Backuper) Discard(ctx context.Context, req Request) error {
	done, err := b.turn(ctx, req.OperationID)
	if err != nil {
		return err
	}
	defer done()
	return b.discard(ctx, req)
}

// discard is Discard for who has the operation's turn.
func (b *Backuper) discard(ctx context.Context, req Request) error {
	if err := b.removeWork(ctx, req); err != nil {
		return err
	}
	req.Verify = false // whether it is verified does not matter, nor whether that can be read
	// A damaged one goes too: the name was given to this request.
	if found, _, err := b.standing(req); err != nil || found == foreign {
		return err
	}
	return b.store.Delete(req.DatabaseID, req.Filename)
}

// removeWork ends a request's sessions, and removes its login and its isolated copy. The caller has the operation's turn.
func (b *Backuper) removeWork(ctx context.Context, req Request) error {
	return b.cfg.with(b.cfg.Maintenance, "", func(admin *sql.DB) error {
		return b.removeAll(ctx, b.copyFor(verification, req.OperationID, req.DatabaseID, admin), b.Crash)
	})
}

// removeAll ends the sessions of a copy's operation, and removes the copy and the login that dumps. The caller has the
// operation's turn.
func (b *Backuper) removeAll(ctx context.Context, copied *isolated, crash func(string)) error {
	_, err := joblogin.EndSessions(ctx, copied.admin, joblogin.RunPatience, `application_name = $1`, sessionName(copied.op))
	if err != nil {
		return fmt.Errorf("end the sessions of an operation: %w", err)
	}
	login := dumpLogin{cfg: &b.cfg, op: copied.op}
	return errors.Join(copied.drop(ctx, crash), dropDumpLogin(ctx, copied.admin, login.name(), joblogin.RunPatience))
}

// Complete reports whether the backup of this very request is complete: its file exists and, where it is to be verified, is.
func (b *Backuper) Complete(req Request) (bool, error) {
	found, _, err := b.standing(req)
	return found == complete, err
}
