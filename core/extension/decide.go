package extension

import (
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
	"github.com/pgherd/pgherd/core/operation"
)

// Scene is everything about a database, beside its server, that determines whether its extensions may change.
type Scene struct {
	Database database.Record
	Open     operation.Kind // of the database's open operation; empty where there is none
	Change   id.OperationID // the pending change of the database's logins; empty where there is none
}

// Calm refuses unless the database is active, has managed roles, and has no open operation and no unfinished change of its
// logins. It needs no answer of the server. EXTENSION_MUTATION_UNAVAILABLE.
func (s Scene) Calm() error {
	switch {
	case s.Database.RoleModel != database.Managed:
		return unavailable("the database has no managed SQL roles")
	case s.Database.Status != database.Active:
		return unavailable("the database is not active: its status is %s", s.Database.Status)
	case s.Open != "":
		return unavailable("an operation of the kind %s is open on the database", s.Open)
	case s.Change != "":
		return unavailable("a change of the database's logins is unfinished: operation %s", s.Change)
	}
	return nil
}

// Admits decides about a request, with the entry of its extension. EXTENSION_MUTATION_UNAVAILABLE.
func (s Scene) Admits(r Request, e Entry) error {
	if err := s.Calm(); err != nil {
		return err
	}
	version := e.Name.Version(s.Database.PostgresVersion)
	if err := e.fit(version); err != nil {
		return err
	}
	if r.Change == Install {
		return e.admitsInstall()
	}
	if err := e.admitsUpgrade(version); err != nil {
		return err
	}
	return e.keepsWayBack(version, s.Database.WayBack)
}

// keepsWayBack refuses an upgrade beyond what the version of PostgreSQL has to which the database may still go back; 0: to none.
func (e Entry) keepsWayBack(version string, back int) error {
	if there := e.Name.Version(back); back != 0 && there != version {
		return unavailable("the database may still go back to PostgreSQL %d, which has %s %s: confirm the upgrade of PostgreSQL first",
			back, e.Name, there)
	}
	return nil
}

// fit refuses what the service changes on no database of the server, where version is supported.
func (e Entry) fit(version string) error {
	switch {
	case !e.Available:
		return unavailable("the database server does not have %s", e.Name)
	case !e.Trusted:
		return unavailable("%s is not trusted on the database server", e.Name)
	case e.DefaultVersion != version:
		return unavailable("the database server has %s %s; %s is supported", e.Name, e.DefaultVersion, version)
	case !e.RestoreQualified:
		return unavailable("backups with %s are not proven to be restorable on the database server yet; "+
			"the people who run the service can change that", e.Name)
	}
	return nil
}

func (e Entry) admitsInstall() error {
	if e.InstalledVersion != "" {
		return unavailable("%s %s is installed already", e.Name, e.InstalledVersion)
	}
	return nil
}

func (e Entry) admitsUpgrade(version string) error {
	switch {
	case e.InstalledVersion == "":
		return unavailable("%s is not installed", e.Name)
	case e.Schema != Schema:
		return unavailable("%s is installed in another schema than %s", e.Name, Schema)
	case e.InstalledVersion == version:
		return unavailable("%s has the supported version %s already", e.Name, e.InstalledVersion)
	}
	return nil
}

// AdmitsReplay decides about a request whose key was used before: EXTENSION_MUTATION_UNAVAILABLE where it was another request.
func (r Request) AdmitsReplay(of idempotency.Record) error {
	return of.Replay(r.Fingerprint(), fault.ExtensionMutationUnavailable)
}

func unavailable(format string, args ...any) error {
	return fault.New(fault.ExtensionMutationUnavailable, format, args...)
}
