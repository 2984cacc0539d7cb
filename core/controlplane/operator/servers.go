package operator

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"strconv"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/audit"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/moves"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// NewServer describes a database server to be registered.
type NewServer struct {
	Name       string
	AgentURL   string // https
	Secret     string // the agent's shared secret
	CA         string // PEM; empty: the system's roots
	PublicHost string // what customers connect to
	PublicPort int
	Capacity   int // most databases that it holds
	// Connections is how many connections its databases may have together: 0 for any number, nil for what its agent says that
	// there are, or any number if it does not answer.
	Connections *int
	// Version is this program's. Unchecked registers the server without a check, for example while its agent does not run yet.
	Version   string
	Unchecked bool
}

// AddServer registers a database server whose agent can be worked with: it is reached and takes the secret, knows what this
// version sends, is in charge of its server, and is not registered already. VALIDATION_ERROR names the field, and what to do.
func (o *Operator) AddServer(ctx context.Context, n NewServer) (server.Server, error) {
	name, err := account.ValidateName(n.Name)
	if err != nil {
		return server.Server{}, err
	}
	s := server.Server{
		ID: base.NewID[id.ServerID](o.base.Entropy), Name: name, AgentURL: n.AgentURL, CA: n.CA, PublicHost: n.PublicHost,
		PublicPort: n.PublicPort, Capacity: n.Capacity, Enabled: true, CreatedAt: o.base.Clock.Now(),
	}
	if n.Connections != nil {
		s.Connections = *n.Connections
	}
	if err := s.Validate(); err != nil {
		return server.Server{}, err
	}
	if err := server.CheckSecret(n.Secret); err != nil {
		return server.Server{}, fault.Invalid("agentSecret", "%s", err)
	}
	if s.SealedSecret, err = o.base.Secrets.Seal([]byte(n.Secret), s.SecretContext()); err != nil {
		return server.Server{}, err
	}
	passphrase := o.base.Entropy.Base62(command.ArchiveKeyLength)
	if s.SealedArchiveKey, err = o.base.Secrets.Seal([]byte(passphrase), s.ArchiveContext()); err != nil {
		return server.Server{}, err
	}
	if !n.Unchecked {
		seen, err := o.surveyNew(ctx, &s, n.Version)
		if err != nil {
			return server.Server{}, err
		}
		if n.Connections == nil {
			s.Connections = seen.Connections
		}
	}
	err = o.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		if err := tx.Servers().Add(ctx, s); err != nil {
			return err
		}
		details := serverSettings(s)
		details["serverId"] = string(s.ID)
		return o.record(ctx, tx, "", audit.ServerAdded, details)
	})
	return s, err
}

// serverSettings are what an operator says of a server, but for the secret.
func serverSettings(s server.Server) audit.Details {
	settings := audit.Details{
		"server": s.Name, "agentUrl": s.AgentURL, "publicHost": s.PublicHost, "publicPort": strconv.Itoa(s.PublicPort),
		"capacity": strconv.Itoa(s.Capacity), "connections": strconv.Itoa(s.Connections), "enabled": strconv.FormatBool(s.Enabled),
	}
	if s.CA != "" {
		settings["caSha256"] = fmt.Sprintf("%x", sha256.Sum256([]byte(s.CA)))
	}
	return settings
}

// Servers lists the registered servers.
func (o *Operator) Servers(ctx context.Context) ([]server.Server, error) {
	return ports.Read(ctx, o.base.Store, func(ctx context.Context, tx ports.Tx) ([]server.Server, error) {
		return tx.Servers().List(ctx)
	})
}

// lockServer returns a registered server, locked. VALIDATION_ERROR on "server" where there is none.
func lockServer(ctx context.Context, tx ports.Tx, of id.ServerID) (server.Server, error) {
	err := tx.Servers().Lock(ctx, of)
	if err != nil {
		return server.Server{}, notFound(err, "server")
	}
	s, err := tx.Servers().Get(ctx, of)
	return s, notFound(err, "server")
}

// ChangeServer changes address, capacity, connections, or whether the server takes new databases. Its databases stay where they
// are. VALIDATION_ERROR on "server" where it is to take none any more, and is the last one to whose version ways back lead; on
// "enabled" where it is to take some again, and is being drained.
func (o *Operator) ChangeServer(
	ctx context.Context, serverID id.ServerID, change func(*server.Server),
) (server.Server, error) {
	return o.changeServer(ctx, serverID, change, func(ctx context.Context, tx ports.Tx) error {
		before, err := tx.Servers().Get(ctx, serverID)
		if err != nil {
			return notFound(err, "server")
		}
		after := before
		switch change(&after); {
		case before.Enabled && !after.Enabled:
			return moves.KeepsWaysBack(ctx, tx, serverID)
		case !before.Enabled && after.Enabled:
			return moves.NotDrained(ctx, tx, serverID)
		}
		return nil
	})
}

// changeServer is ChangeServer of what may be changed so.
func (o *Operator) changeServer(
	ctx context.Context, serverID id.ServerID, change func(*server.Server), may func(context.Context, ports.Tx) error,
) (s server.Server, err error) {
	err = o.base.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		if err := may(ctx, tx); err != nil {
			return err
		}
		if s, err = lockServer(ctx, tx, serverID); err != nil { // or of two changes at once, one would be lost
			return err
		}
		before, secret := serverSettings(s), s.SealedSecret
		change(&s)
		if err := s.Validate(); err != nil {
			return err
		}
		if err := tx.Servers().Save(ctx, s); err != nil {
			return err
		}
		about := audit.Details{"serverId": string(s.ID), "server": s.Name}
		changes := audit.Changes(before, serverSettings(s))
		if !bytes.Equal(secret, s.SealedSecret) {
			changes["agentSecret"] = "replaced"
		}
		return o.recordChanges(ctx, tx, "", audit.ServerChanged, about, changes)
	})
	return s, err
}
