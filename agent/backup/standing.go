package backup

import (
	"errors"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/fault"
)

// standing is what stands in the store of a request's backup.
type standing int

const (
	// nothing: no file of the name is committed. What is written of one is made again.
	nothing standing = iota
	// foreign: the file of that name is another operation's. The request can make none, and may not touch that one.
	foreign
	// damaged: a file of that name is committed, but its manifest cannot be read, so nobody can tell whose it is. Nothing is ever
	// restored from it.
	damaged
	// unverified: the request's file is there. It asks for a verification, which is not recorded.
	unverified
	// complete: everything is there that the request asks for.
	complete
)

// standing looks up what stands of a request's backup. The result has what is the request's own. Whether a file is verified is
// read only where the request asks for that.
func (x *Backups) standing(req Request) (standing, Result, error) {
	m, err := x.Files.Manifest(req.DatabaseID, req.Filename)
	switch {
	case fault.Has(err, fault.BackupNotFound):
		return nothing, Result{}, nil
	case errors.Is(err, backup.ErrManifest):
		return damaged, Result{}, nil
	case err != nil:
		return nothing, Result{}, err
	case m.OperationID != req.OperationID:
		return foreign, Result{}, nil
	case !req.Verify:
		return complete, Result{Manifest: m}, nil
	}
	at, err := x.Files.VerifiedAt(m)
	if err != nil || at == nil {
		return unverified, Result{Manifest: m}, err
	}
	return complete, Result{Manifest: m, VerifiedAt: at}, nil
}
