package command

import (
	"regexp"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// maxConnections is the most that a cap or a limit of connections can be.
const maxConnections = 100_000

var (
	verifierPattern = regexp.MustCompile(
		`^SCRAM-SHA-256\$[0-9]{1,8}:[A-Za-z0-9+/=]{4,64}\$[A-Za-z0-9+/=]{44}:[A-Za-z0-9+/=]{44}$`)
	usernamePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)
)

func checkDatabase(db id.DatabaseID) error {
	if _, err := id.Parse[id.DatabaseID](string(db)); err != nil {
		return Refuse(ReasonInvalid, "databaseId must be a UUID")
	}
	return nil
}

// checkRole refuses a username that has not the shape of the database's additional roles.
func checkRole(db id.DatabaseID, username string) error {
	if err := checkDatabase(db); err != nil {
		return err
	}
	if !role.ManagedRoles.Names(db, username) && !role.LegacyRoles.Names(db, username) {
		return Refuse(ReasonInvalid, "username is none of an additional role of the database")
	}
	return nil
}

func checkGrants(profile role.AccessProfile, limit int) error {
	if _, err := role.ParseAccessProfile(string(profile)); err != nil {
		return Refuse(ReasonInvalid, "accessProfile is none of the protocol")
	}
	if limit < 1 || limit > maxConnections {
		return Refuse(ReasonInvalid, "connectionLimit must be from 1 to %d", maxConnections)
	}
	return nil
}

func checkPassword(verifier, password string) error {
	switch {
	case !verifierPattern.MatchString(verifier):
		return Refuse(ReasonInvalid, "verifier is none of SCRAM-SHA-256")
	case password == "":
		return Refuse(ReasonInvalid, "the new password is missing")
	}
	return nil
}

func checkFile(db id.DatabaseID, name backup.Filename) error {
	if _, err := backup.ParseFilename(string(name)); err != nil {
		return Refuse(ReasonInvalid, "filename is none of a backup")
	}
	return checkDatabase(db)
}
