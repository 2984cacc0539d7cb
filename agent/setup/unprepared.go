package setup

import (
	"errors"
	"fmt"
	"strings"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
)

// ErrUnprepared is wrapped by errors of a server that agent init has not prepared, or not with these passwords.
var ErrUnprepared = errors.New("run pgherd agent init")

// Explained adds ErrUnprepared to an error of the agent's log-in that comes from that. PostgreSQL does not say of a login with a
// password whether it exists.
func Explained(err error) error {
	var what string
	switch refused := pq.As(err); {
	case refused == nil || errors.Is(err, ErrUnprepared):
		return err
	case refused.Code == pqerror.InvalidPassword,
		refused.Code == pqerror.InvalidAuthorizationSpecification && strings.Contains(refused.Message, "does not exist"):
		what = "PostgreSQL has no login " + AgentLogin + " with the password of the credentials file"
	case refused.Code == pqerror.InvalidCatalogName && strings.Contains(refused.Message, MaintenanceDatabase):
		what = "PostgreSQL has no database " + MaintenanceDatabase
	case refused.Code == pqerror.InvalidSchemaName:
		what = "the maintenance database is empty"
	default:
		return err
	}
	return fmt.Errorf("%w: %s: %w", ErrUnprepared, what, err)
}
