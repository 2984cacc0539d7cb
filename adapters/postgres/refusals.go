package postgres

import (
	"errors"

	"github.com/pgherd/pgherd/core/certificate"
	"github.com/pgherd/pgherd/core/citoken"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/server"
)

// broken maps the name of a unique constraint to the fault that its port names.
var broken = map[string]func() error{
	"users_email_unique":             func() error { return fault.Invalid("email", "is in use") },
	"passkeys_credential_unique":     func() error { return fault.Invalid("passkey", "is known already") },
	"identities_pkey":                errLinked,
	"identities_person_unique":       errLinked,
	"accounts_owner_unique":          func() error { return fault.Invalid("owner", "owns an account already") },
	"ci_namespaces_name_unique":      func() error { return fault.Invalid("name", "is in use") },
	"ci_trusts_unique":               citoken.ErrTrusted,
	"servers_name_unique":            func() error { return fault.Invalid("name", "is in use") },
	"servers_installation_unique":    server.ErrRegistered,
	"databases_name_unique":          database.ErrNameTaken,
	"operations_one_open":            errOperationOpen,
	"allowlist_entries_cidr_unique":  func() error { return fault.Invalid("cidr", "is already on the allowlist") },
	"backups_filename_unique":        func() error { return fault.New(fault.BackupConflict, "a backup of that name exists") },
	"outbox_events_operation_unique": func() error { return errors.New("the operation has made this event already") },
	"role_changes_one_pending":       errChangeUnfinished,
	"role_changes_key_unique":        errChangeUnfinished,
	"certificate_keys_one_signs":     certificate.ErrKeySigns,
	"drills_one_open":                func() error { return errors.New("a drill of the server goes on") },
	"previews_one_live":              errRefTaken,
	"previews_use_unique":            errRefTaken,
	"webhook_attempts_once":          func() error { return errors.New("the attempt is recorded already") },
}

func errLinked() error { return fault.Invalid("subject", "is linked already") }

func errChangeUnfinished() error {
	return fault.New(fault.ManagedRoleConflict, "another change of the database's logins is unfinished")
}

func errOperationOpen() error {
	return fault.New(fault.DatabaseStateConflict, "another operation of the database is open")
}
