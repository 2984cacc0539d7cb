package monitor

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/ports"
)

var errOtherKey = errors.New("the agent encrypts the archive of its server with another key than the metadata have: without " +
	"that server, what is in the archive is lost")

// keyArchive gives an agent that keeps an archive the key for it, until it has one.
func (w *Monitor) keyArchive(ctx context.Context, s server.Server, agent ports.Agent, known command.Capabilities) {
	if !known.State.InCharge {
		return // and takes nothing yet
	}
	var unsent, other error
	if known.Archive != nil {
		key, err := w.base.Secrets.Open(s.SealedArchiveKey, s.ArchiveContext())
		switch {
		case err != nil:
			unsent = err
		case known.Archive.KeyMark == "":
			unsent = sendKey(ctx, agent, string(key))
		case known.Archive.KeyMark != command.ArchiveKeyMark(string(key)):
			other = errOtherKey
		}
	}
	if ctx.Err() != nil {
		return
	}
	now := w.base.Clock.Now()
	w.report(ctx, s, now, event{unsent != nil, "archive.key_not_sent", "archive.key_sent", unsent})
	w.report(ctx, s, now, event{other != nil, "archive.other_key", "archive.same_key", other})
}

func sendKey(ctx context.Context, agent ports.Agent, key string) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	_, err := ports.Ask(ctx, agent, command.SetArchiveKey{Key: key})
	return err
}
