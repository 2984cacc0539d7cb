package base

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// A server remembers the operations that it has heard of. Metadata that lack one of them went back in time, by a restore or a
// failover that lost transactions, or are a copy that went its own way. What they say of that server is not to be trusted where
// something would be destroyed, until an operator has looked: nothing is purged there, and no backup is erased. An operation is
// random and is stored before any agent hears of it, so nothing else needs to be counted.

// ErrBehind means that a server has heard of operations that the metadata lack.
var ErrBehind = errors.New("the server has heard of operations that the metadata lack: they went back in time, or are another " +
	"installation's; look at what differs, and confirm that they count (pgherd admin metadata confirm)")

// InStep asks a server what it remembers, before something is destroyed there, and vouches for what the metadata have. ErrBehind.
// The other errors are those of ports.Agent, and of the metadata.
func (p *Base) InStep(ctx context.Context, agent ports.Agent) error {
	for {
		heard, err := ports.Ask(ctx, agent, command.AskHeard{})
		if err != nil {
			return err
		}
		lacking, err := p.Lacking(ctx, heard)
		switch {
		case err != nil:
			return err
		case len(lacking) > 0:
			return fmt.Errorf("%w: operation %s", ErrBehind, lacking[0])
		case len(heard.Operations) > 0:
			if _, err := ports.Ask(ctx, agent, command.Vouch{Operations: heard.Operations}); err != nil {
				return err
			}
		}
		if !heard.More {
			return nil
		}
	}
}

// Lacking are the operations that an agent has heard of and the metadata do not have.
func (p *Base) Lacking(ctx context.Context, heard command.Heard) (list []id.OperationID, err error) {
	all := heard.Operations
	if heard.Last != "" {
		all = append([]id.OperationID{heard.Last}, all...)
	}
	err = p.Store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		list = nil
		for _, o := range all {
			switch _, err := tx.Operations().Get(ctx, o); {
			case errors.Is(err, ports.ErrNoRow):
				list = append(list, o)
			case err != nil:
				return err
			}
		}
		return nil
	})
	return list, err
}

// vouchEvery is how often servers are asked what they have heard. It bounds how much an agent remembers, not what it protects.
const vouchEvery = 10 * time.Second

// RegisterInStep registers the periodic task that vouches for what servers have heard, and says where the metadata are behind.
func (p *Base) RegisterInStep() {
	p.EachServer("operations of servers", vouchEvery, func(ctx context.Context, _ time.Time, s server.Server) error {
		agent, err := p.Fleet.Agent(s)
		if err == nil {
			err = p.InStep(ctx, agent)
		}
		if errors.Is(err, ErrBehind) {
			p.Journal.Log(ctx, ports.JournalEvent{What: "metadata.behind", ServerID: s.ID, ServerName: s.Name, Err: err})
			return nil
		}
		return err
	})
}
