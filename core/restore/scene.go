package restore

import (
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/rollout"
)

// Scene is everything about a database that determines whether it may be restored.
type Scene struct {
	Database database.Record
	Open     id.OperationID // of the database; empty where no operation is open
	Change   id.OperationID // the pending change of one of its logins
	Making   id.RoleID      // an additional role that is not ready yet
}

// AdmitsManagedThen decides about a managed restore as of a moment, which the archive has. PREVIEW_CONFLICT: it is a preview.
// MANAGED_ROLE_CONFLICT.
func (s Scene) AdmitsManagedThen() error {
	if s.Database.IsPreview() {
		return rollout.ErrPreview()
	}
	if s.Database.RoleModel != database.Managed {
		return conflictf("the database has no managed SQL roles")
	}
	if _, err := s.Database.Status.Decide(database.Restore); err != nil {
		return conflictf("the status of the database is %s", s.Database.Status)
	}
	if s.Open != "" {
		return conflictf("another operation of the database is open: %s", s.Open)
	}
	return s.Calm()
}

// AdmitsManaged decides about a managed restore from a backup of the database; nil means that there is none of that name. The
// errors are those of AdmitsManagedThen.
func (s Scene) AdmitsManaged(b *backup.Backup, now time.Time) error {
	if err := s.AdmitsManagedThen(); err != nil {
		return err
	}
	switch {
	case b == nil:
		return conflictf("the database has no such backup")
	case b.VerifiedAt == nil:
		return conflictf("the backup is not verified")
	case !b.RoleManifest:
		return conflictf("the backup has no manifest of the roles")
	case b.Expired(now):
		return conflictf("the backup is past its retention")
	}
	return nil
}

// Calm refuses while logins of the database are being changed or made: MANAGED_ROLE_CONFLICT.
func (s Scene) Calm() error {
	switch {
	case s.Change != "":
		return conflictf("a change of the database's logins is unfinished: operation %s", s.Change)
	case s.Making != "":
		return conflictf("role %s is still being made: repeat its request or its next step, or delete it", s.Making)
	}
	return nil
}

// AdmitsPlain decides about a restore of a database with a single login. BACKUP_NOT_FOUND: there is no such backup, or it is past
// its retention. MANAGED_ROLE_CONFLICT: the database has managed SQL roles. BACKUP_NOT_VERIFIED. DATABASE_STATE_CONFLICT: the
// status or an open operation forbids it. LEGACY_ROLE_CONFLICT: additional roles are being changed or made.
func (s Scene) AdmitsPlain(b *backup.Backup, now time.Time) error {
	switch {
	case b == nil || b.Expired(now):
		return fault.New(fault.BackupNotFound, "no such backup")
	case s.Database.RoleModel == database.Managed:
		return conflictf("the database has managed SQL roles: use a managed restore")
	case b.VerifiedAt == nil:
		return fault.New(fault.BackupNotVerified, "the backup is not verified: it can be downloaded, and never restored")
	}
	return s.idle()
}

// AdmitsOrdered decides about a restore that an operator wants, of whichever kind of logins: as AdmitsManaged, or as AdmitsPlain.
func (s Scene) AdmitsOrdered(b *backup.Backup, now time.Time) error {
	if s.Database.RoleModel == database.Managed {
		return s.AdmitsManaged(b, now)
	}
	return s.AdmitsPlain(b, now)
}

// AdmitsUpload decides about a restore from a dump of the customer's own, which is only for a database with a single login: it
// says nothing about others. MANAGED_ROLE_CONFLICT, DATABASE_STATE_CONFLICT, LEGACY_ROLE_CONFLICT.
func (s Scene) AdmitsUpload() error {
	if s.Database.RoleModel == database.Managed {
		return conflictf("the database has managed SQL roles: a dump of your own cannot be restored")
	}
	return s.idle()
}

func (s Scene) idle() error {
	if s.Open != "" {
		return fault.New(fault.DatabaseStateConflict, "another operation of the database is open: %s", s.Open)
	}
	if _, err := s.Database.Status.Decide(database.Restore); err != nil {
		return err
	}
	return role.LegacyRoles.Refusal(s.Calm())
}

func conflictf(format string, args ...any) error {
	return fault.New(fault.ManagedRoleConflict, format, args...)
}
