package operator

import (
	"context"
	"sync"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// StorageChecked is what came of a try of the storage of a server's backups.
type StorageChecked struct {
	Server server.Server
	command.StorageTried
}

// CheckStorage has the agents of all servers, or of one, try where they keep backups. An agent that does not answer is
// wrong, too.
func (o *Operator) CheckStorage(ctx context.Context, of id.ServerID) (all []StorageChecked, err error) {
	list, err := o.Servers(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range list {
		if of == "" || s.ID == of {
			all = append(all, StorageChecked{Server: s})
		}
	}
	var checks sync.WaitGroup
	free := make(chan struct{}, checksAtOnce)
	for i := range all {
		free <- struct{}{}
		checks.Go(func() {
			defer func() { <-free }()
			all[i].StorageTried = o.tryStorage(ctx, all[i].Server.ID)
		})
	}
	checks.Wait()
	return all, nil
}

func (o *Operator) tryStorage(ctx context.Context, of id.ServerID) command.StorageTried {
	agent, err := o.base.AgentOf(ctx, of)
	var tried command.StorageTried
	if err == nil {
		tried, err = ports.Ask(ctx, agent, command.TryStorage{})
	}
	if err != nil {
		tried.Wrong = "the agent does not say it: " + err.Error()
	}
	return tried
}
