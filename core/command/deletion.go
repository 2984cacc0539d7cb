package command

import "github.com/pgherd/pgherd/core/id"

// A deletion is three commands of one operation: SetAccess closes the database, Backup makes the file that it is recovered from
// beside the isolated generation, and Isolate ends it. Until then Close leaves nothing of the file, and the control plane opens
// the database again as it was; from then on Close is refused with ReasonCompleted. Rejoin, of another operation, takes that
// back, and Purge removes everything. In between, other commands about the database are refused with ReasonIsolated, and so are
// questions but for those about its backup files.

// Isolate takes a database out of service and keeps it as it is: renamed, entered by nobody, and within seconds without its
// entries in the pooler. Its logins cannot log in, and their names and the database's stay taken. It first ends whoever is still
// in it. The file of a Backup of the same operation that is ForDeletion is kept from then on. One that is isolated stays so.
//
// A refusal means that nothing was isolated; customers may be shut out until SetAccess. ReasonBusy: it could not be had alone in
// time; try again. Its message says who stays in the database or in its way, and is fit for the customer. ReasonNotFound: the
// server has no such database. ReasonFailed: it is a clone without its data, or no longer the one that the agent has made.
type Isolate struct {
	Returns[None] `json:"-"`
	DatabaseID    id.DatabaseID `json:"databaseId"`
}

// About implements Command.
func (c Isolate) About() About { return ofDatabase("database.isolate", c.DatabaseID, 1) }

// Check implements Command.
func (c Isolate) Check() error { return checkDatabase(c.DatabaseID) }

// Rejoin puts an isolated database back into service, under its name, with its logins, settings, limits and allowlist as they
// were, and lets customers in where Open says so and Configure does not keep them out. A database that serves already is proved
// to. Once it has its name again, Close is refused with ReasonCompleted, and the command is sent until it is done.
//
// A refusal for another reason than ReasonUnavailable means that nothing was changed. ReasonBusy and ReasonFailed: as of Isolate.
// ReasonNotFound: the server has no such database. ReasonNameTaken: its name was given to another database, not by the agent.
type Rejoin struct {
	Returns[Rejoined] `json:"-"`
	DatabaseID        id.DatabaseID `json:"databaseId"`
	Open              bool          `json:"open"`
}

// Rejoined says what the database is now.
type Rejoined struct {
	DatabaseOID int64 `json:"databaseOid"`
}

// About implements Command.
func (c Rejoin) About() About { return ofDatabase("database.rejoin", c.DatabaseID, 1) }

// Check implements Command.
func (c Rejoin) Check() error { return checkDatabase(c.DatabaseID) }

// Purge removes an isolated database for good: its data, its logins, what the ledger has of it, and every file of its backups. It
// frees the names. Of a database that the server does not have, or whose making was never completed, it removes what there is.
//
// It takes none out of service. Where it refuses, nothing was removed. ReasonInService: the database is in service, or customers
// reach another one in its place. ReasonFailed: it is no longer the one that was isolated. ReasonBusy: an administrator or a
// prepared transaction is in its way; try again.
type Purge struct {
	Returns[None] `json:"-"`
	DatabaseID    id.DatabaseID `json:"databaseId"`
}

// About implements Command.
func (c Purge) About() About { return ofDatabase("database.purge", c.DatabaseID, 1) }

// Check implements Command.
func (c Purge) Check() error { return checkDatabase(c.DatabaseID) }
