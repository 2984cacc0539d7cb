package operator

import (
	"context"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/plane"
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
}

// AddServer registers a database server. VALIDATION_ERROR names the field.
func (o *Operator) AddServer(ctx context.Context, n NewServer) (server.Server, error) {
	name, err := account.ValidateName(n.Name)
	if err != nil {
		return server.Server{}, err
	}
	s := server.Server{
		ID: plane.NewID[id.ServerID](o.plane.Entropy), Name: name, AgentURL: n.AgentURL, CA: n.CA, PublicHost: n.PublicHost,
		PublicPort: n.PublicPort, Capacity: n.Capacity, Enabled: true, CreatedAt: o.plane.Clock.Now(),
	}
	if n.Connections != nil {
		s.Connections = *n.Connections
	}
	if err := s.Validate(); err != nil {
		return server.Server{}, err
	}
	if n.Secret == "" {
		return server.Server{}, fault.Invalid("secret", "must not be empty")
	}
	if s.SealedSecret, err = o.plane.Secrets.Seal([]byte(n.Secret), s.SecretContext()); err != nil {
		return server.Server{}, err
	}
	if n.Connections == nil {
		s.Connections = o.connectionsOf(ctx, s)
	}
	err = o.plane.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error { return tx.Servers().Add(ctx, s) })
	return s, err
}

// askWait bounds the question for a new server's connections.
const askWait = 10 * time.Second

// connectionsOf asks the agent of a server that is not registered yet; 0 if it does not say. An operator may well register a
// server before its agent runs.
func (o *Operator) connectionsOf(ctx context.Context, s server.Server) int {
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	agent, err := o.plane.Fleet.Agent(s)
	if err != nil {
		return 0
	}
	known, err := ports.Ask(ctx, agent, command.AskCapabilities{})
	if err != nil {
		return 0
	}
	return known.Connections
}

// Servers lists the registered servers.
func (o *Operator) Servers(ctx context.Context) ([]server.Server, error) {
	return ports.Read(ctx, o.plane.Store, func(ctx context.Context, tx ports.Tx) ([]server.Server, error) {
		return tx.Servers().List(ctx)
	})
}

// ChangeServer changes address, capacity, connections, or whether the server takes new databases. Its databases stay where they
// are.
func (o *Operator) ChangeServer(
	ctx context.Context, serverID id.ServerID, change func(*server.Server),
) (s server.Server, err error) {
	err = o.plane.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		if s, err = tx.Servers().Get(ctx, serverID); err != nil {
			return plane.NotFound(err, fault.Invalid("server", "does not exist"))
		}
		change(&s)
		if err := s.Validate(); err != nil {
			return err
		}
		return tx.Servers().Save(ctx, s)
	})
	return s, err
}

// EachSealed calls visit with every stored secret, still encrypted. An error of visit ends the iteration.
func (o *Operator) EachSealed(ctx context.Context, visit func(sealed []byte) error) error {
	for after := ""; ; {
		batch, err := ports.Read(ctx, o.plane.Store, func(ctx context.Context, tx ports.Tx) ([]ports.SealedValue, error) {
			return tx.SealedValues().Next(ctx, after, resealBatch)
		})
		if err != nil || len(batch) == 0 {
			return err
		}
		for _, v := range batch {
			if err := visit(v.Sealed); err != nil {
				return err
			}
		}
		after = batch[len(batch)-1].Ref
	}
}

// resealBatch bounds one transaction of Reseal.
const resealBatch = 100

// Reseal encrypts every stored secret again with the current primary key, and returns how many it changed. It can be
// interrupted and run again. Old keys may be removed from the ring only after it has finished.
func (o *Operator) Reseal(ctx context.Context) (changed int, err error) {
	for after := ""; ; {
		var batch []ports.SealedValue
		err := o.plane.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
			if batch, err = tx.SealedValues().Next(ctx, after, resealBatch); err != nil {
				return err
			}
			for _, v := range batch {
				if err := o.resealOne(ctx, tx, v); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || len(batch) == 0 {
			return changed, err
		}
		changed += len(batch)
		after = batch[len(batch)-1].Ref
	}
}

func (o *Operator) resealOne(ctx context.Context, tx ports.Tx, v ports.SealedValue) error {
	plain, err := o.plane.Secrets.Open(v.Sealed, v.Context)
	if err != nil {
		return err
	}
	sealed, err := o.plane.Secrets.Seal(plain, v.Context)
	if err != nil {
		return err
	}
	return tx.SealedValues().Replace(ctx, v, sealed)
}
