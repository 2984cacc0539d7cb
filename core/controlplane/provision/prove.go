package provision

import (
	"context"
	"errors"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/restore"
	"github.com/pgherd/pgherd/ports"
)

// Prove has given up what only the making of a database needed whose copy is in its place, and its owner's log-in proved: the
// calls "discard" and "prove" of an operation. Of a stopped one nobody logs in, and nothing is proved. A refusal that stays
// changes nothing about the database, which is whole: it is logged.
func Prove(ctx context.Context, p *base.Base, l *work.Lease, a ports.Agent, r database.Record) error {
	spec, err := Spec(ctx, p, r)
	if err != nil {
		return err
	}
	calls := []struct {
		call string
		told command.Returning[command.None]
	}{{"discard", command.Discard{DatabaseID: r.ID}}, {"prove", spec}}
	if r.Status == database.Stopped {
		calls = calls[:1]
	}
	for _, s := range calls {
		_, err := work.Send(ctx, l, s.call, a, s.told)
		if err != nil && !Hopeless(l, err) {
			return err
		}
		if err != nil {
			l.Log(string(l.Operation().Kind)+"."+s.call+"_refused", err)
		}
	}
	return nil
}

// Hopeless reports whether an error is a refusal that stays, however often the command is sent.
func Hopeless(l *work.Lease, err error) bool {
	var answer *command.Refusal
	return base.RefusedForGood(err) || errors.As(err, &answer) && l.Operation().Attempts >= restore.MostSwitches
}
