package base

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/brake"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/rounds"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

// A server remembers the operations that it has heard of. Metadata that lack one of them are behind, see brake.Lacks: nothing is
// destroyed because a time is over, on any server, until an operator has looked. An operation is random and is stored before any
// agent hears of it, so nothing else needs to be counted.

const (
	// vouchEvery is how often servers are asked what they have heard.
	vouchEvery = 10 * time.Second
	// heardLately is for how long an answer counts, or that there was none, before what destroys asks by itself.
	heardLately = 3 * vouchEvery
	// heardTime is how long what destroys elsewhere waits for a server's answer.
	heardTime = 5 * time.Second
)

// heard is what servers have said of the metadata, as this process has asked them.
type heard struct {
	asking sync.Mutex // held by who asks the servers for what destroys

	mu    sync.Mutex
	asked map[id.ServerID]time.Time
	lacks map[id.ServerID]brake.Hold
}

// note notes what a server has said; err: it has not answered, and what it said before still counts.
func (h *heard) note(of id.ServerID, now time.Time, lacks *brake.Hold, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asked == nil {
		h.asked, h.lacks = map[id.ServerID]time.Time{}, map[id.ServerID]brake.Hold{}
	}
	h.asked[of] = now
	switch {
	case lacks != nil:
		h.lacks[of] = *lacks
	case err == nil:
		delete(h.lacks, of)
	}
}

// isOld reports whether a server was not asked lately.
func (h *heard) isOld(of id.ServerID, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	at, known := h.asked[of]
	ago := now.Sub(at)
	return !known || ago < 0 || ago >= heardLately
}

// of returns what the metadata lack, as a server has last said.
func (h *heard) of(s id.ServerID) *brake.Hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	if hold, lacks := h.lacks[s]; lacks {
		return &hold
	}
	return nil
}

// mayOn is the one rule for everything that is done because a time is over: it is done by the time that mayOn returns, and waits
// where mayOn returns brake.Held. What destroys on a server also waits until that has said that the metadata lack nothing; its
// errors are those of InStep then. on is empty where no server is asked.
func (p *Base) mayOn(ctx context.Context, w brake.Work, on id.ServerID) (time.Time, error) {
	if w == brake.Destroys && on != "" {
		if err := p.InStep(ctx, on); err != nil {
			return time.Time{}, err
		}
	}
	return p.Brake.Now(ctx, w)
}

// behind holds what destroys while any server has heard of what the metadata lack. One that does not answer holds only what is
// done on itself: nobody can say for how long it is away.
func (p *Base) behind(ctx context.Context, _ time.Time) (*brake.Hold, error) {
	servers, err := ports.Read(ctx, p.Store, func(ctx context.Context, tx ports.Tx) ([]id.ServerID, error) {
		return tx.Servers().IDs(ctx)
	})
	if err != nil {
		return nil, err
	}
	p.heard.asking.Lock()
	defer p.heard.asking.Unlock()
	ctx, cancel := context.WithTimeout(ctx, heardTime)
	defer cancel()
	var asking sync.WaitGroup
	for _, s := range servers {
		if p.heard.isOld(s, p.Clock.Now()) {
			asking.Go(func() { _ = p.InStep(ctx, s) }) // it is noted, unless the metadata could not be read
		}
	}
	asking.Wait()
	for _, s := range servers {
		if p.heard.isOld(s, p.Clock.Now()) {
			return nil, errNotCompared
		}
		if hold := p.heard.of(s); hold != nil {
			return hold, nil
		}
	}
	return nil, nil //nolint:nilnil // nothing holds
}

func (p *Base) servers(ctx context.Context) ([]server.Server, error) {
	return ports.Read(ctx, p.Store, func(ctx context.Context, tx ports.Tx) ([]server.Server, error) {
		return tx.Servers().List(ctx)
	})
}

// InStep asks a server what it remembers, before something is destroyed there, and vouches for what the metadata have; brake.Held
// where they lack something. The other errors are those of ports.Agent, and of the metadata.
func (p *Base) InStep(ctx context.Context, on id.ServerID) error {
	s, err := p.server(ctx, on)
	if err != nil {
		return err
	}
	return p.inStep(ctx, s)
}

func (p *Base) inStep(ctx context.Context, s server.Server) error {
	agent, err := p.Fleet.Agent(s)
	var lacking []id.OperationID
	if err == nil {
		lacking, err = p.vouch(ctx, agent)
	}
	if errors.Is(err, errNotCompared) {
		return err
	}
	if err != nil || len(lacking) == 0 {
		p.heard.note(s.ID, p.Clock.Now(), nil, err)
		return err
	}
	hold := brake.Lacks(s.Name, lacking[0])
	p.heard.note(s.ID, p.Clock.Now(), &hold, nil)
	return brake.Held{hold}
}

// errNotCompared means that the metadata could not be read.
var errNotCompared = errors.New("what a server has heard of could not be compared with the metadata")

// vouch vouches for the operations that an agent has heard of, and returns those that the metadata lack. errNotCompared.
func (p *Base) vouch(ctx context.Context, agent ports.Agent) (lacking []id.OperationID, err error) {
	for {
		heard, err := ports.Ask(ctx, agent, command.AskHeard{})
		if err != nil {
			return nil, err
		}
		lacking, err := p.Lacking(ctx, heard)
		switch {
		case err != nil:
			return nil, errors.Join(errNotCompared, err)
		case len(lacking) > 0:
			return lacking, nil
		case len(heard.Operations) > 0:
			if _, err := ports.Ask(ctx, agent, command.Vouch{Operations: heard.Operations}); err != nil {
				return nil, err
			}
		}
		if !heard.More {
			return nil, nil
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

// RegisterInStep registers the periodic task that vouches for what servers have heard, and says where the metadata are behind.
// Also a server that has only deleted databases is asked: their owners may have recovered them.
func (p *Base) RegisterInStep() {
	rounds.RegisterServers(p.Rounds, rounds.ServerTask[server.Server]{
		Name: "operations of servers", Every: vouchEvery, Work: brake.Harmless,
		Find: func(ctx context.Context, _ time.Time) ([]server.Server, error) { return p.servers(ctx) },
		Of:   func(s server.Server) (id.ServerID, id.AccountID) { return s.ID, "" },
		Do: func(ctx context.Context, _ time.Time, s server.Server) error {
			err := p.inStep(ctx, s)
			var held brake.Held
			if errors.As(err, &held) {
				p.Journal.Log(ctx, ports.JournalEvent{What: "metadata.behind", ServerID: s.ID, ServerName: s.Name, Err: err})
				return nil
			}
			return err
		},
	})
}
