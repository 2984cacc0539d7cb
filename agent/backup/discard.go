package backup

import (
	"context"
)

// Discard removes everything of a request's backup: its sessions, its login, its isolated copy, partial files, and the file, even
// if that is verified. The file of another operation stays. The request must not be running.
func (x *Backups) Discard(ctx context.Context, req Request) error {
	done, err := x.copies.Turn(ctx, req.OperationID)
	if err != nil {
		return err
	}
	defer done()
	return x.Remove(ctx, req)
}

// Remove is Discard for who has the operation's turn.
func (x *Backups) Remove(ctx context.Context, req Request) error {
	if err := x.copies.RemoveVerification(ctx, req.OperationID); err != nil {
		return err
	}
	req.Verify = false // whether it is verified does not matter, nor whether that can be read
	// A damaged one goes too: the name was given to this request.
	if found, _, err := x.standing(req); err != nil || found == foreign {
		return err
	}
	return x.Files.Delete(req.DatabaseID, req.Filename)
}

// Complete reports whether the backup of this very request is complete: its file exists and, where it is to be verified, is.
func (x *Backups) Complete(req Request) (bool, error) {
	found, _, err := x.standing(req)
	return found == complete, err
}
